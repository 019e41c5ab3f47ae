package agui

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/report/updates"
)

// An interrupt is a question on the wire.
type interrupt struct {
	ID         string          `json:"id"`
	Reason     string          `json:"reason"`
	Message    string          `json:"message,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	Schema     json.RawMessage `json:"responseSchema,omitempty"`
	Metadata   map[string]any  `json:"metadata,omitempty"`
}

// These are the reasons of interrupts.
const (
	reasonToolCall = "tool_call"
	reasonInput    = "input_required"
	reasonConfirm  = "confirmation"
	reasonPaused   = "raddle:paused"
)

// A questionRef is what the id of an interrupt says: a question of a run, at the record that asked it, on a thread. A
// question that a loop asks again has another id.
type questionRef struct {
	run, thread, record string
	question            string // "": the run is paused
}

func (r questionRef) String() string {
	return strings.Join([]string{r.run, r.thread, r.record, r.question}, ":")
}

// parseRef reads the id of an interrupt.
func parseRef(id string) (questionRef, bool) {
	parts := strings.SplitN(id, ":", 4)
	if len(parts) != 4 || parts[0] == "" {
		return questionRef{}, false
	}
	return questionRef{run: parts[0], thread: parts[1], record: parts[2], question: parts[3]}, true
}

// hashThread returns a short name for a client's thread with an agent.
func hashThread(agent, thread string) string {
	sum := sha256.Sum256([]byte(agent + "\x00" + thread))
	return hex.EncodeToString(sum[:8])
}

// recordAsked returns the record that asked a question, or "" if it is not known.
func recordAsked(q *updates.Question) string {
	if q == nil {
		return ""
	}
	return strconv.FormatInt(q.Record, 10)
}

// describeQuestion returns a question as an interrupt. asked is nil if it is not known where it was asked.
func describeQuestion(ref questionRef, asked *updates.Question, q *graph.Question) interrupt {
	i := interrupt{ID: ref.String(), Reason: reasonInput, Message: q.Prompt, Schema: makeSchema(q),
		Metadata: map[string]any{"raddle": map[string]any{"run": ref.run, "question": q.ID, "kind": q.Kind, "options": q.Options, "default": q.Default}}}
	switch q.Kind {
	case agent.KindPermission:
		var call agent.CallData
		if json.Unmarshal(q.Data, &call) == nil && asked != nil {
			i.ToolCallID = callID(asked.Path, call.ID)
		}
		i.Reason = reasonToolCall
	case "confirm":
		i.Reason = reasonConfirm
	}
	if q.Rejected != "" {
		i.Message += "\n(" + q.Rejected + ")"
	}
	return i
}

// makeSchema returns the JSON schema of the answers to a question.
func makeSchema(q *graph.Question) json.RawMessage {
	if q.Kind == agent.KindPermission {
		return json.RawMessage(`{"type":"object","properties":{` +
			`"approved":{"type":"boolean","description":"whether the call may be made, once"},` +
			`"editedArgs":{"type":"object","description":"arguments that replace those of the call"},` +
			`"reason":{"type":"string","description":"why it may not be made"}},"required":["approved"]}`)
	}
	schema := map[string]any{}
	switch {
	case q.Kind == "confirm":
		schema["type"] = "boolean"
	case q.Kind == agent.KindCheckbox:
		schema["type"] = "array"
		item := map[string]any{"type": "string"}
		if len(q.Options) > 0 {
			item["enum"] = q.Options
		}
		schema["items"] = item
	case len(q.Options) > 0:
		schema["type"] = "string"
		if q.Free {
			schema["examples"] = q.Options
		} else {
			schema["enum"] = q.Options
		}
	case q.Integer != "":
		schema["type"] = "integer"
	case q.Type != "":
		schema["type"] = q.Type
	case q.Kind == "input":
		schema["type"] = "string"
	}
	if q.Default != "" && schema["type"] == "string" {
		schema["default"] = q.Default
	}
	b, err := json.Marshal(schema)
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

// checkPayload returns why a payload does not fit a schema, or nil.
func checkPayload(schema, payload json.RawMessage) error {
	var value any
	if err := json.Unmarshal(payload, &value); err != nil {
		return errors.New("it has no payload")
	}
	var parsed jsonschema.Schema
	if err := json.Unmarshal(schema, &parsed); err != nil {
		return err
	}
	resolved, err := parsed.Resolve(nil)
	if err != nil {
		return err
	}
	return resolved.Validate(value)
}

// makeAnswer returns the answer to a question that an entry of the client gives.
func makeAnswer(q *graph.Question, r *resumeEntry) (graph.Answer, error) {
	a := graph.Answer{ID: q.ID}
	if r.Status == statusCancelled {
		if q.Kind == agent.KindPermission {
			a.Value = "no"
			return a, nil
		}
		a.Refused = "the user cancelled the question"
		return a, nil
	}
	if err := checkPayload(makeSchema(q), r.Payload); err != nil {
		return a, err
	}
	if q.Kind == agent.KindPermission {
		return answerPermission(a, r.Payload)
	}
	if err := json.Unmarshal(r.Payload, &a.Value); err != nil {
		return a, err
	}
	if yes, ok := a.Value.(bool); ok && q.Kind == "confirm" {
		a.Value = map[bool]string{true: "yes", false: "no"}[yes]
	}
	return a, nil
}

// answerPermission returns an answer that allows a call once, or refuses it.
func answerPermission(a graph.Answer, payload json.RawMessage) (graph.Answer, error) {
	var p struct {
		Approved bool            `json:"approved"`
		Edited   json.RawMessage `json:"editedArgs"`
		Reason   string          `json:"reason"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return a, err
	}
	switch {
	case p.Approved && len(p.Edited) > 0:
		a.Value = agent.PermissionAnswer{Choice: "edit", Args: p.Edited}
	case p.Approved:
		a.Value = "once"
	case p.Reason != "":
		a.Value = agent.PermissionAnswer{Choice: "no", Reason: p.Reason}
	default:
		a.Value = "no"
	}
	return a, nil
}

