package mcp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
)

// The fields of the form of a question.
const (
	answerField = "answer"
	reasonField = "reason" // why a call is refused
)

// The answers to a question about permission that a protocol may give.
const (
	answerOnce = "once"
	answerNo   = "no"
)

// canElicit reports whether a question can be answered over a protocol at all.
func canElicit(q *graph.Question) bool { return q.Kind != flow.KindTrust }

// newElicitation returns a question as a form. problem says why the last answer was refused, or is "".
func newElicitation(q *graph.Question, problem string) *sdk.ElicitParams {
	message := q.Prompt
	problem = cmp.Or(problem, q.Rejected)
	if problem != "" {
		message += "\n\n" + problem
	}
	return &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: newForm(q)}
}

// newForm returns the schema of the form of a question. Forms are flat: a value that is not of a simple type is written
// as JSON.
func newForm(q *graph.Question) map[string]any {
	if q.Kind == agent.KindPermission {
		return map[string]any{"type": "object", "required": []string{answerField}, "properties": map[string]any{
			answerField: map[string]any{"type": "string", "title": "Allow this call?", "enum": []string{answerOnce, answerNo}, "enumNames": []string{"Allow once", "Do not allow"}},
			reasonField: map[string]any{"type": "string", "title": "Reason", "description": "why the call is not allowed; the agent reads it"},
		}}
	}
	field := map[string]any{"type": "string", "title": "Answer"}
	switch {
	case q.Kind == agent.KindCheckbox && len(q.Options) > 0 && !q.Free:
		field["type"] = "array"
		field["items"] = map[string]any{"type": "string", "enum": q.Options}
	case q.Kind == agent.KindCheckbox:
		field["description"] = joinSentences("One answer on each line", describeOptions(q))
	case len(q.Options) > 0 && !q.Free:
		field["enum"] = q.Options
	case q.Integer != "":
		field["type"] = "integer"
	case q.Type == "number" || q.Type == "boolean":
		field["type"] = q.Type
	case q.Type == "array" || q.Type == "object":
		field["description"] = "JSON of an " + q.Type
	case len(q.Options) > 0:
		field["description"] = describeOptions(q)
	}
	if q.Default != "" && field["type"] == "string" {
		field["default"] = q.Default
	}
	return map[string]any{"type": "object", "properties": map[string]any{answerField: field}, "required": []string{answerField}}
}

// describeOptions returns the answers that a question offers in a sentence, or "".
func describeOptions(q *graph.Question) string {
	switch {
	case len(q.Options) == 0:
		return ""
	case q.Free:
		return strings.Join(q.Options, ", ") + ", or another answer"
	}
	return "one of " + strings.Join(q.Options, ", ")
}

func joinSentences(a, b string) string {
	if b == "" {
		return a
	}
	return a + ": " + b
}

// errDismissed says that the person neither answered nor refused.
var errDismissed = errors.New("the question was dismissed")

// readElicitation returns the answer to a question from a form.
func readElicitation(q *graph.Question, res *sdk.ElicitResult) (graph.Answer, error) {
	a := graph.Answer{ID: q.ID}
	switch {
	case res.Action == "decline" && q.Kind == agent.KindPermission:
		a.Value = answerNo
		return a, nil
	case res.Action == "decline":
		a.Refused = "the user does not want to answer"
		return a, nil
	case res.Action != "accept":
		return a, errDismissed
	}
	value, ok := res.Content[answerField]
	if !ok {
		return a, fmt.Errorf("the form has no field %q", answerField)
	}
	text, isText := value.(string)
	switch {
	case q.Kind == agent.KindPermission && !isText:
		return a, fmt.Errorf("the field %q must be %q or %q", answerField, answerOnce, answerNo)
	case q.Kind == agent.KindPermission && text != answerOnce:
		reason, _ := res.Content[reasonField].(string)
		a.Value = refuseCall(text, reason)
		return a, nil
	case isText && (q.Type == "array" || q.Type == "object") && q.Kind != agent.KindCheckbox:
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			return a, fmt.Errorf("the field %q is not JSON: %w", answerField, err)
		}
	}
	a.Value = value
	return a, nil
}

// refuseCall returns the answer that refuses a call. Whatever the form says, it allows nothing.
func refuseCall(text, reason string) any {
	if reason == "" && text != answerNo {
		reason = text
	}
	if reason == "" {
		return answerNo
	}
	return agent.PermissionAnswer{Choice: answerNo, Reason: reason}
}
