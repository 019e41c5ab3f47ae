package openai

import (
	"encoding/base64"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

func (m *Model) params(r llm.Request) (openai.ChatCompletionNewParams, error) {
	messages, err := m.messages(r)
	p := openai.ChatCompletionNewParams{
		Model:           m.name,
		Messages:        messages,
		ReasoningEffort: shared.ReasoningEffort(r.Effort),
		StreamOptions:   openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	if r.Temperature != nil {
		p.Temperature = openai.Float(*r.Temperature)
	}
	if r.TopP != nil {
		p.TopP = openai.Float(*r.TopP)
	}
	if r.MaxTokens > 0 && m.newer {
		p.MaxCompletionTokens = openai.Int(int64(r.MaxTokens))
	} else if r.MaxTokens > 0 {
		p.MaxTokens = openai.Int(int64(r.MaxTokens))
	}
	p.Stop.OfStringArray = r.Stop
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, tool(t))
	}
	if len(r.Schema) > 0 {
		// Not strict: strict mode refuses most schemas that people write, such
		// as one with an optional property.
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "reply", Schema: r.Schema},
		}
	}
	return p, err
}

func tool(t llm.ToolSpec) openai.ChatCompletionToolUnionParam {
	f := shared.FunctionDefinitionParam{Name: t.Name}
	if t.Description != "" {
		f.Description = openai.String(t.Description)
	}
	if len(t.Schema) > 0 {
		// The SDK's field is a map, which would sort the properties and round
		// large numbers.
		f.SetExtraFields(map[string]any{"parameters": t.Schema})
	}
	return openai.ChatCompletionFunctionTool(f)
}

type message = openai.ChatCompletionMessageParamUnion

func (m *Model) messages(r llm.Request) ([]message, error) {
	var list []message
	if r.System != "" {
		list = append(list, openai.SystemMessage(r.System))
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
		return m.assistant(msg), nil
	}
	return message{}, m.client.Unsupported("a message has the unknown role " + string(msg.Role))
}

func (m *Model) user(parts []llm.Part) (message, error) {
	if len(parts) == 1 {
		if t, ok := parts[0].(llm.Text); ok {
			return openai.UserMessage(t.Text), nil
		}
	}
	content := []openai.ChatCompletionContentPartUnionParam{}
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if p.Text != "" { // some servers refuse empty parts
				content = append(content, openai.TextContentPart(p.Text))
			}
		case llm.Image:
			content = append(content, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: address(p.URL, p.MIME, p.Data)}))
		case llm.File:
			if len(p.Data) == 0 {
				return message{}, m.client.Unsupported("a file that is given by its address; chat completions take the bytes only")
			}
			f := openai.ChatCompletionContentPartFileFileParam{FileData: openai.String(address("", p.MIME, p.Data))}
			if p.Name != "" {
				f.Filename = openai.String(p.Name)
			}
			content = append(content, openai.FileContentPart(f))
		default:
			return message{}, m.client.Unsupported("a user's message may hold text, images and files only")
		}
	}
	if len(content) == 0 {
		return openai.UserMessage(""), nil
	}
	return openai.UserMessage(content), nil
}

func address(url, mime string, data []byte) string {
	if len(data) == 0 {
		return url
	}
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}

func (m *Model) assistant(msg llm.Message) message {
	var a openai.ChatCompletionAssistantMessageParam
	calls := msg.ToolCalls()
	if text := msg.Text(); text != "" || len(calls) == 0 {
		a.Content.OfString = openai.String(text)
	}
	for _, c := range calls {
		a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID:       c.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: string(wire.ObjectArgs(c.Args))},
			},
		})
	}
	// Servers whose models think between tool calls want the thoughts of the
	// running turn back, and no others.
	if thoughts := reasoning(msg); thoughts != "" && len(calls) > 0 {
		a.SetExtraFields(map[string]any{"reasoning_content": thoughts})
	}
	return message{OfAssistant: &a}
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
		text := llm.Message{Parts: r.Content}.Text()
		for _, p := range r.Content {
			if _, ok := p.(llm.Text); !ok {
				media = append(media, p)
			}
		}
		list = append(list, openai.ToolMessage(text, r.CallID))
	}
	if len(media) > 0 {
		media = append([]llm.Part{llm.Text{Text: "Attached by the tool:"}}, media...)
	}
	return list, media, nil
}
