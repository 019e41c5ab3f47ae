package openai

import (
	"encoding/base64"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// request is the body of a request. A field that llm.Request does not set is
// not sent.
type request struct {
	Model               string    `json:"model"`
	Messages            []message `json:"messages"`
	Stream              bool      `json:"stream"`
	StreamOptions       object    `json:"stream_options"`
	Tools               []object  `json:"tools,omitempty"`
	Temperature         *float64  `json:"temperature,omitempty"`
	TopP                *float64  `json:"top_p,omitempty"`
	MaxTokens           int       `json:"max_tokens,omitempty"`
	MaxCompletionTokens int       `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string    `json:"reasoning_effort,omitempty"`
	Stop                []string  `json:"stop,omitempty"`
	ResponseFormat      object    `json:"response_format,omitempty"`
}

// object is a JSON object without a type of its own.
type object = map[string]any

type message struct {
	Role       string     `json:"role"`
	Content    any        `json:"content,omitempty"` // a string or a []object
	ToolCallID string     `json:"tool_call_id,omitempty"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	// ReasoningContent is not part of OpenAI's API: compatible servers use it.
	ReasoningContent string `json:"reasoning_content,omitempty"`
}

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (m *Model) buildRequest(r llm.Request) (request, error) {
	messages, err := m.buildMessages(r)
	q := request{
		Model: m.name, Messages: messages, Stream: true, StreamOptions: object{"include_usage": true},
		Temperature: r.Temperature, TopP: r.TopP, ReasoningEffort: r.Effort, Stop: r.Stop,
	}
	if m.newer {
		q.MaxCompletionTokens = max(0, r.MaxTokens)
	} else {
		q.MaxTokens = max(0, r.MaxTokens)
	}
	for _, t := range r.Tools {
		function := object{"name": t.Name}
		if t.Description != "" {
			function["description"] = t.Description
		}
		if len(t.Schema) > 0 {
			function["parameters"] = t.Schema
		}
		q.Tools = append(q.Tools, object{"type": "function", "function": function})
	}
	if len(r.Schema) > 0 {
		// Strict mode is not set, because it rejects most schemas that people
		// write, such as one with an optional property.
		q.ResponseFormat = object{"type": "json_schema", "json_schema": object{"name": "reply", "schema": r.Schema}}
	}
	return q, err
}

func (m *Model) buildMessages(r llm.Request) ([]message, error) {
	list := []message{}
	if r.System != "" {
		list = append(list, message{Role: "system", Content: r.System})
	}
	var media []llm.Part // of tool results, which cannot contain any
	flush := func() error {
		if len(media) == 0 {
			return nil
		}
		user, err := m.userMessage(media)
		list, media = append(list, user), nil
		return err
	}
	for _, msg := range r.Messages {
		if msg.Role == llm.RoleTool {
			results, more, err := m.resultMessages(msg)
			if err != nil {
				return nil, err
			}
			list, media = append(list, results...), append(media, more...)
			continue
		}
		if err := flush(); err != nil {
			return nil, err
		}
		next, err := m.turnMessage(msg)
		if err != nil {
			return nil, err
		}
		list = append(list, next)
	}
	return list, flush()
}

func (m *Model) turnMessage(msg llm.Message) (message, error) {
	switch msg.Role {
	case llm.RoleUser:
		return m.userMessage(msg.Parts)
	case llm.RoleAssistant:
		return assistantMessage(msg), nil
	}
	return message{}, m.client.UnsupportedError("a message has the unknown role " + string(msg.Role))
}

func (m *Model) userMessage(parts []llm.Part) (message, error) {
	if len(parts) == 1 {
		if t, ok := parts[0].(llm.Text); ok {
			return message{Role: "user", Content: t.Text}, nil
		}
	}
	var list []object
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if p.Text != "" { // some servers reject empty parts
				list = append(list, object{"type": "text", "text": p.Text})
			}
		case llm.Image:
			list = append(list, object{"type": "image_url", "image_url": object{"url": mediaURL(p.URL, p.MIME, p.Data)}})
		case llm.File:
			if len(p.Data) == 0 {
				return message{}, m.client.UnsupportedError("a file that is given by its address; chat completions accept only its bytes")
			}
			file := object{"file_data": mediaURL("", p.MIME, p.Data)}
			if p.Name != "" {
				file["filename"] = p.Name
			}
			list = append(list, object{"type": "file", "file": file})
		default:
			return message{}, m.client.UnsupportedError("a user's message may contain only text, images and files")
		}
	}
	if len(list) == 0 {
		return message{Role: "user", Content: ""}, nil
	}
	return message{Role: "user", Content: list}, nil
}

func mediaURL(url, mime string, data []byte) string {
	if len(data) == 0 {
		return url
	}
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}

func assistantMessage(msg llm.Message) message {
	a := message{Role: "assistant"}
	calls := msg.ToolCalls()
	if text := msg.Text(); text != "" || len(calls) == 0 {
		a.Content = text
	}
	for _, c := range calls {
		a.ToolCalls = append(a.ToolCalls, toolCall{
			ID: c.ID, Type: "function", Function: functionCall{Name: c.Name, Arguments: string(wire.ObjectArgs(c.Args))},
		})
	}
	// Servers whose models think between tool calls require the reasoning of
	// the current turn, and no other reasoning.
	if len(calls) > 0 {
		a.ReasoningContent = reasoningText(msg)
	}
	return a
}

func reasoningText(msg llm.Message) string {
	var b strings.Builder
	for _, p := range msg.Parts {
		if r, ok := p.(llm.Reasoning); ok && r.Origin == origin {
			b.WriteString(r.Text)
		}
	}
	return b.String()
}

func (m *Model) resultMessages(msg llm.Message) (list []message, media []llm.Part, err error) {
	for _, p := range msg.Parts {
		r, ok := p.(llm.ToolResult)
		if !ok {
			return nil, nil, m.client.UnsupportedError("a tool message may contain only tool results")
		}
		for _, p := range r.Content {
			if _, ok := p.(llm.Text); !ok {
				media = append(media, p)
			}
		}
		list = append(list, message{Role: "tool", ToolCallID: r.CallID, Content: llm.Message{Parts: r.Content}.Text()})
	}
	if len(media) > 0 {
		media = append([]llm.Part{llm.Text{Text: "Attached by the tool:"}}, media...)
	}
	return list, media, nil
}
