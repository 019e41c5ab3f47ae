package telemetry

import (
	"encoding/json"
	"slices"

	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/base/wording"
	"raddle.dev/llm"
)

// The types below are messages in the form of the conventions.
type (
	contentMessage struct {
		Role   string        `json:"role"`
		Parts  []contentPart `json:"parts"`
		Finish string        `json:"finish_reason,omitempty"`
	}
	contentPart struct {
		Type      string          `json:"type"`
		Content   string          `json:"content,omitempty"`
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Response  *string         `json:"response,omitempty"`
		MIME      string          `json:"mime_type,omitempty"`
		Modality  string          `json:"modality,omitempty"`
		URI       string          `json:"uri,omitempty"`
	}
)

// The limits of what one span contains of messages: spans wait in a queue.
const (
	maxText    = 32 << 10  // of one text
	maxContent = 256 << 10 // of all messages together; the newest are kept
)

// cleanText returns a text without secrets, cut to the limit.
func (t *Telemetry) cleanText(text string) string {
	return wording.CutText(t.redact(text), maxText, "…")
}

// encodeInstructions returns a system prompt as JSON.
func (t *Telemetry) encodeInstructions(text string) string {
	return encodeContent([]contentPart{{Type: "text", Content: t.cleanText(text)}})
}

// encodeMessages returns messages as JSON. finish is why the model stopped; empty: the messages are not of a reply.
func (t *Telemetry) encodeMessages(messages []llm.Message, finish string) string {
	list := []contentMessage{}
	size := 0
	for _, m := range slices.Backward(messages) {
		c := contentMessage{Role: string(m.Role), Parts: []contentPart{}, Finish: finish}
		for _, p := range m.Parts {
			if part, ok := t.convertPart(p); ok {
				c.Parts = append(c.Parts, part)
				size += len(part.Content) + len(part.Arguments)
				if part.Response != nil {
					size += len(*part.Response)
				}
			}
		}
		if size > maxContent && len(list) > 0 {
			break
		}
		list = append(list, c)
	}
	slices.Reverse(list)
	return encodeContent(list)
}

// convertPart returns a part without the bytes of images and files.
func (t *Telemetry) convertPart(p llm.Part) (contentPart, bool) {
	switch p := p.(type) {
	case llm.Text:
		return contentPart{Type: "text", Content: t.cleanText(p.Text)}, true
	case llm.Reasoning:
		return contentPart{Type: "reasoning", Content: t.cleanText(p.Text)}, p.Text != ""
	case llm.ToolCall:
		part := contentPart{Type: "tool_call", ID: p.ID, Name: p.Name}
		if json.Valid(p.Args) && len(p.Args) <= maxText {
			part.Arguments = redact.RedactJSON(p.Args, t.redact)
		}
		return part, true
	case llm.ToolResult:
		text := t.cleanText(llm.Message{Parts: p.Content}.Text())
		return contentPart{Type: "tool_call_response", ID: p.CallID, Response: &text}, true
	case llm.Image:
		return contentPart{Type: "uri", Modality: "image", MIME: p.MIME, URI: p.URL}, true
	case llm.File:
		return contentPart{Type: "uri", Modality: "document", MIME: p.MIME, URI: p.URL}, true
	}
	return contentPart{}, false
}

func encodeContent(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "" // every part is valid JSON
	}
	return string(text)
}
