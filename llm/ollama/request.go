package ollama

import (
	"encoding/json"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// object is a JSON object without a type of its own.
type object = map[string]any

// request is the body of a request to /api/chat.
type request struct {
	Model    string          `json:"model"`
	Messages []*message      `json:"messages"`
	Tools    []object        `json:"tools,omitempty"`
	Format   json.RawMessage `json:"format,omitempty"`
	Think    any             `json:"think,omitempty"` // true, false or a level
	Options  object          `json:"options"`
	Truncate bool            `json:"truncate"` // false: a conversation that does not fit is an error, and is not cut
	// Shift is false, so that a reply that does not fit ends, and the beginning is not dropped.
	Shift  bool `json:"shift"`
	Stream bool `json:"stream"`
}

type message struct {
	Role      string   `json:"role"`
	Content   string   `json:"content"`
	Thinking  string   `json:"thinking,omitempty"`
	Images    [][]byte `json:"images,omitempty"`
	ToolCalls []object `json:"tool_calls,omitempty"`
	ToolName  string   `json:"tool_name,omitempty"`
	CallID    string   `json:"tool_call_id,omitempty"`
}

func (m *Model) buildRequest(r llm.Request, window int) (request, error) {
	q := request{Model: m.name, Options: object{"num_ctx": window}, Think: thinkValue(r.Effort), Stream: true}
	if r.Temperature != nil {
		q.Options["temperature"] = *r.Temperature
	}
	if r.TopP != nil {
		q.Options["top_p"] = *r.TopP
	}
	if r.MaxTokens > 0 {
		q.Options["num_predict"] = r.MaxTokens
	}
	if len(r.Stop) > 0 {
		q.Options["stop"] = r.Stop
	}
	for _, t := range r.Tools {
		function := object{"name": t.Name, "description": t.Description, "parameters": object{"type": "object", "properties": object{}}}
		if len(t.Schema) > 0 {
			function["parameters"] = t.Schema
		}
		q.Tools = append(q.Tools, object{"type": "function", "function": function})
	}
	if len(r.Schema) > 0 && len(r.Tools) == 0 { // a format leaves the model no way to call a tool
		q.Format = r.Schema
	}
	if r.System != "" {
		q.Messages = append(q.Messages, &message{Role: "system", Content: r.System})
	}
	for _, msg := range r.Messages {
		list, err := m.buildMessages(msg)
		if err != nil {
			return q, err
		}
		q.Messages = append(q.Messages, list...)
	}
	return q, nil
}

// thinkValue returns the value of think for an effort, nil to leave it out.
func thinkValue(effort string) any {
	switch effort {
	case "":
		return nil
	case "none":
		return false
	case "minimal":
		return "low"
	case "xhigh":
		return "high"
	case "low", "medium", "high", "max":
		return effort
	}
	return true
}

// buildMessages returns a message in the form of the API. Each result of a tool is a message of its own, and what it
// has in addition to text follows as a message of the user.
func (m *Model) buildMessages(msg llm.Message) ([]*message, error) {
	switch msg.Role {
	case llm.RoleUser:
		next := &message{Role: "user"}
		return []*message{next}, m.addContent(next, msg.Parts)
	case llm.RoleAssistant:
		return []*message{m.assistantMessage(msg)}, nil
	case llm.RoleTool:
		var list []*message
		attached := &message{Role: "user", Content: "Attached by the tool:"}
		for _, p := range msg.Parts {
			result, is := p.(llm.ToolResult)
			if !is {
				return nil, m.client.UnsupportedError("a message of the role tool may contain only results")
			}
			next := &message{Role: "tool", ToolName: result.Name, CallID: result.CallID}
			if err := m.addContent(next, result.Content); err != nil {
				return nil, err
			}
			if result.Error {
				next.Content = "Error: " + next.Content
			}
			attached.Images = append(attached.Images, next.Images...)
			next.Images = nil
			list = append(list, next)
		}
		if len(attached.Images) > 0 {
			list = append(list, attached)
		}
		return list, nil
	}
	return nil, m.client.UnsupportedError("a message has the unknown role " + string(msg.Role))
}

// addContent adds texts and pictures to a message.
func (m *Model) addContent(to *message, parts []llm.Part) error {
	var texts []string
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if p.Text != "" {
				texts = append(texts, p.Text)
			}
		case llm.Image:
			if len(p.Data) == 0 {
				return m.client.UnsupportedError("a picture that is given by its address; Ollama accepts only its bytes")
			}
			to.Images = append(to.Images, p.Data)
		case llm.File:
			return m.client.UnsupportedError("a file; Ollama accepts text and pictures: add its text to the prompt, or use another model")
		default:
			return m.client.UnsupportedError("a message may contain only text and pictures here")
		}
	}
	to.Content = strings.Join(texts, "\n\n")
	return nil
}

// assistantMessage returns what a model has said. Only thoughts that this server has sent go back to it.
func (m *Model) assistantMessage(msg llm.Message) *message {
	next := &message{Role: "assistant", Content: msg.Text()}
	for _, p := range msg.Parts {
		switch p := p.(type) {
		case llm.Reasoning:
			if p.Origin == m.origin {
				next.Thinking += p.Text
			}
		case llm.ToolCall:
			function := object{"index": len(next.ToolCalls), "name": p.Name, "arguments": wire.ObjectArgs(p.Args)}
			next.ToolCalls = append(next.ToolCalls, object{"id": p.ID, "function": function})
		}
	}
	return next
}
