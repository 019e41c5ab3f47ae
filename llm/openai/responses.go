package openai

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// responsesOrigin begins the origin of the parts that the Responses API sends; "@" and the host follow.
const responsesOrigin = "responses"

// A Responses is one model at one endpoint of OpenAI's Responses API, which OpenAI's models that reason require for
// tools. It is safe for concurrent use.
//
// It is stateless: nothing is stored at the provider, and each request has the whole conversation. Encrypted reasoning,
// phases of texts and items that only the provider understands stay in the conversation and go back to the same host,
// without their ids, which a server that has stored nothing would not find.
type Responses struct {
	name    string
	client  *wire.Client
	url     string            // of the responses endpoint
	header  map[string]string // of every request
	origin  string
	reasons bool // the model may reason, and can encrypt its reasoning
	keyed   bool // the endpoint accepts a key for its prompt cache
	strict  bool // schemas that fit are strict
}

var _ llm.Model = (*Responses)(nil)

// NewResponses checks c and returns a model; it opens no connection. A missing key is an *llm.Error of class llm.Auth.
func NewResponses(c Config) (*Responses, error) {
	client, err := newClient(c)
	if err != nil {
		return nil, err
	}
	base := client.BaseURL()
	return &Responses{
		name:    c.Model,
		client:  client,
		url:     base.JoinPath("responses").String(),
		header:  authHeader(base.Hostname(), c.APIKey),
		origin:  responsesOrigin + "@" + base.Host,
		reasons: mayReason(c.Model),
		keyed:   isOpenAI(base.Hostname()),
		strict:  c.wantsStrict(isOpenAI(base.Hostname())),
	}, nil
}

// mayReason reports whether a model can encrypt its reasoning. OpenAI refuses the request for it with "Encrypted
// content is not supported with this model" for models that do not reason: those before the o series, and the variants
// for plain conversation. The name of a deployment says nothing, so that an unknown name counts as a model of today.
func mayReason(model string) bool {
	for _, plain := range []string{"gpt-3", "gpt-4", "chatgpt-", "-chat"} {
		if strings.Contains(model, plain) {
			return false
		}
	}
	return true
}

// refusesSampling reports whether a model of OpenAI refuses temperature and top_p: models that reason do, unless their
// effort is "none" (https://platform.openai.com/docs/guides/latest-model, "Parameter compatibility"). The name of
// another model says nothing.
func refusesSampling(model, effort string) bool {
	name := model[strings.LastIndexByte(model, '/')+1:] // OpenRouter and others write openai/gpt-5
	reasons := func(family string) bool { return strings.HasPrefix(name, family) }
	return effort != "none" && mayReason(name) && slices.ContainsFunc([]string{"gpt-5", "gpt-6", "o1", "o3", "o4"}, reasons)
}

// Stream implements llm.Model.
func (m *Responses) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return m.client.Stream(ctx, func(ctx context.Context, emit func(llm.Delta) error) (llm.Reply, error) {
		rule := callRule
		rule.Items = m.origin
		body, err := m.buildRequest(wire.RepairCalls(r, rule))
		if err != nil {
			return llm.Reply{}, err
		}
		d := &responsesDecoder{
			client: m.client,
			parts:  m.client.NewAssembly(m.origin, emit),
			origin: m.origin,
			seen:   map[int]bool{},
		}
		if err := m.client.Exchange(ctx, m.url, m.header, body, d); err != nil {
			return llm.Reply{}, explainEndpoint(err, m.client.BaseURL().Hostname())
		}
		return d.buildReply(len(r.Messages)), nil
	})
}

