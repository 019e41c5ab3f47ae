package cli

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
)

func newAgentsCommand(op *opener) *cobra.Command {
	return newGroup(op, &cobra.Command{
		Use:     "agents COMMAND",
		Short:   "List, show, create, install and publish agents",
		Example: "  raddle agents ls\n  raddle agents new helper\n  raddle agents show coder\n  raddle agents install",
	}, newAgentsLsCommand(op), newAgentsShowCommand(op), newAgentsNewCommand(op), newAgentsAddCommand(op), newAgentsCopyCommand(op), newAgentsInstallCommand(op), newAgentsPublishCommand(op))
}

func newAgentsLsCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write it as `FORMAT`: text or json", runAgentsLs, &cobra.Command{
		Use:     "ls",
		Short:   "List the agents in the agents directory",
		Example: "  raddle agents ls --output json",
		Args:    checkArgCount(0, 0, ""),
	})
}

// listedAgent is one line of the list.
type listedAgent struct {
	app.Place
	Kind        string `json:"kind"` // graph or config
	Description string `json:"description"`
	Error       string `json:"error,omitempty"` // why it cannot be loaded
}

func runAgentsLs(_ context.Context, con *console.Console, p *app.Process, opts outputOptions, _ []string) error {
	if _, err := p.Bundled.Unpack(); err != nil {
		con.PrintNote("raddle: %v", err)
	}
	agents := []listedAgent{}
	for _, place := range p.ListAgents() {
		agents = append(agents, listAgent(p, place))
	}
	if len(agents) == 0 && opts.output == console.FormatText {
		con.Screen.PrintLine("raddle: there are no agents in " + p.Dirs.ShortPath(p.Dirs.Agents) + "\nnext: raddle agents new NAME")
		return nil
	}
	return con.PrintResult(opts.output, agents, func() string { return agentsText(agents) })
}

func listAgent(p *app.Process, place app.Place) listedAgent {
	l := listedAgent{Place: place}
	a, err := p.Load(app.LoadRequest{Agent: place.Dir})
	switch {
	case err != nil:
		l.Error = firstLine(err.Error())
	case a.Config != nil:
		l.Kind = "config"
		l.Description = a.Config.Description
	default:
		l.Kind = "graph"
		l.Description = a.File.Description
	}
	return l
}

func agentsText(agents []listedAgent) string {
	return term.FormatRows(agents,
		term.NewColumn("AGENT", func(a listedAgent) string { return a.Name }),
		term.NewColumn("KIND", func(a listedAgent) string { return cmp.Or(a.Kind, "?") }),
		term.NewColumn("WHAT IT DOES", func(a listedAgent) string {
			if a.Error != "" {
				return "cannot be loaded; see: raddle check " + wording.QuoteWord(a.Name)
			}
			return firstLine(a.Description)
		}),
	)
}

func newAgentsShowCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write it as `FORMAT`: text or json", runAgentsShow, &cobra.Command{
		Use:               "show AGENT",
		Short:             "Show an agent without running it, as info --agent does",
		Example:           "  raddle agents show coder",
		Args:              checkArgCount(1, 1, "the agent"),
		ValidArgsFunction: completeAgents(op),
	})
}

func runAgentsShow(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	return printAgentInfo(ctx, con, p, args[0], opts.output)
}

// agentsNewOptions are the flags of "agents new".
type agentsNewOptions struct{ graph bool }

func newAgentsNewCommand(op *opener) *cobra.Command {
	var opts agentsNewOptions
	cmd := newCommand(op, &opts, runAgentsNew, &cobra.Command{
		Use:     "new NAME",
		Short:   "Create a new agent",
		Long:    "Writes the files of an agent with a tool, or of a graph: in the agents directory, or at a path.",
		Example: "  raddle agents new helper\n  raddle agents new ./review --graph",
		Args:    checkArgCount(1, 1, "the name of the agent"),
	})
	cmd.Flags().BoolVar(&opts.graph, "graph", false, "make it a graph, in graph.yaml")
	return cmd
}

