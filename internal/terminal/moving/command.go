package moving

import (
	"github.com/spf13/cobra"

	"raddle.dev/internal/terminal/console"
)

// NewCommand returns the command import with its flags, and the options that they set. The caller adds what it does.
func NewCommand() (*cobra.Command, *Options) {
	var opts Options
	cmd := &cobra.Command{
		Use:   "import [PROGRAM]",
		Short: "Take over what another program has: settings, agents, roles, commands, skills, servers, rules",
		Long: `Reads what Coyote, Loki, aichat, Claude Code, Codex, gemini-cli, opencode, crush and goose have on this machine, and says of each
thing whether it is taken, changed or left, and why. Nothing of another program is written, its logins are never read, and what
raddle has itself stays. Secrets are not copied: variables take their place, or you are asked for each key.`,
		Example: "  raddle import --dry-run\n  raddle import loki\n  raddle import claude --from /mnt/old/home/.claude",
	}
	cmd.Flags().StringVar(&opts.From, "from", "", "the directory of the program's configuration, `DIR`")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "show what would be taken, and write nothing")
	cmd.Flags().BoolVar(&opts.Replace, "replace", false, "replace files, servers and settings of raddle that have the same name")
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "do not ask before anything is written")
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
		for _, p := range Programs() {
			names = append(names, p.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd, &opts
}

// NewAddCommand is [NewCommand] for the command that fetches what others share.
func NewAddCommand() (*cobra.Command, *Options) {
	opts := Options{Output: console.FormatText}
	cmd := &cobra.Command{
		Use:   "add ADDRESS",
		Short: "Fetch agents, skills and tools from a git repository or an archive",
		Long: `The address is that of a git repository (https, ssh or a directory), with @ and a branch, tag or commit behind it if you want, or
that of an archive (.tar.gz, .tgz, .zip). raddle shows what is there, which commit it is and what may run, and asks before it writes.
Nothing of it runs meanwhile. Agents that are there stay, unless you add --replace.`,
		Example: "  raddle agents add https://example.org/team/agents.git@v1.2",
	}
	cmd.Flags().BoolVar(&opts.Replace, "replace", false, "replace what has the same name")
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "do not ask before anything is written")
	return cmd, &opts
}
