package sdkcheck

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"google.golang.org/genai"

	"raddle.dev/llm"
	wireanthropic "raddle.dev/llm/anthropic"
	wiregemini "raddle.dev/llm/gemini"
	"raddle.dev/llm/internal/wiretest"
	wireopenai "raddle.dev/llm/openai"
)

// body returns what a wire sends for r. The server's answer is of no vendor's shape, so that the call fails.
func body(t *testing.T, model func(base string) (llm.Model, error), r llm.Request) []byte {
	t.Helper()
	s := wiretest.StartServer(t, wiretest.StreamHandler("data: {}\n\n"))
	m, err := model(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := llm.Generate(t.Context(), m, r); err == nil {
		t.Fatal("the call has not failed")
	}
	sent := s.Requests()
	if len(sent) != 1 {
		t.Fatalf("%d requests were sent", len(sent))
	}
	return sent[0].Body
}

// sameAgain checks that params keeps all that data holds: the libraries drop what their types do not know.
func sameAgain(t *testing.T, data []byte, params any, without ...string) {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return slices.Contains(without, name) })
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, params); err != nil {
		t.Fatalf("the library does not read the request: %v\n%s", err, data)
	}
	again, err := json.Marshal(params)
	if err != nil {
		t.Fatalf("the library does not write the request: %v\n%s", err, data)
	}
	wiretest.EqualJSON(t, data, again)
}

func TestOpenAIRequests(t *testing.T) {
	for name, r := range sampleRequests() {
		t.Run(name, func(t *testing.T) {
			data := body(t, func(base string) (llm.Model, error) {
				return wireopenai.New(wireopenai.Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: base}})
			}, r)
			sameAgain(t, data, new(openai.ChatCompletionNewParams), "stream") // the library adds "stream" when it sends
		})
	}
}

func TestAnthropicRequests(t *testing.T) {
	for name, r := range sampleRequests() {
		t.Run(name, func(t *testing.T) {
			data := body(t, func(base string) (llm.Model, error) {
				return wireanthropic.New(wireanthropic.Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: base}})
			}, r)
			sameAgain(t, data, new(anthropic.MessageNewParams), "stream")
		})
	}
}

func TestGeminiRequests(t *testing.T) {
	for name, r := range sampleRequests() {
		t.Run(name, func(t *testing.T) {
			data := body(t, func(base string) (llm.Model, error) {
				return wiregemini.New(wiregemini.Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: base}})
			}, r)
			var request struct {
				Contents          []*genai.Content        `json:"contents"`
				SystemInstruction *genai.Content          `json:"systemInstruction"`
				Tools             []*genai.Tool           `json:"tools"`
				GenerationConfig  *genai.GenerationConfig `json:"generationConfig"`
			}
			decoder := json.NewDecoder(bytes.NewReader(data))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&request); err != nil {
				t.Fatalf("the library does not know the request: %v\n%s", err, data)
			}
		})
	}
}
