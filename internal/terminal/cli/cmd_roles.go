package cli

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/rolelist"
)

func newRolesCommand(op *opener) *cobra.Command {
	return newGroup(op, &cobra.Command{
		Use: "roles COMMAND", Short: "List and show roles: agents of one file", Example: "  raddle roles ls\n  raddle -r poet \"A line about rain\"",
	}, newOutputCommand(op, "write it as `FORMAT`: text or json", runRolesLs, &cobra.Command{
		Use: "ls", Short: "List the roles", Example: "  raddle roles ls", Args: checkArgCount(0, 0, ""),
	}), newOutputCommand(op, "write it as `FORMAT`: text or json", runRolesShow, &cobra.Command{
		Use: "show ROLE", Short: "Show a role as the config.yaml that it means", Example: "  raddle roles show poet", Args: checkArgCount(1, 1, "the role"),
	}))
}

func runRolesLs(_ context.Context, con *console.Console, p *app.Process, opts outputOptions, _ []string) error {
	rows := rolelist.ListRows(p.ListRoles())
	return con.PrintResult(opts.output, rows, func() string {
		return rolelist.DescribeRows(rows, p.Dirs.ShortPath(filepath.Join(p.Dirs.Config, "roles")))
	})
}

func runRolesShow(_ context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	role, err := p.ReadRole(args[0])
	if err != nil {
		return err
	}
	shown, err := rolelist.ShowRole(role)
	if err != nil {
		return err
	}
	return con.PrintResult(opts.output, shown, shown.Text)
}
