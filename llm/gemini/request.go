package gemini

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
	Contents          []*content `json:"contents"`
	SystemInstruction *content   `json:"systemInstruction,omitempty"`
	Tools             []any      `json:"tools,omitempty"`
	ToolConfig        object     `json:"toolConfig,omitempty"`
	GenerationConfig  object     `json:"generationConfig"`
}

// object is a JSON object without a type of its own.
type object = map[string]any

const (
	roleUser  = "user"
	roleModel = "model"
)

// content is a turn, in a request and in a response.
type content struct {
	Role  string  `json:"role"`
	Parts []*part `json:"parts"`
}

// part is a piece of a turn. Exactly one field is set, in addition to Thought
// and ThoughtSignature.
type part struct {
	Text             string            `json:"text,omitempty"`
	Thought          bool              `json:"thought,omitempty"`
	ThoughtSignature string            `json:"thoughtSignature,omitempty"` // base64
	InlineData       *blob             `json:"inlineData,omitempty"`
	FileData         object            `json:"fileData,omitempty"`
	FunctionCall     *functionCall     `json:"functionCall,omitempty"`
	FunctionResponse *functionResponse `json:"functionResponse,omitempty"`

	// These are of Google's own tools. What has them goes back as it came.
	ToolCall       object `json:"toolCall,omitempty"`
	ToolResponse   object `json:"toolResponse,omitempty"`
	ExecutableCode object `json:"executableCode,omitempty"`

	kept json.RawMessage // the whole part, as it came
}

// MarshalJSON encodes the part; one that was kept stays as it came.
func (p *part) MarshalJSON() ([]byte, error) {
	if len(p.kept) > 0 {
		return p.kept, nil
	}
	type plain part
	return json.Marshal((*plain)(p))
}

// ownTools are Google's own tools (https://ai.google.dev/gemini-api/docs/tool-combination).
var ownTools = map[string]any{
	llm.ToolWebSearch:       object{"googleSearch": object{}},
	llm.ToolWebFetch:        object{"urlContext": object{}},
	llm.ToolCodeInterpreter: object{"codeExecution": object{}},
}

