package toolbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
	"raddle.dev/tool/permission"
)

// askFunc returns answers to open questions of a tool, and whether to leave the other ones open.
type askFunc func(ctx context.Context, open []graph.Question) (answers []graph.Answer, park bool, err error)

// ToolInfo is a tool as it is shown to a person.
type ToolInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	From        string `json:"from"` // built-in, or script
	// Effect is that of a second call: read-only, idempotent, dangerous, or "" if it is not declared.
	Effect string          `json:"effect"`
	Asks   CallRule        `json:"asks"`
	Schema json.RawMessage `json:"schema"`
}

// A CallRule says whether raddle asks before it calls a tool.
type CallRule string

const (
	NeverAsks  CallRule = "never"
	AlwaysAsks CallRule = "always"
	Denied     CallRule = "denied"
	Depends    CallRule = "depends" // on the files, commands and hosts that the call needs
)

// ToolList is a list of tools.
type ToolList struct {
	Tools    []ToolInfo `json:"tools"`
	Servers  []string   `json:"mcp_servers"` // their tools are known only after they start
	Files    []string   `json:"files"`       // files that define tools
	Problems []string   `json:"problems"`
	Unused   []string   `json:"-"` // files of tools in a language that raddle does not run

	set    *flow.Toolset
	tools  []tool.Tool
	rules  *Gate
	shared *Shared
	dir    string // of the agent; "": these are the tools of no agent
}

// ListAgentTools returns the tools that an agent's models may call. rules is the gate of the agent's host.
func (s *Shared) ListAgentTools(a *flow.Agent, rules agent.Gate) *ToolList {
	return s.newToolList(&ToolList{set: a.Tools, tools: a.AvailableTools(), dir: a.Dir, rules: rules.(*Gate)})
}

// ListGlobalTools returns the tools that every agent may name, and whether they ask in a mode. It starts no server.
func (s *Shared) ListGlobalTools(mode permission.Mode) (*ToolList, error) {
	box := s.NewToolbox(s.Dirs.Work, s.Dirs.Functions)
	set, err := box.Open(flow.ToolNeed{Dir: s.Dirs.Functions, Global: s.globalTools(), Servers: []string{"all"}})
	if err != nil {
		return nil, err
	}
	rules, err := s.NewGate(box, s.Dirs.Functions, permission.NewModeSwitch(mode))
	if err != nil {
		return nil, err
	}
	return s.newToolList(&ToolList{set: set, tools: set.Tools, rules: rules}), nil
}

// newToolList completes a list of tools.
func (s *Shared) newToolList(l *ToolList) *ToolList {
	l.shared = s
	l.Tools = []ToolInfo{}
	l.Servers = append([]string{}, l.set.Servers...)
	l.Files = append([]string{}, l.set.Scripts...)
	l.Problems = []string{}
	for _, p := range l.set.Problems {
		l.Problems = append(l.Problems, p.String())
	}
	l.Unused = l.set.Unused
	for _, t := range l.tools {
		l.Tools = append(l.Tools, newToolInfo(t, l.rules))
	}
	return l
}

