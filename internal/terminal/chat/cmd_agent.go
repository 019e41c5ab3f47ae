package chat

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/skill"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/conversation"
	"raddle.dev/internal/process/sandbox"
	"raddle.dev/tool/permission"
)

var agentCommands = []command{
	{
		name:  "agent",
		args:  "[NAME] [SESSION]",
		help:  "change to another agent",
		dots:  []string{"agent"},
		group: groupAgent,
		run:   changeAgent,
	},
	{
		name:  "role",
		args:  "[NAME] [MESSAGE]",
		help:  "change to a role: an agent of one file",
		dots:  []string{"role"},
		group: groupAgent,
		run:   changeRole,
	},
	{
		name:  "model",
		args:  "[MODEL]",
		help:  "answer with another model from now on",
		dots:  []string{"model"},
		group: groupAgent,
		run:   changeModel,
	},
	{
		name:  "mode",
		args:  "[plan|ask|edits|box]",
		help:  "what may be done without asking (Shift-Tab)",
		group: groupAgent,
		busy:  true,
		run:   changeMode,
	},
	{
		name:  "starters",
		args:  "[N]",
		help:  "begin with one of the agent's suggestions",
		dots:  []string{"starter"},
		group: groupAgent,
		run:   sendStarter,
	},
	{
		name:  "variables",
		args:  "[NAME VALUE]",
		help:  "show the agent's variables, or set one",
		dots:  []string{"variable"},
		group: groupAgent,
		run:   showVariables,
	},
	{
		name:  "tools",
		dots:  []string{"tools"},
		help:  "list the tools that the agent may use, and which of them ask",
		group: groupAgent,
		run:   func(ctx context.Context, s *Session, _ string) error { return s.runCLI(ctx, "tools", "ls", s.name) },
	},
	{name: "permissions", help: "show the mode and the rules", group: groupAgent, run: showPermissions},
	{name: "mcp", dots: []string{"mcp"}, help: "list the MCP servers of the agent", group: groupAgent, run: showServers},
	{
		name:  "rag",
		help:  "show the state of the agent's knowledge base",
		dots:  []string{"rag"},
		group: groupAgent,
		run:   func(ctx context.Context, s *Session, _ string) error { return s.runCLI(ctx, "rag", "status", s.name) },
	},
	{name: "skills", dots: []string{"skills"}, help: "list the skills that the agent can load", group: groupAgent, run: showSkills},
	{
		name:  "set",
		args:  "KEY VALUE",
		help:  "set model or mode",
		dots:  []string{"set"},
		group: groupAgent,
		run:   setOption,
	},
}

func changeAgent(ctx context.Context, s *Session, rest string) error {
	name, session, _ := strings.Cut(rest, " ")
	if name == "" {
		list := s.Process.ListAgents()
		if len(list) == 0 {
			return failure.NewUsage("create one: raddle agents new NAME", "there are no agents in %s", s.Process.Dirs.ShortPath(s.Process.Dirs.Agents))
		}
		var names []string
		for _, a := range list {
			names = append(names, a.Name)
		}
		at, err := s.choose(ctx, "Which agent?", names)
		if err != nil {
			return err
		}
		name = names[at]
	}
	return s.enterAgent(ctx, name, strings.TrimSpace(session))
}

// changeRole changes to a role, and sends it a message if there is one.
func changeRole(ctx context.Context, s *Session, rest string) error {
	name, text, _ := strings.Cut(rest, " ")
	if name == "" {
		var names []string
		for _, r := range s.Process.ListRoles() {
			names = append(names, r.Name)
		}
		if len(names) == 0 {
			return failure.NewUsage("write instructions into NAME.md there", "there are no roles in %s", s.Process.Dirs.ShortPath(filepath.Join(s.Process.Dirs.Config, "roles")))
		}
		at, err := s.choose(ctx, "Which role?", names)
		if err != nil {
			return err
		}
		name = names[at]
	}
	if err := s.enterAgent(ctx, app.RolePrefix+name, ""); err != nil {
		return err
	}
	if text = strings.TrimSpace(text); text != "" {
		s.send(ctx, message{text: text, shown: text})
	}
	return nil
}

