package flow

import (
	"errors"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// extractData converts a text to data: directly, or else by asking a model, at most
// twice. Node timeouts and attempts do not apply to it. The model of use is for
// agents that name none.
func (v *nodeRun) extractData(use modelUse, schema any, text string) (any, error) {
	if value, ok := fastPath(text); ok {
		return value, nil
	}
	if v.agent.modelID("") != "" {
		use.model = ""
	}
	reply := text
	for attempt, name := range []string{effectExtract, effectRepair} {
		if graph.IsEmitEnabled(v) {
			graph.Emit(v, ExtractionStarted{Repair: attempt > 0})
		}
		prompt := extractorPrompt(schema, reply)
		if attempt > 0 {
			prompt = repairPrompt(schema, reply)
		}
		answer, err := v.askModel(v, name, use, llm.Request{System: extractorSystem, Messages: []llm.Message{llm.User(prompt)}})
		if err != nil {
			return nil, newChainError("Structured-output extractor LLM call failed", err)
		}
		if value, ok := fastPath(answer); ok {
			return value, nil
		}
		reply = answer
	}
	return nil, errors.New(extractionError(reply))
}