func runAgentsNew(_ context.Context, con *console.Console, p *app.Process, opts agentsNewOptions, args []string) error {
	place, files, err := p.NewAgent(args[0], opts.graph)
	if err != nil {
		return err
	}
	for _, f := range files {
		con.Out.PrintText(f)
	}
	name := place.Name
	if app.IsPath(args[0]) {
		name = args[0]
	}
	con.PrintNote("next: raddle run %s \"a prompt\"", wording.QuoteWord(name))
	return nil
}

// agentsInstallOptions are the flags of "agents install".
type agentsInstallOptions struct{ force bool }

func newAgentsInstallCommand(op *opener) *cobra.Command {
	var opts agentsInstallOptions
	cmd := newCommand(op, &opts, runAgentsInstall, &cobra.Command{
		Use:   "install [NAME...]",
		Short: "Install or update the agents that come with raddle",
		Long: `Writes the agents that come with raddle, or those that are named, to the agents directory: what is missing, and what an
earlier version has installed. Files that you have changed stay as they are, and are listed; --force replaces them, and
keeps yours as FILE.bak. An agent of your own that has the name of one of these is never touched.

raddle uses these agents without their files. Write them to change them: a file that you have changed counts.`,
		Example: "  raddle agents install\n  raddle agents install coder --force",
		Args:    checkArgCount(0, -1, ""),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return app.BundledAgents(), cobra.ShellCompDirectiveNoFileComp
		},
	})
	cmd.Flags().BoolVar(&opts.force, "force", false, "replace files that you have changed, and keep yours as FILE.bak")
	return cmd
}

func newAgentsCopyCommand(op *opener) *cobra.Command {
	return newCommand(op, &noOptions{}, runAgentsCopy, &cobra.Command{
		Use:     "copy NAME...",
		Short:   "Write agents that come with raddle to the agents directory, to change them",
		Example: "  raddle agents copy coder",
		Args:    checkArgCount(1, -1, "the agent"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return app.BundledAgents(), cobra.ShellCompDirectiveNoFileComp
		},
	})
}

func runAgentsCopy(ctx context.Context, con *console.Console, p *app.Process, _ noOptions, args []string) error {
	if err := runAgentsInstall(ctx, con, p, agentsInstallOptions{}, args); err != nil {
		return err
	}
	for _, name := range args {
		con.PrintNote("next: change %s; from then on raddle uses it in place of its own", p.Dirs.ShortPath(filepath.Join(p.Dirs.Agents, name)))
	}
	return nil
}

func runAgentsInstall(_ context.Context, con *console.Console, p *app.Process, opts agentsInstallOptions, args []string) error {
	outcomes, err := p.Bundled.Reinstall(args, opts.force)
	for _, o := range outcomes {
		con.Out.PrintText(installedText(o))
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

func newAgentsPublishCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write the result as `FORMAT`: text or json", runAgentsPublish, &cobra.Command{
		Use:   "publish AGENT",
		Short: "Write the files of an agent to the store of runs, for other machines",
		Long: `Runs that start afterwards can continue with these files wherever the store can be reached, also after the agent has changed. On a
server, PostgreSQL or Redis, every run does this at its start. The files of the agents that it names are included. What begins
with a dot, knowledge bases, and what .gitignore and .raddleignore list are left out. A file with a secret is an error.`,
		Example:           "  raddle agents publish coder",
		Args:              checkArgCount(1, 1, "the agent"),
		ValidArgsFunction: completeAgents(op),
	})
}

func runAgentsPublish(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	done, err := p.PublishAgent(ctx, args[0])
	if err != nil {
		return err
	}
	if opts.output == console.FormatText {
		con.PrintNote("raddle: agent '%s': %s", done.Agent, done.Describe())
	}
	return con.PrintResult(opts.output, done, func() string { return done.Hash })
}
