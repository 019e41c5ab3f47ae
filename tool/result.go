package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/llm"
)

// A Result is the outcome of a call. It survives a round trip through encoding/json.
type Result struct {
	Content []llm.Part   `json:"-"` // what the model reads
	Error   bool         `json:"error,omitempty"`
	Changes []FileChange `json:"-"` // what the call did to files; recorded, and never sent to a model
	// Seen are the files whose content the model knows by this call; they are recorded, and never sent to a model.
	Seen []SeenFile `json:"-"`
}

// done is the text of a result that has none: a model that reads an empty result tends to repeat
// the call.
const done = `"DONE"`

// TextResult returns a result with a text, which the model reads as {"output": text}. A result of
// an empty text has no parts: see Result.Text.
func TextResult(text string) Result {
	if text == "" {
		return Result{}
	}
	return JSONResult(map[string]string{"output": text})
}

// JSONResult returns a result whose text is the JSON of v, without escapes for HTML. A
// json.RawMessage stays as it is. A value that cannot be encoded becomes a FailedResult.
func JSONResult(v any) Result {
	text, err := compactJSON(v)
	if err != nil {
		return FailedResult("the result cannot be encoded as JSON: %v", err)
	}
	return Result{Content: []llm.Part{llm.Text{Text: text}}}
}

// FailedResult returns the result of a call that failed, formatted like fmt.Sprintf. Error is set,
// and the model reads {"tool_call_error": text}.
func FailedResult(format string, args ...any) Result {
	text, _ := compactJSON(map[string]string{"tool_call_error": fmt.Sprintf(format, args...)})
	return Result{Content: []llm.Part{llm.Text{Text: text}}, Error: true}
}

// Text returns all texts of the result as the model reads them, or "DONE" in quotes if the result
// has no parts.
func (r Result) Text() string {
	if len(r.Content) == 0 {
		return done
	}
	var b strings.Builder
	for _, p := range r.Content {
		if t, ok := p.(llm.Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// MessagePart returns the result as a part of a message.
func (r Result) MessagePart(call llm.ToolCall) llm.ToolResult {
	content := r.Content
	if len(content) == 0 {
		content = []llm.Part{llm.Text{Text: done}}
	}
	return llm.ToolResult{CallID: call.ID, Name: call.Name, Content: content, Error: r.Error}
}

// MarshalJSON encodes the result with its parts' type tags, with the contents of the files that it changed, and with
// the files that it has seen.
func (r Result) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(llm.ToolResult{Content: r.Content, Error: r.Error})
	if err != nil {
		return nil, err
	}
	if len(r.Changes) > 0 {
		changes, err := marshalChanges(r.Changes)
		if err != nil {
			return nil, err
		}
		text = slices.Concat(text[:len(text)-1], []byte(changesMember), changes, []byte("}"))
	}
	if len(r.Seen) > 0 {
		seen, err := json.Marshal(r.Seen)
		if err != nil {
			return nil, err
		}
		text = slices.Concat(text[:len(text)-1], []byte(seenMember), seen, []byte("}"))
	}
	return text, nil
}

// These begin the changes and the seen files in the JSON of a result.
const (
	changesMember = `,"changes":`
	seenMember    = `,"seen":`
)

// UnmarshalJSON decodes what MarshalJSON wrote.
func (r *Result) UnmarshalJSON(data []byte) error {
	var t llm.ToolResult
	if err := json.Unmarshal(data, &t); err != nil {
		return err
	}
	*r = Result{Content: t.Content, Error: t.Error}
	if !bytes.Contains(data, []byte(`"changes"`)) && !bytes.Contains(data, []byte(`"seen"`)) { // as in most results
		return nil
	}
	var more struct {
		Changes json.RawMessage
		Seen    []SeenFile
	}
	err := json.Unmarshal(data, &more)
	if r.Seen = more.Seen; err != nil || more.Changes == nil {
		return err
	}
	r.Changes, err = unmarshalChanges(more.Changes)
	return err
}

func compactJSON(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
