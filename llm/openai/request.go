package openai

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
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
	StreamOptions       object    `json:"stream_options,omitempty"`
	Tools               []object  `json:"tools,omitempty"`
	ParallelToolCalls   *bool     `json:"parallel_tool_calls,omitempty"`
	Temperature         *float64  `json:"temperature,omitempty"`
	TopP                *float64  `json:"top_p,omitempty"`
	MaxTokens           int       `json:"max_tokens,omitempty"`
	MaxCompletionTokens int       `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string    `json:"reasoning_effort,omitempty"`
	Reasoning           object    `json:"reasoning,omitempty"`
	Thinking            object    `json:"thinking,omitempty"`
	EnableThinking      *bool     `json:"enable_thinking,omitempty"`
	ThinkingBudget      int       `json:"thinking_budget,omitempty"`
	Stop                []string  `json:"stop,omitempty"`
	ResponseFormat      object    `json:"response_format,omitempty"`
}

// object is a JSON object without a type of its own.
type object = map[string]any

// message is one message of a request; its members differ between servers.
type message = object

func (m *Model) buildRequest(r llm.Request) (request, error) {
	if err := m.client.RefuseProvided(r.Provided); err != nil {
		return request{}, err
	}
	messages, err := m.buildMessages(r)
	q := request{
		Model:    m.name,
		Messages: messages,
		Stream:   true,
		Stop:     r.Stop,
	}
	q.setEffort(r.Effort, m.server.Effort)
	if !refusesSampling(m.name, r.Effort) {
		q.Temperature = r.Temperature
		q.TopP = r.TopP
	}
	if !m.server.NoUsage {
		q.StreamOptions = object{"include_usage": true}
	}
	if m.server.NewLimit {
		q.MaxCompletionTokens = max(0, r.MaxTokens)
	} else {
		q.MaxTokens = max(0, r.MaxTokens)
	}
	for _, t := range wire.RepairTools(r.Tools) {
		function := object{"name": t.Name}
		if t.Description != "" {
			function["description"] = t.Description
		}
		if len(t.Schema) > 0 {
			function["parameters"] = t.Schema
		}
		if m.strict && wire.FitsStrict(t.Schema) {
			function["strict"] = true
		}
		q.Tools = append(q.Tools, object{"type": "function", "function": function})
	}
	if r.Serial && len(q.Tools) > 0 && !m.server.NoSerial && !refusesSerial(m.name) {
		q.ParallelToolCalls = new(false)
	}
	if len(r.Schema) > 0 {
		format := object{"name": "reply", "schema": r.Schema}
		if m.strict && wire.FitsStrict(r.Schema) {
			format["strict"] = true
		}
		q.ResponseFormat = object{"type": "json_schema", "json_schema": format}
	}
	return q, err
}

// refusesSerial reports whether a model of OpenAI refuses parallel_tool_calls in chat completions: "Unsupported
// parameter … with this model".
func refusesSerial(model string) bool {
	name := model[strings.LastIndexByte(model, '/')+1:]
	return slices.ContainsFunc([]string{"o1", "o3", "o4"}, func(family string) bool { return strings.HasPrefix(name, family) })
}

// setEffort names an effort as the server knows it.
func (q *request) setEffort(effort string, form EffortForm) {
	tokens, err := strconv.Atoi(effort)
	counted := err == nil && tokens >= 0
	switch {
	case effort == "":
	case form == EffortSwitch && effort == "none":
		q.Thinking = object{"type": "disabled"}
	case form == EffortNested && counted:
		q.Reasoning = object{"max_tokens": tokens}
	case form == EffortNested:
		q.Reasoning = object{"effort": effort}
	case form == EffortBudget && (effort == "none" || counted && tokens == 0):
		q.EnableThinking = new(false)
	case form == EffortBudget && counted:
		q.EnableThinking = new(true)
		q.ThinkingBudget = tokens
	default:
		q.ReasoningEffort = effort
	}
}

func (m *Model) buildMessages(r llm.Request) ([]message, error) {
	list := []message{}
	if r.System != "" {
		list = append(list, message{"role": "system", "content": r.System})
	}
	var media []llm.Part // of tool results, which cannot contain any
	flush := func() error {
		if len(media) == 0 {
			return nil
		}
		user, err := m.userMessage(media)
		list = append(list, user)
		media = nil
		return err
	}
	for _, msg := range r.Messages {
		if msg.Role == llm.RoleTool {
			results, more, err := m.resultMessages(msg)
			if err != nil {
				return nil, err
			}
			list = append(list, results...)
			media = append(media, more...)
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
		return m.assistantMessage(msg), nil
	}
	return nil, m.client.UnsupportedError("a message has the unknown role " + string(msg.Role))
}

func (m *Model) userMessage(parts []llm.Part) (message, error) {
	if len(parts) == 1 {
		if t, ok := parts[0].(llm.Text); ok {
			return message{"role": "user", "content": t.Text}, nil
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
				return nil, m.client.UnsupportedError("a file that is given by its address; chat completions accept only its bytes")
			}
			file := object{"file_data": mediaURL("", p.MIME, p.Data)}
			if p.Name != "" {
				file["filename"] = p.Name
			}
			list = append(list, object{"type": "file", "file": file})
		default:
			return nil, m.client.UnsupportedError("a user's message may contain only text, images and files")
		}
	}
	if len(list) == 0 {
		return message{"role": "user", "content": ""}, nil
	}
	return message{"role": "user", "content": list}, nil
}

func mediaURL(url, mime string, data []byte) string {
	if len(data) == 0 {
		return url
	}
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// assistantMessage returns a reply in the form that the server accepts.
func (m *Model) assistantMessage(msg llm.Message) message {
	a := message{"role": "assistant"}
	calls := msg.ToolCalls()
	if text := msg.Text(); text != "" || len(calls) == 0 {
		a["content"] = text
	}
	var list []object
	for _, c := range calls {
		call := object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": string(wire.ObjectArgs(c.Args))}}
		if c.Origin == m.origin {
			echoMembers(call, c.Extra, m.server.CallEcho)
		} else if m.server.CallDefault != "" {
			mergeMembers(call, json.RawMessage(m.server.CallDefault))
		}
		list = append(list, call)
	}
	if len(list) > 0 {
		a["tool_calls"] = list
	}
	m.addThoughts(a, msg, len(calls) > 0)
	return a
}

// addThoughts adds the reasoning of a reply as the server accepts it. Servers whose models think between tool calls
// require the reasoning of messages with calls, and no other reasoning.
func (m *Model) addThoughts(a message, msg llm.Message, calls bool) {
	thought := ""
	for _, p := range msg.Parts {
		r, ok := p.(llm.Reasoning)
		if !ok || r.Origin != m.origin && r.Origin != oldOrigin {
			continue
		}
		thought += r.Text
		echoMembers(a, r.Extra, m.server.Echo)
	}
	switch m.server.Thoughts {
	case ThoughtsNever:
	case ThoughtsTyped:
		if thought == "" || !calls {
			return
		}
		content := []object{{"type": "thinking", "thinking": []object{{"type": "text", "text": thought}}}}
		if text, ok := a["content"].(string); ok && text != "" {
			content = append(content, object{"type": "text", "text": text})
		}
		a["content"] = content
	case ThoughtsField:
		if calls && thought != "" {
			a["reasoning"] = thought
		}
	default:
		if calls && (thought != "" || m.server.Thoughts == ThoughtsRequired) {
			a["reasoning_content"] = thought
		}
	}
}

// echoMembers adds the named members of a JSON object to a message or a call.
func echoMembers(to object, raw json.RawMessage, names []string) {
	if len(names) == 0 || len(raw) == 0 {
		return
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return // it was changed since it came
	}
	for _, name := range names {
		if value, ok := members[name]; ok {
			to[name] = value
		}
	}
}

// resultMessage returns the message with the text of a tool's result.
func resultMessage(r llm.ToolResult) message {
	return message{"role": "tool", "tool_call_id": r.CallID, "content": llm.Message{Parts: r.Content}.Text()}
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
		list = append(list, resultMessage(r))
	}
	if len(media) > 0 {
		media = append([]llm.Part{llm.Text{Text: "Attached by the tool:"}}, media...)
	}
	return list, media, nil
}
