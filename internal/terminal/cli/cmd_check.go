package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

// checkOptions are the flags of "check".
type checkOptions struct {
	strict bool
	output string
}

func newCheckCommand(op *opener) *cobra.Command {
	var opts checkOptions
	cmd := newCommand(op, &opts, runCheck, &cobra.Command{
		Use:   "check AGENT...",
		Short: "Find errors in agents without running them",
		Long: `Reads and validates agents, and proves that every placeholder has a value on every path to it. Hooks of the
directory in which you start raddle (.raddle/hooks.yaml) are read as well, because no agent runs there without them.
No model is called, and no key is needed. The exit code is 3 if there are errors.`,
		Example: `  raddle check review-gate
  raddle check --strict agents/*/graph.yaml`,
		Args: checkArgCount(1, -1, "the agent"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return agentNames(op), cobra.ShellCompDirectiveDefault
		},
	})
	cmd.Flags().BoolVar(&opts.strict, "strict", false, "treat unknown keys as errors")
	addOutputFlag(cmd, &opts.output, "write the findings as `FORMAT`: text or json")
	return cmd
}

// checkReport holds the findings about one agent.
type checkReport struct {
	Agent    string               `json:"agent"`
	Dir      string               `json:"dir"`
	OK       bool                 `json:"ok"`
	Errors   int                  `json:"errors"`
	Warnings int                  `json:"warnings"`
	Error    string               `json:"error,omitempty"` // error of a file that cannot be loaded
	Findings []strictyaml.Finding `json:"findings"`
	err      error
}

func runCheck(ctx context.Context, con *console.Console, p *app.Process, opts checkOptions, args []string) error {
	var all []checkReport
	ok := true
	for _, name := range args {
		place, err := p.FindAgent(name)
		if err != nil {
			return err
		}
		c := checkAgent(ctx, p, place, opts.strict)
		all = append(all, c)
		ok = ok && c.OK
		if opts.output == console.FormatText {
			printChecked(con, p, &c)
		}
	}
	if opts.output == console.FormatJSON {
		err := con.PrintJSON(struct {
			OK     bool          `json:"ok"`
			Agents []checkReport `json:"agents"`
		}{ok, all})
		if err != nil {
			return err
		}
	}
	if !ok {
		return ending.Silent{Code: ending.Invalid}
	}
	return nil
}

// checkAgent checks one agent. What can never work is an error, although a run would start.
func checkAgent(ctx context.Context, p *app.Process, place app.Place, strict bool) checkReport {
	c := checkReport{Agent: place.Name, Dir: place.Dir, Findings: []strictyaml.Finding{}}
	agent, err := p.Load(app.LoadRequest{Agent: place.Dir, Strict: strict})
	if err == nil {
		for _, a := range agent.Agents() { // also the agents that it runs
			c.Findings = append(c.Findings, a.ListFindings()...)
			c.Findings = append(c.Findings, p.Tools.CheckSyntax(ctx, a)...)
		}
		c.Findings = append(c.Findings, findRunFaults(agent)...)
		for _, unset := range p.Models.ListUnset(agent.Models()) {
			c.Findings = append(c.Findings, strictyaml.Finding{Severity: strictyaml.SeverityWarning, Class: strictyaml.ClassValidate, Code: "unset-variable",
				Message: unset.Text(), Hint: "a call fails until " + unset.Name + " is set", Pos: unset.Pos})
		}
		if err := p.Models.CheckCallable(agent); err != nil {
			c.Findings = append(c.Findings, strictyaml.Finding{Severity: strictyaml.SeverityError, Class: strictyaml.ClassValidate, Code: "no-model",
				Message: err.Error(), Pos: agent.At("model")})
		}
	} else {
		c.err, c.Error = err, err.Error()
		c.Findings = append(c.Findings, ending.FindingsOf(err)...)
	}
	for i := range c.Findings {
		f := &c.Findings[i]
		if f.Certain { // a run starts, and fails there
			f.Severity = strictyaml.SeverityError
		}
		switch f.Severity {
		case strictyaml.SeverityError:
			c.Errors++
		case strictyaml.SeverityWarning:
			c.Warnings++
		}
	}
	if c.err != nil && c.Errors == 0 {
		c.Errors++
	}
	c.OK = c.Errors == 0
	return c
}

// findRunFaults returns why a valid agent could not run. A model or a variable that is not set
// yet is not an error of its file.
func findRunFaults(a *flow.Agent) []strictyaml.Finding {
	_, err := a.CompileGraph()
	var (
		refused *spec.ValidationError
		model   *flow.MissingModelError
		needs   *flow.VariablesError
	)
	switch {
	case err == nil || errors.As(err, &refused) || errors.As(err, &model) || errors.As(err, &needs) || strictyaml.HasErrors(a.Findings):
		return nil
	}
	return []strictyaml.Finding{{Severity: strictyaml.SeverityError, Class: strictyaml.ClassValidate, Code: "no-graph", Message: err.Error(), Pos: strictyaml.Pos{File: a.Path()}}}
}

// printChecked writes the findings of an agent, and a summary line.
func printChecked(con *console.Console, p *app.Process, c *checkReport) {
	out := con.Out
	look := ending.LookAtFindings(p, out.Colors)
	for _, f := range c.Findings {
		out.PrintText(look.FormatFinding(f) + "\n" + look.FormatExcerpt(f))
	}
	if c.err != nil && !strictyaml.HasErrors(c.Findings) {
		out.PrintText(term.OneLine(p.Dirs.ShortPath(c.Dir)) + ": " + out.Paint(term.Red, "error:") + " " + c.err.Error())
	}
	if con.Quiet {
		return
	}
	verdict := out.Paint(term.Green, "ok")
	if !c.OK {
		verdict = out.Paint(term.Red, wording.FormatCount(c.Errors, "error"))
	}
	if c.Warnings > 0 {
		verdict += ", " + out.Paint(term.Yellow, wording.FormatCount(c.Warnings, "warning"))
	}
	out.PrintText(term.OneLine(c.Agent) + ": " + verdict)
}
