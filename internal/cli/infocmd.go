package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/flow"
	"raddle.dev/internal/app"
	"raddle.dev/internal/config"
	"raddle.dev/internal/provider"
	"raddle.dev/internal/strictyaml"
)

func infoCommand(env *environment) *cobra.Command {
	var agent, output string
	cmd := &cobra.Command{
		Use:   "info",
		Short: "Show where everything is, and what is wrong with it",
		Example: `  raddle info
  raddle info --agent examples/triage`,
		Args: checkArgCount(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if err := checkFormat(output, formatText, formatJSON); err != nil {
				return err
			}
			if agent != "" {
				return agentInfo(env, agent, output)
			}
			return printInfo(env, output)
		},
	}
	cmd.Flags().StringVarP(&agent, "agent", "a", "", "show one `AGENT`, without running it")
	cmd.Flags().StringVar(&output, "output", formatText, "write it as `FORMAT`: text or json")
	completeWords(cmd, "output", formatText, formatJSON)
	_ = cmd.RegisterFlagCompletionFunc("agent", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return agentNames(env), cobra.ShellCompDirectiveDefault
	})
	return cmd
}

// infoReport is what "info --output json" writes. Of keys it contains only the names
// of the variables.
type infoReport struct {
	Version  string                `json:"version"`
	Platform string                `json:"platform"`
	Dirs     config.Dirs           `json:"dirs"`
	Config   string                `json:"config"` // path of config.yaml
	Exists   bool                  `json:"config_exists"`
	Store    string                `json:"store"`
	Runs     int                   `json:"runs"`
	Agents   []app.Place           `json:"agents"`
	Model    string                `json:"model"`
	Clients  []provider.ClientInfo `json:"clients"`
	Files    []app.KnownFile       `json:"files"` // of tools, MCP servers and permissions
	Keys     []string              `json:"keys"`
	Problems []string              `json:"problems"`
}

func printInfo(env *environment, output string) error {
	p := env.openWithFaults()
	r := infoReport{
		Version: app.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Dirs: p.Dirs, Config: filepath.Join(p.Dirs.Config, "config.yaml"),
		Store: p.Runs.StoreURL(), Agents: append([]app.Place{}, p.ListAgents()...), Model: p.Config.Model, Clients: p.Models.ListClients(),
		Keys: append([]string{}, p.Models.ListKeysFound()...), Problems: []string{}, Files: p.KnownFiles(),
	}
	_, missing := os.Stat(r.Config)
	r.Exists = missing == nil
	var faults *config.FileError
	switch {
	case errors.As(env.problem, &faults):
		for _, f := range faults.Faults {
			r.Problems = append(r.Problems, f.String())
		}
	case env.problem != nil:
		r.Problems = append(r.Problems, env.problem.Error())
	}
	list, err := p.Runs.ListRuns(context.Background(), "")
	if err != nil {
		r.Problems = append(r.Problems, err.Error())
	}
	r.Runs = len(list)
	if output == formatJSON {
		return env.printJSON(r)
	}
	env.out.PrintText(infoText(&r, p.Dirs.ShortPath))
	return nil
}

func infoText(r *infoReport, short func(string) string) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("version", "raddle %s, %s", r.Version, r.Platform)
	missing := ""
	if !r.Exists {
		missing = " (does not exist; none is needed)"
	}
	row("config", "%s%s", short(r.Config), missing)
	var names []string
	for _, a := range r.Agents {
		names = append(names, a.Name)
	}
	row("agents", "%s (%s)", short(r.Dirs.Agents), orElse(joinWords(names), "none"))
	for _, f := range r.Files {
		missing := ""
		if !f.Exists {
			missing = " (does not exist; none is needed)"
		}
		row(f.What, "%s%s", short(f.Path), missing)
	}
	row("runs", "%s (%d)", r.Store, r.Runs)
	row("cache", "%s", short(r.Dirs.Cache))
	row("model", "%s", orElse(r.Model, "none is set; graphs can name their own, or use --model"))
	for _, c := range r.Clients {
		if !c.Ready {
			continue
		}
		line := c.Client
		if c.Type != c.Client {
			line += " (" + c.Type + ")"
		}
		if c.Base != "" {
			line += " at " + c.Base
		}
		if c.Key != "" {
			line += ", key from " + c.Key
		}
		if len(c.Models) > 0 {
			line += ": " + joinWords(c.Models)
		}
		row("client", "%s", line)
	}
	for _, problem := range r.Problems {
		row("problem", "%s", problem)
	}
	return b.String()
}

