package llmtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"raddle.dev/llm"
	"raddle.dev/llm/anthropic"
	"raddle.dev/llm/openai"
)

// strictTools are tools of which one in two keeps to the rules of strict schemas.
func strictTools(n int) (tools []llm.ToolSpec) {
	for i := range n {
		schema := `{"type":"object","properties":{"a":{"type":"string"},"l":{"type":"array","items":{"type":"integer"}}},"required":["l","a"],"additionalProperties":false}`
		if i%2 == 1 {
			schema = `{"type":"object","properties":{"a":{"type":"string","format":"uri"},"b":{"type":"integer"}},"required":["a"]}`
		}
		tools = append(tools, llm.ToolSpec{Name: fmt.Sprint("f", i), Schema: json.RawMessage(schema)})
	}
	return tools
}

// Each vendor is asked for at most one call in its own words, or not at all.
func TestSerialRequests(t *testing.T) {
	words := map[string]string{"Anthropic": `"tool_choice":{"disable_parallel_tool_use":true,"type":"auto"}`, "Gemini": "", "Ollama": "", "gemini-openai": "", "Bedrock": "", "Bedrock Llama": "", "Vertex Gemini": ""}
	words["Vertex Anthropic"] = words["Anthropic"]
	for _, v := range Vendors() {
		t.Run(v.Name, func(t *testing.T) {
			s := StartServer(t, v, Turn{Text: "ok"}, Turn{Text: "ok"}, Turn{Text: "ok"})
			m := openModel(t, v, s.URL)
			for _, r := range []llm.Request{{Serial: true, Tools: strictTools(2)}, {Tools: strictTools(2)}, {Serial: true}} {
				r.Messages = []llm.Message{llm.User("hi")}
				if _, err := llm.Generate(t.Context(), m, r); err != nil {
					t.Fatal(err)
				}
			}
			want, own := words[v.Name]
			if !own {
				want = `"parallel_tool_calls":false`
			}
			for i, body := range s.RequestBodies() {
				has := strings.Contains(string(body), `"parallel_tool_calls"`) || strings.Contains(string(body), "disable_parallel")
				if right := strings.Contains(string(body), want); has != (i == 0 && want != "") || i == 0 && !right {
					t.Errorf("request %d: %s", i, body)
				}
			}
		})
	}
}

// A schema is strict where the setting, or OpenAI itself, wants it and its rules are kept: no vendor refuses a request because of it.
func TestStrictRequests(t *testing.T) {
	answer := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)
	for name, test := range map[string]struct {
		vendor Vendor
		open   func(url string) (llm.Model, error)
		strict int // schemas of the request below
	}{
		"chat, off": {OpenAI(), func(url string) (llm.Model, error) {
			return openai.New(openai.Config{Model: "x", Endpoint: llm.Endpoint{BaseURL: url}, Strict: "off", Profile: "openai"})
		}, 0},
		"chat, OpenAI": {OpenAI(), func(url string) (llm.Model, error) {
			return openai.New(openai.Config{Model: "x", Endpoint: llm.Endpoint{BaseURL: url}, Profile: "openai"})
		}, 26},
		"chat, on": {OpenAI(), func(url string) (llm.Model, error) {
			return openai.New(openai.Config{Model: "x", Endpoint: llm.Endpoint{BaseURL: url}, Strict: "on"})
		}, 26},
		"chat, unknown": {OpenAI(), func(url string) (llm.Model, error) {
			return openai.New(openai.Config{Model: "x", Endpoint: llm.Endpoint{BaseURL: url}})
		}, 0},
		"responses": {OpenAIResponses(), func(url string) (llm.Model, error) {
			return openai.NewResponses(openai.Config{Model: "x", Endpoint: llm.Endpoint{BaseURL: url}})
		}, 0},
		"responses, on": {OpenAIResponses(), func(url string) (llm.Model, error) {
			return openai.NewResponses(openai.Config{Model: "x", Endpoint: llm.Endpoint{BaseURL: url}, Strict: "on"})
		}, 26},
		"messages": {Anthropic(), func(url string) (llm.Model, error) {
			return anthropic.New(anthropic.Config{Model: "x", Endpoint: llm.Endpoint{BaseURL: url}})
		}, 0},
		"messages, on": {Anthropic(), func(url string) (llm.Model, error) {
			return anthropic.New(anthropic.Config{Model: "x", Endpoint: llm.Endpoint{BaseURL: url}, Strict: true})
		}, 20},
		"messages, 1 hour": {Anthropic(), func(url string) (llm.Model, error) {
			return anthropic.New(anthropic.Config{Model: "x", Endpoint: llm.Endpoint{BaseURL: url}, CacheTTL: "1h"})
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := StartServer(t, test.vendor, Turn{Text: "ok"}, Turn{Text: "ok"})
			m, err := test.open(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			tools := strictTools(50)
			for _, r := range []llm.Request{{Tools: tools, Schema: answer, System: "Be brief."}, {Tools: tools, Schema: json.RawMessage(`{"type":"object"}`)}} {
				r.Messages = []llm.Message{llm.User("hi")}
				if _, err := llm.Generate(t.Context(), m, r); err != nil {
					t.Fatal(err)
				}
			}
			first, second := string(s.RequestBodies()[0]), string(s.RequestBodies()[1])
			if n := strings.Count(first, `"strict":true`); n != test.strict {
				t.Errorf("%d schemas are strict, want %d: %.500s", n, test.strict, first)
			}
			if n := strings.Count(second, `"strict":true`); n > 25 {
				t.Errorf("an answer that does not fit is strict: %.500s", second)
			}
			if test.vendor.Name == "Anthropic" && strings.Count(first, `"ttl":"1h"`) != strings.Count(first, `"cache_control"`)*strings.Count(name, "hour") {
				t.Errorf("the marks are not equal: %.2000s", first)
			}
		})
	}
}

// The vendors refuse what these tests are about.
func TestStrictRulesRefuse(t *testing.T) {
	const object = `{"type":"object","properties":{"a":{"type":"string"}}`
	user := `"messages":[{"role":"user","content":"x"}]`
	for _, c := range []struct {
		v          Vendor
		body, want string
	}{
		{OpenAI(), `{` + user + `,"parallel_tool_calls":false}`, "only allowed when 'tools'"},
		{OpenAI(), `{` + user + `,"tools":[{"function":{"name":"f","strict":true,"parameters":` + object + `}}}]}`, "additionalProperties"},
		{OpenAI(), `{` + user + `,"tools":[{"function":{"name":"f","strict":true,"parameters":` + object + `,"additionalProperties":false}}}]}`, "every key in properties"},
		{OpenAI(), `{` + user + `,"response_format":{"json_schema":{"strict":true,"schema":{"type":"object","additionalProperties":false,"format":"x"}}}}`, "not permitted"},
		{Anthropic(), `{"max_tokens":1,"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}`, "must not come after"},
		{Anthropic(), `{"max_tokens":1,"disable_parallel_tool_use":true,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`, "not permitted"},
		{Anthropic(), `{"max_tokens":1,"tool_choice":{"type":"auto"},"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`, "while providing tools"},
		{Anthropic(), `{"max_tokens":1,"tools":[{"name":"f","strict":true,"input_schema":` + object + `}}],"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`, "additionalProperties"},
	} {
		if err := c.v.Check([]byte(c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: %v, want %q", c.v.Name, c.body, err, c.want)
		}
	}
}