// responsesRequest is the body of a request.
type responsesRequest struct {
	Model           string   `json:"model"`
	Instructions    string   `json:"instructions,omitempty"`
	Tools           []any    `json:"tools,omitempty"`
	Parallel        *bool    `json:"parallel_tool_calls,omitempty"`
	Text            object   `json:"text,omitempty"`
	Reasoning       object   `json:"reasoning,omitempty"`
	Include         []string `json:"include,omitempty"`
	Temperature     *float64 `json:"temperature,omitempty"`
	TopP            *float64 `json:"top_p,omitempty"`
	MaxOutputTokens int      `json:"max_output_tokens,omitempty"`
	PromptCacheKey  string   `json:"prompt_cache_key,omitempty"`
	Store           bool     `json:"store"`
	Stream          bool     `json:"stream"`
	Input           []object `json:"input"`
}

// responsesTools are OpenAI's own tools.
var responsesTools = map[string]any{
	llm.ToolWebSearch:       object{"type": "web_search"},
	llm.ToolCodeInterpreter: object{"type": "code_interpreter", "container": object{"type": "auto"}},
}

// leastOutput is the smallest limit of a reply that the API accepts.
const leastOutput = 16

func (m *Responses) buildRequest(r llm.Request) (responsesRequest, error) {
	q := responsesRequest{Model: m.name, Instructions: r.System, Stream: true}
	if !refusesSampling(m.name, r.Effort) {
		q.Temperature = r.Temperature
		q.TopP = r.TopP
	}
	if len(r.Stop) > 0 {
		return q, m.client.UnsupportedError("the Responses API has no texts at which a reply stops: remove them, or set wire: chat for this client")
	}
	if r.MaxTokens > 0 {
		q.MaxOutputTokens = max(leastOutput, r.MaxTokens)
	}
	if r.Effort != "" {
		q.Reasoning = object{"effort": r.Effort}
	}
	if m.reasons {
		q.Include = []string{"reasoning.encrypted_content"}
	}
	for _, t := range wire.RepairTools(r.Tools) {
		// strict is true if it is left out, and refuses most schemas that people write.
		tool := object{"type": "function", "name": t.Name, "strict": m.strict && wire.FitsStrict(t.Schema), "parameters": object{"type": "object", "properties": object{}}}
		if t.Description != "" {
			tool["description"] = t.Description
		}
		if len(t.Schema) > 0 {
			tool["parameters"] = t.Schema
		}
		q.Tools = append(q.Tools, tool)
	}
	if r.Serial && len(q.Tools) > 0 {
		q.Parallel = new(false)
	}
	own, err := m.client.ProvidedTools(r.Provided, responsesTools)
	if err != nil {
		return q, err
	}
	q.Tools = append(q.Tools, own...)
	if len(r.Schema) > 0 {
		q.Text = object{"format": object{"type": "json_schema", "name": "reply", "schema": r.Schema, "strict": m.strict && wire.FitsStrict(r.Schema)}}
	}
	if m.keyed {
		q.PromptCacheKey = cacheKey(q)
	}
	q.Input, err = m.buildInput(r.Messages)
	return q, err
}

// cacheKey returns a key for requests with the same beginning: the same model, instructions and tools.
func cacheKey(q responsesRequest) string {
	head, err := json.Marshal([]any{q.Model, q.Instructions, q.Tools})
	if err != nil {
		return "" // a schema that is not JSON; sending the request reports it
	}
	sum := sha256.Sum256(head)
	const bytes = 16
	return "raddle-" + hex.EncodeToString(sum[:bytes])
}

// buildInput returns the items of a conversation.
func (m *Responses) buildInput(messages []llm.Message) ([]object, error) {
	items := []object{}
	for _, msg := range messages {
		switch msg.Role {
		case llm.RoleUser:
			content, err := m.inputContent(msg.Parts)
			if err != nil {
				return nil, err
			}
			items = append(items, object{"type": "message", "role": "user", "content": content})
		case llm.RoleAssistant:
			items = append(items, m.outputItems(msg)...)
		case llm.RoleTool:
			for _, p := range msg.Parts {
				item, err := m.resultItem(p)
				if err != nil {
					return nil, err
				}
				items = append(items, item)
			}
		default:
			return nil, m.client.UnsupportedError("a message has the unknown role " + string(msg.Role))
		}
	}
	return items, nil
}

