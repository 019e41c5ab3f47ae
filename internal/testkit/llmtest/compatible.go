package llmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A chatRule says how a server that is compatible with OpenAI's chat completions differs from them.
type chatRule struct {
	name    string                                   // that of its profile
	refused []string                                 // members of an assistant's message that it refuses
	fields  []string                                 // fields of a request that it refuses
	needed  []string                                 // members of a request that it needs for a reply of use
	judge   func(m map[string]json.RawMessage) error // of an assistant's message; nil: takes all
	typed   bool                                     // it takes reasoning as parts of the content
	rewrite func(stream string) string               // of OpenAI's stream; nil: the same
	lacks   func(body []byte) error                  // see [Vendor.WithLacks]
}

// CompatibleServers are servers that are compatible with OpenAI's chat completions, by the name of their profile, each
// with what it refuses:
//
//   - groq: "property 'reasoning_content' is unsupported" (agentjido/req_llm#772, SimonSchubert/Kai#265).
//   - cerebras: the same with the code wrong_api_format; it sends and takes reasoning (QwenLM/qwen-code#11045).
//   - mistral: extra_forbidden for reasoning_content, reasoning, stream_options and max_completion_tokens (charmbracelet/crush#1590,
//     avante-corp/avante.nvim#2347, editor-code-assistant/eca#231); ids of calls of nine letters and digits.
//   - deepseek: "The reasoning_content in the thinking mode must be passed back" for each message with calls (earendil-works/pi#3635).
//   - moonshot: "thinking is enabled but reasoning_content is missing in assistant tool call message" (continuedev/continue#11600).
//   - openrouter: reasoning_details of a Gemini model must come back as they came (earendil-works/pi#260).
//   - gemini-openai: "Function call is missing a thought_signature"; calls have no index (crmne/ruby_llm#588, noho/dayu-agent#45); 'Unknown name
//     "parallel_tool_calls"' (jackmpcollins/magentic#382).
//   - llama.cpp: takes everything that it sends.
//   - xai: "does not support parameter" for stop, penalties and, on most models, reasoning_effort (docs.x.ai, omnigent-ai/omnigent#1686); it
//     sends no reasoning and takes none.
//   - vllm: sends reasoning under the name reasoning (BerriAI/litellm#24019), and a last event with usage and without choices.
//   - litellm: the thinking_blocks of a Claude model must come back with its calls: "Expected thinking or redacted_thinking, but found tool_use"
//     (BerriAI/litellm#15601).
//   - minimax: without reasoning_split its thoughts are a part of the text, between tags (vellum-ai/vellum-assistant#34556); reasoning_details come
//     back as they came.
//   - without-done: ends the stream after the finish reason (ikawrakow/ik_llama.cpp#467, waybarrios/vllm-mlx#101).
//   - without-reason: ends the stream with [DONE] and no finish reason (diegosouzapw/OmniRoute#7800, openclaw/openclaw#4298).
//
// What their models of today cannot do, for [Vendor.WithLacks]:
//
//   - groq: models of text take content as a text only: "value must be a string" (vercel/ai#2837, gptme/gptme#896).
//   - deepseek: no pictures and no files: "unknown variant `image_url`, expected `text`" (yilewang/llm-for-zotero#143); no schema of an answer:
//     "This response_format type is unavailable now" (llm-exe/llm-exe#662, UKGovernmentBEIS/inspect_ai#4916).
//   - vllm: no files: "Unsupported chat content part type: 'file'" (vllm-project/vllm#57774).
//   - llama.cpp: no files: "unsupported content[].type" (ggml-org/llama.cpp, tools/server/server-common.cpp).
func CompatibleServers() []Vendor {
	requireThought := func(message string) func(map[string]json.RawMessage) error {
		return func(m map[string]json.RawMessage) error {
			if m["tool_calls"] != nil && (m["reasoning_content"] == nil || string(m["reasoning_content"]) == "null") {
				return errors.New(message)
			}
			return nil
		}
	}
	asReasoning := func(stream string) string { return strings.ReplaceAll(stream, `"reasoning_content":`, `"reasoning":`) }
	rules := []chatRule{
		{name: "groq", lacks: lackParts("'messages.0.content' : value must be a string", "image_url", "file"), refused: []string{"reasoning_content"}, rewrite: asReasoning},
		{name: "cerebras", refused: []string{"reasoning_content"}, rewrite: asReasoning},
		{name: "mistral", refused: []string{"reasoning_content", "reasoning", "reasoning_details"}, fields: []string{"stream_options", "max_completion_tokens"},
			judge: judgeMistral, typed: true, rewrite: func(stream string) string {
				return thoughtOf.ReplaceAllString(stream, `{"content":[{"type":"thinking","thinking":[{"type":"text","text":$1}]}]}`)
			}},
		{name: "deepseek", lacks: lackDeepSeek, judge: requireThought("The `reasoning_content` in the thinking mode must be passed back to the API.")},
		{name: "moonshot", judge: requireThought("thinking is enabled but reasoning_content is missing in assistant tool call message")},
		{name: "openrouter", refused: []string{"reasoning_content"}, judge: judgeOpenRouter, rewrite: func(stream string) string {
			return thoughtOf.ReplaceAllString(stream, `{"reasoning":$1,"reasoning_details":[{"type":"reasoning.encrypted","data":"sealed","format":"google-gemini-v1","index":0}]}`)
		}},
		{name: "gemini-openai", refused: []string{"reasoning_content"}, fields: []string{"parallel_tool_calls"}, judge: judgeGeminiChat, rewrite: func(stream string) string {
			return strings.ReplaceAll(stream, `"type":"function","function"`, `"type":"function","extra_content":{"google":{"thought_signature":"signed"}},"function"`)
		}},
		{name: "llama.cpp", lacks: lackParts("unsupported content[].type", "file")},
		{name: "xai", refused: []string{"reasoning_content", "reasoning"}, fields: []string{"stop", "presence_penalty", "frequency_penalty", "reasoning_effort"}, rewrite: func(stream string) string {
			return thoughtOf.ReplaceAllString(stream, `{"content":""}`)
		}},
		{name: "vllm", lacks: lackParts("Unsupported chat content part type: '%s'.", "file"), rewrite: asReasoning},
		{name: "litellm", judge: judgeLiteLLM, rewrite: func(stream string) string {
			return thoughtOf.ReplaceAllString(stream, `{"reasoning_content":$1,"thinking_blocks":[{"type":"thinking","thinking":$1,"signature":"seal"}]}`)
		}},
		{name: "minimax", refused: []string{"reasoning_content"}, needed: []string{"reasoning_split"}, rewrite: func(stream string) string {
			return thoughtOf.ReplaceAllString(stream, `{"reasoning_details":[{"type":"reasoning.text","text":$1,"index":0}]}`)
		}},
		{name: "without-done", rewrite: func(stream string) string { return strings.TrimSuffix(stream, "data: [DONE]\n\n") }},
		{name: "without-reason", rewrite: func(stream string) string {
			return finishOf.ReplaceAllString(stream, `"finish_reason":null`)
		}},
	}
	var list []Vendor
	for _, rule := range rules {
		list = append(list, rule.vendor())
	}
	return list
}

