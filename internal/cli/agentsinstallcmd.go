package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/app"
)

func agentsInstallCommand(env *environment) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "install [NAME...]",
		Short: "Install or update the agents that come with raddle",
		Long: `Writes the agents that come with raddle, or those that are named, to the agents directory: what is missing, and what an
earlier version has installed. Files that you have changed stay as they are, and are listed; --force replaces them, and
keeps yours as FILE.bak. An agent of your own that has the name of one of these is never touched.

The first command that looks for an agent installs them, too.`,
		Example: "  raddle agents install\n  raddle agents install coder --force",
		Args:    checkArgCount(0, -1, ""),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return app.BundledAgents(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return installAgents(env, args, force) },
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace files that you have changed, and keep yours as FILE.bak")
	return cmd
}

// installThings implements the flag --install of the reference tool.
func installThings(env *environment, what string) error {
	if what != "agents" {
		return badUsage("write: raddle --install agents", "--install %s: only agents can be installed; tools are built in", what)
	}
	return installAgents(env, nil, false)
}

func installAgents(env *environment, names []string, force bool) error {
	p, err := env.openProcess()
	if err != nil {
		return err
	}
	outcomes, err := p.ReinstallBundled(names, force)
	for _, o := range outcomes {
		env.out.PrintText(installedText(o))
	}
	return err
}

// installedText describes the outcome for an agent, one line for each thing that a
// person may want to know.
func installedText(o app.InstallOutcome) string {
	if o.Foreign {
		return o.Agent + ": not installed: there is an agent of yours with this name; rename it to have both"
	}
	var lines []string
	add := func(files []string, what string) {
		for _, f := range files {
			lines = append(lines, o.Agent+": "+strings.ReplaceAll(what, "FILE", f))
		}
	}
	if o.New {
		lines = append(lines, o.Agent+": installed")
	}
	add(o.Written, "FILE written")
	add(o.Removed, "FILE removed, it is no longer needed")
	add(o.Saved, "FILE replaced; yours is FILE.bak")
	add(o.Kept, "FILE left as you have changed it; --force replaces it")
	if len(lines) == 0 {
		return o.Agent + ": up to date"
	}
	return strings.Join(lines, "\n")
}
