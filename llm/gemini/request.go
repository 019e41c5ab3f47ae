package gemini

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/genai"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

func config(r llm.Request) *genai.GenerateContentConfig {
	c := &genai.GenerateContentConfig{
		MaxOutputTokens: int32(r.MaxTokens),
		ThinkingConfig:  thinking(r.Effort),
		// The SDK would reconnect to a stream that breaks.
		AutomaticContinuation: new(bool),
		HTTPOptions: &genai.HTTPOptions{ExtrasRequestProvider: func(body map[string]any) map[string]any {
			exact(body, r)
			return body
		}},
	}
	if r.System != "" {
		c.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: r.System}}}
	}
	if len(r.Tools) > 0 {
		tool := &genai.Tool{}
		for _, t := range r.Tools {
			tool.FunctionDeclarations = append(tool.FunctionDeclarations, &genai.FunctionDeclaration{Name: t.Name, Description: t.Description})
		}
		c.Tools = []*genai.Tool{tool}
	}
	if len(r.Schema) > 0 {
		c.ResponseMIMEType = "application/json"
	}
	return c
}

func thinking(effort string) *genai.ThinkingConfig {
	budget, err := strconv.ParseInt(effort, 10, 32)
	tokens := int32(budget)
	switch {
	case effort == "":
		return nil
	case effort == "none":
		return &genai.ThinkingConfig{ThinkingBudget: &tokens}
	case err == nil:
		return &genai.ThinkingConfig{ThinkingBudget: &tokens, IncludeThoughts: true}
	}
	return &genai.ThinkingConfig{ThinkingLevel: genai.ThinkingLevel(strings.ToUpper(effort)), IncludeThoughts: true}
}

// exact puts into the body of a request what the SDK's types cannot hold: its
// maps sort the properties of schemas and round large numbers, also those in
// the arguments of earlier tool calls, and its sampling parameters are float32.
func exact(body map[string]any, r llm.Request) {
	generation := object(body, "generationConfig")
	if r.Temperature != nil {
		generation["temperature"] = *r.Temperature
	}
	if r.TopP != nil {
		generation["topP"] = *r.TopP
	}
	if len(r.Stop) > 0 {
		generation["stopSequences"] = r.Stop
	}
	if len(r.Schema) > 0 {
		generation["responseJsonSchema"] = r.Schema
	}
	if len(generation) > 0 {
		body["generationConfig"] = generation
	}
	var schemas []json.RawMessage
	for _, t := range r.Tools {
		schemas = append(schemas, t.Schema)
	}
	for _, tool := range list(body, "tools") {
		for _, f := range list(tool, "functionDeclarations") {
			if len(schemas[0]) > 0 {
				f["parametersJsonSchema"] = schemas[0]
			}
			schemas = schemas[1:]
		}
	}
	var calls []llm.ToolCall
	for _, m := range r.Messages {
		calls = append(calls, m.ToolCalls()...)
	}
	for _, content := range list(body, "contents") {
		for _, part := range list(content, "parts") {
			if call, ok := part["functionCall"].(map[string]any); ok {
				call["args"] = wire.ObjectArgs(calls[0].Args)
				calls = calls[1:]
			}
		}
	}
}

func object(m map[string]any, key string) map[string]any {
	if o, ok := m[key].(map[string]any); ok {
		return o
	}
	return map[string]any{}
}

// list returns the objects of a list, which the SDK builds with either type.
func list(m map[string]any, key string) []map[string]any {
	switch l := m[key].(type) {
	case []map[string]any:
		return l
	case []any:
		var objects []map[string]any
		for _, v := range l {
			if o, ok := v.(map[string]any); ok {
				objects = append(objects, o)
			}
		}
		return objects
	}
	return nil
}