// inputContent returns the content of a user's message or of a tool's result.
func (m *Responses) inputContent(parts []llm.Part) (content []object, err error) {
	content = []object{}
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			content = append(content, object{"type": "input_text", "text": p.Text})
		case llm.Image:
			content = append(content, object{"type": "input_image", "detail": "auto", "image_url": mediaURL(p.URL, p.MIME, p.Data)})
		case llm.File:
			file := object{"type": "input_file"}
			if len(p.Data) == 0 {
				file["file_url"] = p.URL
			} else {
				file["file_data"] = mediaURL("", p.MIME, p.Data)
				file["filename"] = fileName(p)
			}
			content = append(content, file)
		default:
			return nil, m.client.UnsupportedError("a user's message may contain only text, images and files")
		}
	}
	if len(content) == 0 {
		content = append(content, object{"type": "input_text", "text": ""})
	}
	return content, nil
}

// fileName returns the name of a file, which the API requires with its bytes.
func fileName(f llm.File) string {
	switch {
	case f.Name != "":
		return f.Name
	case f.MIME == "application/pdf":
		return "file.pdf"
	}
	return "file"
}

// outputItems returns the items of a reply. Reasoning that no other item follows is left out, because the API refuses
// it: it is the end of a reply that was cut off, or what it led to was removed.
func (m *Responses) outputItems(msg llm.Message) []object {
	var items []object
	for _, p := range msg.Parts {
		switch p := p.(type) {
		case llm.Reasoning:
			if p.Origin == m.origin && (p.Signature != "" || hasMember(p.Extra, "content")) {
				item := object{"type": "reasoning", "summary": []object{}}
				mergeMembers(item, p.Extra)
				if p.Signature != "" {
					item["encrypted_content"] = p.Signature
				}
				items = append(items, item)
			}
		case llm.Text:
			if p.Text == "" {
				continue
			}
			content := object{"type": "output_text", "text": p.Text}
			item := object{"type": "message", "role": "assistant", "content": []object{content}}
			if p.Origin == m.origin {
				mergeMembers(item, p.Extra)
				if notes, ok := item["annotations"]; ok {
					content["annotations"] = notes
					delete(item, "annotations")
				}
			}
			items = append(items, item)
		case llm.ToolCall:
			item := object{"type": "function_call", "call_id": p.ID, "name": p.Name, "arguments": string(wire.ObjectArgs(p.Args))}
			if p.Origin == m.origin {
				mergeMembers(item, p.Extra)
			}
			items = append(items, item)
		case llm.Item:
			item := object{}
			mergeMembers(item, p.Raw)
			items = append(items, item)
		}
	}
	kept := items[:0]
	for i, item := range items {
		if item["type"] == "reasoning" && (i+1 == len(items) || items[i+1]["type"] == "reasoning") {
			continue
		}
		kept = append(kept, item)
	}
	return kept
}

// mergeMembers adds the members of a JSON object to an item. Those that the item already has stay.
func mergeMembers(item object, raw json.RawMessage) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return // it was changed since it came
	}
	for name, value := range members {
		if _, has := item[name]; !has || name == "summary" {
			item[name] = value
		}
	}
}

// hasMember reports whether a JSON object has a member that is not empty.
func hasMember(raw json.RawMessage, name string) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return false
	}
	value := string(members[name])
	return value != "" && value != "null" && value != "[]"
}

// resultItem returns the item of a tool's result.
func (m *Responses) resultItem(p llm.Part) (object, error) {
	r, ok := p.(llm.ToolResult)
	if !ok {
		return nil, m.client.UnsupportedError("a tool message may contain only tool results")
	}
	item := object{"type": "function_call_output", "call_id": r.CallID}
	for _, part := range r.Content {
		if _, text := part.(llm.Text); !text {
			content, err := m.inputContent(r.Content)
			item["output"] = content
			return item, err
		}
	}
	item["output"] = llm.Message{Parts: r.Content}.Text()
	return item, nil
}
