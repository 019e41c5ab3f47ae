package tool

import (
	"encoding/json"
	"errors"
)

// A Question is an error of [Tool.Run]: the call cannot continue before a person answers. The loop
// asks, and calls Run again with all answers so far in [Call.Answers].
type Question struct {
	Kind    string   `json:"kind,omitempty"` // "confirm", "select", "input", as for the tools by which a model asks
	Prompt  string   `json:"prompt"`
	Options []string `json:"options,omitempty"` // what the person may choose from; empty: any text
}

func (q *Question) Error() string { return "it asks: " + q.Prompt }

// An Answer is the answer to a Question of the same call.
type Answer struct {
	Prompt  string          `json:"prompt"`            // of the question
	Value   json.RawMessage `json:"value,omitempty"`   // JSON
	Refused string          `json:"refused,omitempty"` // not empty: there is no answer, for this reason
}

// ErrCutOff is an error of [Tool.Run]: the call was made and asked a question, and its outcome
// cannot be known. The loop treats it like a call that a crash cut off.
var ErrCutOff = errors.New("the call was cut off before its outcome was known")
