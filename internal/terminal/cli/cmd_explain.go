package cli

import (
	"context"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/runview"
)

func newExplainCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write it as `FORMAT`: text or json", runExplain, &cobra.Command{
		Use:   "explain RUN",
		Short: "Say why a run failed or waits, and what to do",
		Long: `raddle reads only the run's journal, and asks no model: why the run is as it is, the steps that led there, the node whose failure
was the cause, and the commands that continue it.`,
		Example:           "  raddle explain last\n  raddle explain last --output json",
		Args:              checkArgCount(1, 1, "the id of a run"),
		ValidArgsFunction: completeRuns(op, 1, func(runs.Info) bool { return true }),
	})
}

func runExplain(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	v, err := p.Runs.ReadView(ctx, args[0])
	if err != nil {
		return err
	}
	s, err := overview.DescribeRun(ctx, p, v)
	if err != nil {
		return err
	}
	e := overview.Explain(s, v)
	return con.PrintResult(opts.output, e, func() string { return runview.FormatExplanation(e) })
}
