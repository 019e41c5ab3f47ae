package bedrock

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// object is a JSON object without a type of its own.
type object = map[string]any

// request is the body of a request. A field that llm.Request does not set is not sent.
type request struct {
	System     []block     `json:"system,omitempty"`
	Messages   []message   `json:"messages"`
	Inference  object      `json:"inferenceConfig,omitempty"`
	Tools      *toolConfig `json:"toolConfig,omitempty"`
	Additional object      `json:"additionalModelRequestFields,omitempty"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a piece of a message, of the instructions or of a result. Exactly one field is set.
type block struct {
	Text       string      `json:"text,omitempty"`
	Image      *media      `json:"image,omitempty"`
	Document   *media      `json:"document,omitempty"`
	Reasoning  object      `json:"reasoningContent,omitempty"`
	ToolUse    *toolUse    `json:"toolUse,omitempty"`
	ToolResult *toolResult `json:"toolResult,omitempty"`
	CachePoint object      `json:"cachePoint,omitempty"`
}

type media struct {
	Format string `json:"format"`
	Name   string `json:"name,omitempty"` // of a document
	Source struct {
		Bytes []byte `json:"bytes"`
	} `json:"source"`
}

type toolUse struct {
	ID    string          `json:"toolUseId"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type toolResult struct {
	ID      string  `json:"toolUseId"`
	Content []block `json:"content"`
	Status  string  `json:"status,omitempty"`
}

type toolConfig struct {
	Tools  []toolSpec `json:"tools"`
	Choice object     `json:"toolChoice,omitempty"`
}

type toolSpec struct {
	Spec       object `json:"toolSpec,omitempty"`
	CachePoint object `json:"cachePoint,omitempty"`
}

// cacheMark is a mark for the prompt cache.
var cacheMark = object{"type": "default"}

func (m *Model) buildRequest(r llm.Request) (request, error) {
	q := request{Inference: object{}, Additional: object{}}
	if err := m.client.RefuseProvided(r.Provided); err != nil {
		return q, err
	}
	if err := m.setEffort(&q, r.Effort); err != nil {
		return q, err
	}
	m.setInference(&q, r)
	for _, text := range []string{r.System, schemaInstructions(r.Schema)} {
		if strings.TrimSpace(text) != "" {
			q.System = append(q.System, block{Text: text})
		}
	}
	q.Tools = m.buildTools(r)
	b := &turnBuilder{model: m, names: map[string]bool{}}
	for _, msg := range r.Messages {
		if err := b.addMessage(msg); err != nil {
			return q, err
		}
	}
	q.Messages = b.turns
	if len(q.Messages) == 0 && len(q.System) > 0 { // a conversation must not be empty
		q.Messages = []message{{Role: "user", Content: q.System}}
		q.System = nil
	}
	if m.maker == "meta" || m.maker == "mistral" {
		q.Messages = splitTurns(q.Messages)
	}
	m.markCache(&q)
	return q, nil
}

// schemaInstructions says in words what a schema of the reply asks for.
func schemaInstructions(schema json.RawMessage) string {
	if len(schema) == 0 {
		return ""
	}
	return "When you answer, write only JSON that matches this schema, without anything around it:\n" + string(schema)
}

// isAnthropic reports whether the model is one of Anthropic's.
func (m *Model) isAnthropic() bool {
	return m.maker == "anthropic" || strings.Contains(m.name, "anthropic.claude")
}

// isNova reports whether the model is one of Amazon's Nova.
func (m *Model) isNova() bool { return m.maker == "amazon" && strings.Contains(m.name, "nova") }

// setEffort sets how the model thinks. What asks for it differs between the makers of models.
func (m *Model) setEffort(q *request, effort string) error {
	budget, err := strconv.ParseInt(effort, 10, 32)
	isBudget := err == nil
	switch {
	case effort == "":
	case m.isAnthropic() && effort == "none":
		q.Additional["thinking"] = object{"type": "disabled"}
	case m.isAnthropic() && isBudget:
		const room = 16_384 // for what follows the reasoning
		q.Additional["thinking"] = object{"type": "enabled", "budget_tokens": budget}
		q.Inference["maxTokens"] = budget + room
	case m.isAnthropic():
		q.Additional["thinking"] = object{"type": "adaptive", "display": "summarized"}
		q.Additional["output_config"] = object{"effort": effort}
	case m.isNova() && strings.Contains(m.name, "nova-2") && slices.Contains([]string{"low", "medium", "high"}, effort):
		q.Additional["reasoningConfig"] = object{"type": "enabled", "maxReasoningEffort": effort}
	case m.maker == "openai" && !isBudget:
		q.Additional["reasoning_effort"] = m.openAIEffort(effort)
	case effort != "none":
		return m.client.UnsupportedError("a reasoning effort for " + m.name + "; on Bedrock, raddle asks models of Anthropic for one, and models of OpenAI and Nova 2 for a level; others: extra_body with additionalModelRequestFields")
	}
	return nil
}

// openAIEffort returns the level of an OpenAI model. The open ones have three, and always think.
func (m *Model) openAIEffort(effort string) string {
	if !strings.Contains(m.name, "gpt-oss") {
		return effort
	}
	switch effort {
	case "none", "minimal":
		return "low"
	case "xhigh", "max":
		return "high"
	}
	return effort
}

// setInference sets the limits and the sampling. Models of Anthropic refuse sampling when they think, and Nova also a
// limit when it thinks hard.
func (m *Model) setInference(q *request, r llm.Request) {
	thinksHard := m.isNova() && r.Effort == "high"
	thinks := thinksHard || m.isAnthropic() && r.Effort != "" && r.Effort != "none"
	if r.MaxTokens > 0 && !thinksHard {
		q.Inference["maxTokens"] = r.MaxTokens
	}
	if r.Temperature != nil && !thinks {
		q.Inference["temperature"] = *r.Temperature
	}
	if r.TopP != nil && !thinks {
		q.Inference["topP"] = *r.TopP
	}
	if len(r.Stop) > 0 {
		q.Inference["stopSequences"] = r.Stop
	}
}

// buildTools returns the tools of a request. One without tools whose conversation has calls must name their tools
// nevertheless.
func (m *Model) buildTools(r llm.Request) *toolConfig {
	config := &toolConfig{Choice: object{"auto": object{}}}
	for _, t := range wire.RepairTools(r.Tools) {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		spec := object{"name": t.Name, "inputSchema": object{"json": schema}}
		if strings.TrimSpace(t.Description) != "" {
			spec["description"] = t.Description
		}
		config.Tools = append(config.Tools, toolSpec{Spec: spec})
	}
	if len(config.Tools) > 0 {
		if m.maker != "anthropic" && m.maker != "amazon" && m.maker != "mistral" {
			config.Choice = nil // the others refuse a choice, and choose themselves without one
		}
		return config
	}
	config.Choice = nil
	var names []string
	for _, msg := range r.Messages {
		for _, call := range msg.ToolCalls() {
			if !slices.Contains(names, call.Name) {
				names = append(names, call.Name)
				config.Tools = append(config.Tools, toolSpec{Spec: object{"name": call.Name, "description": "It can no longer be called.",
					"inputSchema": object{"json": object{"type": "object", "properties": object{}}}}})
			}
		}
	}
	if len(config.Tools) == 0 {
		return nil
	}
	return config
}

// oldClaude are models of Anthropic without a prompt cache.
var oldClaude = []string{"claude-v2", "claude-instant", "claude-3-haiku", "claude-3-sonnet", "claude-3-opus", "claude-3-5-sonnet"}

// markCache sets the marks for the prompt cache where package anthropic sets its own. Amazon's models have none among
// their tools. No mark follows a document, where Bedrock refuses it.
func (m *Model) markCache(q *request) {
	isOld := func(name string) bool { return strings.Contains(m.name, name) }
	if !m.isNova() && !m.isAnthropic() || slices.ContainsFunc(oldClaude, isOld) {
		return
	}
	if q.Tools == nil && !slices.ContainsFunc(q.Messages, func(m message) bool { return m.Role == "assistant" }) {
		return
	}
	switch {
	case len(q.System) > 0:
		q.System = append(q.System, block{CachePoint: cacheMark})
	case q.Tools != nil && !m.isNova():
		q.Tools.Tools = append(q.Tools.Tools, toolSpec{CachePoint: cacheMark})
	}
	left := 2
	for i, msg := range slices.Backward(q.Messages) {
		if msg.Role != "user" || left == 0 {
			continue
		}
		left--
		if msg.Content[len(msg.Content)-1].Document == nil {
			q.Messages[i].Content = append(msg.Content, block{CachePoint: cacheMark})
		}
	}
}
