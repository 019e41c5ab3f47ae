package llmtest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"raddle.dev/llm"
	"raddle.dev/llm/anthropic"
	"raddle.dev/llm/gemini"
	"raddle.dev/llm/openai"
)

// Vertex and Azure refuse other addresses, keys and bodies than theirs, with documents whose cause the wires find.
func TestCloudsRefuse(t *testing.T) {
	start := func(v Vendor) string {
		s := httptest.NewServer(v.NewHandler(func([]byte) (Turn, int) { return Turn{Text: "ok"}, 0 }))
		t.Cleanup(s.Close)
		return s.URL
	}
	onGemini, onAnthropic, onAzure := start(VertexGemini()), start(VertexAnthropic()), start(Azure())
	old := func(r *http.Request) ([]string, error) {
		r.Header.Set("Authorization", "Bearer old-token-0001")
		return []string{"old-token-0001"}, nil
	}
	geminiAt := func(c gemini.Config) (llm.Model, error) { return gemini.New(c) }
	anthropicAt := func(c anthropic.Config) (llm.Model, error) { return anthropic.New(c) }
	azureAt := func(name, key string) (llm.Model, error) {
		return openai.NewResponses(openai.Config{Model: name, Endpoint: llm.Endpoint{BaseURL: "http://example.openai.azure.com/openai/v1", APIKey: key, HTTPClient: throughTo(onAzure, nil)}})
	}
	for _, c := range []struct {
		name   string
		model  func() (llm.Model, error)
		prompt string
		class  llm.Class // "": it is taken
		want   string
	}{
		{name: "Gemini", model: func() (llm.Model, error) {
			return geminiAt(gemini.Config{Model: "gemini-x", Endpoint: llm.Endpoint{BaseURL: onGemini + vertexPath}, Vertex: true, Authorize: authorizeVertex})
		}},
		{name: "Gemini with a token", model: func() (llm.Model, error) {
			return geminiAt(gemini.Config{Model: "gemini-x", Endpoint: llm.Endpoint{BaseURL: onGemini + vertexPath, APIKey: GoogleToken}, Vertex: true})
		}},
		{name: "Gemini with an old token", class: llm.Auth, want: "invalid authentication credentials", model: func() (llm.Model, error) {
			return geminiAt(gemini.Config{Model: "gemini-x", Endpoint: llm.Endpoint{BaseURL: onGemini + vertexPath}, Vertex: true, Authorize: old})
		}},
		{name: "Gemini of another project", class: llm.BadRequest, want: "does not have access", model: func() (llm.Model, error) {
			return geminiAt(gemini.Config{Model: "gemini-x", Endpoint: llm.Endpoint{BaseURL: onGemini + strings.Replace(vertexPath, GoogleProject, "other", 1)}, Vertex: true, Authorize: authorizeVertex})
		}},
		{name: "Anthropic with a token", model: func() (llm.Model, error) {
			return anthropicAt(anthropic.Config{Model: "claude-x@1", Endpoint: llm.Endpoint{BaseURL: onAnthropic + vertexPath + "/", APIKey: GoogleToken}, Vertex: true})
		}},
		{name: "Anthropic's own body", class: llm.BadRequest, want: "model: Extra inputs", model: func() (llm.Model, error) {
			return anthropicAt(anthropic.Config{Model: "claude-x@1", Endpoint: llm.Endpoint{BaseURL: onAnthropic + vertexPath, APIKey: GoogleToken, Body: map[string]any{"model": "x"}}, Vertex: true})
		}},
		{name: "Azure", model: func() (llm.Model, error) { return azureAt(AzureDeployment, AzureKey) }},
		{name: "Azure with another key", class: llm.Auth, want: "invalid subscription key", model: func() (llm.Model, error) { return azureAt(AzureDeployment, "wrong-key-0000001") }},
		{name: "Azure with a model", class: llm.BadRequest, want: "deployment for this resource does not exist", model: func() (llm.Model, error) { return azureAt("gpt-5", AzureKey) }},
		{name: "Azure's filter", class: llm.BadRequest, prompt: AzureFilter, want: "content management policy", model: func() (llm.Model, error) { return azureAt(AzureDeployment, AzureKey) }},
	} {
		m, err := c.model()
		if err != nil {
			t.Fatal(err)
		}
		_, err = llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{llm.User("hi " + c.prompt)}})
		var e *llm.Error
		if c.class == "" && err != nil || c.class != "" && (!errors.As(err, &e) || e.Class != c.class || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s with %q", c.name, err, c.class, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), "old-token") || strings.Contains(err.Error(), "wrong-key")) {
			t.Errorf("%s: the error shows a secret: %v", c.name, err)
		}
	}
	for body, want := range map[string]string{
		`{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"id":"x","name":"f","args":{}}}]}]}`: `Unknown name "id" at 'contents[1].parts[0].function_call'`,
		`{"contents":[{"role":"user","parts":[{"functionResponse":{"id":"x","name":"f","response":{}}}]}]}`:                                 `Unknown name "id" at 'contents[0].parts[0].function_response'`,
	} {
		if err := VertexGemini().Check([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
	if err := VertexAnthropic().Check([]byte(`{"anthropic_version":"2023-06-01","max_tokens":1,"messages":[]}`)); err == nil || !strings.Contains(err.Error(), "anthropic_version") {
		t.Errorf("another version: %v", err)
	}
}