func changeModel(ctx context.Context, s *Session, id string) error {
	if id == "" {
		var names []string
		for _, m := range append(s.Process.Models.ListNamed(), s.Process.Models.ListLocalModels(ctx)...) {
			names = append(names, m.ID)
		}
		if len(names) == 0 {
			return failure.NewUsage("set a key: raddle login PROVIDER", "no model can be used: there is no key")
		}
		at, err := s.choose(ctx, "Which model?", names)
		if err != nil {
			return err
		}
		id = names[at]
	}
	return s.setModel(id)
}

// setModel makes a model answer from the next message on.
func (s *Session) setModel(id string) error {
	if err := s.Process.Models.CheckNames("", id, ""); err != nil {
		return err
	}
	s.model = id
	s.say("The next message goes to " + id + ".")
	return nil
}

func changeMode(_ context.Context, s *Session, name string) error {
	if name == "" {
		s.say("Permission mode: " + describeMode(s.mode.Mode()))
		return nil
	}
	mode, ok := permission.ParseMode(name)
	if !ok {
		return failure.NewUsage("write: /mode plan, /mode ask, /mode edits or /mode box", "unknown permission mode %q", name)
	}
	if err := checkMode(s, mode); err != nil {
		return err
	}
	s.mode.SetMode(mode)
	s.say("Permission mode: " + describeMode(mode))
	return nil
}

// nextMode returns the mode that follows one, of those that can be used here.
func nextMode(s *Session, m permission.Mode) permission.Mode {
	next := m.Next()
	for next != m && checkMode(s, next) != nil {
		next = next.Next()
	}
	return next
}

// checkMode returns why a mode cannot be used here: in the mode box without a box every command that is not known to be
// harmless would be refused.
func checkMode(s *Session, m permission.Mode) error {
	if m != permission.ModeBox {
		return nil
	}
	_, tb, err := sandbox.OpenBox(s.Process.Tools, s.Process.Dirs.Work)
	if err != nil {
		return err
	}
	return tb.Close()
}

// describeMode explains a mode.
func describeMode(m permission.Mode) string {
	switch m {
	case permission.ModePlan:
		return "plan: the agent only reads, and makes a plan"
	case permission.ModeAsk:
		return "ask: changes of files ask first"
	case permission.ModeBox:
		return "box: commands run in the box, and what would ask is refused"
	}
	return "edits: files of this directory are changed without asking"
}

func sendStarter(ctx context.Context, s *Session, rest string) error {
	starters := s.agent.Starters()
	if len(starters) == 0 {
		s.say(s.agent.Name + " has no suggestions.")
		return nil
	}
	n := 0
	if rest == "" {
		at, err := s.choose(ctx, "Begin with", starters)
		if err != nil {
			return err
		}
		n = at + 1
	} else if _, err := fmt.Sscan(rest, &n); err != nil || n < 1 || n > len(starters) {
		return failure.NewUsage(fmt.Sprintf("write a number from 1 to %d", len(starters)), "there is no suggestion %s", rest)
	}
	s.send(ctx, message{text: starters[n-1], shown: starters[n-1]})
	return nil
}

// listVariables returns the variables of the agent with their values.
func (s *Session) listVariables(declared []spec.Variable) *term.Table[spec.Variable] {
	t := term.NewTable(
		term.NewColumn("VARIABLE", func(v spec.Variable) string { return v.Name }),
		term.NewColumn("VALUE", s.valueOf),
		term.NewColumn("DESCRIPTION", func(v spec.Variable) string { return strings.TrimSpace(v.Description) }),
	)
	for _, v := range declared {
		t.AddRow(v)
	}
	return t
}

