package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/flow"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/process/toolbox"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/console"
)

// infoOptions are the flags of "info".
type infoOptions struct{ agent, output string }

func newInfoCommand(op *opener) *cobra.Command {
	var opts infoOptions
	cmd := &cobra.Command{
		Use:   "info",
		Short: "Show where everything is, and what is wrong with it",
		Example: `  raddle info
  raddle info --agent review-gate`,
		Args: checkArgCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, args []string) error { return runInfo(cmd.Context(), op, opts, args) },
	}
	cmd.Flags().StringVarP(&opts.agent, "agent", "a", "", "show one `AGENT`, without running it")
	addOutputFlag(cmd, &opts.output, "write it as `FORMAT`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("agent", completeAgents(op))
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
	Files    []toolbox.KnownFile   `json:"files"` // of tools, MCP servers and permissions
	Keys     []string              `json:"keys"`
	Problems []string              `json:"problems"`
}

// runInfo shows what there is also with an invalid configuration.
func runInfo(ctx context.Context, op *opener, opts infoOptions, _ []string) error {
	if opts.agent != "" {
		if err := op.openProcess(); err != nil {
			return err
		}
		return printAgentInfo(ctx, op.Console, op.process, opts.agent, opts.output)
	}
	p := op.openWithFaults()
	r := infoReport{
		Version: app.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Dirs: p.Dirs, Config: filepath.Join(p.Dirs.Config, "config.yaml"),
		Store: p.Runs.StoreURL(), Agents: append([]app.Place{}, p.ListAgents()...), Model: p.Config.Model, Clients: p.Models.ListClients(),
		Keys: append([]string{}, p.Models.ListKeysFound()...), Problems: []string{}, Files: p.Tools.KnownFiles(),
	}
	_, missing := os.Stat(r.Config)
	r.Exists = missing == nil
	var faults *config.FileError
	switch {
	case errors.As(op.problem, &faults):
		for _, f := range faults.Findings {
			r.Problems = append(r.Problems, f.String())
		}
	case op.problem != nil:
		r.Problems = append(r.Problems, op.problem.Error())
	}
	var err error
	if r.Runs, err = p.Runs.CountAllRuns(ctx); err != nil {
		r.Problems = append(r.Problems, err.Error())
	}
	return op.PrintResult(opts.output, r, func() string { return formatInfo(&r, p.Dirs.ShortPath) })
}

func formatInfo(r *infoReport, short func(string) string) string {
	text := term.NewFields(11)
	var missing []string
	for _, problem := range r.Problems {
		text.AddField("✗ problem", problem)
	}
	addFile := func(name, path string, exists bool) {
		if exists {
			text.AddField(name, short(path))
			return
		}
		missing = append(missing, short(path))
	}
	text.AddField("version", "raddle "+r.Version+", "+r.Platform)
	addFile("config", r.Config, r.Exists)
	var names []string
	for _, a := range r.Agents {
		names = append(names, a.Name)
	}
	text.AddField("agents", short(r.Dirs.Agents)+" ("+cmp.Or(strings.Join(names, ", "), "none")+")")
	for _, f := range r.Files {
		addFile(f.What, f.Path, f.Exists)
	}
	text.AddField("runs", fmt.Sprintf("%s (%d)", r.Store, r.Runs))
	text.AddField("cache", short(r.Dirs.Cache))
	text.AddField("model", cmp.Or(r.Model, "none is set: raddle init, or --model"))
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
		line += c.DescribeAccess()
		if len(c.Models) > 0 {
			line += ": " + strings.Join(c.Models, ", ")
		}
		text.AddField("client", line)
	}
	var without []string
	for _, c := range r.Clients {
		if c.Lacks != "" {
			text.AddField("no access", term.CleanText(c.Client+": "+c.Lacks))
		}
		if c.Needs != "" {
			without = append(without, c.Client)
		}
	}
	text.AddField("without key", strings.Join(without, ", "))
	text.AddField("optional", strings.Join(missing, "\n"))
	return text.String()
}

