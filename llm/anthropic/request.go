package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

func (m *Model) params(r llm.Request) (anthropic.MessageNewParams, error) {
	p := anthropic.MessageNewParams{Model: anthropic.Model(m.name), MaxTokens: int64(r.MaxTokens)}
	if r.System != "" {
		p.System = []anthropic.TextBlockParam{{Text: r.System}}
	}
	if r.Temperature != nil {
		p.Temperature = anthropic.Float(*r.Temperature)
	}
	if r.TopP != nil {
		p.TopP = anthropic.Float(*r.TopP)
	}
	p.StopSequences = r.Stop
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, tool(t))
	}
	if len(r.Schema) > 0 {
		// The SDK's field is a map, which would sort the properties and round
		// large numbers.
		p.OutputConfig.Format.SetExtraFields(map[string]any{"schema": r.Schema})
	}
	effort(&p, r)
	var err error
	p.Messages, err = m.turns(r.Messages)
	if len(p.Messages) == 0 && err == nil && r.System != "" {
		// Anthropic answers nobody who says nothing.
		p.System = nil
		p.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(r.System))}
	}
	return p, err
}

// turns joins neighbours of one role: users and assistants take turns, and all
// results of a reply's calls stand in one message, before anything else.
func (m *Model) turns(messages []llm.Message) (turns []anthropic.MessageParam, err error) {
	for _, msg := range messages {
		blocks, err := m.blocks(msg)
		if err != nil {
			return nil, err
		}
		if len(blocks) == 0 {
			continue // a turn in which nothing was said
		}
		role := anthropic.MessageParamRoleUser
		if msg.Role == llm.RoleAssistant {
			role = anthropic.MessageParamRoleAssistant
		}
		if n := len(turns); n > 0 && turns[n-1].Role == role {
			turns[n-1].Content = append(turns[n-1].Content, blocks...)
		} else {
			turns = append(turns, anthropic.MessageParam{Role: role, Content: blocks})
		}
	}
	return turns, nil
}

// effort sets how the model thinks, and the limit of the reply, which includes
// the thoughts.
func effort(p *anthropic.MessageNewParams, r llm.Request) {
	limit := int64(DefaultMaxTokens)
	budget, err := strconv.ParseInt(r.Effort, 10, 32)
	switch {
	case r.Effort == "":
	case r.Effort == "none":
		p.Thinking.OfDisabled = &anthropic.ThinkingConfigDisabledParam{}
	case err == nil:
		limit += budget
		// Not as p.Thinking.OfEnabled, for which the SDK prints advice to
		// standard error.
		p.SetExtraFields(map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": budget}})
	default:
		p.OutputConfig.Effort = anthropic.OutputConfigEffort(r.Effort)
		p.Thinking.OfAdaptive = &anthropic.ThinkingConfigAdaptiveParam{Display: anthropic.ThinkingConfigAdaptiveDisplaySummarized}
	}
	if p.MaxTokens == 0 {
		p.MaxTokens = limit
	}
}

func tool(t llm.ToolSpec) anthropic.ToolUnionParam {
	schema := t.Schema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	p := anthropic.ToolParam{Name: t.Name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](schema)}
	if t.Description != "" {
		p.Description = anthropic.String(t.Description)
	}
	return anthropic.ToolUnionParam{OfTool: &p}
}

type block = anthropic.ContentBlockParamUnion

func (m *Model) blocks(msg llm.Message) ([]block, error) {
	switch msg.Role {
	case llm.RoleUser, llm.RoleAssistant, llm.RoleTool:
	default:
		return nil, m.client.Unsupported("a message has the unknown role " + string(msg.Role))
	}
	var list []block
	for _, p := range msg.Parts {
		if t, ok := p.(llm.Text); ok && strings.TrimSpace(t.Text) == "" && msg.Role != llm.RoleTool {
			continue // Anthropic refuses empty text
		}
		b, ok, err := m.block(msg.Role, p)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, b)
		}
	}
	return list, nil
}

