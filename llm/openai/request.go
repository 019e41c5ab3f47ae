package openai

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// request is the body of a request. A field that llm.Request leaves open is not sent.
type request struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	Stream              bool            `json:"stream"`
	StreamOptions       streamOptions   `json:"stream_options"`
	Tools               []tool          `json:"tools,omitempty"`
	Temperature         *float64        `json:"temperature,omitempty"`
	TopP                *float64        `json:"top_p,omitempty"`
	MaxTokens           int             `json:"max_tokens,omitempty"`
	MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string          `json:"reasoning_effort,omitempty"`
	Stop                []string        `json:"stop,omitempty"`
	ResponseFormat      *responseFormat `json:"response_format,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type responseFormat struct {
	Type       string     `json:"type"`
	JSONSchema jsonSchema `json:"json_schema"`
}

type jsonSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

type message struct {
	Role       string     `json:"role"`
	Content    any        `json:"content,omitempty"` // a string or a []content
	ToolCallID string     `json:"tool_call_id,omitempty"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	// ReasoningContent is not OpenAI's: it belongs to compatible servers.
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

type content struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
	File     *file     `json:"file,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type file struct {
	Filename string `json:"filename,omitempty"`
	FileData string `json:"file_data"`
}

func (m *Model) request(r llm.Request) (request, error) {
	messages, err := m.messages(r)
	q := request{
		Model: m.name, Messages: messages, Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
		Temperature: r.Temperature, TopP: r.TopP, ReasoningEffort: r.Effort, Stop: r.Stop,
	}
	if m.newer {
		q.MaxCompletionTokens = max(0, r.MaxTokens)
	} else {
		q.MaxTokens = max(0, r.MaxTokens)
	}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, tool{Type: "function", Function: function{Name: t.Name, Description: t.Description, Parameters: t.Schema}})
	}
	if len(r.Schema) > 0 {
		// Not strict: strict mode refuses most schemas that people write, such
		// as one with an optional property.
		q.ResponseFormat = &responseFormat{Type: "json_schema", JSONSchema: jsonSchema{Name: "reply", Schema: r.Schema}}
	}
	return q, err
}

func (m *Model) messages(r llm.Request) ([]message, error) {
	list := []message{}
	if r.System != "" {
		list = append(list, message{Role: "system", Content: r.System})
	}
	var media []llm.Part // of tool results, which cannot hold any
	flush := func() error {
		if len(media) == 0 {
			return nil
		}
		user, err := m.user(media)
		list, media = append(list, user), nil
		return err
	}
	for _, msg := range r.Messages {
		if msg.Role == llm.RoleTool {
			results, more, err := m.results(msg)
			if err != nil {
				return nil, err
			}
			list, media = append(list, results...), append(media, more...)
			continue
		}
		if err := flush(); err != nil {
			return nil, err
		}
		next, err := m.turn(msg)
		if err != nil {
			return nil, err
		}
		list = append(list, next)
	}
	return list, flush()
}

func (m *Model) turn(msg llm.Message) (message, error) {
	switch msg.Role {
	case llm.RoleUser:
		return m.user(msg.Parts)
	case llm.RoleAssistant:
		return assistantMessage(msg), nil
	}
	return message{}, m.client.Unsupported("a message has the unknown role " + string(msg.Role))
}

func (m *Model) user(parts []llm.Part) (message, error) {
	if len(parts) == 1 {
		if t, ok := parts[0].(llm.Text); ok {
			return message{Role: "user", Content: t.Text}, nil
		}
	}
	var list []content
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if p.Text != "" { // some servers refuse empty parts
				list = append(list, content{Type: "text", Text: p.Text})
			}
		case llm.Image:
			list = append(list, content{Type: "image_url", ImageURL: &imageURL{URL: address(p.URL, p.MIME, p.Data)}})
		case llm.File:
			if len(p.Data) == 0 {
				return message{}, m.client.Unsupported("a file that is given by its address; chat completions take the bytes only")
			}
			list = append(list, content{Type: "file", File: &file{Filename: p.Name, FileData: address("", p.MIME, p.Data)}})
		default:
			return message{}, m.client.Unsupported("a user's message may hold text, images and files only")
		}
	}
	if len(list) == 0 {
		return message{Role: "user", Content: ""}, nil
	}
	return message{Role: "user", Content: list}, nil
}

func address(url, mime string, data []byte) string {
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
	// Servers whose models think between tool calls want the thoughts of the
	// running turn back, and no others.
	if len(calls) > 0 {
		a.ReasoningContent = reasoning(msg)
	}
	return a
}

func reasoning(msg llm.Message) string {
	var b strings.Builder
	for _, p := range msg.Parts {
		if r, ok := p.(llm.Reasoning); ok && r.Origin == origin {
			b.WriteString(r.Text)
		}
	}
	return b.String()
}

func (m *Model) results(msg llm.Message) (list []message, media []llm.Part, err error) {
	for _, p := range msg.Parts {
		r, ok := p.(llm.ToolResult)
		if !ok {
			return nil, nil, m.client.Unsupported("a tool message may hold tool results only")
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
