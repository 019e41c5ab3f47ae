package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/flow"
	"raddle.dev/internal/app"
	"raddle.dev/internal/runs"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
)

func newRunsForkCommand(env *environment) *cobra.Command {
	return newOutputCommand(env, "write the id as `FORMAT`: text or json", runRunsFork, &cobra.Command{
		Use:   "fork RUN[@N]",
		Short: "Start a new run as a copy of another at a checkpoint",
		Long: `Prints the id of the new run. It has the state of the other one at the checkpoint, and continues with
"raddle resume": finished steps are not run again, and the current step starts again.`,
		Example: `  raddle runs fork 06ab@7
  raddle resume $(raddle runs fork 06ab@7)`,
		Args:              checkArgCount(1, 1, "the id of a run"),
		ValidArgsFunction: completePoints(env, 1),
	})
}

func runRunsFork(ctx context.Context, env *environment, opts outputOptions, args []string) error {
	id, origin, err := env.process.Runs.ForkRun(ctx, args[0])
	if err != nil {
		return err
	}
	env.printNote("raddle: run %s is a copy of %s\nnext: raddle resume %s", env.err.Paint(term.Cyan, id), origin, id)
	return env.printResult(opts.output, struct {
		Run  string     `json:"run"`
		From runs.Point `json:"from"`
	}{id, origin}, func() string { return id })
}

func newRunsEditCommand(env *environment) *cobra.Command {
	return newOutputCommand(env, "write the result as `FORMAT`: text or json", runRunsEdit, &cobra.Command{
		Use:   "edit RUN KEY=VALUE...",
		Short: "Replace values in the state of a run that is not over",
		Long: `A VALUE is read as in graph.yaml: 3, true, null, [a, b], {a: 1} and "quoted text" are what they look like,
everything else is text. The journal keeps the old values. The current step starts again, with its
questions; to edit an older checkpoint, fork it and edit the copy.`,
		Example: `  raddle runs edit 06ab severity=high
  raddle runs edit 06ab 'owners=[ann, bob]' approved=true`,
		Args:              checkArgCount(2, -1, "the id of a run, or KEY=VALUE,"),
		ValidArgsFunction: completeRuns(env, 1, func(r runs.Info) bool { return !r.Final && r.Status != runs.Running }),
	})
}

func runRunsEdit(ctx context.Context, env *environment, opts outputOptions, args []string) error {
	set, err := parseSettings(args[1:])
	if err != nil {
		return err
	}
	d, err := env.process.Runs.ReadRunDetail(ctx, args[0])
	if err != nil {
		return err
	}
	var known, keys []string
	for _, v := range d.Snapshot.Values {
		known = append(known, v.Key)
	}
	at, err := env.process.EditRun(ctx, args[0], set)
	if err != nil {
		return err
	}
	for _, s := range set {
		keys = append(keys, s.Key)
		if !slices.Contains(known, s.Key) && !env.quiet {
			env.printWarning("the state had no key " + quoteWord(s.Key) + suggestKey(s.Key, known))
		}
	}
	env.printNote("raddle: run %s is edited at @%d: %s\nnext: raddle resume %s", at.Run, at.At, joinWords(keys), at.Run)
	return env.printResult(opts.output, struct {
		runs.Point
		Keys []string `json:"keys"`
	}{at, keys}, func() string { return "" })
}

func suggestKey(key string, known []string) string {
	if near := wording.FindNearest(key, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// parseSettings reads KEY=VALUE words.
func parseSettings(words []string) ([]app.Setting, error) {
	var set []app.Setting
	for _, word := range words {
		key, text, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return nil, badUsage("write KEY=VALUE", "raddle runs edit: %q is not KEY=VALUE", word)
		}
		if slices.ContainsFunc(set, func(s app.Setting) bool { return s.Key == key }) {
			return nil, badUsage("give it one value", "raddle runs edit: the key %q is given twice", key)
		}
		v, err := flow.ParseValue(text)
		if err != nil {
			return nil, badUsage("", "raddle runs edit: the value of %s: %v", key, err)
		}
		set = append(set, app.Setting{Key: key, Value: v})
	}
	return set, nil
}
