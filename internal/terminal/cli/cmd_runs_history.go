package cli

import (
	"context"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/story"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/runview"
)

// runsHistoryOptions are the flags of "runs history".
type runsHistoryOptions struct {
	output string
	raw    bool
}

func newRunsHistoryCommand(op *opener) *cobra.Command {
	var opts runsHistoryOptions
	cmd := newCommand(op, &opts, runRunsHistory, &cobra.Command{
		Use:   "history RUN",
		Short: "List what happened in a run, from its journal",
		Long: `Lists what happened, oldest first: replies of models, calls of tools, questions and answers, and which node ran when.
The number of each line is that of the record. --raw lists every record with its codes, newest first, as the JSON does.`,
		Example: `  raddle runs history last
  raddle runs history last --raw`,
		Args:              checkArgCount(1, 1, "the id of a run"),
		ValidArgsFunction: completeRuns(op, 1, nil),
	})
	addOutputFlag(cmd, &opts.output, "write the list as `FORMAT`: text or json")
	cmd.Flags().BoolVar(&opts.raw, "raw", false, "list every record with its codes, newest first")
	return cmd
}

func runRunsHistory(ctx context.Context, con *console.Console, p *app.Process, opts runsHistoryOptions, args []string) error {
	if opts.output == console.FormatText && !opts.raw {
		return printStory(ctx, con, p, args[0])
	}
	_, entries, err := p.Runs.ReadHistory(ctx, args[0])
	if err != nil {
		return err
	}
	lines := runview.ListLines(entries)
	return con.PrintResult(opts.output, lines, func() string { return runview.FormatLines(lines) })
}

// printStory prints what happened in a run, a line for each moment. A line above the first moment of a day names the
// day.
func printStory(ctx context.Context, con *console.Console, p *app.Process, run string) error {
	v, err := p.Runs.ReadSession(ctx, run)
	if err != nil {
		return err
	}
	moments := v.Moments()
	con.Out.PrintText(story.NewDescriber(moments, &v.Info).DescribeMoments(moments, con.Out.Paint))
	return nil
}
