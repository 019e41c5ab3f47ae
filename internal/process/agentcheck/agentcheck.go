// Package agentcheck finds what is wrong with an agent without running it: the findings of raddle check and
// of editors.
package agentcheck

import (
	"context"
	"errors"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/process/app"
)

// Options say how an agent is checked.
type Options struct {
	Strict  bool              // unknown keys are errors
	Unsaved map[string][]byte // texts that count instead of the files at their absolute paths
	Syntax  bool              // bash reads scripts, without running them; otherwise no program is started
}

// Report holds the findings about one agent.
type Report struct {
	Agent    string               `json:"agent"`
	Dir      string               `json:"dir"`
	OK       bool                 `json:"ok"`
	Errors   int                  `json:"errors"`
	Warnings int                  `json:"warnings"`
	Error    string               `json:"error,omitempty"` // error of a file that cannot be loaded
	Findings []strictyaml.Finding `json:"findings"`
	Err      error                `json:"-"` // why the agent cannot be loaded
	Loaded   *flow.Agent          `json:"-"` // nil: it cannot be loaded
}

// Check checks one agent, and those that it runs. What can never work is an error, although a run would start.
func Check(ctx context.Context, p *app.Process, place app.Place, o Options) Report {
	c := Report{Agent: place.Name, Dir: place.Dir, Findings: []strictyaml.Finding{}}
	agent, err := p.Load(app.LoadRequest{Agent: place.Dir, Strict: o.Strict, Unsaved: o.Unsaved})
	if err == nil {
		c.Loaded = agent
		for _, a := range agent.Agents() { // also the agents that it runs
			c.Findings = append(c.Findings, a.ListFindings()...)
			if o.Syntax {
				c.Findings = append(c.Findings, p.Tools.CheckSyntax(ctx, a)...)
			}
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
		c.Err, c.Error = err, err.Error()
		c.Findings = append(c.Findings, app.FindingsOf(err)...)
	}
	c.count()
	return c
}

// count makes errors of what can never work, and counts the findings.
func (c *Report) count() {
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
	if c.Err != nil && c.Errors == 0 {
		c.Errors++
	}
	c.OK = c.Errors == 0
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