// agentReport is what "info --agent" shows.
type agentReport struct {
	Agent        string               `json:"agent"`
	Dir          string               `json:"dir"`
	Name         string               `json:"name"`
	Description  string               `json:"description"`
	Version      string               `json:"version"`
	Model        string               `json:"model"`
	Instructions string               `json:"instructions,omitempty"` // of the agent of a config.yaml, with placeholders replaced
	Start        string               `json:"start"`
	Nodes        []nodeReport         `json:"nodes"`
	Tools        []toolReport         `json:"tools"`
	Knowledge    []app.KnowledgeBase  `json:"knowledge"`            // bases, built or not
	Unreadable   string               `json:"unreadable,omitempty"` // why they cannot be read
	Variables    []variableReport     `json:"variables"`
	Starters     []string             `json:"conversation_starters"`
	Files        []flow.Source        `json:"files"`
	Findings     []strictyaml.Finding `json:"findings"`
}

type toolReport struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type nodeReport struct {
	ID          string `json:"id"`
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
}

type variableReport struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Default     *string `json:"default"` // null: it must be set
}

func agentInfo(env *environment, name, output string) error {
	p, err := env.openProcess()
	if err != nil {
		return err
	}
	a, err := p.Load(app.LoadRequest{Agent: name})
	if err != nil {
		return err
	}
	r := reportOn(a)
	if r.Knowledge, err = p.ListKnowledgeBases(context.Background(), name); err != nil {
		r.Knowledge, r.Unreadable = []app.KnowledgeBase{}, err.Error()
	}
	if output == formatJSON {
		return env.printJSON(r)
	}
	env.out.PrintText(agentText(&r, p.Dirs.ShortPath))
	return nil
}

// reportOn returns the report on an agent of either kind.
func reportOn(a *flow.Agent) agentReport {
	r := agentReport{
		Agent: a.Name, Dir: a.Dir, Nodes: []nodeReport{}, Variables: []variableReport{}, Tools: []toolReport{}, Starters: a.Starters(),
		Files: a.Sources(), Findings: append([]strictyaml.Finding{}, a.Findings...),
	}
	if c := a.Config; c != nil {
		r.Name, r.Description, r.Version, r.Model = c.Name, c.Description, c.Version, c.Sampling.Model
		r.Instructions = a.Instructions()
	} else {
		f := a.File
		r.Name, r.Description, r.Version, r.Model, r.Start = f.Name, f.Description, f.Version, f.Model, f.Start
		for _, n := range f.Nodes {
			r.Nodes = append(r.Nodes, nodeReport{n.ID, n.Kind(), n.Description})
		}
	}
	for _, t := range a.AvailableTools() {
		what, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
		r.Tools = append(r.Tools, toolReport{t.Name, what})
	}
	for _, v := range a.Variables() {
		r.Variables = append(r.Variables, variableReport{v.Name, v.Description, v.Default})
	}
	return r
}

func agentText(r *agentReport, short func(string) string) string {
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, strings.TrimRight(value, "\n"))
		}
	}
	row("agent", r.Agent)
	row("directory", short(r.Dir))
	row("name", r.Name)
	row("about", strings.ReplaceAll(strings.TrimSpace(r.Description), "\n", "\n           "))
	row("model", r.Model)
	row("start", r.Start)
	row("says", strings.ReplaceAll(strings.TrimSpace(r.Instructions), "\n", "\n           "))
	for _, t := range r.Tools {
		row("tool", t.Name+": "+t.Description)
	}
	for _, n := range r.Nodes {
		row("node", fmt.Sprintf("%s (%s) %s", n.ID, n.Type, n.Description))
	}
	for _, k := range r.Knowledge {
		row("knowledge", strings.ReplaceAll(knowledgeLine(short, k), "\n", "\n         "))
	}
	row("knowledge", r.Unreadable)
	for _, v := range r.Variables {
		text := v.Name + ": " + v.Description
		if v.Default != nil {
			text += " [default: " + *v.Default + "]"
		}
		row("variable", text)
	}
	for _, s := range r.Starters {
		row("starter", s)
	}
	for _, f := range r.Files {
		row("file", f.Path)
	}
	if len(r.Findings) > 0 {
		row("findings", fmt.Sprintf("%d; see: raddle check %s", len(r.Findings), quoteWord(short(r.Dir))))
	}
	return b.String()
}

// listAgents implements --list-agents of the reference tool.
func listAgents(env *environment) error {
	for _, name := range agentNames(env) {
		env.out.PrintText(name)
	}
	return nil
}