// thoughtOf matches the reasoning of a delta.
var thoughtOf = regexp.MustCompile(`\{"reasoning_content":("(?:[^"\\]|\\.)*")\}`)

// finishOf matches why a model stopped.
var finishOf = regexp.MustCompile(`"finish_reason":"[a-z_]+"`)

func (c chatRule) vendor() Vendor {
	return Vendor{Name: c.name, Check: c.check, lacks: c.lacks, admit: admitPath("/chat/completions"), refuse: refuseOpenAI, stream: func(t Turn) string {
		stream := streamOpenAI(t)
		if c.rewrite != nil {
			stream = c.rewrite(stream)
		}
		return stream
	}}
}

func (c chatRule) check(body []byte) error {
	var r struct{ Messages []map[string]json.RawMessage }
	var fields map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(body, &r), json.Unmarshal(body, &fields)); err != nil {
		return err
	}
	for _, name := range c.fields {
		if fields[name] != nil {
			return fmt.Errorf("extra_forbidden: %s: Extra inputs are not permitted", name)
		}
	}
	for _, name := range c.needed {
		if fields[name] == nil {
			return fmt.Errorf("%s is not set", name)
		}
	}
	for i, m := range r.Messages {
		if string(m["role"]) != `"assistant"` {
			continue
		}
		for name := range m {
			if slices.Contains(c.refused, name) {
				return fmt.Errorf("messages.%d.assistant.%s: property is unsupported", i, name)
			}
		}
		if c.judge != nil {
			if err := c.judge(m); err != nil {
				return fmt.Errorf("messages.%d: %w", i, err)
			}
		}
	}
	if c.typed {
		body = bytes.ReplaceAll(body, []byte(`"type":"thinking"`), []byte(`"type":"text"`))
	}
	return checkOpenAI(body)
}

