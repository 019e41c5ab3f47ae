package anthropic

import (
	"cmp"
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
	Model         string    `json:"model,omitempty"`
	Version       string    `json:"anthropic_version,omitempty"` // on Vertex, instead of a model and a header
	MaxTokens     int       `json:"max_tokens"`
	Stream        bool      `json:"stream"`
	System        []block   `json:"system,omitempty"`
	Tools         []tool    `json:"tools,omitempty"`
	ToolChoice    object    `json:"tool_choice,omitempty"`
	Messages      []message `json:"messages"`
	Temperature   *float64  `json:"temperature,omitempty"`
	TopP          *float64  `json:"top_p,omitempty"`
	StopSequences []string  `json:"stop_sequences,omitempty"`
	Thinking      object    `json:"thinking,omitempty"`
	OutputConfig  object    `json:"output_config,omitempty"`
}

// object is a JSON object without a type of its own.
type object = map[string]any

type tool struct {
	Type         string          `json:"type,omitempty"` // of one of Anthropic's own
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	Strict       bool            `json:"strict,omitempty"`
	CacheControl object          `json:"cache_control,omitempty"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a piece of a message or of a tool's result. Which fields it has depends on its type.
type block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text,omitempty"`
	Thinking     *string         `json:"thinking,omitempty"` // required, even if empty
	Signature    string          `json:"signature,omitempty"`
	Data         string          `json:"data,omitempty"`
	Title        string          `json:"title,omitempty"`
	Source       object          `json:"source,omitempty"`
	ID           string          `json:"id,omitempty"`
	Name         string          `json:"name,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	Content      []block         `json:"content,omitempty"`
	IsError      bool            `json:"is_error,omitempty"`
	CacheControl object          `json:"cache_control,omitempty"`
	Citations    json.RawMessage `json:"citations,omitempty"`

	kept json.RawMessage // the whole block, as it came
}

// MarshalJSON encodes the block; one that was kept stays as it came.
func (b block) MarshalJSON() ([]byte, error) {
	if len(b.kept) > 0 {
		return b.kept, nil
	}
	type plain block
	return json.Marshal(plain(b))
}

// ownTools are Anthropic's own tools (https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-reference).
// They are the versions that every model of today has.
var ownTools = map[string]any{
	llm.ToolWebSearch:       tool{Type: "web_search_20250305", Name: "web_search"},
	llm.ToolWebFetch:        tool{Type: "web_fetch_20250910", Name: "web_fetch"},
	llm.ToolCodeInterpreter: tool{Type: "code_execution_20250825", Name: "code_execution"},
}

// mostStrictTools is the number of strict tools that a request may have.
const mostStrictTools = 20

// cacheMark returns the mark of what the prompt cache keeps. All marks of a request are equal: Anthropic refuses a
// longer time after a shorter one.
func cacheMark(ttl string) object {
	mark := object{"type": "ephemeral"}
	if ttl != "" && ttl != "5m" {
		mark["ttl"] = ttl
	}
	return mark
}

func (m *Model) buildRequest(r llm.Request) (request, error) {
	q := request{
		Model:         m.name,
		MaxTokens:     r.MaxTokens,
		Stream:        true,
		Temperature:   r.Temperature,
		TopP:          r.TopP,
		StopSequences: r.Stop,
	}
	if m.vertex {
		q.Model = ""
		q.Version = vertexVersion
	}
	if r.System != "" {
		q.System = []block{{Type: "text", Text: r.System}}
	}
	left := mostStrictTools
	for _, t := range wire.RepairTools(r.Tools) {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		strict := m.strict && left > 0 && wire.FitsStrict(schema)
		if strict {
			left--
		}
		q.Tools = append(q.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: schema, Strict: strict})
	}
	own, err := m.client.ProvidedTools(r.Provided, ownTools)
	if err != nil {
		return q, err
	}
	for _, t := range own {
		q.Tools = append(q.Tools, t.(tool))
	}
	if r.Serial && len(q.Tools) > 0 {
		q.ToolChoice = object{"type": "auto", "disable_parallel_tool_use": true}
	}
	if len(r.Schema) > 0 {
		q.OutputConfig = object{"format": object{"type": "json_schema", "schema": r.Schema}}
	}
	q.setEffort(r.Effort)
	q.Messages, err = m.buildMessages(r.Messages)
	if len(q.Messages) == 0 && r.System != "" {
		// A conversation must not be empty.
		q.Messages = []message{{Role: "user", Content: q.System}}
		q.System = nil
	}
	q.markCache(m.mark)
	return q, err
}

// setEffort sets how the model thinks, and the limit of the reply, which
// includes the reasoning.
func (q *request) setEffort(effort string) {
	limit := DefaultMaxTokens
	budget, err := strconv.ParseInt(effort, 10, 32)
	switch {
	case effort == "":
	case effort == "none":
		q.Thinking = object{"type": "disabled"}
	case err == nil:
		limit += int(budget)
		q.Thinking = object{"type": "enabled", "budget_tokens": budget}
	default:
		if q.OutputConfig == nil {
			q.OutputConfig = object{}
		}
		q.OutputConfig["effort"] = effort
		q.Thinking = object{"type": "adaptive", "display": "summarized"}
	}
	q.MaxTokens = cmp.Or(q.MaxTokens, limit)
}

// markCache sets at most three of the four marks that Anthropic allows: after
// what all requests of a conversation share, which is the tools and the system
// prompt, and after the last two turns of the user. The next request reads the
// cache up to the last mark; this request reads it up to the mark before that,
// however many results are between them.
func (q *request) markCache(mark object) {
	if len(q.Tools) == 0 && !slices.ContainsFunc(q.Messages, func(m message) bool { return m.Role == "assistant" }) {
		return
	}
	if len(q.System) > 0 {
		q.System[len(q.System)-1].CacheControl = mark
	} else if len(q.Tools) > 0 {
		q.Tools[len(q.Tools)-1].CacheControl = mark
	}
	left := 2
	for _, m := range slices.Backward(q.Messages) {
		if m.Role == "user" && left > 0 {
			m.Content[len(m.Content)-1].CacheControl = mark
			left--
		}
	}
}

// buildMessages joins adjacent messages of one role: users and assistants must
// alternate, and all results of a reply's calls must be in one message, before
// any other part.
func (m *Model) buildMessages(messages []llm.Message) ([]message, error) {
	turns := []message{}
	for _, msg := range messages {
		blocks, err := m.messageBlocks(msg)
		if err != nil {
			return nil, err
		}
		if len(blocks) == 0 {
			continue // an empty turn
		}
		role := "user"
		if msg.Role == llm.RoleAssistant {
			role = "assistant"
		}
		if n := len(turns); n > 0 && turns[n-1].Role == role {
			turns[n-1].Content = append(turns[n-1].Content, blocks...)
		} else {
			turns = append(turns, message{Role: role, Content: blocks})
		}
	}
	return turns, nil
}

func (m *Model) messageBlocks(msg llm.Message) ([]block, error) {
	switch msg.Role {
	case llm.RoleUser, llm.RoleAssistant, llm.RoleTool:
	default:
		return nil, m.client.UnsupportedError("a message has the unknown role " + string(msg.Role))
	}
	var list []block
	for _, p := range msg.Parts {
		if t, ok := p.(llm.Text); ok && strings.TrimSpace(t.Text) == "" && msg.Role != llm.RoleTool {
			continue // Anthropic rejects empty text
		}
		b, ok, err := m.partBlock(msg.Role, p)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, b)
		}
	}
	return list, nil
}

// partBlock converts a part. ok is false for a part that must not be sent.
func (m *Model) partBlock(role llm.Role, p llm.Part) (b block, ok bool, err error) {
	switch p := p.(type) {
	case llm.Text:
		if role != llm.RoleTool {
			return block{Type: "text", Text: p.Text, Citations: m.citationsOf(p)}, true, nil
		}
	case llm.Item:
		if role == llm.RoleAssistant {
			return block{kept: p.Raw}, true, nil
		}
	case llm.Image:
		if role == llm.RoleUser {
			return imageBlock(p), true, nil
		}
	case llm.File:
		if role == llm.RoleUser {
			b, err = m.documentBlock(p)
			return b, true, err
		}
	case llm.Reasoning:
		if role == llm.RoleAssistant {
			b, ok = m.thinkingBlock(p)
			return b, ok, nil
		}
	case llm.ToolCall:
		if role == llm.RoleAssistant {
			return block{Type: "tool_use", ID: p.ID, Name: p.Name, Input: wire.ObjectArgs(p.Args)}, true, nil
		}
	case llm.ToolResult:
		if role == llm.RoleTool {
			b, err = m.resultBlock(p)
			return b, true, err
		}
	}
	return block{}, false, m.client.UnsupportedError("a message of the role " + string(role) + " contains a part that is not allowed there")
}

// citationsOf returns the citations of a text that Anthropic's own tools have led to, nil if there are none.
func (m *Model) citationsOf(p llm.Text) json.RawMessage {
	var extra struct{ Citations json.RawMessage }
	if p.Origin != m.origin || json.Unmarshal(p.Extra, &extra) != nil {
		return nil
	}
	return extra.Citations
}

// thinkingBlock converts reasoning that Anthropic has signed. ok is false for
// other reasoning.
func (m *Model) thinkingBlock(p llm.Reasoning) (block, bool) {
	switch {
	case p.Origin != m.origin || p.Signature == "":
		return block{}, false
	case p.Redacted:
		return block{Type: "redacted_thinking", Data: p.Signature}, true
	}
	return block{Type: "thinking", Thinking: &p.Text, Signature: p.Signature}, true
}

func imageBlock(p llm.Image) block {
	if len(p.Data) == 0 {
		return block{Type: "image", Source: object{"type": "url", "url": p.URL}}
	}
	return block{
		Type:   "image",
		Source: object{"type": "base64", "media_type": p.MIME, "data": base64.StdEncoding.EncodeToString(p.Data)},
	}
}

func (m *Model) documentBlock(p llm.File) (block, error) {
	b := block{Type: "document", Title: p.Name}
	switch {
	case len(p.Data) == 0:
		b.Source = object{"type": "url", "url": p.URL}
	case p.MIME == "application/pdf":
		b.Source = object{"type": "base64", "media_type": p.MIME, "data": base64.StdEncoding.EncodeToString(p.Data)}
	case strings.HasPrefix(p.MIME, "text/"), p.MIME == "application/json":
		b.Source = object{"type": "text", "media_type": "text/plain", "data": string(p.Data)}
	default:
		return block{}, m.client.UnsupportedError("a file of the type " + p.MIME + "; Anthropic accepts PDF and text")
	}
	return b, nil
}

func (m *Model) resultBlock(p llm.ToolResult) (block, error) {
	r := block{Type: "tool_result", ToolUseID: p.CallID, IsError: p.Error}
	for _, c := range p.Content {
		switch c := c.(type) {
		case llm.Text:
			if strings.TrimSpace(c.Text) != "" {
				r.Content = append(r.Content, block{Type: "text", Text: c.Text})
			}
		case llm.Image:
			r.Content = append(r.Content, imageBlock(c))
		case llm.File:
			doc, err := m.documentBlock(c)
			if err != nil {
				return block{}, err
			}
			r.Content = append(r.Content, doc)
		default:
			return block{}, m.client.UnsupportedError("a tool result may contain only text, images and files")
		}
	}
	return r, nil
}
