package flow

import (
	"context"
	"errors"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/llm"
)

// extractData converts a text to data: directly, or else by asking a model, at most
// twice. Node timeouts and attempts do not apply to it. The model of use is for
// agents that name none.
func (nr *nodeRun) extractData(use modelUse, schema any, text string) (any, error) {
	if value, ok := fastPath(text); ok {
		return value, nil
	}
	if nr.agent.modelID("") != "" {
		use.model = ""
	}
	reply := text
	for attempt, name := range []string{effectExtract, effectRepair} {
		if graph.IsEmitEnabled(nr) {
			graph.Emit(nr, ExtractionStarted{Repair: attempt > 0})
		}
		prompt := extractorPrompt(schema, reply)
		if attempt > 0 {
			prompt = repairPrompt(schema, reply)
		}
		answer, err := nr.askModel(nr, name, use, llm.Request{System: extractorSystem, Messages: []llm.Message{llm.User(prompt)}})
		if err != nil {
			return nil, newChainError("Structured-output extractor LLM call failed", err)
		}
		if value, ok := fastPath(answer); ok {
			return value, nil
		}
		reply = answer
	}
	return nil, &noDataError{extractionError(reply)}
}

// noDataError says that no reply was JSON, neither of the node's model nor of the extractor.
type noDataError struct{ text string }

func (e *noDataError) Error() string { return e.text }

// effectNoData is the name of the effect that records that replies gave no data, so that a resumed run asks again
// instead of reading them again.
const effectNoData = "no data"

// asksAgain reports whether a node that failed with err asks its models again, because an earlier drive has failed with
// the replies that are recorded. In the drive in which it fails, it records that.
func (nr *nodeRun) asksAgain(err error) (again bool, fault error) {
	if !errors.As(err, new(*noDataError)) || nr.Err() != nil {
		return false, nil
	}
	again = true
	_, fault = graph.Do(nr, effectNoData, func(context.Context) (bool, error) {
		again = false
		return true, nil
	})
	return again && fault == nil, fault
}

// extractAgain is extractData for a text that is recorded: if an earlier drive could not get data from it, the extractor is
// asked again.
func (nr *nodeRun) extractAgain(use modelUse, schema any, text string) (any, error) {
	for {
		value, err := nr.extractData(use, schema, text)
		if err == nil {
			return value, nil
		}
		again, fault := nr.asksAgain(err)
		if fault != nil {
			return nil, fault
		}
		if !again {
			return nil, err
		}
	}
}

// schemaHint returns the text that asks a model for an answer that matches a
// schema.
func schemaHint(schema any) string {
	return "Respond with a JSON object that matches this schema. " +
		"Output ONLY the JSON object with no surrounding prose or markdown fences.\n\n" +
		"Schema:\n" + jsonvalue.Pretty(schema)
}

// withSchemaHint appends the hint for a schema to a text, after one blank line.
func withSchemaHint(text string, schema any) string {
	return text + "\n\n" + schemaHint(schema)
}

// fastPath reads a model's answer as JSON without another call. It removes
// white space, leading think blocks and each fence of a code block. Any JSON is
// accepted; it is not checked against a schema.
func fastPath(answer string) (any, bool) {
	text, ok := dropThinking(strings.TrimSpace(answer))
	if !ok {
		return nil, false
	}
	if rest, ok := strings.CutPrefix(text, "```json"); ok {
		text = strings.TrimSpace(rest)
	} else if rest, ok := strings.CutPrefix(text, "```"); ok {
		text = strings.TrimSpace(rest)
	}
	if rest, ok := strings.CutSuffix(text, "```"); ok {
		text = strings.TrimSpace(rest)
	}
	v, err := jsonvalue.Parse([]byte(text))
	return v, err == nil
}

// dropThinking removes the think blocks at the beginning of a text. It fails if
// one of them is not closed.
func dropThinking(text string) (string, bool) {
	for {
		rest, ok := strings.CutPrefix(text, "<think>")
		if !ok {
			return text, true
		}
		_, after, closed := strings.Cut(rest, "</think>")
		if !closed {
			return text, false
		}
		text = strings.TrimSpace(after)
	}
}

// extractorSystem is the system prompt of the call that converts text to JSON.
const extractorSystem = "You convert text into data. You are given a JSON schema and an input text. " +
	"Answer with exactly one JSON object that follows the schema and says what the input says. " +
	"Use null or an empty value for what the input does not tell; never invent facts. " +
	"Write the JSON object alone: no explanation before or after it, no markdown, no code fence."

// extractorPrompt asks to convert a model's answer to JSON with a schema.
func extractorPrompt(schema any, answer string) string {
	return "Schema:\n" + jsonvalue.Pretty(schema) + "\n\nInput:\n" + answer
}

// repairPrompt asks again, with the previous answer of the extractor as the
// input.
func repairPrompt(schema any, previous string) string {
	return "Your previous reply was not valid JSON. Reply again, with the JSON object only.\n\n" +
		extractorPrompt(schema, previous)
}

// extractionFailed begins the text of an extraction that failed.
const extractionFailed = "Structured-output extractor failed to produce valid JSON"

// extractionError returns the text of an extraction that failed twice.
func extractionError(previous string) string {
	return extractionFailed + " after repair retry. Last response:\n" + previous
}
