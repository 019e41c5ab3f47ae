package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/setup"
)

// This file asks for what a run needs before it starts: a prompt, values of variables, and consent.

// askStarter asks the person at the terminal for the prompt of a run that has none: one of its agent's conversation
// starters, or a text. For a graph without starters it does not ask, because a graph may need no prompt.
func askStarter(ctx context.Context, con *console.Console, p *app.Process, run *app.Run, agent string) error {
	prompter := con.NewPrompter()
	a := run.Agent
	if run.Record.Prompt != "" || run.Record.Headless || prompter == nil || a.Config == nil && len(a.Starters()) == 0 {
		return nil
	}
	answer, err := question.Ask(ctx, prompter, graph.Question{Kind: "select", Prompt: "What shall " + a.Name + " do?", Options: a.Starters(), Free: true}, con.Screen.Colors)
	if errors.Is(err, term.ErrLeftOpen) {
		return ending.BadUsage("give it: raddle run "+wording.QuoteWord(agent)+" PROMPT", "there is no prompt")
	}
	if err != nil {
		return err
	}
	text, _ := answer.(string)
	return p.SetPrompt(run, text)
}

// startPrompted starts a run. It asks the person at the terminal for what the run lacks: a model, variables, consent
// and a prompt. The agent is loaded again only after an answer on which its parts depend.
func startPrompted(ctx context.Context, op *opener, req app.Request) (*app.Run, error) {
	run, err := startConsenting(ctx, op.Console, op.process, &req, op.process.StartRun)
	if _, missing := errors.AsType[*flow.MissingModelError](err); missing {
		if err := askModel(ctx, op, req, err); err != nil {
			return nil, err
		}
		run, err = startConsenting(ctx, op.Console, op.process, &req, op.process.StartRun)
	}
	if err != nil {
		return nil, err
	}
	if err := askStarter(ctx, op.Console, op.process, run, req.Agent); err != nil {
		run.Close()
		return nil, err
	}
	return run, nil
}

// startConsenting starts a run with the consent that it needs for what the user did not name, and with the values of
// its variables, which it adds to the request.
func startConsenting(ctx context.Context, con *console.Console, p *app.Process, req *app.Request, start func(app.Request) (*app.Run, error)) (*app.Run, error) {
	run, err := startSet(ctx, con, req, start)
	if err != nil {
		return nil, err
	}
	again, err := askConsent(ctx, con, p, run)
	if err == nil && !again {
		return run, nil
	}
	run.Close()
	if err != nil {
		return nil, err
	}
	return start(*req)
}

// startSet starts a run. If the agent needs variables that are not set, it asks the
// person at the terminal for them; without a person, or if they leave
// them open, it returns that error.
func startSet(ctx context.Context, con *console.Console, req *app.Request, start func(app.Request) (*app.Run, error)) (*app.Run, error) {
	prompter := con.NewPrompter()
	req.NeedAll = prompter != nil && !req.Headless
	run, err := start(*req)
	needs, ok := errors.AsType[*flow.VariablesError](err)
	if !ok || !req.NeedAll {
		return run, err
	}
	values, asked := askVariables(ctx, con, prompter, needs.Missing)
	if errors.Is(asked, term.ErrLeftOpen) {
		return nil, err
	}
	if asked != nil {
		return nil, asked
	}
	maps.Copy(values, req.Variables)
	req.Variables = values
	return start(*req)
}

// askVariables asks for the values of variables.
func askVariables(ctx context.Context, con *console.Console, prompter term.Prompter, missing []spec.Variable) (map[string]string, error) {
	con.Screen.PrintLine("⚙ Init agent variables...")
	values := map[string]string{}
	for _, v := range missing {
		for {
			value, err := question.AskText(ctx, prompter, term.CleanText(fmt.Sprintf("%s (%s): ", v.Name, strings.TrimSpace(v.Description))))
			if err != nil {
				return nil, err
			}
			if strings.TrimSpace(value) != "" {
				values[v.Name] = value
				break
			}
			con.Screen.PrintLine("This field is required")
		}
	}
	return values, nil
}

