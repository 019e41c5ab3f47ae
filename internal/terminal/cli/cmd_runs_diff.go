package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/diffview"
)

func newRunsDiffCommand(op *opener) *cobra.Command {
	var opts diffview.Options
	cmd := bindView(op, &opts, diffview.Describe())
	cmd.Args = checkArgCount(1, 2, "a checkpoint")
	cmd.ValidArgsFunction = completePoints(op, 2)
	addOutputFlag(cmd, &opts.Output, "write the differences as `FORMAT`: text or json")
	return cmd
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
