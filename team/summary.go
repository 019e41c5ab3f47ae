package team

import (
	"context"
	"errors"
	"fmt"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
)

const summaryPrompt = `You shorten the report of an agent for another agent that asked for it.
- Begin with the conclusion.
- Keep every path, identifier, command, error text, piece of code and recommendation as it is.
- Leave out what was tried without result, repetitions and politeness.
- List several findings as bullets.
- Use less than a third of the length. Write nothing but the report.`

// sumUp asks a model to shorten an output. If redact is not nil, it removes
// secrets from the request and the reply.
func sumUp(ctx context.Context, m llm.Model, redact func(string) string, f outputResult) (llm.Reply, error) {
	if m == nil {
		return llm.Reply{}, errors.New("there is no model for summaries")
	}
	req := llm.Request{System: summaryPrompt, Messages: []llm.Message{llm.User(fmt.Sprintf("The report of the agent %s:\n\n%s", f.Agent, f.Output))}}
	r, err := llm.Generate(ctx, llm.RedactModel(m, redact, nil), req)
	if err == nil {
		graph.Emit(ctx, agent.SummaryDone{Model: r.Model, Usage: r.Usage})
	}
	return r, err
}

// truncateMiddle returns the start and the end of a text, together about size characters.
func truncateMiddle(text string, size int) string {
	runes := []rune(text)
	head, tail := size/2, len(runes)-size/2
	return fmt.Sprintf("%s\n[… %d characters left out; the summary failed …]\n%s", string(runes[:head]), tail-head, string(runes[tail:]))
}
