package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/shellhelp"
)

func newShellCommand(op *opener) *cobra.Command {
	cmd, opts := shellhelp.NewCommand()
	completeWords(cmd, "keys", shellhelp.Shells...)
	return newCommand(op, opts, runShell, cmd)
}

func runShell(ctx context.Context, con *console.Console, p *app.Process, opts shellhelp.Options, args []string) error {
	if opts.Keys != "" {
		text, err := shellhelp.FindBinding(opts.Keys)
		con.Out.PrintExact(text)
		return err
	}
	opts.Words = strings.Join(args, " ")
	code, err := shellhelp.Run(ctx, con, p, opts)
	if err == nil && code != 0 {
		return ending.Silent{Code: code}
	}
	return ending.EndInterrupted(err)
}
