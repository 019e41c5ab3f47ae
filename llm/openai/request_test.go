package openai

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
	const head = `"model":"gpt-x","stream":true,"stream_options":{"include_usage":true}`
	for _, c := range []struct {
		name string
		r    llm.Request
		want string
	}{
		{"least", llm.Request{Messages: []llm.Message{llm.User("hi")}},
			`{` + head + `,"messages":[{"role":"user","content":"hi"}]}`},
		{"settings", llm.Request{
			System: "Be brief.", Messages: []llm.Message{llm.User("hi")},
			Temperature: ptr(0), TopP: ptr(0.25), MaxTokens: 9, Effort: "low", Stop: []string{"END", "\n\n"}, Schema: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`),
		}, `{` + head + `,"temperature":0,"top_p":0.25,"max_tokens":9,"reasoning_effort":"low","stop":["END","\n\n"],
			"response_format":{"type":"json_schema","json_schema":{"name":"reply","schema":{"type":"object","properties":{"b":{},"a":{}}}}},
			"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}]}`},
		{"tools", llm.Request{
			Messages: []llm.Message{llm.User("hi")},
			Tools:    []llm.ToolSpec{{Name: "f", Description: "does f", Schema: json.RawMessage(`{"type":"object","maximum":9007199254740993}`)}, {Name: "g"}},
		}, `{` + head + `,"messages":[{"role":"user","content":"hi"}],"tools":[
			{"type":"function","function":{"name":"f","description":"does f","parameters":{"type":"object","properties":{},"maximum":9007199254740993}}},
			{"type":"function","function":{"name":"g"}}]}`},
		{"media", llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{
			llm.Text{Text: "look"},
			llm.Image{MIME: "image/png", Data: []byte{1, 2, 3}},
			llm.Image{URL: "https://example.org/a.png"},
			llm.File{Name: "a.pdf", MIME: "application/pdf", Data: []byte("%PDF")},
			llm.File{MIME: "text/csv", Data: []byte("a,b")},
		}}}}, `{` + head + `,"messages":[{"role":"user","content":[
			{"type":"text","text":"look"},
			{"type":"image_url","image_url":{"url":"data:image/png;base64,AQID"}},
			{"type":"image_url","image_url":{"url":"https://example.org/a.png"}},
			{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERg=="}},
			{"type":"file","file":{"file_data":"data:text/csv;base64,YSxi"}}]}]}`},
		{"tool loop", llm.Request{Messages: []llm.Message{
			llm.User("weather?"),
			{Role: llm.RoleAssistant, Parts: []llm.Part{
				llm.Reasoning{Text: "hm", Origin: "openai"},
				llm.Reasoning{Text: "foreign", Origin: "anthropic", Signature: "s"},
				llm.Text{Text: "Let me see."},
				llm.ToolCall{ID: "c1", Name: "f", Args: json.RawMessage(`{"n":9007199254740993}`)},
				llm.ToolCall{ID: "c2", Name: "g"},
			}},
			{Role: llm.RoleTool, Parts: []llm.Part{
				llm.ToolResult{CallID: "c1", Name: "f", Content: []llm.Part{llm.Text{Text: "18"}, llm.Image{URL: "https://example.org/map.png"}}},
				llm.ToolResult{CallID: "c2", Name: "g", Error: true, Content: []llm.Part{llm.Text{Text: "no such city"}}},
			}},
			{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Reasoning{Text: "done", Origin: "openai"}, llm.Text{Text: "18 degrees."}}},
			{Role: llm.RoleAssistant},
			llm.User("thanks"),
		}}, `{` + head + `,"messages":[
			{"role":"user","content":"weather?"},
			{"role":"assistant","content":"Let me see.","reasoning_content":"hm","tool_calls":[
				{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"n\":9007199254740993}"}},
				{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"18"},
			{"role":"tool","tool_call_id":"c2","content":"no such city"},
			{"role":"user","content":[{"type":"text","text":"Attached by the tool:"},{"type":"image_url","image_url":{"url":"https://example.org/map.png"}}]},
			{"role":"assistant","content":"18 degrees."},
			{"role":"assistant","content":""},
			{"role":"user","content":"thanks"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wiretest.StartServer(t, wiretest.StreamHandler(chunks(stop)))
			if _, err := llm.Generate(t.Context(), newModel(t, s.URL), c.r); err != nil {
				t.Fatal(err)
			}
			got := s.Requests()[0]
			wiretest.EqualJSON(t, []byte(c.want), got.Body)
			if got.Method != "POST" || got.Path != "/v1/chat/completions" || got.Header.Get("Authorization") != "Bearer "+wiretest.Key {
				t.Errorf("%s %s with Authorization %q", got.Method, got.Path, got.Header.Get("Authorization"))
			}
		})
	}
}

// TestToolSchemaOrder: the order of properties is part of the request.
func TestToolSchemaOrder(t *testing.T) {
	s := wiretest.StartServer(t, wiretest.StreamHandler(chunks(stop)))
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
	for _, c := range []struct {
		message llm.Message
		want    string
	}{
		{llm.Message{Role: "narrator"}, "unknown role narrator"},
		{llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.File{URL: "https://example.org/a.pdf"}}}, "given by its address"},
		{llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.ToolResult{}}}, "only text, images and files"},
		{llm.Message{Role: llm.RoleTool, Parts: []llm.Part{llm.Text{Text: "x"}}}, "only tool results"},
		{llm.Message{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{Content: []llm.Part{llm.File{URL: "u"}}}}}, "given by its address"},
	} {
		_, err := llm.Generate(t.Context(), newModel(t, "http://127.0.0.1:1"), llm.Request{Messages: []llm.Message{c.message}})
		var e *llm.Error
		if !errors.As(err, &e) || e.Class != llm.BadRequest || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error is %v, want %q", c.message, err, c.want)
		}
	}
}

func TestNew(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "from-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_ORG_ID", "org")
	for _, c := range []struct {
		c    Config
		want string
	}{
		{Config{}, "openai: no model is set"},
		{Config{Model: "m"}, "authentication failed: api.openai.com: no API key: set OPENAI_API_KEY"},
		{Config{Model: "m", Endpoint: llm.Endpoint{KeyName: "K"}}, "authentication failed: api.openai.com: no API key: set K"},
		{Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: "localhost:80"}}, `openai: base URL "localhost:80": it must be an address like https://api.openai.com/v1/`},
		{Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: "ftp://x"}}, `openai: base URL "ftp://x": it must be an address like https://api.openai.com/v1/`},
		{Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: "http://x\x00"}}, "openai: base URL \"http://x\\x00\": it must be an address like https://api.openai.com/v1/"},
	} {
		if _, err := New(c.c); err == nil || err.Error() != c.want {
			t.Errorf("New(%+v): %v, want %s", c.c, err, c.want)
		}
	}
	if m, err := New(Config{Model: "m", Endpoint: llm.Endpoint{APIKey: "k"}}); err != nil || !m.server.NewLimit {
		t.Errorf("with a key: %v", err)
	}

	s := wiretest.StartServer(t, wiretest.StreamHandler(chunks(stop)))
	m, err := New(Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: s.URL, Headers: map[string]string{"X-Team": "blue"}}})
	if err != nil {
		t.Fatal(err)
	}
	m.server.NewLimit = true
	if _, err := llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{llm.User("hi")}, MaxTokens: 5}); err != nil {
		t.Fatal(err)
	}
	got := s.Requests()[0]
	if h := got.Header; h.Get("Authorization") != "" || h.Get("OpenAI-Organization") != "" || h.Get("X-Team") != "blue" || got.Path != "/chat/completions" {
		t.Errorf("sent %s with %v", got.Path, h)
	}
	if !strings.Contains(string(got.Body), `"max_completion_tokens":5`) {
		t.Errorf("sent %s", got.Body)
	}
}

