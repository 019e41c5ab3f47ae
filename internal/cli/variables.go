package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/app"
)

// startWith starts a run, with the consent that it needs for what the user did not name.
func (sh *shell) startWith(p *app.Process, req app.Request) (*app.Run, error) {
	run, err := sh.startSet(p, &req)
	if err != nil {
		return nil, err
	}
	again, err := sh.askConsent(p, run)
	if err == nil && !again {
		return run, nil
	}
	run.Close()
	if err != nil {
		return nil, err
	}
	return p.StartRun(req)
}

// startSet starts a run. If the agent needs variables that are not set, it asks the
// person at the terminal for them; without a person, or if they leave
// them open, it returns that error.
func (sh *shell) startSet(p *app.Process, req *app.Request) (*app.Run, error) {
	who := sh.newPrompter()
	req.NeedAll = who != nil && !req.Headless
	run, err := p.StartRun(*req)
	needs, ok := errors.AsType[*flow.VariablesError](err)
	if !ok || !req.NeedAll {
		return run, err
	}
	values, asked := sh.askVariables(who, needs.Missing)
	if errors.Is(asked, errParked) {
		return nil, err
	}
	if asked != nil {
		return nil, asked
	}
	maps.Copy(values, req.Variables)
	req.Variables = values
	return p.StartRun(*req)
}

// askVariables asks for the values of variables.
func (sh *shell) askVariables(who prompter, missing []spec.Variable) (map[string]string, error) {
	sh.err.printLine("⚙ Init agent variables...")
	values := map[string]string{}
	for _, v := range missing {
		for {
			value, err := who.askText(context.Background(), plainText(fmt.Sprintf("%s (%s): ", v.Name, strings.TrimSpace(v.Description))))
			if err != nil {
				return nil, err
			}
			if strings.TrimSpace(value) != "" {
				values[v.Name] = value
				break
			}
			sh.err.printLine("This field is required")
		}
	}
	return values, nil
}
