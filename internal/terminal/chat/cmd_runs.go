package chat

import (
	"cmp"
	"context"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/tool/builtin"
)

var runCommands = []command{
	{name: "run", args: "AGENT [PROMPT]", help: "run another agent or a graph here", group: groupRuns, run: runAgent},
	{name: "runs", args: "[RUN]", help: "list the newest runs, or show one", group: groupRuns, run: showRuns},
	{name: "graph", args: "[AGENT|RUN]", help: "draw a graph, or the path of a run", group: groupRuns, run: drawGraph},
	{
		name:  "inbox",
		help:  "answer the open questions of all runs",
		group: groupRuns,
		run:   func(ctx context.Context, s *Session, _ string) error { return s.runCLI(ctx, "inbox") },
	},
	{name: "watch", args: "RUN", help: "follow a run of another process", group: groupRuns, run: watchRun},
	{
		name:  "jobs",
		args:  "[stop JOB]",
		help:  "list the commands that the agent has started in the background, or end one",
		group: groupRuns,
		busy:  true,
		run:   showJobs,
	},
	{
		name:  "install",
		args:  "agents",
		help:  "write the agents that come with raddle",
		dots:  []string{"install"},
		group: groupRuns,
		run:   installAgents,
	},
}

func runAgent(ctx context.Context, s *Session, rest string) error {
	name, prompt, _ := strings.Cut(rest, " ")
	if name == "" {
		return failure.NewUsage("write: /run AGENT PROMPT", "/run: the agent is missing")
	}
	args := []string{"run"}
	if s.model != "" {
		args = append(args, "--model", s.model)
	}
	args = append(args, name)
	if prompt = strings.TrimSpace(prompt); prompt != "" {
		args = append(args, "--", prompt)
	}
	return s.runCLI(ctx, args...)
}

func showRuns(ctx context.Context, s *Session, run string) error {
	if run != "" {
		return s.runCLI(ctx, "runs", "show", run)
	}
	return s.runCLI(ctx, "runs", "ls", "-n", "10")
}

func drawGraph(ctx context.Context, s *Session, what string) error {
	return s.runCLI(ctx, "graph", cmp.Or(what, s.name))
}

func watchRun(ctx context.Context, s *Session, run string) error {
	return s.runCLI(ctx, "watch", cmp.Or(run, "last"))
}

// showJobs lists the background commands of the conversation, or ends one.
func showJobs(_ context.Context, s *Session, what string) error {
	jobs := s.Process.Tools.Jobs
	if verb, id, _ := strings.Cut(what, " "); verb != "" {
		if verb != "stop" || strings.TrimSpace(id) == "" {
			return failure.NewUsage("write: /jobs, or /jobs stop JOB", "/jobs knows only stop")
		}
		job, err := jobs.Stop(s.talk.Family(), strings.TrimSpace(id))
		if err != nil {
			return failure.NewUsage("see: /jobs", "%v", err)
		}
		s.say(job.ID + " " + job.State + ".")
		return nil
	}
	list := jobs.List(s.talk.Family())
	if len(list) == 0 {
		s.say("The agent has started no command in the background in this conversation.")
		return nil
	}
	t := term.NewTable(
		term.NewColumn("JOB", func(j builtin.JobState) string { return j.ID }),
		term.NewColumn("STATE", func(j builtin.JobState) string { return j.State }),
		term.NewColumn("COMMAND", func(j builtin.JobState) string { return term.CleanLine(s.redact(j.Command)) }),
		term.NewColumn("LAST LINE", func(j builtin.JobState) string { return term.CleanLine(s.redact(j.Printed)) }),
	)
	for _, j := range list {
		t.AddRow(j)
	}
	s.printTable(t)
	return nil
}

func installAgents(ctx context.Context, s *Session, what string) error {
	if what != "agents" {
		return failure.NewUsage("write: /install agents", "only agents can be installed; tools are built in")
	}
	return s.runCLI(ctx, "agents", "install")
}

