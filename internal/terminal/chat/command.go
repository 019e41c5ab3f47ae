package chat

import (
	"context"
	"slices"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
)

// A command is what a person can type after a slash.
type command struct {
	name string
	args string // how the arguments are written
	help string
	dots []string // the reference tool's spellings, without the dot
	also []string // other names
	// accepts are the words that may follow a command without args.
	accepts []string
	group   string
	busy    bool // it works while a reply is being written
	run     func(ctx context.Context, s *Session, rest string) error
}

// These are the groups of commands, in the order of /help.
const (
	groupTalk  = "Conversation"
	groupAgent = "Agent"
	groupTime  = "Back and forth"
	groupRuns  = "Runs"
	groupTerm  = "Terminal"
)

// listCommands returns all commands, in the order of /help. It is a function, because /help reads it.
func listCommands() []command {
	return slices.Concat(talkCommands, agentCommands, timeCommands, runCommands, termCommands())
}

// parseCommand splits a text into the name of a command and the rest. ok is false for a message: also for a path such
// as /etc/hosts, and for a text that only begins with a dot.
func parseCommand(text string) (name, rest string, ok bool) {
	if strings.Contains(text, "\n") || len(text) < 2 {
		return "", "", false
	}
	word, rest, _ := strings.Cut(text[1:], " ")
	switch {
	case text[0] == '/' && !strings.Contains(word, "/") && word != "":
		return word, strings.TrimSpace(rest), true
	case text[0] == '.' && (findOther(word, rest) != "" || slices.ContainsFunc(listCommands(), func(c command) bool { return slices.Contains(c.dots, word) })):
		return "." + word, strings.TrimSpace(rest), true
	}
	return "", "", false
}

// findCommand returns the command with a name, or with a unique beginning of it. A name with a dot is a spelling of the
// reference tool.
func findCommand(name string) (*command, error) {
	all := listCommands()
	dotted, isDot := strings.CutPrefix(name, ".")
	var begin []*command
	var names []string
	for i := range all {
		c := &all[i]
		if c.name == name || slices.Contains(c.also, name) || isDot && slices.Contains(c.dots, dotted) {
			return c, nil
		}
		if strings.HasPrefix(c.name, name) {
			begin = append(begin, c)
		}
		names = append(names, c.name)
	}
	if len(begin) == 1 {
		return begin[0], nil
	}
	next := "see: /help, or send it as a message: begin with a space"
	switch {
	case len(begin) > 1:
		next = "did you mean /" + begin[0].name + " or /" + begin[1].name + "?"
	case wording.FindNearest(name, names) != "":
		next = "did you mean /" + wording.FindNearest(name, names) + "? To send it as a message, begin with a space"
	}
	return nil, failure.NewUsage(next, "unknown command /%s", name)
}

// runCommand runs a command. typed is what was typed. A command that has to wait for the reply is queued.
func (s *Session) runCommand(ctx context.Context, typed, name, rest string) {
	c, err := chooseCommand(name, rest)
	if err == nil && s.turn != nil && !c.busy {
		s.queue = append(s.queue, message{shown: typed, command: true})
		return
	}
	if err == nil {
		s.talking.Lock()
		err = c.run(ctx, s, rest)
		if s.turn == nil {
			s.title = s.talk.Title()
		}
		s.talking.Unlock()
	}
	if err != nil && !isLeftOpen(err) {
		s.Backend.ShowError(err)
		s.macro.refused = true
		if c == nil {
			s.restore(typed)
		}
	}
}

// runCLI runs a command of raddle, which has the terminal until it ends.
func (s *Session) runCLI(ctx context.Context, args ...string) error {
	if s.edit == nil {
		return s.Backend.Command(ctx, args)
	}
	s.leaveKeys()
	defer s.takeKeys()
	return s.Backend.Command(ctx, args)
}

// requireTalk returns an error for a graph agent, which has no conversation.
func (s *Session) requireTalk() error {
	if s.talk.IsGraph() {
		return failure.NewUsage("each message runs the graph from its start", "%s is a graph: it has no conversation to go back in", s.agent.Name)
	}
	return nil
}
