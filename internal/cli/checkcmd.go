package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/app"
	"raddle.dev/internal/strictyaml"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
)

func checkCommand(env *environment) *cobra.Command {
	var strict bool
	var output string
	cmd := &cobra.Command{
		Use:   "check AGENT...",
		Short: "Find errors in agents without running them",
		Long: `Reads and validates agents, and proves that every placeholder has a value on every path to it.
No model is called, and no key is needed. The exit code is 3 if there are errors.`,
		Example: `  raddle check examples/triage
  raddle check --strict agents/*/graph.yaml`,
		Args: checkArgCount(1, -1, "the agent"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return agentNames(env), cobra.ShellCompDirectiveDefault
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkFormat(output, formatText, formatJSON); err != nil {
				return err
			}
			return checkAgents(env, args, strict, output)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "treat unknown keys as errors")
	cmd.Flags().StringVar(&output, "output", formatText, "write the findings as `FORMAT`: text or json")
	completeWords(cmd, "output", formatText, formatJSON)
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

func checkAgents(env *environment, agents []string, strict bool, output string) error {
	p, err := env.openProcess()
	if err != nil {
		return err
	}
	var all []checkReport
	ok := true
	for _, name := range agents {
		place, err := p.FindAgent(name)
		if err != nil {
			return err
		}
		c := checkAgent(p, place, strict)
		all, ok = append(all, c), ok && c.OK
		if output == formatText {
			showChecked(env, &c)
		}
	}
	if output == formatJSON {
		err := env.printJSON(struct {
			OK     bool          `json:"ok"`
			Agents []checkReport `json:"agents"`
		}{ok, all})
		if err != nil {
			return err
		}
	}
	if !ok {
		return silentExit{exitInvalid}
	}
	return nil
}

func checkAgent(p *app.Process, place app.Place, strict bool) checkReport {
	c := checkReport{Agent: place.Name, Dir: place.Dir, Findings: []strictyaml.Finding{}}
	agent, err := p.Load(app.LoadRequest{Agent: place.Dir, Strict: strict})
	if err == nil {
		for _, a := range agent.Agents() { // also the agents that it runs
			c.Findings = append(c.Findings, a.Findings...)
		}
		c.Findings = append(c.Findings, findRunFaults(agent)...)
		if err := p.Models.CheckCallable(agent); err != nil {
			c.Findings = append(c.Findings, strictyaml.Finding{Severity: strictyaml.SeverityError, Class: strictyaml.ClassValidate, Code: "no-model",
				Message: err.Error(), Pos: agent.At("model")})
		}
	} else {
		c.err, c.Error = err, err.Error()
		c.Findings = append(c.Findings, findingsOf(err)...)
	}
	for _, f := range c.Findings {
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

// showChecked writes the findings of an agent, and a summary line.
func showChecked(env *environment, c *checkReport) {
	colors := env.out.Colors
	for _, f := range c.Findings {
		env.out.PrintText(env.formatFinding(f, colors))
	}
	if c.err != nil && !strictyaml.HasErrors(c.Findings) {
		env.out.PrintText(term.OneLine(env.process.Dirs.ShortPath(c.Dir)) + ": " + colors.Paint(term.Red, "error:") + " " + c.err.Error())
	}
	if env.quiet {
		return
	}
	verdict := colors.Paint(term.Green, "ok")
	if !c.OK {
		verdict = colors.Paint(term.Red, wording.FormatCount(c.Errors, "error"))
	}
	if c.Warnings > 0 {
		verdict += ", " + colors.Paint(term.Yellow, wording.FormatCount(c.Warnings, "warning"))
	}
	env.out.PrintText(term.OneLine(c.Agent) + ": " + verdict)
}