func termCommands() []command {
	return []command{
		{
			name:  "macro",
			args:  "NAME [ARGUMENTS]",
			help:  "run a command or a macro that you have written",
			dots:  []string{"macro"},
			group: groupTerm,
			run:   runNamed,
		},
		{
			name:  "help",
			args:  "[WORD]",
			help:  "list the commands, or those about a word",
			also:  []string{"?"},
			dots:  []string{"help"},
			group: groupTerm,
			busy:  true,
			run:   showHelp,
		},
		{name: "keys", help: "list the keys", group: groupTerm, busy: true, run: showKeys},
		{
			name:  "theme",
			dots:  []string{"theme"},
			args:  "NAME",
			help:  "change the colours: auto, dark, light or mono",
			group: groupTerm,
			busy:  true,
			run:   changeTheme,
		},
		{
			name:    "quit",
			help:    "leave; raddle -c continues",
			also:    []string{"exit"},
			dots:    []string{"exit", "quit"},
			accepts: []string{"session", "agent"},
			group:   groupTerm,
			busy:    true,
			run:     leaveChat,
		},
	}
}

func leaveChat(ctx context.Context, s *Session, rest string) error {
	if rest == "session" || rest == "agent" { // the reference's commands leave only these
		if s.turn != nil {
			s.queue = append(s.queue, message{shown: ".exit " + rest, command: true})
			return nil
		}
		return startNew(ctx, s, "")
	}
	s.leaving = true
	return nil
}

func showHelp(_ context.Context, s *Session, word string) error {
	var b strings.Builder
	cols, _ := s.Screen.Size()
	shown := 0
	group := ""
	word = strings.ToLower(strings.TrimPrefix(word, "/"))
	for _, c := range listCommands() {
		if word != "" && !strings.Contains(strings.ToLower(c.name+" "+c.help+" "+strings.Join(c.also, " ")+" "+strings.Join(c.dots, " ")), word) {
			continue
		}
		shown++
		if c.group != group {
			group = c.group
			b.WriteString("\n" + s.Screen.Paint(term.Bold, group) + "\n")
		}
		b.WriteString(helpLine("/"+strings.TrimSpace(c.name+" "+c.args), c.help, 26, cols) + "\n")
	}
	if own := s.ownHelp(word, cols); own != nil {
		shown += len(own)
		b.WriteString("\n" + s.Screen.Paint(term.Bold, groupOwn) + "\n" + strings.Join(own, "\n") + "\n")
	}
	if shown == 0 {
		return failure.NewUsage("see: /help", "no command is about %q", word)
	}
	b.WriteString("\n" + s.Screen.Paint(term.Dim, ansi.Wrap("!COMMAND runs a shell command, !!COMMAND adds its output to your next message, @PATH attaches a file.", max(cols-1, 8), "")))
	s.Screen.PrintLine(b.String())
	return nil
}

// helpLine returns what is explained, in a column that is wide cells wide, and the explanation: on lines of its own if
// both do not fit.
func helpLine(what, text string, wide, cols int) string {
	line := "  " + term.PadText(what, wide) + "  " + text
	if term.TextWidth(line) < cols {
		return line
	}
	wrapped := strings.ReplaceAll(ansi.Wrap(text, max(cols-7, 8), ""), "\n", "\n      ")
	return strings.ReplaceAll(ansi.Wrap("  "+what, max(cols-1, 8), ""), "\n", "\n    ") + "\n      " + wrapped
}

// keyHelp lists the keys, for /keys.
var keyHelp = [][2]string{
	{"Enter", "send"}, {"Alt-Enter, Ctrl-J, \\ Enter", "new line"}, {"Esc", "stop the reply; at the prompt: empty the line"},
	{"Esc Esc", "choose an earlier message, and continue from there"}, {"Ctrl-C", "stop; twice at the prompt: leave"}, {"Ctrl-D", "leave"},
	{"Up, Down", "earlier messages; Up takes a queued message back"}, {"Ctrl-R", "search earlier messages"}, {"Tab", "complete"},
	{"Shift-Tab", "change the permission mode"}, {"Ctrl-O", "show the last results and the reasoning in full"}, {"Ctrl-G", "edit in $VISUAL or $EDITOR"},
	{"Ctrl-V", "attach the picture in the clipboard"}, {"Ctrl-L", "clear the screen"}, {"Ctrl-Z", "back to the shell; fg continues"},
	{"Ctrl-A, Ctrl-E, Ctrl-K, Ctrl-U, Ctrl-W, Alt-B, Alt-F", "move and delete, as in a shell"},
}

func showKeys(_ context.Context, s *Session, _ string) error {
	cols, _ := s.Screen.Size()
	var lines []string
	for _, k := range keyHelp {
		lines = append(lines, helpLine(k[0], k[1], 28, cols))
	}
	s.Screen.PrintLine("\n" + strings.Join(lines, "\n"))
	return nil
}
