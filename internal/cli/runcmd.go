package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/app"
)

// runFlags are the flags of a command that starts a run.
type runFlags struct {
	model, session string
	files, answers []string
	variables      []string
	output         string
	noStream       bool
	noStdin        bool
	strict         bool
	headless       bool
	dry            bool
}

func runCommand(env *environment) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run AGENT [PROMPT...]",
		Short: "Run an agent",
		Long: `AGENT is a name in the agents directory, or a path to an agent's directory, graph.yaml or config.yaml.
The prompt is the words after it; standard input instead of "-" or of no words; then the files.

On a terminal, raddle asks questions. Elsewhere --answer answers them, or a default of the file;
otherwise the run parks with exit code 5 and "raddle resume" continues it.`,
		Example: `  raddle run examples/hello "Ada Lovelace"
  raddle run examples/triage --answer yes
  git diff | raddle run reviewer - "Review this change:"
  raddle run writer -f notes.md --model openai:gpt-5 --output json`,
		Args:              checkArgCount(1, -1, "the agent"),
		ValidArgsFunction: env.completeAgents,
		RunE: func(_ *cobra.Command, args []string) error {
			return reportRefusal(env, f.output, startRun(env, args, &f))
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.model, "model", "m", "", "use `CLIENT:MODEL` instead of every model of the agent")
	flags.StringArrayVarP(&f.files, "file", "f", nil, "add the text of `FILE` to the prompt (repeatable)")
	flags.StringArrayVar(&f.answers, "answer", nil, "answer a question: `[ID=]TEXT`; =TEXT if the text itself has a = (repeatable)")
	flags.StringArrayVar(&f.variables, "agent-variable", nil, "set a variable of the agent: `NAME VALUE` (repeatable)")
	flags.StringVar(&f.output, "output", formatText, "write the result as `FORMAT`: text, json or stream-json")
	flags.BoolVarP(&f.noStream, "no-stream", "S", false, "show no text and no live lines on the terminal before the end")
	flags.BoolVar(&f.noStdin, "no-stdin", false, "do not read standard input")
	flags.BoolVar(&f.strict, "strict", false, "treat unknown keys as errors")
	flags.BoolVar(&f.headless, "headless", false, "never wait for a person: deny what needs permission, and let models decide for themselves")
	flags.BoolVar(&f.dry, "dry-run", false, "print the requests to models, and run nothing")
	flags.StringVarP(&f.session, "session", "s", "", "start or continue the session `NAME` (graph agents have none)")
	completeWords(cmd, "output", formatText, formatJSON, formatStream)
	completeModels(env, cmd)
	return cmd
}

// startRun implements the command "run".
func startRun(env *environment, args []string, f *runFlags) error {
	if err := checkFormat(f.output, formatText, formatJSON, formatStream); err != nil {
		return err
	}
	variables, err := parseVariables(f.variables)
	if err != nil {
		return err
	}
	p, err := env.openProcess()
	if err != nil {
		return err
	}
	if _, err := p.FindAgent(args[0]); err != nil { // before anything is read from a pipe
		return err
	}
	text, err := promptText(env, args[1:], f.files, f.noStdin)
	if err != nil {
		return err
	}
	req := app.Request{
		Agent: args[0], Prompt: text, Model: f.model, Variables: variables, Session: f.session, Strict: f.strict, Headless: f.headless,
		UIHooks: newUIHooks(env),
	}
	for _, path := range f.files {
		req.Files = append(req.Files, p.Dirs.AbsPath(path))
	}
	if err := askStarter(env, p, &req); err != nil {
		return err
	}
	run, err := startWith(env, p, req)
	if err != nil {
		return err
	}
	if f.dry {
		return dryRun(env, run, f.output)
	}
	if run.Agent.Config != nil && strings.TrimSpace(req.Prompt) == "" {
		run.Close()
		return badUsage("write one: raddle run "+quoteWord(args[0])+` "YOUR PROMPT"; or pipe it in`, "agent '%s' needs a prompt, and there is none", run.Agent.Name)
	}
	d := &drive{env: env, run: run, format: f.output, still: f.noStream}
	return d.runWithAnswers(f.answers)
}

// newUIHooks returns what the command line adds to the surroundings of agents.
func newUIHooks(env *environment) app.UIHooks {
	s := app.UIHooks{Replays: func(file string) {
		if w := env.watching.Load(); w != nil && !env.quiet {
			w.addNote("raddle: no model is called; replies come from " + env.process.Dirs.ShortPath(file))
		}
	}}
	s.Terminal = env.lendTerminal
	s.Log = env.runLogger()
	addRetrievalHooks(env, &s)
	return s
}

// parseVariables reads NAME=VALUE, the form into which the two words of --agent-variable
// were joined.
func parseVariables(flags []string) (map[string]string, error) {
	var variables map[string]string
	for _, f := range flags {
		name, value, ok := strings.Cut(f, "=")
		if !ok || name == "" {
			return nil, badUsage("write: --agent-variable NAME VALUE", "--agent-variable %s: there is no value", f)
		}
		if variables == nil {
			variables = map[string]string{}
		}
		variables[name] = value
	}
	return variables, nil
}

func checkFormat(format string, known ...string) error {
	for _, k := range known {
		if format == k {
			return nil
		}
	}
	return badUsage(suggestWord(format, known), "there is no output format %q", format)
}

// completeModels completes --model with the models of configured clients.
func completeModels(env *environment, cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("model", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var ids []string
		for _, c := range env.openWithFaults().Models.ListClients() {
			if len(c.Models) == 0 && c.Ready {
				ids = append(ids, c.Client+":")
			}
			for _, m := range c.Models {
				ids = append(ids, c.Client+":"+m)
			}
		}
		return append(ids, "script:"), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}
