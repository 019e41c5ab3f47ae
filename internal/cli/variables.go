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
	"raddle.dev/internal/term"
)

// startWith starts a run, with the consent that it needs for what the user did not name.
func startWith(env *environment, p *app.Process, req app.Request) (*app.Run, error) {
	run, err := startSet(env, p, &req)
	if err != nil {
		return nil, err
	}
	again, err := askConsent(env, p, run)
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
func startSet(env *environment, p *app.Process, req *app.Request) (*app.Run, error) {
	who := env.newPrompter()
	req.NeedAll = who != nil && !req.Headless
	run, err := p.StartRun(*req)
	needs, ok := errors.AsType[*flow.VariablesError](err)
	if !ok || !req.NeedAll {
		return run, err
	}
	values, asked := askVariables(env, who, needs.Missing)
	if errors.Is(asked, term.ErrLeftOpen) {
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
func askVariables(env *environment, who term.Prompter, missing []spec.Variable) (map[string]string, error) {
	env.err.PrintLine("⚙ Init agent variables...")
	values := map[string]string{}
	for _, v := range missing {
		for {
			value, err := askText(context.Background(), who, plainText(fmt.Sprintf("%s (%s): ", v.Name, strings.TrimSpace(v.Description))))
			if err != nil {
				return nil, err
			}
			if strings.TrimSpace(value) != "" {
				values[v.Name] = value
				break
			}
			env.err.PrintLine("This field is required")
		}
	}
	return values, nil
}
