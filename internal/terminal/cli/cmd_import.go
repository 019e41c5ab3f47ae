package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/moving"
)

func newImportCommand(op *opener) *cobra.Command {
	cmd, opts := moving.NewCommand()
	cmd.Args = checkArgCount(0, 1, "")
	addOutputFlag(cmd, &opts.Output, "write it as `FORMAT`: text or json")
	return newCommand(op, opts, runImport, cmd)
}

func runImport(ctx context.Context, con *console.Console, p *app.Process, opts moving.Options, args []string) error {
	opts.Program = strings.Join(args, "")
	m := moving.Importer{Console: con, Target: &moving.Target{Dirs: p.Dirs, Environ: p.ConfigEnviron}, Keys: p.Keys, Ask: con.NewPrompter()}
	return ending.EndInterrupted(m.Run(ctx, opts))
}
