package llmtest

import (
	"encoding/json"
	"slices"
)

// A strictRequest is what a request says about strict schemas and calls at once, in OpenAI's forms.
type strictRequest struct {
	Tools []struct {
		Strict     bool
		Name       string
		Parameters map[string]any
		Function   struct {
			Strict     bool
			Name       string
			Parameters map[string]any
		}
	}
	ParallelToolCalls *bool `json:"parallel_tool_calls"`
	ResponseFormat    struct {
		JSONSchema struct {
			Strict bool
			Schema map[string]any
		} `json:"json_schema"`
	} `json:"response_format"`
	Text struct {
		Format struct {
			Strict bool
			Schema map[string]any
		}
	}
}

type cacheControl struct{ Type, TTL string }

// checkStrict refuses strict schemas that do not keep to the rules, as OpenAI does: "Invalid schema for function …:
// 'additionalProperties' is required to be supplied and to be false", "'required' is required to be supplied and to be
// an array including every key in properties", "'format' is not permitted" (sherifkozman/the-llm-council#9,
// openai/openai-agents-python#474); and parallel_tool_calls without tools ("'parallel_tool_calls' is only allowed when
// 'tools' are specified") or for a model of the o series (evalstate/fast-agent#279).
func checkStrict(body []byte) error {
	var r strictRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	if r.ParallelToolCalls != nil && len(r.Tools) == 0 {
		return vendorError("Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.")
	}
	for _, t := range r.Tools {
		if t.Strict {
			if err := judgeStrict(t.Name, t.Parameters); err != nil {
				return err
			}
		}
		if t.Function.Strict {
			if err := judgeStrict(t.Function.Name, t.Function.Parameters); err != nil {
				return err
			}
		}
	}
	if f := r.ResponseFormat.JSONSchema; f.Strict {
		return judgeStrict("response_format", f.Schema)
	}
	if f := r.Text.Format; f.Strict {
		return judgeStrict("text.format", f.Schema)
	}
	return nil
}

// judgeStrict returns why a schema cannot be strict.
func judgeStrict(name string, schema map[string]any) error {
	for _, keyword := range []string{"format", "default", "minLength", "patternProperties", "oneOf", "allOf", "not", "if"} {
		if _, has := schema[keyword]; has {
			return vendorErrorf("Invalid schema for '%s': '%s' is not permitted.", name, keyword)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	switch {
	case schema["type"] == "object" && schema["additionalProperties"] != false:
		return vendorErrorf("Invalid schema for '%s': 'additionalProperties' is required to be supplied and to be false.", name)
	case len(required) < len(properties):
		return vendorErrorf("Invalid schema for '%s': 'required' is required to be supplied and to be an array including every key in properties.", name)
	case schema["type"] == "array" && schema["items"] == nil:
		return vendorErrorf("Invalid schema for '%s': array schema missing items.", name)
	}
	for _, property := range properties {
		if inner, is := property.(map[string]any); is {
			if err := judgeStrict(name, inner); err != nil {
				return err
			}
		}
	}
	if items, is := schema["items"].(map[string]any); is {
		return judgeStrict(name, items)
	}
	return nil
}

// checkAnthropicRules refuses what Anthropic refuses about strict tools, calls at once and its prompt cache: more than
// 20 strict tools, objects that allow further properties
// (platform.claude.com/docs/en/agents-and-tools/tool-use/strict-tool-use), disable_parallel_tool_use outside of
// tool_choice, and "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
// (anthropics/claude-code#39599).
func checkAnthropicRules(body []byte) error {
	var r struct {
		Tools []struct {
			Name         string
			Strict       bool
			InputSchema  map[string]any `json:"input_schema"`
			CacheControl *cacheControl  `json:"cache_control"`
		}
		System     json.RawMessage
		Messages   []struct{ Content json.RawMessage }
		ToolChoice *struct {
			Type    string
			Disable bool `json:"disable_parallel_tool_use"`
		} `json:"tool_choice"`
		Disable json.RawMessage `json:"disable_parallel_tool_use"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	strict := 0
	var marks []*cacheControl
	for _, t := range r.Tools {
		if marks = append(marks, t.CacheControl); !t.Strict {
			continue
		}
		if strict++; strict > 20 {
			return vendorError("tools: too many strict tools, the limit is 20")
		}
		if err := judgeStrict(t.Name, t.InputSchema); err != nil {
			return err
		}
	}
	for _, content := range append([]json.RawMessage{r.System}, contentsOf(r.Messages)...) {
		var blocks []struct {
			CacheControl *cacheControl `json:"cache_control"`
		}
		if json.Unmarshal(content, &blocks) != nil {
			continue // a text
		}
		for _, b := range blocks {
			marks = append(marks, b.CacheControl)
		}
	}
	short := false
	for _, m := range marks {
		switch {
		case m == nil:
		case m.Type != "ephemeral" || !slices.Contains([]string{"", "5m", "1h"}, m.TTL):
			return vendorErrorf("cache_control: %+v is not valid", *m)
		case m.TTL == "1h" && short:
			return vendorError("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.")
		default:
			short = short || m.TTL != "1h"
		}
	}
	switch {
	case len(r.Disable) > 0:
		return vendorError("disable_parallel_tool_use: Extra inputs are not permitted")
	case r.ToolChoice != nil && len(r.Tools) == 0:
		return vendorError("tool_choice: may only be specified while providing tools")
	}
	return nil
}

func contentsOf(messages []struct{ Content json.RawMessage }) (list []json.RawMessage) {
	for _, m := range messages {
		list = append(list, m.Content)
	}
	return list
}
