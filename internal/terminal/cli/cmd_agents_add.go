package cli

import (
	"context"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/moving"
)

func newAgentsAddCommand(op *opener) *cobra.Command {
	cmd, opts := moving.NewAddCommand()
	cmd.Args = checkArgCount(1, 1, "the address")
	return newCommand(op, opts, runAgentsAdd, cmd)
}

func runAgentsAdd(ctx context.Context, con *console.Console, p *app.Process, opts moving.Options, args []string) error {
	m := moving.Importer{Console: con, Target: &moving.Target{Dirs: p.Dirs, Environ: p.ConfigEnviron}, Ask: con.NewPrompter()}
	return ending.EndInterrupted(m.AddShared(ctx, args[0], p.Environ(), opts))
}
