package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/conversation"
	"raddle.dev/internal/process/toolbox"
	"raddle.dev/internal/terminal/chat"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/dryrun"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/prompting"
	"raddle.dev/internal/terminal/runlimits"
	"raddle.dev/tool/permission"
)

// runOptions are the flags of "run".
type runOptions struct {
	model, session string
	mode           string
	files, answers []string
	variables      []string
	output         string
	raw            bool
	noStream       bool
	noStdin        bool
	strict         bool
	headless       bool
	noBox          bool
	dry            bool
	question       bool // the run is a message of a conversation
	continues      bool // of the last one in this directory
	limits         runlimits.Limits
}

func newRunCommand(env *environment) *cobra.Command {
	var opts runOptions
	cmd := &cobra.Command{
		Use:   "run AGENT [PROMPT...]",
		Short: "Run an agent",
		Long: `AGENT is a name in the agents directory, or a path to an agent's directory, graph.yaml or config.yaml.
The prompt is the words after it, then what comes through a pipe or a file on standard input, then the files. With
words, a pipe counts if its first byte comes within a second; "-" waits for it, and --no-stdin leaves it out.

On a terminal, raddle asks questions. Elsewhere --answer answers them, or a default of the file;
otherwise the run parks with exit code 5 and "raddle resume" continues it.`,
		Example: `  raddle run explore "Where are settings read?"
  git diff | raddle run code-reviewer "Review this change"
  raddle run writer -f notes.md --model openai:gpt-5 --output json`,
		Args:              checkArgCount(1, -1, "the agent"),
		ValidArgsFunction: completeAgents(&env.opener),
		RunE: func(cmd *cobra.Command, args []string) error {
			return reportRefusal(env.Console, opts.output, runRun(cmd.Context(), env, opts, args))
		},
	}
	cmd.Flags().StringVarP(&opts.session, "session", "s", "", "start or continue the session `NAME` (graph agents have none)")
	addRunFlags(&env.opener, cmd, &opts)
	return cmd
}

