package cli

import (
	"context"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/runview"
)

func newWakeCommand(env *environment) *cobra.Command {
	var opts outputOptions
	cmd := newCommand(&env.opener, &opts, func(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, _ []string) error {
		return runWake(ctx, con, p, newUIHooks(ctx, con, p, &env.foreground), opts.output)
	}, &cobra.Command{
		Use:   "wake",
		Short: "Continue all runs whose time has come",
		Long: `A run waits for a time in a node of the type wait, and at a question with a deadline. raddle wake continues each run
of the store whose time has come, one after the other, until it ends or waits again, and asks nothing. Call it from
cron where no server runs: raddle serve continues its runs itself.`,
		Example: `  raddle wake
  raddle wake --output json`,
		Args: checkArgCount(0, 0, ""),
	})
	addTraceFlag(cmd, &env.opener)
	addOutputFlag(cmd, &opts.output, "write what was done as `FORMAT`: text or json")
	return cmd
}

// runWake continues the runs that are due. The error has the exit code of the first one that failed.
func runWake(ctx context.Context, con *console.Console, p *app.Process, hooks app.UIHooks, format string) error {
	woken, err := p.WakeRuns(ctx, hooks, func(w app.WokenRun) {
		if format != console.FormatJSON {
			con.Out.PrintText(runview.DescribeWoken(&w))
		}
	})
	switch {
	case format == console.FormatJSON:
		if err := con.PrintJSON(woken); err != nil {
			return err
		}
	case len(woken) == 0 && err == nil:
		con.PrintNote("no run is due")
	}
	if err != nil && len(woken) > 0 {
		return ending.Silent{Code: ending.CodeOf(err)} // it has been said
	}
	return err
}