// Each server gets an effort under the name that it knows.
func TestEffortForms(t *testing.T) {
	for _, test := range []struct{ profile, effort, want string }{
		{"", "high", `{"reasoning_effort":"high"}`},
		{"", "", `{}`},
		{"groq", "none", `{"reasoning_effort":"none"}`},
		{"deepseek", "none", `{"thinking":{"type":"disabled"}}`},
		{"deepseek", "max", `{"reasoning_effort":"max"}`},
		{"moonshot", "none", `{"thinking":{"type":"disabled"}}`},
		{"zai", "high", `{"reasoning_effort":"high"}`},
		{"qwen", "none", `{"enable_thinking":false}`},
		{"qwen", "0", `{"enable_thinking":false}`},
		{"qwen", "4096", `{"enable_thinking":true,"thinking_budget":4096}`},
		{"qwen", "xhigh", `{"reasoning_effort":"xhigh"}`},
		{"openrouter", "none", `{"reasoning":{"effort":"none"}}`},
		{"openrouter", "low", `{"reasoning":{"effort":"low"}}`},
		{"openrouter", "2000", `{"reasoning":{"max_tokens":2000}}`},
	} {
		server, _ := FindProfile(test.profile)
		q, err := (&Model{name: "x", server: server}).buildRequest(llm.Request{Effort: test.effort})
		if err != nil {
			t.Fatal(err)
		}
		q.Model, q.Messages, q.StreamOptions, q.Stream = "", nil, nil, false
		body, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.NewReplacer(`"model":"",`, "", `"messages":null,`, "", `,"messages":null`, "", `"stream":false,`, "", `,"stream":false`, "", `"stream":false`, "", `"messages":null`, "").Replace(string(body))
		if got != test.want {
			t.Errorf("%s, %q: %s, want %s", test.profile, test.effort, got, test.want)
		}
	}
}
