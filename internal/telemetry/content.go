package telemetry

import (
	"encoding/json"

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

// encodeInstructions returns a system prompt as JSON.
func encodeInstructions(text string) string {
	return encodeContent([]contentPart{{Type: "text", Content: text}})
}

// encodeMessages returns messages as JSON. finish is why the model stopped; empty: the messages are not of a reply.
func encodeMessages(messages []llm.Message, finish string) string {
	list := make([]contentMessage, len(messages))
	for i, m := range messages {
		list[i] = contentMessage{Role: string(m.Role), Parts: []contentPart{}, Finish: finish}
		for _, p := range m.Parts {
			if part, ok := convertPart(p); ok {
				list[i].Parts = append(list[i].Parts, part)
			}
		}
	}
	return encodeContent(list)
}

// convertPart returns a part without the bytes of images and files.
func convertPart(p llm.Part) (contentPart, bool) {
	switch p := p.(type) {
	case llm.Text:
		return contentPart{Type: "text", Content: p.Text}, true
	case llm.Reasoning:
		return contentPart{Type: "reasoning", Content: p.Text}, p.Text != ""
	case llm.ToolCall:
		part := contentPart{Type: "tool_call", ID: p.ID, Name: p.Name}
		if json.Valid(p.Args) {
			part.Arguments = p.Args
		}
		return part, true
	case llm.ToolResult:
		text := llm.Message{Parts: p.Content}.Text()
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
