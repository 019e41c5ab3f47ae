package cli

import (
	"context"
	"errors"

	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/term"
)

// askStarter asks the person at the terminal for a prompt for an agent, if there is none: one of its conversation
// starters, or a text. For a graph without starters it does not ask, because a graph may need no prompt.
func askStarter(env *environment, p *app.Process, req *app.Request) error {
	who := env.newPrompter()
	if req.Prompt != "" || req.Headless || who == nil {
		return nil
	}
	a, err := p.Load(app.LoadRequest{Agent: req.Agent, Model: req.Model, Strict: req.Strict})
	if err != nil || a.Config == nil && len(a.Starters()) == 0 {
		return nil // Start reports what is wrong
	}
	answer, err := askQuestion(context.Background(), who, graph.Question{Kind: "select", Prompt: "What shall " + a.Name + " do?", Options: a.Starters(), Free: true}, env.err.Colors)
	if errors.Is(err, term.ErrLeftOpen) {
		return badUsage("give it: raddle run "+quoteWord(req.Agent)+" PROMPT", "there is no prompt")
	}
	if text, ok := answer.(string); ok {
		req.Prompt = text
	}
	return err
}