// A ruleError says that an input breaks a rule of the protocol.
type ruleError struct{ code, text string }

func (e *ruleError) Error() string { return e.text }

func newRuleError(code, format string, args ...any) error {
	return &ruleError{code: code, text: fmt.Sprintf(format, args...)}
}

// matchAnswers returns the answers of a client to all open questions. tracker knows where the questions were asked.
func matchAnswers(open []graph.Question, tracker *updates.Tracker, entries []resumeEntry) ([]graph.Answer, error) {
	byID := map[string]*resumeEntry{}
	for i := range entries {
		ref, _ := parseRef(entries[i].InterruptID)
		if byID[ref.question] != nil {
			return nil, newRuleError("invalid_answer", "interrupt %q is answered twice", entries[i].InterruptID)
		}
		byID[ref.question] = &entries[i]
	}
	var answers []graph.Answer
	for _, q := range open {
		r := byID[q.ID]
		if r == nil {
			return nil, newRuleError("partial_answers", "question %q has no answer: answer all open interrupts in one resume", q.ID)
		}
		delete(byID, q.ID)
		if ref, _ := parseRef(r.InterruptID); ref.record != recordAsked(tracker.FindQuestion(q.ID)) {
			return nil, newRuleError("late_answer", "interrupt %q was answered, and its question is asked again", r.InterruptID)
		}
		a, err := makeAnswer(&q, r)
		if err != nil {
			return nil, newRuleError("invalid_answer", "the answer to %q is not valid: %v", q.ID, err)
		}
		answers = append(answers, a)
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		return nil, newRuleError("unknown_interrupt", "interrupt %q is not open", byID[id].InterruptID)
	}
	return answers, nil
}