// valueOf returns the value of a variable in this conversation, or its default.
func (s *Session) valueOf(v spec.Variable) string {
	value, ok := s.vars[v.Name]
	if !ok && v.Default != nil {
		return *v.Default
	}
	return value
}

func showVariables(ctx context.Context, s *Session, rest string) error {
	declared := s.agent.Variables()
	if rest == "" {
		if len(declared) == 0 {
			s.say(s.agent.Name + " has no variables.")
			return nil
		}
		s.printTable(s.listVariables(declared))
		return nil
	}
	name, value, ok := strings.Cut(rest, " ")
	if !ok {
		return failure.NewUsage("write: /variables NAME VALUE", "there is no value")
	}
	known := false
	for _, v := range declared {
		known = known || v.Name == name
	}
	if !known {
		return failure.NewUsage("see: /variables", "%s has no variable %q", s.agent.Name, name)
	}
	all := map[string]string{}
	maps.Copy(all, s.vars)
	all[name] = strings.TrimSpace(value)
	s.vars = all
	if !s.talk.IsGraph() {
		s.say("Set for a new conversation: a conversation keeps the values that it began with. Start one with /new.")
		return nil
	}
	s.say("Set from the next message on.")
	return nil
}

func showPermissions(ctx context.Context, s *Session, _ string) error {
	s.say("Permission mode: " + describeMode(s.mode.Mode()) + ". Change it with Shift-Tab or /mode.")
	s.say("Rules: " + s.Process.Dirs.ShortPath(s.Process.Dirs.Config) + "/permissions.yaml, and .raddle/permissions.yaml of the project. What each tool does:")
	return s.runCLI(ctx, "tools", "ls", s.name)
}

func showServers(_ context.Context, s *Session, _ string) error {
	servers := s.agent.Tools.Servers
	if len(servers) == 0 {
		s.say(s.agent.Name + " uses no MCP servers.")
		return nil
	}
	for _, name := range servers {
		s.say(name)
	}
	s.say("A server starts with the first call. Check one with: raddle doctor, or raddle tools show NAME")
	return nil
}

func setOption(ctx context.Context, s *Session, rest string) error {
	key, value, _ := strings.Cut(rest, " ")
	value = strings.TrimSpace(value)
	switch {
	case key == "model" && value != "":
		return s.setModel(value)
	case key == "mode" && value != "":
		return changeMode(ctx, s, value)
	}
	return failure.NewUsage("write: /set model CLIENT:MODEL, or /set mode ask; other settings: raddle config set", "%q cannot be set here", key)
}

var talkCommands = []command{
	{
		name:  "new",
		args:  "[NAME]",
		help:  "start a new conversation with this agent",
		also:  []string{"clear"},
		group: groupTalk,
		run:   startNew,
	},
	{
		name:  "sessions",
		help:  "list the conversations of this directory, and continue one",
		group: groupTalk,
		run:   chooseSession,
	},
	{
		name:  "session",
		args:  "[NAME]",
		help:  "start or continue the conversation NAME",
		dots:  []string{"session"},
		group: groupTalk,
		run:   openSession,
	},
	{name: "name", args: "NAME", help: "give this conversation a name", group: groupTalk, run: renameTalk},
	{
		name:    "compact",
		help:    "replace the conversation so far by a summary",
		dots:    []string{"compress", "compact"},
		accepts: []string{"session"},
		group:   groupTalk,
		run:     compactTalk,
	},
	{name: "context", help: "show what fills the model's window", group: groupTalk, busy: true, run: showContext},
	{name: "cost", help: "show tokens and money of each model", group: groupTalk, busy: true, run: showCost},
	{
		name:    "info",
		help:    "show where this conversation is",
		dots:    []string{"info"},
		accepts: []string{"session"},
		group:   groupTalk,
		busy:    true,
		run:     showInfo,
	},
	{name: "todo", dots: []string{"todo"}, help: "show the agent's list of tasks", group: groupTalk, busy: true, run: showTodo},
	{
		name:  "file",
		args:  "PATH...",
		help:  "attach files to the next message, as @PATH does",
		dots:  []string{"file"},
		group: groupTalk,
		run:   attachFiles,
	},
	{
		name:  "continue",
		help:  "ask the agent to continue",
		dots:  []string{"continue"},
		group: groupTalk,
		run: func(ctx context.Context, s *Session, _ string) error {
			s.send(ctx, message{text: "Continue.", shown: "Continue."})
			return nil
		},
	},
	{
		name:  "copy",
		args:  "[N]",
		help:  "copy the last answer, or its code block N",
		dots:  []string{"copy"},
		group: groupTalk,
		busy:  true,
		run:   copyAnswer,
	},
	{
		name:  "save",
		args:  "FILE",
		help:  "write the last answer to a file",
		dots:  []string{"save"},
		group: groupTalk,
		busy:  true,
		run:   saveAnswer,
	},
	{
		name:  "export",
		args:  "FILE.md|json|html",
		help:  "write the whole conversation to a file",
		group: groupTalk,
		busy:  true,
		run:   exportTalk,
	},
	{
		name:  "share",
		args:  "FILE.html",
		help:  "write the last turn to a page that shows its run without a server",
		group: groupTalk,
		run:   shareTurn,
	},
}

