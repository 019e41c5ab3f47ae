package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/story"
	"raddle.dev/internal/report/versus"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
)

func newRunsDiffCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write the differences as `FORMAT`: text or json", runRunsDiff, &cobra.Command{
		Use:   "diff RUN[@N] [RUN[@N]]",
		Short: "Compare the state of two checkpoints, or two runs",
		Long: `RUN@N is a checkpoint of a run, as "raddle runs show" lists them; RUN alone is the current state of the run.
With one argument, RUN@N is compared with the current state, and RUN with its own start.
Of two runs, raddle also says where they part, and what the difference in time and cost comes from. The first one is A.`,
		Example: `  raddle runs diff last@3
  raddle runs diff last@3 last@7
  raddle runs diff last last~1`,
		Args:              checkArgCount(1, 2, "a checkpoint"),
		ValidArgsFunction: completePoints(op, 2),
	})
}

func runRunsDiff(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	from, to, err := diffPoints(ctx, p, args)
	if err != nil {
		return err
	}
	was, is, changes, err := p.Runs.DiffPoints(ctx, from, to)
	if err != nil {
		return err
	}
	comparison, err := compareRuns(ctx, p, was, is)
	if err != nil {
		return err
	}
	if opts.output == console.FormatJSON {
		return con.PrintJSON(struct {
			From       runs.Point         `json:"from"`
			To         runs.Point         `json:"to"`
			Changes    []runs.Change      `json:"changes"`
			Comparison *versus.Comparison `json:"comparison,omitempty"` // of two runs
		}{was, is, changes, comparison})
	}
	if comparison != nil {
		con.PrintNote("raddle: A is %s, B is %s: %s", was, is, comparison.Text)
		if s := comparison.First; s != nil {
			con.PrintNote("raddle: first difference%s: %s", s.At(), s.Text)
		}
	}
	differences := "no differences"
	if len(changes) > 0 {
		differences = wording.FormatCount(len(changes), "key") + " differ"
	}
	con.PrintNote("raddle: from %s to %s: %s", was, is, differences)
	for _, c := range changes {
		con.Out.PrintText(story.FormatChange(&c, con.Out.Colors))
	}
	return nil
}

// compareRuns compares what two runs did up to two points; nil: they are points of one run.
func compareRuns(ctx context.Context, p *app.Process, was, is runs.Point) (*versus.Comparison, error) {
	if was.Run == is.Run {
		return nil, nil
	}
	a, b, err := versus.ReadPair(ctx, p.Runs, was.String(), is.String())
	if err != nil {
		return nil, err
	}
	return versus.Compare(a, b, p.Models.UsageCost), nil
}

// diffPoints returns the two points that diff compares.
func diffPoints(ctx context.Context, p *app.Process, args []string) (from, to string, err error) {
	if len(args) == 2 {
		if strings.HasPrefix(args[1], "@") {
			run, _, _ := strings.Cut(args[0], "@")
			return args[0], run + args[1], nil
		}
		return args[0], args[1], nil
	}
	run, at, err := runs.SplitPoint(args[0])
	if err != nil || at > 0 {
		return args[0], run, err
	}
	list, err := p.Runs.ListCheckpoints(ctx, run)
	if err != nil || len(list) == 0 {
		return run, run, err
	}
	return runs.Point{Run: run, At: list[len(list)-1].At}.String(), run, nil
}

func newRunsBlameCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write the list as `FORMAT`: text or json", runRunsBlame, &cobra.Command{
		Use:   "blame RUN[@N] [KEY]",
		Short: "Show what wrote a key of the state, newest first",
		Long: `Without KEY, raddle lists all keys with what wrote each of them last.
For a fork, the list continues in the run that it was forked from.`,
		Example: `  raddle runs blame last
  raddle runs blame last owner
  raddle runs blame last@7 owner --output json`,
		Args:              checkArgCount(1, 2, "the id of a run"),
		ValidArgsFunction: completeKeys(op),
	})
}

func runRunsBlame(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	if len(args) == 1 {
		return blameAllKeys(ctx, con, p, opts, args[0])
	}
	authors, err := p.Runs.BlameKey(ctx, args[0], args[1])
	if err != nil {
		return err
	}
	return con.PrintResult(opts.output, authors, func() string {
		return term.FormatRows(authors,
			term.NewColumn("CHECKPOINT", func(a runs.Author) string { return a.Point.String() }),
			term.NewColumn("TIME", func(a runs.Author) string { return a.Time.Local().Format(time.DateTime) }),
			term.NewColumn("WRITTEN BY", func(a runs.Author) string { return describeAuthor(&a) }),
		)
	})
}

// blameAllKeys lists all keys of a run with their last writers.
func blameAllKeys(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, run string) error {
	keys, err := p.Runs.BlameKeys(ctx, run)
	if err != nil {
		return err
	}
	return con.PrintResult(opts.output, keys, func() string {
		return term.FormatRows(keys,
			term.NewColumn("KEY", func(k runs.KeyAuthor) string { return k.Key }),
			term.NewColumn("CHECKPOINT", func(k runs.KeyAuthor) string { return k.Author.Point.String() }),
			term.NewColumn("TIME", func(k runs.KeyAuthor) string { return k.Author.Time.Local().Format(time.DateTime) }),
			term.NewColumn("WRITTEN BY", func(k runs.KeyAuthor) string { return describeAuthor(&k.Author) }),
		)
	})
}

// completeKeys completes a run or a checkpoint, and then the keys of its state.
func completeKeys(op *opener) cobra.CompletionFunc {
	point := completePoints(op, 1)
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return point(cmd, args, word)
		}
		keys, err := op.openWithFaults().Runs.BlameKeys(context.Background(), args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, k := range keys {
			if strings.HasPrefix(k.Key, word) {
				names = append(names, describeCompletion(k.Key, "written by "+describeAuthor(&k.Author)))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// describeAuthor says what wrote a key.
func describeAuthor(a *runs.Author) string {
	switch {
	case a.From != nil:
		return "before the fork of " + a.From.String()
	case a.Kind == "start":
		return "the start"
	case a.Kind == "call":
		return "the call of " + strings.TrimSuffix(a.Path, "/")
	case a.Kind == "edit":
		return "an edit"
	case a.Kind == "snapshot":
		return "records that were pruned"
	}
	var names []string
	for _, n := range a.Nodes {
		names = append(names, a.Path+n)
	}
	return strings.Join(names, ", ")
}
