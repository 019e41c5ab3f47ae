package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
)

// runsForkOptions are the flags of "runs fork".
type runsForkOptions struct {
	set, templates []string
	model, output  string
	resume         bool
}

func newRunsForkCommand(env *environment) *cobra.Command {
	var opts runsForkOptions
	cmd := newCommand(&env.opener, &opts, func(ctx context.Context, _ *console.Console, _ *app.Process, opts runsForkOptions, args []string) error {
		return runRunsFork(ctx, env, opts, args)
	}, &cobra.Command{
		Use:   "fork RUN[@N]",
		Short: "Start a new run as a copy of another at a checkpoint",
		Long: `Prints the id of the new run. It has the state of the other one at the checkpoint, and continues with
"raddle resume", or at once with --resume: finished steps are not run again, and the current step starts
again. --set changes the state of the copy like "raddle runs edit". With --resume, raddle prints the
result of the run, and its id only as a note. --template replaces the prompt of a node in the copy;
the file of the agent stays as it is.`,
		Example: `  raddle runs fork last@7
  raddle runs fork last@7 --set severity=low --resume
  raddle runs fork last@7 --model openai:gpt-5 --resume`,
		Args:              checkArgCount(1, 1, "the id of a run"),
		ValidArgsFunction: completePoints(&env.opener, 1),
	})
	flags := cmd.Flags()
	flags.StringArrayVar(&opts.set, "set", nil, "replace a value in the state of the copy: `KEY=VALUE` (repeatable)")
	flags.StringArrayVar(&opts.templates, "template", nil, "replace the template of a node's prompt in the copy: `NODE=TEXT` (repeatable)")
	flags.StringVarP(&opts.model, "model", "m", "", "use `CLIENT:MODEL` in the copy instead of every model of the agent")
	flags.BoolVar(&opts.resume, "resume", false, "continue the copy on this terminal, like raddle resume")
	addOutputFlag(cmd, &opts.output, "write the id, or the result with --resume, as `FORMAT`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("model", completeModels(&env.opener))
	return cmd
}

func runRunsFork(ctx context.Context, env *environment, opts runsForkOptions, args []string) error {
	set, err := app.ParseSettings("raddle runs fork --set", opts.set)
	if err != nil {
		return err
	}
	templates, err := app.ParseTemplates("raddle runs fork --template", opts.templates)
	if err != nil {
		return err
	}
	d, err := env.process.Runs.ReadRunDetail(ctx, args[0])
	if err != nil {
		return err
	}
	id, origin, err := env.process.ForkRun(ctx, app.Fork{From: args[0], Model: opts.model, Set: set, Templates: templates})
	if err != nil {
		return err
	}
	warnUnknownKeys(env.Console, d, set)
	env.PrintNote("raddle: run %s is a copy of %s", env.Screen.Paint(term.Cyan, id), origin)
	if opts.resume {
		return reportRefusal(env.Console, opts.output, runResume(ctx, env, resumeOptions{output: opts.output}, []string{id}))
	}
	env.PrintNote("next: raddle resume %s", id)
	return env.PrintResult(opts.output, struct {
		Run  string     `json:"run"`
		From runs.Point `json:"from"`
	}{id, origin}, func() string { return id })
}

func newRunsEditCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write the result as `FORMAT`: text or json", runRunsEdit, &cobra.Command{
		Use:   "edit RUN KEY=VALUE...",
		Short: "Replace values in the state of a run that is not over",
		Long: `A VALUE is read as in graph.yaml: 3, true, null, [a, b], {a: 1} and "quoted text" are what they look like,
everything else is text. The journal keeps the old values. The current step starts again, with its
questions; to edit an older checkpoint, fork it and edit the copy.`,
		Example: `  raddle runs edit last severity=high
  raddle runs edit last 'owners=[ann, bob]' approved=true`,
		Args:              checkArgCount(2, -1, "the id of a run, or KEY=VALUE,"),
		ValidArgsFunction: completeRuns(op, 1, func(r runs.Info) bool { return !r.Final && r.Status != runs.Running }),
	})
}

func runRunsEdit(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	set, err := app.ParseSettings("raddle runs edit", args[1:])
	if err != nil {
		return err
	}
	d, err := p.Runs.ReadRunDetail(ctx, args[0])
	if err != nil {
		return err
	}
	at, err := app.RecordChange(ctx, p, app.RunChange{ID: args[0], Set: set})
	if err != nil {
		return err
	}
	warnUnknownKeys(con, d, set)
	var keys []string
	for _, s := range set {
		keys = append(keys, s.Key)
	}
	con.PrintNote("raddle: run %s is edited at @%d: %s\nnext: raddle resume %s", at.Run, at.At, strings.Join(keys, ", "), at.Run)
	return con.PrintResult(opts.output, struct {
		runs.Point
		Keys []string `json:"keys"`
	}{at, keys}, func() string { return "" })
}

// warnUnknownKeys warns about keys that the state of a run did not have before they were set.
func warnUnknownKeys(con *console.Console, d *runs.Detail, set []app.Setting) {
	var known []string
	for _, v := range d.Snapshot.Values {
		known = append(known, v.Key)
	}
	for _, s := range set {
		if !slices.Contains(known, s.Key) && !con.Quiet {
			con.PrintWarning("the state had no key " + wording.QuoteWord(s.Key) + suggestKey(s.Key, known))
		}
	}
}

func suggestKey(key string, known []string) string {
	if near := wording.FindNearest(key, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