// block reports false for a part that must not be sent.
func (m *Model) block(role llm.Role, p llm.Part) (block, bool, error) {
	switch p := p.(type) {
	case llm.Text:
		if role != llm.RoleTool {
			return anthropic.NewTextBlock(p.Text), true, nil
		}
	case llm.Image:
		if role == llm.RoleUser {
			return block{OfImage: image(p)}, true, nil
		}
	case llm.File:
		if role == llm.RoleUser {
			doc, err := m.document(p)
			return block{OfDocument: doc}, true, err
		}
	case llm.Reasoning:
		if role == llm.RoleAssistant {
			b, ok := thoughts(p)
			return b, ok, nil
		}
	case llm.ToolCall:
		if role == llm.RoleAssistant {
			return anthropic.NewToolUseBlock(p.ID, wire.ObjectArgs(p.Args), p.Name), true, nil
		}
	case llm.ToolResult:
		if role == llm.RoleTool {
			result, err := m.result(p)
			return block{OfToolResult: result}, true, err
		}
	}
	return block{}, false, m.client.Unsupported("a message of the role " + string(role) + " holds a part that does not belong there")
}

// thoughts gives back what Anthropic has sealed, and nothing else.
func thoughts(p llm.Reasoning) (block, bool) {
	switch {
	case p.Origin != origin || p.Signature == "":
		return block{}, false
	case p.Redacted:
		return anthropic.NewRedactedThinkingBlock(p.Signature), true
	}
	return anthropic.NewThinkingBlock(p.Signature, p.Text), true
}

func image(p llm.Image) *anthropic.ImageBlockParam {
	if len(p.Data) == 0 {
		return &anthropic.ImageBlockParam{Source: anthropic.ImageBlockParamSourceUnion{OfURL: &anthropic.URLImageSourceParam{URL: p.URL}}}
	}
	return &anthropic.ImageBlockParam{Source: anthropic.ImageBlockParamSourceUnion{OfBase64: &anthropic.Base64ImageSourceParam{
		MediaType: anthropic.Base64ImageSourceMediaType(p.MIME), Data: base64.StdEncoding.EncodeToString(p.Data),
	}}}
}

func (m *Model) document(p llm.File) (*anthropic.DocumentBlockParam, error) {
	var d anthropic.DocumentBlockParam
	if p.Name != "" {
		d.Title = anthropic.String(p.Name)
	}
	switch {
	case len(p.Data) == 0:
		d.Source.OfURL = &anthropic.URLPDFSourceParam{URL: p.URL}
	case p.MIME == "application/pdf":
		d.Source.OfBase64 = &anthropic.Base64PDFSourceParam{Data: base64.StdEncoding.EncodeToString(p.Data)}
	case strings.HasPrefix(p.MIME, "text/"), p.MIME == "application/json":
		d.Source.OfText = &anthropic.PlainTextSourceParam{Data: string(p.Data)}
	default:
		return nil, m.client.Unsupported("a file of the type " + p.MIME + "; Anthropic takes PDF and text")
	}
	return &d, nil
}

func (m *Model) result(p llm.ToolResult) (*anthropic.ToolResultBlockParam, error) {
	r := anthropic.ToolResultBlockParam{ToolUseID: p.CallID}
	if p.Error {
		r.IsError = anthropic.Bool(true)
	}
	for _, c := range p.Content {
		var u anthropic.ToolResultBlockParamContentUnion
		switch c := c.(type) {
		case llm.Text:
			if strings.TrimSpace(c.Text) == "" {
				continue
			}
			u.OfText = &anthropic.TextBlockParam{Text: c.Text}
		case llm.Image:
			u.OfImage = image(c)
		case llm.File:
			doc, err := m.document(c)
			if err != nil {
				return nil, err
			}
			u.OfDocument = doc
		default:
			return nil, m.client.Unsupported("a tool result may hold text, images and files only")
		}
		r.Content = append(r.Content, u)
	}
	return &r, nil
}
