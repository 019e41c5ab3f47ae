package gemini

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wiretest"
)

func ptr(f float64) *float64 { return &f }

func TestRequests(t *testing.T) {
	const hi = `"contents":[{"role":"user","parts":[{"text":"hi"}]}]`
	user := []llm.Message{llm.User("hi")}
	for _, c := range []struct {
		name string
		r    llm.Request
		want string
	}{
		{"least", llm.Request{Messages: user}, `{"generationConfig":{},` + hi + `}`},
		{"settings", llm.Request{
			System: "Be brief.", Messages: user, Temperature: ptr(0), TopP: ptr(0.1), MaxTokens: 9, Stop: []string{"END"}, Schema: json.RawMessage(`{"type":"object","maximum":9007199254740993}`),
		}, `{"systemInstruction":{"role":"user","parts":[{"text":"Be brief."}]},"generationConfig":{"temperature":0,"topP":0.1,"maxOutputTokens":9,"stopSequences":["END"],
			"responseMimeType":"application/json","responseJsonSchema":{"type":"object","maximum":9007199254740993}},` + hi + `}`},
		{"effort", llm.Request{Messages: user, Effort: "high"},
			`{"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}},` + hi + `}`},
		{"effort as a budget", llm.Request{Messages: user, Effort: "4096"},
			`{"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":4096}},` + hi + `}`},
		{"no effort", llm.Request{Messages: user, Effort: "none"}, `{"generationConfig":{"thinkingConfig":{"thinkingBudget":0}},` + hi + `}`},
		{"tools", llm.Request{
			Messages: user,
			Tools:    []llm.ToolSpec{{Name: "f", Description: "does f", Schema: json.RawMessage(`{"type":"object","maximum":9007199254740993}`)}, {Name: "g"}},
		}, `{"generationConfig":{},"tools":[{"functionDeclarations":[
			{"name":"f","description":"does f","parametersJsonSchema":{"type":"object","maximum":9007199254740993}},{"name":"g"}]}],` + hi + `}`},
		{"media", llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{
			llm.Text{Text: "look"},
			llm.Text{},
			llm.Image{MIME: "image/png", Data: []byte{1, 2, 3}},
			llm.Image{MIME: "image/png", URL: "https://example.org/a.png"},
			llm.File{Name: "a.pdf", MIME: "application/pdf", Data: []byte("%PDF")},
		}}}}, `{"generationConfig":{},"contents":[{"role":"user","parts":[
			{"text":"look"},
			{"inlineData":{"mimeType":"image/png","data":"AQID"}},
			{"fileData":{"mimeType":"image/png","fileUri":"https://example.org/a.png"}},
			{"inlineData":{"mimeType":"application/pdf","data":"JVBERg=="}}]}]}`},
		{"tool loop", llm.Request{Messages: []llm.Message{
			llm.User("weather?"),
			{Role: llm.RoleAssistant, Parts: []llm.Part{
				llm.Reasoning{Text: "hm", Origin: "gemini"},
				llm.Text{Text: "Let me see."},
				llm.ToolCall{ID: "c1", Name: "f", Args: json.RawMessage(`{"n":9007199254740993}`), Signature: "c2VhbA==", Origin: "gemini"},
				llm.ToolCall{ID: "c2", Name: "g", Signature: "c2VhbA==", Origin: "other"},
			}},
			{Role: llm.RoleTool, Parts: []llm.Part{
				llm.ToolResult{CallID: "c1", Name: "f", Content: []llm.Part{llm.Text{Text: "18"}, llm.Image{MIME: "image/png", Data: []byte{1}}, llm.File{MIME: "text/csv", Data: []byte("a")}}},
				llm.ToolResult{CallID: "c2", Name: "g", Error: true, Content: []llm.Part{llm.Text{Text: "no such city"}}},
			}},
			{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{}}},
			llm.User("thanks"),
		}}, `{"generationConfig":{},"contents":[
			{"role":"user","parts":[{"text":"weather?"}]},
			{"role":"model","parts":[
				{"text":"Let me see."},
				{"functionCall":{"id":"c1","name":"f","args":{"n":9007199254740993}},"thoughtSignature":"c2VhbA=="},
				{"functionCall":{"id":"c2","name":"g","args":{}}}]},
			{"role":"user","parts":[
				{"functionResponse":{"id":"c1","name":"f","response":{"output":"18"}}},
				{"functionResponse":{"id":"c2","name":"g","response":{"error":"no such city"}}},
				{"text":"Attached by the tool:"},{"inlineData":{"mimeType":"image/png","data":"AQ=="}},{"inlineData":{"mimeType":"text/csv","data":"YQ=="}},
				{"text":"thanks"}]}]}`},
		{"sealed text", llm.Request{Messages: []llm.Message{
			llm.User("hi"),
			{Role: llm.RoleAssistant, Parts: []llm.Part{
				llm.Reasoning{Signature: "c2VhbA==", Origin: "gemini"}, // there is no text before it
				llm.Text{Text: "a"}, llm.Reasoning{Signature: "c2VhbA==", Origin: "gemini"},
				llm.Text{Text: "b"}, llm.Reasoning{Signature: "c2VhbA==", Origin: "anthropic"},
				llm.Text{Text: "c"}, llm.Reasoning{Signature: "no base64", Origin: "gemini"},
				llm.Text{}, llm.Reasoning{Signature: "c2VhbA==", Origin: "gemini"},
			}},
			llm.User("go on"),
		}}, `{"generationConfig":{},"contents":[
			{"role":"user","parts":[{"text":"hi"}]},
			{"role":"model","parts":[{"text":"a","thoughtSignature":"c2VhbA=="},{"text":"b"},{"text":"c"}]},
			{"role":"user","parts":[{"text":"go on"}]}]}`},
		{"only a system prompt", llm.Request{System: "Write a haiku.", Messages: []llm.Message{llm.User("")}},
			`{"generationConfig":{},"contents":[{"role":"user","parts":[{"text":"Write a haiku."}]}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wiretest.StartServer(t, wiretest.StreamHandler(responses(stop)))
			if _, err := llm.Generate(t.Context(), newModel(t, s.URL), c.r); err != nil {
				t.Fatal(err)
			}
			got := s.Requests()[0]
			wiretest.EqualJSON(t, []byte(c.want), got.Body)
			if got.Method != "POST" || got.Path != "/v1beta/models/gemini-x:streamGenerateContent?alt=sse" || got.Header.Get("X-Goog-Api-Key") != wiretest.Key {
				t.Errorf("%s %s with the key %q", got.Method, got.Path, got.Header.Get("X-Goog-Api-Key"))
			}
		})
	}
}

// TestSchemaOrder: the order of properties is part of the request.
func TestSchemaOrder(t *testing.T) {
	s := wiretest.StartServer(t, wiretest.StreamHandler(responses(stop)))
	const schema = `{"type":"object","properties":{"zebra":{},"apple":{}}}`
	if _, err := llm.Generate(t.Context(), newModel(t, s.URL), llm.Request{
		Messages: []llm.Message{llm.User("hi")}, Tools: []llm.ToolSpec{{Name: "f", Schema: json.RawMessage(schema)}}, Schema: json.RawMessage(schema),
	}); err != nil {
		t.Fatal(err)
	}
	if got := string(s.Requests()[0].Body); strings.Count(got, schema) != 2 {
		t.Errorf("the schema has changed: %s", got)
	}
}

func TestUnsupported(t *testing.T) {
	called := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.ToolCall{}}} // what the results in the cases belong to
	for _, c := range []struct {
		message llm.Message
		want    string
	}{
		{llm.Message{Role: "narrator"}, "unknown role narrator"},
		{llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.ToolCall{}}}, "is not allowed there"},
		{llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.ToolResult{}}}, "is not allowed there"},
		{llm.Message{Role: llm.RoleTool, Parts: []llm.Part{llm.Text{Text: "x"}}}, "is not allowed there"},
		{llm.Message{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{Content: []llm.Part{llm.ToolCall{}}}}}, "only text, images and files"},
	} {
		_, err := llm.Generate(t.Context(), newModel(t, "http://127.0.0.1:1"), llm.Request{Messages: []llm.Message{called, c.message}})
		var e *llm.Error
		if !errors.As(err, &e) || e.Class != llm.BadRequest || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error is %v, want %q", c.message, err, c.want)
		}
	}
}

func TestNew(t *testing.T) {
	t.Setenv("GOOGLE_API_KEY", "from-the-environment")
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	t.Setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
	for _, c := range []struct {
		c    Config
		want string
	}{
		{Config{}, "gemini: no model is set"},
		{Config{Model: "m"}, "authentication failed: generativelanguage.googleapis.com: no API key: set GEMINI_API_KEY"},
		{Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: "x"}}, `gemini: base URL "x": it must be an address like https://generativelanguage.googleapis.com/`},
	} {
		if _, err := New(c.c); err == nil || err.Error() != c.want {
			t.Errorf("New(%+v): %v, want %s", c.c, err, c.want)
		}
	}
	for base, want := range map[string]string{
		"": "/v1beta/models/m:", "/": "/v1beta/models/m:", "/v1beta": "/v1beta/models/m:", "/v1/": "/v1/models/m:", "/proxy": "/proxy/v1beta/models/m:", "/proxy/v1": "/proxy/v1/models/m:",
	} {
		s := wiretest.StartServer(t, wiretest.StreamHandler(responses(stop)))
		m, err := New(Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: s.URL + base, Headers: map[string]string{"X-Team": "blue"}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{llm.User("hi")}}); err != nil {
			t.Fatal(err)
		}
		got := s.Requests()[0]
		if h := got.Header; h.Get("X-Goog-Api-Key") != "" || h.Get("X-Team") != "blue" || !strings.HasPrefix(got.Path, want) {
			t.Errorf("base %q: sent %s with %v", base, got.Path, h)
		}
	}
}

func TestModelPath(t *testing.T) {
	for name, want := range map[string]string{
		"gemini-x": "models/gemini-x", "models/gemini-x": "models/gemini-x", "tunedModels/mine": "tunedModels/mine", "a?b c/d": "models/a%3Fb%20c/d",
	} {
		s := wiretest.StartServer(t, wiretest.StreamHandler(responses(stop)))
		m, err := New(Config{Model: name, Endpoint: llm.Endpoint{BaseURL: s.URL}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{llm.User("hi")}}); err != nil {
			t.Fatal(err)
		}
		if got := s.Requests()[0].Path; got != "/v1beta/"+want+":streamGenerateContent?alt=sse" {
			t.Errorf("model %q is at %s", name, got)
		}
	}
}
