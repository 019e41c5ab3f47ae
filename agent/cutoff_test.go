package agent_test

import (
	"slices"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/llm"
	"raddle.dev/llm/anthropic"
	"raddle.dev/llm/bedrock"
	"raddle.dev/llm/gemini"
	"raddle.dev/llm/openai"
	"raddle.dev/tool"
)

// A token limit cuts off the arguments of a call: the model reads that, and calls again.
// The request is not repeated, the tool is not called, and every history is valid.
func TestArgumentsThatATokenLimitCutOff(t *testing.T) {
	vendors := map[string]struct {
		vendor llmtest.Vendor
		model  func(url string) (llm.Model, error)
	}{
		"openai": {llmtest.OpenAI(), func(url string) (llm.Model, error) {
			return openai.New(openai.Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: url}})
		}},
		"anthropic": {llmtest.Anthropic(), func(url string) (llm.Model, error) {
			return anthropic.New(anthropic.Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: url}})
		}},
		"bedrock": {llmtest.Bedrock(), func(url string) (llm.Model, error) {
			return bedrock.New(bedrock.Config{Model: "anthropic.claude-m", Region: llmtest.AWSRegion, Endpoint: llm.Endpoint{BaseURL: url, APIKey: llmtest.BedrockKey}})
		}},
		"gemini": {llmtest.Gemini(), func(url string) (llm.Model, error) {
			return gemini.New(gemini.Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: url}})
		}},
	}
	for name, v := range vendors {
		for _, args := range []string{`{"text":"a long te`, `{"text":"a","n":`, ``} {
			t.Run(name+" "+args, func(t *testing.T) {
				s := llmtest.StartServer(t, v.vendor,
					llmtest.Turn{Calls: []llmtest.Call{{ID: "a", Name: "look", Args: `{"n":1}`}, {ID: "b", Name: "save", Args: args}}, Cut: true},
					llmtest.Turn{Calls: []llmtest.Call{{ID: "c", Name: "save", Args: `{"text":"short"}`}}},
					llmtest.Turn{Text: "saved"})
				m, err := v.model(s.URL)
				if err != nil {
					t.Fatal(err)
				}
				var c counted
				res := run(t, agent.Config{Model: m, Tools: []tool.Tool{c.tool("look", tool.ReadOnly, true), c.tool("save", "", false)}}, "hi")
				if got := agent.LastResponse(res.State); got != "saved" {
					t.Errorf("the answer is %q", got)
				}
				if want := []string{`look{"n":1}`, `save{"text":"short"}`}; !slices.Equal(c.calls, want) {
					t.Errorf("calls %q, want %q", c.calls, want)
				}
				bodies := s.RequestBodies()
				if len(bodies) != 3 || !strings.Contains(string(bodies[1]), "a token limit cut off your reply inside them. The tool was not called.") {
					t.Errorf("%d requests, the second is %s", len(bodies), bodies[min(1, len(bodies)-1)])
				}
			})
		}
	}
}