// askConsent asks the person at the terminal about what a run picks up although the user did not name it. given reports
// whether the person agreed to one, which counts for runs that start from now on. Without a person, it only prints
// warnings; answers of the command line are not consent.
func askConsent(ctx context.Context, con *console.Console, p *app.Process, run *app.Run) (given bool, err error) {
	list, err := p.Tools.FindImplicitDirs(run.Agent)
	if err != nil {
		return false, err
	}
	guide := newGuide(con, p)
	if guide.Prompter == nil || run.Record.Headless {
		if !con.Quiet {
			guide.WarnImplicitDirs(list)
		}
		return false, nil
	}
	given, err = guide.AskConsent(ctx, list)
	if errors.Is(err, term.ErrLeftOpen) {
		err = ending.Silent{Code: ending.Interrupted}
	}
	return given, err
}

// chooseModel returns the model of config.yaml or RADDLE_MODEL. If there is none, it asks the person at the terminal
// for one and saves it in config.yaml. Without a person, or if the person does not choose, the error ends in a command
// to paste.
func chooseModel(ctx context.Context, op *opener) (model string, err error) {
	if err := op.openProcess(); err != nil {
		return "", err
	}
	if op.process.Config.Model != "" {
		return op.process.Config.Model, nil
	}
	g := op.newGuide()
	if g.Prompter == nil {
		return "", noModelError(op.process, errors.New("no model is set"), "AGENT")
	}
	model, err = g.PickModel(ctx, "No model is set. Which one shall raddle use?")
	if errors.Is(err, term.ErrLeftOpen) {
		return "", noModelError(op.process, errors.New("no model is set"), "AGENT")
	}
	if err != nil {
		return "", err
	}
	return model, g.SaveModel(model)
}

// ensureModel asks for a model before a conversation with an agent that needs one and has none. Without a person, the
// first turn reports that.
func ensureModel(ctx context.Context, op *opener, agent, model string) error {
	if op.process.Config.Model != "" || model != "" || op.NewPrompter() == nil {
		return nil
	}
	a, err := op.process.Load(app.LoadRequest{Agent: agent})
	if err == nil {
		_, err = a.CompileGraph()
	}
	if _, missing := errors.AsType[*flow.MissingModelError](err); !missing {
		return nil
	}
	return askModel(ctx, op, app.Request{Agent: agent}, err)
}

// askModel asks for the model that a run lacks, as an error of its start says. Without a person, or if the person does
// not choose, it returns that error with a command to paste.
func askModel(ctx context.Context, op *opener, req app.Request, missing error) error {
	if req.Headless || req.Model != "" || op.process.Config.Model != "" {
		return noModelError(op.process, missing, req.Agent)
	}
	_, err := chooseModel(ctx, op)
	if own, ok := errors.AsType[*ending.Error](err); ok && own.Code == ending.Invalid {
		return noModelError(op.process, missing, req.Agent)
	}
	return err
}

// noModelError returns the error that no model is set, with a command to paste that names one.
func noModelError(p *app.Process, err error, agent string) error {
	return &ending.Error{Code: ending.Invalid, Next: ending.HintModel(p, agent), Err: err}
}

// lookInstead lets the person look at a recorded agent if an error says that the person wants that, and returns the
// error otherwise.
func lookInstead(ctx context.Context, env *environment, err error) error {
	if !errors.Is(err, setup.ErrLook) {
		return err
	}
	env.offersLook = false
	a, dir, err := newGuide(env.Console, env.process).PickRecorded(ctx)
	if err == nil && a.Graph {
		err = runRun(ctx, env, runOptions{output: console.FormatText, noStdin: true}, []string{dir, a.Prompt})
	} else if err == nil {
		err = runChat(ctx, env, chatOptions{}, []string{dir})
	}
	if err == nil || errors.Is(err, term.ErrLeftOpen) {
		env.PrintNote("next: raddle init, which chooses a model")
		return nil
	}
	return err
}