func startNew(ctx context.Context, s *Session, name string) error {
	return s.enterAgent(ctx, s.name, name)
}

// enterAgent changes to an agent and one of its conversations, as openAgent does, and shows where the conversation is.
func (s *Session) enterAgent(ctx context.Context, name, session string) error {
	if err := s.openAgent(ctx, name, session); err != nil {
		return err
	}
	s.greet(ctx)
	s.continueTurn(ctx)
	return nil
}

func openSession(ctx context.Context, s *Session, name string) error {
	if name == "" && !s.talk.IsGraph() {
		return chooseSession(ctx, s, "")
	}
	return startNew(ctx, s, name)
}

func chooseSession(ctx context.Context, s *Session, _ string) error {
	list, err := conversation.List(ctx, s.Process, s.Process.Dirs.Work)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		s.say("There is no other conversation in this directory.")
		return nil
	}
	var labels []string
	for _, c := range list {
		labels = append(labels, fmt.Sprintf("%s  %s, %s, %s", firstWords(c.Title), c.Agent, countTurns(c.Turns), describeAge(c.Updated)))
	}
	at, err := s.choose(ctx, "Continue which conversation?", labels)
	if err != nil {
		return err
	}
	return s.enterAgent(ctx, list[at].Agent, list[at].Name)
}

func renameTalk(ctx context.Context, s *Session, name string) error {
	if err := s.requireTalk(); err != nil {
		return err
	}
	if name == "" {
		return failure.NewUsage("write: /name NAME", "/name: the name is missing")
	}
	if err := s.talk.Rename(ctx, name); err != nil {
		return err
	}
	s.say("Continue it later with: raddle -s " + name)
	return nil
}

func compactTalk(ctx context.Context, s *Session, _ string) error {
	if err := s.requireTalk(); err != nil {
		return err
	}
	s.say("Summarizing the conversation. Later messages get the summary, the last message and the last reply.")
	s.startWork(ctx, s.talk.Compact, app.Request{})
	return nil
}

func showSkills(_ context.Context, s *Session, _ string) error {
	list := flow.ListSkills(s.agent)
	if len(list) == 0 {
		s.say(s.agent.Name + " has no skills. See: raddle help agents")
		return nil
	}
	t := term.NewTable(
		term.NewColumn("SKILL", func(k skill.Skill) string { return k.Name }),
		term.NewColumn("DESCRIPTION", func(k skill.Skill) string { return k.Description }),
	)
	for _, k := range list {
		t.AddRow(k)
	}
	s.printTable(t)
	return nil
}