type blob struct {
	MIMEType    string `json:"mimeType"`
	Data        []byte `json:"data"`
	DisplayName string `json:"displayName,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type functionResponse struct {
	ID       string `json:"id,omitempty"`
	Name     string `json:"name"`
	Response object `json:"response"`
}

func (m *Model) buildRequest(r llm.Request) (request, error) {
	contents, err := m.buildContents(r)
	if err != nil {
		return request{}, err
	}
	q := request{Contents: contents, GenerationConfig: generationConfig(r)}
	if r.System != "" {
		system := &content{Role: roleUser, Parts: []*part{{Text: r.System}}}
		if len(contents) == 0 { // a conversation must not be empty
			q.Contents = append(q.Contents, system)
		} else {
			q.SystemInstruction = system
		}
	}
	if len(r.Tools) > 0 {
		var functions []object
		for _, t := range wire.RepairTools(r.Tools) {
			function := object{"name": t.Name}
			if t.Description != "" {
				function["description"] = t.Description
			}
			if len(t.Schema) > 0 {
				if schema := narrowSchema(t.Schema); schema != nil {
					function["parametersJsonSchema"] = schema
				}
			}
			functions = append(functions, function)
		}
		q.Tools = []any{object{"functionDeclarations": functions}}
	}
	own, err := m.client.ProvidedTools(r.Provided, ownTools)
	if err != nil {
		return q, err
	}
	if len(own) > 0 && len(q.Tools) > 0 && !m.vertex { // Vertex does not know the setting
		// "Please enable … to use Built-in tools with Function calling"
		q.ToolConfig = object{"includeServerSideToolInvocations": true}
	}
	q.Tools = append(q.Tools, own...)
	return q, nil
}

func generationConfig(r llm.Request) object {
	config := object{}
	if r.Temperature != nil {
		config["temperature"] = *r.Temperature
	}
	if r.TopP != nil {
		config["topP"] = *r.TopP
	}
	if r.MaxTokens > 0 {
		config["maxOutputTokens"] = r.MaxTokens
	}
	if len(r.Stop) > 0 {
		config["stopSequences"] = r.Stop
	}
	if len(r.Schema) > 0 {
		config["responseMimeType"], config["responseJsonSchema"] = "application/json", r.Schema
	}
	if r.Effort != "" {
		config["thinkingConfig"] = thinkingConfig(r.Effort)
	}
	return config
}

func thinkingConfig(effort string) object {
	if effort == "none" {
		return object{"thinkingBudget": 0}
	}
	if budget, err := strconv.ParseInt(effort, 10, 32); err == nil {
		return object{"thinkingBudget": budget, "includeThoughts": true}
	}
	return object{"thinkingLevel": strings.ToUpper(effort), "includeThoughts": true}
}

func (m *Model) buildContents(r llm.Request) ([]*content, error) {
	all := []*content{}
	for _, msg := range r.Messages {
		role := roleUser
		switch msg.Role {
		case llm.RoleUser, llm.RoleTool:
		case llm.RoleAssistant:
			role = roleModel
		default:
			return nil, m.client.UnsupportedError("a message has the unknown role " + string(msg.Role))
		}
		parts, attached, err := m.messageParts(msg)
		if err != nil {
			return nil, err
		}
		if len(attached) > 0 {
			parts = append(append(parts, &part{Text: "Attached by the tool:"}), attached...)
		}
		if len(parts) > 0 {
			all = appendTurn(all, role, parts)
		}
	}
	return all, nil
}

// appendTurn adds parts to the conversation, in which users and the model alternate.
// All results of a reply's calls are in one turn, before any other part.
func appendTurn(all []*content, role string, parts []*part) []*content {
	if n := len(all); n == 0 || all[n-1].Role != role {
		return append(all, &content{Role: role, Parts: parts})
	}
	last := all[len(all)-1]
	last.Parts = append(last.Parts, parts...)
	slices.SortStableFunc(last.Parts, func(a, b *part) int { return cmp.Compare(partRank(a), partRank(b)) })
	return all
}

func partRank(p *part) int {
	if p.FunctionResponse != nil {
		return 0
	}
	return 1
}

// messageParts returns the parts of a message, and the parts of its tool results that
// the API cannot accept inside a result.
func (m *Model) messageParts(msg llm.Message) (parts, attached []*part, err error) {
	for i, p := range msg.Parts {
		var next *part
		switch p := p.(type) {
		case llm.Text:
			if p.Text == "" && msg.Role != llm.RoleTool {
				continue // Google rejects empty parts
			}
			next = &part{Text: p.Text}
		case llm.Image:
			next = mediaPart(p.MIME, p.URL, p.Data)
		case llm.File:
			next = mediaPart(p.MIME, p.URL, p.Data)
		case llm.Reasoning: // reasoning is not sent back, but its signature belongs to the text before it
			if i > 0 && len(parts) > 0 {
				if t, ok := msg.Parts[i-1].(llm.Text); ok && t.Text != "" {
					parts[len(parts)-1].ThoughtSignature = m.validSignature(p.Signature, p.Origin)
				}
			}
			continue
		case llm.ToolCall:
			next = &part{
				FunctionCall:     &functionCall{ID: m.callID(p.ID), Name: p.Name, Args: wire.ObjectArgs(p.Args)},
				ThoughtSignature: m.validSignature(p.Signature, p.Origin),
			}
		case llm.Item:
			if p.Kind == groundingKind {
				continue
			}
			next = &part{kept: p.Raw}
		case llm.ToolResult:
			var more []*part
			next, more, err = m.resultPart(p)
			if err != nil {
				return nil, nil, err
			}
			attached = append(attached, more...)
		}
		if !isAllowedPart(msg.Role, p) {
			return nil, nil, m.client.UnsupportedError("a message of the role " + string(msg.Role) + " contains a part that is not allowed there")
		}
		parts = append(parts, next)
	}
	return parts, attached, nil
}

func isAllowedPart(role llm.Role, p llm.Part) bool {
	switch p.(type) {
	case llm.ToolResult:
		return role == llm.RoleTool
	case llm.ToolCall, llm.Item:
		return role == llm.RoleAssistant
	}
	return role != llm.RoleTool
}

// mediaPart converts an image or a file. The name of a file is left out,
// because the Gemini API has no field for it.
func mediaPart(mime, url string, data []byte) *part {
	if len(data) == 0 {
		return &part{FileData: object{"fileUri": url, "mimeType": mime}}
	}
	return &part{InlineData: &blob{Data: data, MIMEType: mime}}
}

// validSignature returns a signature that Google has made and accepts, or "".
func (m *Model) validSignature(signature, from string) string {
	if _, err := base64.StdEncoding.DecodeString(signature); err != nil || from != m.origin {
		return ""
	}
	return signature
}

// callID returns the id of a call for a request. Vertex refuses ids: it pairs calls and results by their order.
func (m *Model) callID(id string) string {
	if m.vertex {
		return ""
	}
	return id
}

func (m *Model) resultPart(p llm.ToolResult) (*part, []*part, error) {
	key := "output"
	if p.Error {
		key = "error"
	}
	var attached []*part
	for _, c := range p.Content {
		switch c := c.(type) {
		case llm.Text:
		case llm.Image:
			attached = append(attached, mediaPart(c.MIME, c.URL, c.Data))
		case llm.File:
			attached = append(attached, mediaPart(c.MIME, c.URL, c.Data))
		default:
			return nil, nil, m.client.UnsupportedError("a tool result may contain only text, images and files")
		}
	}
	text := llm.Message{Parts: p.Content}.Text()
	return &part{FunctionResponse: &functionResponse{
		ID:       m.callID(p.CallID),
		Name:     p.Name,
		Response: object{key: text},
	}}, attached, nil
}
