package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/moving"
)

func newImportCommand(op *opener) *cobra.Command {
	var opts moving.Options
	cmd := newCommand(op, &opts, runImport, &cobra.Command{
		Use:   "import [PROGRAM]",
		Short: "Take over what another program has: settings, agents, roles, commands, skills, servers, rules",
		Long: `Reads what Coyote, Loki, aichat, Claude Code, Codex, gemini-cli, opencode, crush and goose have on this machine, and says of each
thing whether it is taken, changed or left, and why. Nothing of another program is written, its logins are never read, and what
raddle has itself stays. Secrets are not copied: variables take their place, or you are asked for each key.`,
		Example: "  raddle import --dry-run\n  raddle import loki\n  raddle import claude --from /mnt/old/home/.claude",
		Args:    checkArgCount(0, 1, ""),
	})
	addOutputFlag(cmd, &opts.Output, "write it as `FORMAT`: text or json")
	cmd.Flags().StringVar(&opts.From, "from", "", "the directory of the program's configuration, `DIR`")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "show what would be taken, and write nothing")
	cmd.Flags().BoolVar(&opts.Replace, "replace", false, "replace files, servers and settings of raddle that have the same name")
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "do not ask before anything is written")
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
		for _, p := range moving.Programs() {
			names = append(names, p.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

func runImport(ctx context.Context, con *console.Console, p *app.Process, opts moving.Options, args []string) error {
	opts.Program = strings.Join(args, "")
	if config.IsFile(opts.Program) {
		return badUsage("raddle runs import "+opts.Program, "import takes things from another program, and %s is a file", opts.Program)
	}
	m := moving.Importer{Console: con, Target: &moving.Target{Dirs: p.Dirs, Environ: p.ConfigEnviron}, Keys: p.Keys, Ask: con.NewPrompter()}
	return endInterrupted(m.Run(ctx, opts))
}