var mistralID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

func judgeMistral(m map[string]json.RawMessage) error {
	var calls []struct{ ID string }
	if raw := m["tool_calls"]; raw != nil {
		if err := json.Unmarshal(raw, &calls); err != nil {
			return err
		}
	}
	for _, c := range calls {
		if !mistralID.MatchString(c.ID) {
			return vendorErrorf("Tool call id was %s but must be a-z, A-Z, 0-9, with a length of 9.", c.ID)
		}
	}
	return nil
}

func judgeOpenRouter(m map[string]json.RawMessage) error {
	var details []map[string]any
	if raw := m["reasoning_details"]; raw == nil {
		return nil
	} else if err := json.Unmarshal(raw, &details); err != nil {
		return err
	}
	if len(details) != 1 || details[0]["data"] != "sealed" || details[0]["type"] != "reasoning.encrypted" {
		return fmt.Errorf("reasoning_details are not as they came: %v", details)
	}
	return nil
}

// judgeLiteLLM requires a message with calls that had a thought to bring its blocks, as they came.
func judgeLiteLLM(m map[string]json.RawMessage) error {
	thought := len(m["reasoning_content"]) > 0
	var blocks []struct{ Type, Signature string }
	if raw := m["thinking_blocks"]; raw != nil {
		if err := json.Unmarshal(raw, &blocks); err != nil {
			return err
		}
	}
	if m["tool_calls"] != nil && thought && (len(blocks) != 1 || blocks[0].Type != "thinking" || blocks[0].Signature != "seal") {
		return vendorError("Expected `thinking` or `redacted_thinking`, but found `tool_use`.")
	}
	return nil
}

func judgeGeminiChat(m map[string]json.RawMessage) error {
	var calls []struct {
		Extra struct {
			Google struct {
				Signature string `json:"thought_signature"`
			}
		} `json:"extra_content"`
	}
	if raw := m["tool_calls"]; raw != nil {
		if err := json.Unmarshal(raw, &calls); err != nil {
			return err
		}
	}
	for _, c := range calls {
		if s := c.Extra.Google.Signature; s != "signed" && s != "skip_thought_signature_validator" {
			return vendorError("Function call is missing a thought_signature in functionCall parts.")
		}
	}
	return nil
}

// lackParts returns what refuses parts of messages of some kinds, with a message that may name the kind.
func lackParts(message string, kinds ...string) func(body []byte) error {
	return func(body []byte) error {
		for _, kind := range kinds {
			if !bytes.Contains(body, []byte(`"type":"`+kind+`"`)) {
				continue
			}
			if strings.Contains(message, "%s") {
				return vendorErrorf(message, kind)
			}
			return vendorError(message)
		}
		return nil
	}
}

func lackDeepSeek(body []byte) error {
	if bytes.Contains(body, []byte(`"type":"json_schema"`)) {
		return vendorError("This response_format type is unavailable now")
	}
	return lackParts("Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `%s`, expected `text`", "image_url", "file")(body)
}