func (m *Model) contents(r llm.Request) ([]*genai.Content, error) {
	var all []*genai.Content
	for _, msg := range r.Messages {
		role := genai.RoleUser
		switch msg.Role {
		case llm.RoleUser, llm.RoleTool:
		case llm.RoleAssistant:
			role = genai.RoleModel
		default:
			return nil, m.client.Unsupported("a message has the unknown role " + string(msg.Role))
		}
		parts, attached, err := m.parts(msg)
		if err != nil {
			return nil, err
		}
		if len(attached) > 0 {
			parts = append(append(parts, &genai.Part{Text: "Attached by the tool:"}), attached...)
		}
		if len(parts) > 0 {
			all = join(all, role, parts)
		}
	}
	return all, nil
}

// join adds parts to the conversation, in which users and the model take turns.
// All results of a reply's calls stand in one turn, before anything else.
func join(all []*genai.Content, role string, parts []*genai.Part) []*genai.Content {
	if n := len(all); n == 0 || all[n-1].Role != role {
		return append(all, &genai.Content{Role: role, Parts: parts})
	}
	last := all[len(all)-1]
	last.Parts = append(last.Parts, parts...)
	slices.SortStableFunc(last.Parts, func(a, b *genai.Part) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

func rank(p *genai.Part) int {
	if p.FunctionResponse != nil {
		return 0
	}
	return 1
}

// parts returns the parts of a message, and those that its tool results hold
// but cannot carry.
func (m *Model) parts(msg llm.Message) (parts, attached []*genai.Part, err error) {
	for _, p := range msg.Parts {
		var part *genai.Part
		switch p := p.(type) {
		case llm.Text:
			if p.Text == "" && msg.Role != llm.RoleTool {
				continue // Google refuses empty parts
			}
			part = &genai.Part{Text: p.Text}
		case llm.Image:
			part = blob(p.MIME, p.URL, p.Data)
		case llm.File:
			part = blob(p.MIME, p.URL, p.Data)
		case llm.Reasoning:
			continue // only the seals of tool calls go back
		case llm.ToolCall:
			part = call(p)
		case llm.ToolResult:
			var more []*genai.Part
			part, more, err = m.result(p)
			if err != nil {
				return nil, nil, err
			}
			attached = append(attached, more...)
		}
		if !belongs(msg.Role, p) {
			return nil, nil, m.client.Unsupported("a message of the role " + string(msg.Role) + " holds a part that does not belong there")
		}
		parts = append(parts, part)
	}
	return parts, attached, nil
}

func belongs(role llm.Role, p llm.Part) bool {
	switch p.(type) {
	case llm.ToolResult:
		return role == llm.RoleTool
	case llm.ToolCall:
		return role == llm.RoleAssistant
	}
	return role != llm.RoleTool
}

// blob drops the name of a file, for which the Gemini API has no place.
func blob(mime, url string, data []byte) *genai.Part {
	if len(data) == 0 {
		return &genai.Part{FileData: &genai.FileData{FileURI: url, MIMEType: mime}}
	}
	return &genai.Part{InlineData: &genai.Blob{Data: data, MIMEType: mime}}
}

// call gives a tool call back with its seal. The arguments follow in exact.
func call(p llm.ToolCall) *genai.Part {
	part := &genai.Part{FunctionCall: &genai.FunctionCall{ID: p.ID, Name: p.Name}}
	if seal, err := base64.StdEncoding.DecodeString(p.Signature); err == nil && p.Origin == origin {
		part.ThoughtSignature = seal
	}
	return part
}

func (m *Model) result(p llm.ToolResult) (*genai.Part, []*genai.Part, error) {
	key := "output"
	if p.Error {
		key = "error"
	}
	var attached []*genai.Part
	for _, c := range p.Content {
		switch c := c.(type) {
		case llm.Text:
		case llm.Image:
			attached = append(attached, blob(c.MIME, c.URL, c.Data))
		case llm.File:
			attached = append(attached, blob(c.MIME, c.URL, c.Data))
		default:
			return nil, nil, m.client.Unsupported("a tool result may hold text, images and files only")
		}
	}
	text := llm.Message{Parts: p.Content}.Text()
	return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: p.CallID, Name: p.Name, Response: map[string]any{key: text}}}, attached, nil
}
