package cli

import (
	"github.com/spf13/cobra"

	"raddle.dev/internal/app"
	"raddle.dev/internal/term"
)

func agentsCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "agents COMMAND",
		Short:   "List, show, create and install agents",
		Example: "  raddle agents ls\n  raddle agents new helper\n  raddle agents show helper\n  raddle agents install",
		Args:    env.noCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(agentsLsCommand(env), agentsShowCommand(env), agentsNewCommand(env), agentsInstallCommand(env))
	return cmd
}

// listedAgent is one line of the list.
type listedAgent struct {
	app.Place
	Kind        string `json:"kind"` // graph or config
	Description string `json:"description"`
	Error       string `json:"error,omitempty"` // why it cannot be loaded
}

func agentsLsCommand(env *environment) *cobra.Command {
	var output string
	return outputFlag(&cobra.Command{
		Use:     "ls",
		Short:   "List the agents in the agents directory",
		Example: "  raddle agents ls --output json",
		Args:    checkArgCount(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if err := checkFormat(output, formatText, formatJSON); err != nil {
				return err
			}
			p, err := env.openProcess()
			if err != nil {
				return err
			}
			agents := []listedAgent{}
			if err := p.InstallBundled(); err != nil && !env.quiet {
				env.err.PrintLine("raddle: the agents that come with raddle could not be installed: " + err.Error())
			}
			for _, place := range p.ListAgents() {
				agents = append(agents, listAgent(p, place))
			}
			if output == formatJSON {
				return env.printJSON(agents)
			}
			if len(agents) == 0 {
				env.err.PrintLine("raddle: there are no agents in " + p.Dirs.ShortPath(p.Dirs.Agents) + "\nnext: raddle agents new NAME")
			}
			env.out.PrintText(agentsText(agents))
			return nil
		},
	}, &output)
}

func listAgent(p *app.Process, place app.Place) listedAgent {
	l := listedAgent{Place: place}
	a, err := p.Load(app.LoadRequest{Agent: place.Dir})
	switch {
	case err != nil:
		l.Error = firstLine(err.Error())
	case a.Config != nil:
		l.Kind, l.Description = "config", a.Config.Description
	default:
		l.Kind, l.Description = "graph", a.File.Description
	}
	return l
}

func agentsText(agents []listedAgent) string {
	if len(agents) == 0 {
		return ""
	}
	table := term.NewTable("AGENT", "KIND", "WHAT IT DOES")
	for _, a := range agents {
		what := firstLine(a.Description)
		if a.Error != "" {
			what = "cannot be loaded; see: raddle check " + quoteWord(a.Name)
		}
		table.AddRow(a.Name, orElse(a.Kind, "?"), what)
	}
	return table.Format(0)
}

func agentsShowCommand(env *environment) *cobra.Command {
	var output string
	return outputFlag(&cobra.Command{
		Use:               "show AGENT",
		Short:             "Show an agent without running it, as info --agent does",
		Example:           "  raddle agents show examples/assistant",
		Args:              checkArgCount(1, 1, "the agent"),
		ValidArgsFunction: env.completeAgents,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkFormat(output, formatText, formatJSON); err != nil {
				return err
			}
			return agentInfo(env, args[0], output)
		},
	}, &output)
}

func agentsNewCommand(env *environment) *cobra.Command {
	var graph bool
	cmd := &cobra.Command{
		Use:     "new NAME",
		Short:   "Create a new agent",
		Long:    "Writes the files of an agent with a tool, or of a graph: in the agents directory, or at a path.",
		Example: "  raddle agents new helper\n  raddle agents new ./review --graph",
		Args:    checkArgCount(1, 1, "the name of the agent"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := env.openProcess()
			if err != nil {
				return err
			}
			place, files, err := p.NewAgent(args[0], graph)
			if err != nil {
				return err
			}
			for _, f := range files {
				env.out.PrintText(f)
			}
			if !env.quiet {
				name := place.Name
				if app.IsPath(args[0]) {
					name = args[0]
				}
				env.err.PrintLine("next: raddle run " + quoteWord(name) + " \"a prompt\"")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&graph, "graph", false, "make it a graph, in graph.yaml")
	return cmd
}