// globalTools returns the names of the built-in tools, and of the files of the user's functions.
func (s *Shared) globalTools() []string {
	names := builtin.ToolNames()
	entries, _ := os.ReadDir(filepath.Join(s.Dirs.Functions, "tools")) // without the directory there are none
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ext)
		if ext != "" && (slices.Contains(toolEndings, ext) || slices.Contains(otherEndings, ext)) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func newToolInfo(t tool.Tool, rules *Gate) ToolInfo {
	info := ToolInfo{
		Name:        t.Name,
		Description: t.Description,
		From:        "script",
		Effect:      string(t.Effect),
		Asks:        rules.describeCalls(t),
		Schema:      t.Schema,
	}
	ours, known := builtin.Lookup(t.Name, builtin.Host{})
	if known && ours.Description == t.Description || isReservedName(t.Name) {
		info.From = "built-in"
	}
	if len(info.Schema) == 0 {
		info.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return info
}

// isReservedName reports whether a name is one of the tools that agents get because of what
// their files say, without naming them.
func isReservedName(name string) bool {
	return slices.ContainsFunc([]string{"user__", todoPrefix, "agent__", "skill__", ragPrefix}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

const (
	todoPrefix = "todo__"
	ragPrefix  = "rag__"
)

// findTool returns a tool of the list, also one of a server, which it starts.
func (l *ToolList) findTool(ctx context.Context, name string) (tool.Tool, error) {
	tools := l.tools
	at := func() int { return slices.IndexFunc(tools, func(t tool.Tool) bool { return t.Name == name }) }
	if i := at(); i >= 0 {
		return tools[i], nil
	}
	next := ""
	if l.set.Serve != nil {
		served, failed := l.set.Serve(ctx, l.set.Servers)
		tools = served
		if i := at(); i >= 0 {
			return tools[i], nil
		}
		for _, err := range failed {
			next = err.Error()
		}
	}
	var names []string
	for _, t := range slices.Concat(l.tools, tools) {
		names = append(names, t.Name)
	}
	return tool.Tool{}, failure.NewUsage(cmp.Or(wording.SuggestNearest(name, names, ""), next, "see: raddle tools ls"), "there is no tool %q", name)
}

// DescribeTool describes one tool of the list.
func (l *ToolList) DescribeTool(ctx context.Context, name string) (ToolInfo, error) {
	t, err := l.findTool(ctx, name)
	if err != nil {
		return ToolInfo{}, err
	}
	info := newToolInfo(t, l.rules)
	if !slices.ContainsFunc(l.tools, func(o tool.Tool) bool { return o.Name == name }) {
		info.From = "MCP server"
	}
	return info, nil
}

// CallTool makes one call of a tool of the list at the user's request: it checks no
// permissions. The text is what a model would read. The questions of tools go to ask;
// a question that ask leaves open is an error.
func (l *ToolList) CallTool(ctx context.Context, c runs.ToolCall, ask askFunc) (text string, failed bool, err error) {
	return l.makeCall(ctx, c, &tool.Permit{
		Allowed: true,
		Judge:   func(json.RawMessage, []string) error { return nil },
	}, ask)
}

// makeCall makes one call, which was permitted.
func (l *ToolList) makeCall(ctx context.Context, c runs.ToolCall, permit *tool.Permit, ask askFunc) (text string, failed bool, err error) {
	if err := l.shared.Dirs.RequireWork(); err != nil {
		return "", false, err
	}
	t, err := l.findTool(ctx, c.Tool)
	if err != nil {
		return "", false, err
	}
	if strings.HasPrefix(c.Tool, todoPrefix) {
		return "", false, failure.NewUsage("run the agent", "%s needs a conversation, and there is none", c.Tool)
	}
	if strings.HasPrefix(c.Tool, ragPrefix) {
		return "", false, failure.NewUsage("search it: raddle rag search AGENT QUERY", "%s needs the knowledge base of a run, and there is none", c.Tool)
	}
	var result tool.Result
	node := graph.Node{
		Name: "call",
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			if strings.HasPrefix(c.Tool, "user__") { // they ask questions, which an effect must not
				result, err = t.Run(ctx, tool.Call{ID: "call", Args: c.Args, Permit: permit})
			} else {
				result, err = callWithQuestions(ctx, t, tool.Call{
					ID:     "call",
					Key:    "call",
					Args:   c.Args,
					Permit: permit,
				})
			}
			return graph.Update{}, err
		},
	}
	g, err := graph.Compile(graph.Def{
		Name:  "call",
		Nodes: []graph.Node{node},
		Start: []string{"call"},
		Edges: []graph.Edge{{From: []string{"call"}, To: []string{graph.End}}},
	})
	if err != nil {
		return "", false, err
	}
	err = driveToEnd(ctx, &graph.Runner{Graph: g, Store: journal.NewMemory()}, ask)
	return l.shared.SecretSet().Text(result.Text()), result.Error, err
}

// callWithQuestions makes a call, and asks the questions of its tool.
func callWithQuestions(ctx context.Context, t tool.Tool, call tool.Call) (tool.Result, error) {
	type made struct {
		Result tool.Result
		Ask    *tool.Question
	}
	for {
		m, err := graph.Do(ctx, "tool", func(ctx context.Context) (made, error) {
			r, err := t.Run(ctx, call)
			if q, ok := errors.AsType[*tool.Question](err); ok {
				return made{Ask: q}, nil
			}
			return made{Result: r}, err
		})
		if err != nil || m.Ask == nil {
			return m.Result, err
		}
		answer := tool.Answer{Prompt: m.Ask.Prompt}
		value, err := graph.Interrupt[any](ctx, graph.Ask{
			Name:    "tool",
			Kind:    m.Ask.Kind,
			Prompt:  m.Ask.Prompt,
			Options: m.Ask.Options,
			Free:    true,
		})
		if refusal, ok := errors.AsType[*graph.RefusedError](err); ok {
			answer.Refused = refusal.Reason
		} else if err != nil {
			return tool.Result{}, err
		} else if answer.Value, err = json.Marshal(value); err != nil {
			return tool.Result{}, err
		}
		call.Answers = append(call.Answers, answer)
	}
}

// driveToEnd drives a graph to its end.
func driveToEnd(ctx context.Context, r *graph.Runner, ask askFunc) error {
	const thread = "call"
	res, err := r.Invoke(ctx, graph.Input{Thread: thread})
	for err == nil && res.Status == graph.Waiting {
		answers, _, asked := ask(ctx, res.Questions)
		if asked != nil || len(answers) == 0 {
			return cmp.Or(asked, error(failure.NewUsage("give the answer with --answer TEXT", "the question has no answer: %s", res.Questions[0].Prompt)))
		}
		res, err = r.InvokeResume(ctx, graph.Resume{Thread: thread, Answers: answers})
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	}
	return res.Err
}