// agentReport is what "info --agent" shows.
type agentReport struct {
	Agent       string `json:"agent"`
	Dir         string `json:"dir"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version"`
	Model       string `json:"model"`
	// Instructions are those of the agent of a config.yaml, with placeholders replaced.
	Instructions string               `json:"instructions,omitempty"`
	Start        string               `json:"start"`
	Nodes        []nodeReport         `json:"nodes"`
	Tools        []toolReport         `json:"tools"`
	Skills       []toolReport         `json:"skills"`
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

func printAgentInfo(ctx context.Context, con *console.Console, p *app.Process, name, output string) error {
	a, err := p.Load(app.LoadRequest{Agent: name})
	if err != nil {
		return err
	}
	r := reportOn(a)
	if r.Knowledge, err = p.Knowledge().ListBases(ctx, name); err != nil {
		r.Knowledge, r.Unreadable = []app.KnowledgeBase{}, err.Error()
	}
	return con.PrintResult(output, r, func() string { return agentText(&r, p.Dirs.ShortPath) })
}

// reportOn returns the report on an agent of either kind.
func reportOn(a *flow.Agent) agentReport {
	r := agentReport{
		Agent: a.Name, Dir: a.Dir, Nodes: []nodeReport{}, Variables: []variableReport{}, Tools: []toolReport{}, Skills: []toolReport{}, Starters: a.Starters(),
		Files: a.Sources(), Findings: append([]strictyaml.Finding{}, a.ListFindings()...),
	}
	if c := a.Config; c != nil {
		r.Name = c.Name
		r.Description = c.Description
		r.Version = c.Version
		r.Model = c.Sampling.Model
		r.Instructions = a.Instructions()
	} else {
		f := a.File
		r.Name = f.Name
		r.Description = f.Description
		r.Version = f.Version
		r.Model = f.Model
		r.Start = f.Start
		for _, n := range f.Nodes {
			r.Nodes = append(r.Nodes, nodeReport{n.ID, n.Kind(), n.Description})
		}
	}
	for _, t := range a.AvailableTools() {
		what, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
		r.Tools = append(r.Tools, toolReport{t.Name, what})
	}
	for _, s := range flow.ListSkills(a) {
		r.Skills = append(r.Skills, toolReport{s.Name, s.Description})
	}
	for _, v := range a.Variables() {
		r.Variables = append(r.Variables, variableReport{v.Name, v.Description, v.Default})
	}
	return r
}

func agentText(r *agentReport, short func(string) string) string {
	text := term.NewFields(10)
	text.AddField("agent", r.Agent)
	text.AddField("directory", short(r.Dir))
	text.AddField("name", r.Name)
	text.AddField("about", strings.TrimSpace(r.Description))
	text.AddField("model", r.Model)
	text.AddField("start", r.Start)
	text.AddField("says", strings.TrimSpace(r.Instructions))
	for _, t := range r.Tools {
		text.AddField("tool", t.Name+": "+t.Description)
	}
	for _, s := range r.Skills {
		text.AddField("skill", s.Name+": "+term.CleanText(s.Description))
	}
	for _, n := range r.Nodes {
		text.AddField("node", fmt.Sprintf("%s (%s) %s", n.ID, n.Type, n.Description))
	}
	for _, k := range r.Knowledge {
		text.AddField("knowledge", strings.ReplaceAll(knowledgeLine(short, k), "\n  ", "\n"))
	}
	text.AddField("knowledge", r.Unreadable)
	for _, v := range r.Variables {
		line := v.Name + ": " + v.Description
		if v.Default != nil {
			line += " [default: " + *v.Default + "]"
		}
		text.AddField("variable", line)
	}
	for _, s := range r.Starters {
		text.AddField("starter", s)
	}
	for _, f := range r.Files {
		text.AddField("file", f.Path)
	}
	if len(r.Findings) > 0 {
		text.AddField("findings", fmt.Sprintf("%d; see: raddle check %s", len(r.Findings), wording.QuoteWord(short(r.Dir))))
	}
	return text.String()
}
