package cli

import (
	"context"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/chaosview"
	"raddle.dev/internal/terminal/console"
)

func newChaosCommand(op *opener) *cobra.Command {
	var opts chaosview.Options
	cmd := newCommand(op, &opts, runChaos, chaosview.Describe(&opts))
	cmd.Args = checkArgCount(1, -1, "the agent")
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return agentNames(op), cobra.ShellCompDirectiveDefault
	}
	addOutputFlag(cmd, &opts.Output, "write the result as `FORMAT`: text or json")
	return cmd
}

func runChaos(ctx context.Context, con *console.Console, p *app.Process, opts chaosview.Options, args []string) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	return opts.Run(ctx, con, p, args)
}