// newAskCommand returns the command that a command line without a command means if it is a question.
func newAskCommand(env *environment) *cobra.Command {
	opts := runOptions{question: true}
	cmd := &cobra.Command{
		Use:   "ask [QUESTION...]",
		Short: "Ask the assistant, or continue the last conversation",
		Long: `raddle "QUESTION" does the same. The question is the words, then what comes through a pipe or a file on standard
input, then the files. raddle prints the answer and ends; raddle -c "MORE" continues, and raddle -c alone opens the
conversation on the terminal.

One word that is no command is no question: write raddle -- WORD, or raddle ask WORD.`,
		Example: `  raddle "What does this error mean: EADDRINUSE?"
  git diff | raddle "Explain this change"
  raddle -f docs/ "Which pages name the port?"
  raddle -c "And who reads it?"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return reportRefusal(env.Console, opts.output, runQuestion(cmd.Context(), env, opts, args))
		},
	}
	cmd.Flags().BoolVarP(&opts.continues, "continue", "c", false, "continue the last conversation of this directory")
	cmd.Flags().StringVarP(&opts.session, "session", "s", "", "start or continue the conversation `NAME`")
	addRunFlags(&env.opener, cmd, &opts)
	return cmd
}

// runQuestion sends a message to the assistant, or to the agent of the conversation that continues.
func runQuestion(ctx context.Context, env *environment, opts runOptions, args []string) error {
	if opts.continues && opts.session != "" {
		return ending.BadUsage("leave one of them out", "--continue and --session exclude each other")
	}
	if err := env.openProcess(); err != nil {
		return err
	}
	agent, name, err := chat.FindNamed(ctx, env.process, chat.Options{Name: opts.session, Continue: opts.continues})
	if err != nil {
		return err
	}
	if opts.continues && name == "" {
		env.PrintNote("There is no conversation in this directory yet. This is a new one.")
	}
	talk, err := conversation.Open(ctx, env.process, agent, name)
	if err != nil {
		return err
	}
	opts.session = talk.Session()
	talk.Close()
	return runRun(ctx, env, opts, append([]string{agent}, args...))
}

// addRunFlags adds the flags of the commands that run an agent with a prompt.
func addRunFlags(op *opener, cmd *cobra.Command, opts *runOptions) {
	flags := cmd.Flags()
	flags.StringVarP(&opts.model, "model", "m", "", "use `CLIENT:MODEL` instead of every model of the agent")
	flags.StringArrayVarP(&opts.files, "file", "f", nil, "add `FILE` to the prompt: a text, picture, PDF, directory, glob or https address (repeatable)")
	flags.StringArrayVar(&opts.answers, "answer", nil, "answer a question: `[ID=]TEXT`; =TEXT if the text itself has a = (repeatable)")
	flags.StringArrayVar(&opts.variables, "agent-variable", nil, "set a variable of the agent: `NAME VALUE` (repeatable)")
	addOutputFlag(cmd, &opts.output, "write the result as `FORMAT`: text, json or stream-json")
	flags.BoolVar(&opts.raw, "raw", false, "show replies on the terminal as they are written, without formatting their Markdown")
	opts.limits.AddFlags(flags, "the run")
	addTraceFlag(cmd, op)
	flags.BoolVarP(&opts.noStream, "no-stream", "S", false, "show no text and no live lines on the terminal before the end")
	flags.BoolVar(&opts.noStdin, "no-stdin", false, "do not read standard input")
	flags.BoolVar(&opts.strict, "strict", false, "treat unknown keys as errors")
	flags.BoolVar(&opts.headless, "headless", false, "never wait for a person: deny what needs permission, and let models decide for themselves")
	flags.BoolVar(&opts.dry, "dry-run", false, "print the requests to models, and run nothing")
	_ = cmd.RegisterFlagCompletionFunc("model", completeModels(op))
	addUserFlag(cmd, op)
	addNoBoxFlag(cmd, &opts.noBox)
	addModeFlag(cmd, &opts.mode, "what runs without a question: `MODE` plan, ask, edits or box (default: as configured, or edits)")
}

func runRun(ctx context.Context, env *environment, opts runOptions, args []string) error {
	variables, err := parseVariables(opts.variables)
	if err != nil {
		return err
	}
	mode, err := parseMode(opts.mode)
	if err != nil {
		return err
	}
	if err := env.openProcess(); err != nil {
		return err
	}
	env.process.Tools.NoBox = opts.noBox
	if _, err := env.process.FindAgent(args[0]); err != nil { // before anything is read from a pipe
		return err
	}
	prompt, err := prompting.ReadPrompt(ctx, env.input, prompting.Parts{Words: args[1:], Files: opts.files, NoInput: opts.noStdin})
	if err != nil {
		return err
	}
	for _, line := range prompt.Notes {
		env.PrintNote("%s", term.CleanLine(line))
	}
	req := app.Request{
		Via: "terminal", Agent: args[0], Prompt: prompt.Text, Model: opts.model, Variables: variables, Session: opts.session, Transient: opts.question,
		Strict: opts.strict, Headless: opts.headless,
		Budget: opts.limits.Budget(), Deadline: opts.limits.Deadline,
		UIHooks: newUIHooks(ctx, env.Console, env.process, &env.foreground),
	}
	req.Mode = mode
	if err := req.Attach(prompt.Files, env.process.Dirs.AbsPath); err != nil {
		return err
	}
	run, err := startPrompted(ctx, &env.opener, req)
	if err != nil {
		return err
	}
	if opts.dry {
		return dryRun(env.Console, env.process, run, opts.output)
	}
	if run.Agent.Config != nil && strings.TrimSpace(run.Record.Prompt) == "" {
		run.Close()
		if opts.question {
			return ending.BadUsage(`write one: raddle "YOUR QUESTION"; or pipe it in`, "there is no question")
		}
		return ending.BadUsage("write one: raddle run "+wording.QuoteWord(args[0])+` "YOUR PROMPT"; or pipe it in`, "agent '%s' needs a prompt, and there is none", run.Agent.Name)
	}
	d := newDrive(env.Console, env.process, &env.foreground, run)
	d.format = opts.output
	d.still = opts.noStream
	d.raw = opts.raw
	return d.runWithAnswers(opts.answers)
}

// newUIHooks returns what the command line adds to the surroundings of agents.
func newUIHooks(ctx context.Context, con *console.Console, p *app.Process, fg *foreground) app.UIHooks {
	s := app.UIHooks{Replays: func(file string) {
		if w := fg.watching.Load(); w != nil && !con.Quiet {
			note := "no model is called; replies come from " + p.Dirs.ShortPath(file)
			if w.report != nil {
				w.addNote(con.Screen.Paint(term.Dim, "  "+note))
				return
			}
			w.addNote("raddle: " + note)
		}
	}}
	s.StoreAway = func(err error) { tellStoreAway(con, err) }
	s.Terminal = func() (*toolbox.Terminal, error) { return lendTerminal(con, fg) }
	s.Person = con.NewPrompter() != nil
	s.Log = runLogger(con, p)
	addRetrievalHooks(ctx, con, p, &s)
	return s
}

// tellStoreAway says that a run waits for its store, or that the store is back.
func tellStoreAway(con *console.Console, err error) {
	note := "the store is back"
	if err != nil {
		note = "the store is not available; raddle tries again: " + term.CleanLine(err.Error())
	}
	if !con.Quiet {
		con.Screen.PrintLine("raddle: " + note)
	}
}

// addUserFlag adds the flag of the user, whose values and memory the runs of the process use.
func addUserFlag(cmd *cobra.Command, op *opener) {
	cmd.Flags().StringVar(&op.user, "user", "", "run for `NAME`: memory and {{user.…}} are that person's (default: of no name)")
}

// addNoBoxFlag adds the flag that switches the box off.
func addNoBoxFlag(cmd *cobra.Command, off *bool) {
	cmd.Flags().BoolVar(off, "no-box", false, "ask about commands that are not known to be harmless, in place of running them in a box")
}

// addModeFlag adds the flag of the permission mode.
func addModeFlag(cmd *cobra.Command, mode *string, usage string) {
	cmd.Flags().StringVar(mode, "mode", "", usage)
	completeWords(cmd, "mode", permission.Modes...)
}

// parseMode returns the permission mode of a flag, nil if it was not given.
func parseMode(flag string) (*permission.ModeSwitch, error) {
	if flag == "" {
		return nil, nil
	}
	m, ok := permission.ParseMode(flag)
	if !ok {
		return nil, ending.BadChoice("--mode", flag, permission.Modes)
	}
	return permission.NewModeSwitch(m), nil
}

// parseVariables reads NAME=VALUE, the form into which the two words of --agent-variable
// were joined.
func parseVariables(flags []string) (map[string]string, error) {
	var variables map[string]string
	for _, f := range flags {
		name, value, ok := strings.Cut(f, "=")
		if !ok || name == "" {
			return nil, ending.BadUsage("write: --agent-variable NAME VALUE", "--agent-variable %s: there is no value", f)
		}
		if variables == nil {
			variables = map[string]string{}
		}
		variables[name] = value
	}
	return variables, nil
}

// dryRun describes what a run would send to models. It calls and records nothing.
func dryRun(con *console.Console, p *app.Process, run *app.Run, format string) error {
	defer run.Close()
	r := dryrun.DescribeRun(run.Agent, run.Record.Prompt)
	if mode := run.Mode.Mode(); mode != permission.ModeEdits {
		r.Notes = append(r.Notes, "the permission mode is "+string(mode)+"; raddle tools ls AGENT --mode "+string(mode)+" shows which tools ask")
	}
	noteFindings(con, p, run.Agent)
	if format == console.FormatStream {
		format = console.FormatJSON
	}
	return con.PrintResult(format, r, r.String)
}

func firstOrEmpty(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}
