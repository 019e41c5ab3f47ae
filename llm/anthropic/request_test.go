package anthropic

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
	const (
		head = `"model":"claude-x","stream":true,"max_tokens":32000`
		hi   = `"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`
		mark = `"cache_control":{"type":"ephemeral"}`
	)
	user := []llm.Message{llm.User("hi")}
	for _, c := range []struct {
		name string
		r    llm.Request
		want string
	}{
		{"least", llm.Request{Messages: user}, `{` + head + `,` + hi + `}`},
		{"settings", llm.Request{
			System: "Be brief.", Messages: user, Temperature: ptr(0), TopP: ptr(0.25), MaxTokens: 9, Stop: []string{"END"}, Schema: json.RawMessage(`{"type":"object"}`),
		}, `{"model":"claude-x","stream":true,"max_tokens":9,"temperature":0,"top_p":0.25,"stop_sequences":["END"],"system":[{"type":"text","text":"Be brief."}],
			"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},` + hi + `}`},
		{"effort", llm.Request{Messages: user, Effort: "high"},
			`{` + head + `,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"},` + hi + `}`},
		{"effort as a budget", llm.Request{Messages: user, Effort: "4096"},
			`{"model":"claude-x","stream":true,"max_tokens":36096,"thinking":{"type":"enabled","budget_tokens":4096},` + hi + `}`},
		{"no effort", llm.Request{Messages: user, Effort: "none"}, `{` + head + `,"thinking":{"type":"disabled"},` + hi + `}`},
		{"tools", llm.Request{
			Messages: user,
			Tools:    []llm.ToolSpec{{Name: "f", Description: "does f", Schema: json.RawMessage(`{"type":"object","maximum":9007199254740993}`)}, {Name: "g"}},
		}, `{` + head + `,"tools":[
			{"name":"f","description":"does f","input_schema":{"type":"object","properties":{},"maximum":9007199254740993}},
			{"name":"g","input_schema":{"type":"object"},` + mark + `}],"messages":[{"role":"user","content":[{"type":"text","text":"hi",` + mark + `}]}]}`},
		{"media", llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{
			llm.Text{Text: "look"},
			llm.Text{},
			llm.Image{MIME: "image/png", Data: []byte{1, 2, 3}},
			llm.Image{URL: "https://example.org/a.png"},
			llm.File{Name: "a.pdf", MIME: "application/pdf", Data: []byte("%PDF")},
			llm.File{MIME: "text/csv", Data: []byte("a,b")},
			llm.File{URL: "https://example.org/a.pdf"},
		}}}}, `{` + head + `,"messages":[{"role":"user","content":[
			{"type":"text","text":"look"},
			{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQID"}},
			{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}},
			{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}},
			{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a,b"}},
			{"type":"document","source":{"type":"url","url":"https://example.org/a.pdf"}}]}]}`},
		{"tool loop", llm.Request{Messages: []llm.Message{
			llm.User("weather?"),
			{Role: llm.RoleAssistant, Parts: []llm.Part{
				llm.Reasoning{Text: "hm", Signature: "seal", Origin: "anthropic"},
				llm.Reasoning{Signature: "hidden", Redacted: true, Origin: "anthropic"},
				llm.Reasoning{Text: "unsealed", Origin: "anthropic"},
				llm.Reasoning{Text: "foreign", Signature: "s", Origin: "gemini"},
				llm.Text{},
				llm.Text{Text: "Let me see."},
				llm.ToolCall{ID: "c1", Name: "f", Args: json.RawMessage(`{"n":9007199254740993}`)},
				llm.ToolCall{ID: "c2", Name: "g"},
				llm.ToolCall{ID: "c3", Name: "g"},
			}},
			{Role: llm.RoleTool, Parts: []llm.Part{
				llm.ToolResult{CallID: "c1", Name: "f", Content: []llm.Part{llm.Text{Text: "18"}, llm.Image{URL: "https://example.org/map.png"},
					llm.File{MIME: "text/plain", Data: []byte("x")}}},
				llm.ToolResult{CallID: "c2", Name: "g", Error: true, Content: []llm.Part{llm.Text{Text: "no such city"}}},
				llm.ToolResult{CallID: "c3", Name: "g", Content: []llm.Part{llm.Text{}}},
			}},
			{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{}}},
			llm.User("thanks"),
		}}, `{` + head + `,"messages":[
			{"role":"user","content":[{"type":"text","text":"weather?",` + mark + `}]},
			{"role":"assistant","content":[
				{"type":"thinking","thinking":"hm","signature":"seal"},
				{"type":"redacted_thinking","data":"hidden"},
				{"type":"text","text":"Let me see."},
				{"type":"tool_use","id":"c1","name":"f","input":{"n":9007199254740993}},
				{"type":"tool_use","id":"c2","name":"g","input":{}},
				{"type":"tool_use","id":"c3","name":"g","input":{}}]},
			{"role":"user","content":[
				{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"18"},{"type":"image","source":{"type":"url","url":"https://example.org/map.png"}},
					{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}]},
				{"type":"tool_result","tool_use_id":"c2","is_error":true,"content":[{"type":"text","text":"no such city"}]},
				{"type":"tool_result","tool_use_id":"c3"},
				{"type":"text","text":"thanks",` + mark + `}]}]}`},
		{"only a system prompt", llm.Request{System: "Write a haiku.", Messages: []llm.Message{llm.User(" \n")}},
			`{` + head + `,"messages":[{"role":"user","content":[{"type":"text","text":"Write a haiku."}]}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wiretest.StartServer(t, wiretest.StreamHandler(events(start, end("end_turn"), stopped)))
			if _, err := llm.Generate(t.Context(), newModel(t, s.URL), c.r); err != nil {
				t.Fatal(err)
			}
			got := s.Requests()[0]
			wiretest.EqualJSON(t, []byte(c.want), got.Body)
			if got.Method != "POST" || got.Path != "/v1/messages" || got.Header.Get("X-Api-Key") != wiretest.Key {
				t.Errorf("%s %s with the key %q", got.Method, got.Path, got.Header.Get("X-Api-Key"))
			}
		})
	}
}

// TestCacheMarks: what the next request of a conversation repeats is marked, and at most four blocks are.
func TestCacheMarks(t *testing.T) {
	answer := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "x"}}}
	call := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.ToolCall{ID: "1", Name: "f"}}}
	result := llm.Message{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "1", Content: []llm.Part{llm.Text{Text: "r"}}}}}
	tools := []llm.ToolSpec{{Name: "f"}, {Name: "g"}}
	for _, c := range []struct {
		name string
		r    llm.Request
		want string // the marked blocks
	}{
		{"a single question", llm.Request{System: "s", Messages: []llm.Message{llm.User("a")}}, ""},
		{"with tools", llm.Request{System: "s", Tools: tools, Messages: []llm.Message{llm.User("a")}}, "system a"},
		{"without a system prompt", llm.Request{Tools: tools, Messages: []llm.Message{llm.User("a")}}, "tool g a"},
		{"a conversation", llm.Request{System: "s", Messages: []llm.Message{llm.User("a"), answer, llm.User("b"), answer, llm.User("c")}}, "system b c"},
		{"results", llm.Request{Tools: tools, Messages: []llm.Message{llm.User("a"), call, result}}, "tool g a result 1"},
		{"ends with the model", llm.Request{Tools: tools, Messages: []llm.Message{llm.User("a"), answer}}, "tool g a"},
		{"system prompt only", llm.Request{System: "s", Tools: tools}, "tool g s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wiretest.StartServer(t, wiretest.StreamHandler(events(start, end("end_turn"), stopped)))
			if _, err := llm.Generate(t.Context(), newModel(t, s.URL), c.r); err != nil {
				t.Fatal(err)
			}
			var got []string
			var body request
			if err := json.Unmarshal(s.Requests()[0].Body, &body); err != nil {
				t.Fatal(err)
			}
			for _, b := range body.System {
				if b.CacheControl != nil {
					got = append(got, "system")
				}
			}
			for _, tool := range body.Tools {
				if tool.CacheControl != nil {
					got = append(got, "tool "+tool.Name)
				}
			}
			for _, m := range body.Messages {
				for _, b := range m.Content {
					if b.CacheControl != nil && b.Type == "tool_result" {
						got = append(got, "result "+b.ToolUseID)
					} else if b.CacheControl != nil {
						got = append(got, b.Text)
					}
				}
			}
			if marked := strings.Join(got, " "); marked != c.want {
				t.Errorf("marked are %q, want %q", marked, c.want)
			}
		})
	}
}

// TestSchemaOrder: the order of properties is part of the request.
func TestSchemaOrder(t *testing.T) {
	s := wiretest.StartServer(t, wiretest.StreamHandler(events(start, end("end_turn"), stopped)))
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
		{llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.File{MIME: "audio/mp3", Data: []byte{1}}}}, "file of the type audio/mp3"},
		{llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.ToolCall{}}}, "is not allowed there"},
		{llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Reasoning{}}}, "is not allowed there"},
		{llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.ToolResult{}}}, "is not allowed there"},
		{llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Image{}}}, "is not allowed there"},
		{llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.File{}}}, "is not allowed there"},
		{llm.Message{Role: llm.RoleTool, Parts: []llm.Part{llm.Text{Text: "x"}}}, "is not allowed there"},
		{llm.Message{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{Content: []llm.Part{llm.ToolCall{}}}}}, "only text, images and files"},
		{llm.Message{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{Content: []llm.Part{llm.File{Data: []byte{1}}}}}}, "PDF and text"},
	} {
		_, err := llm.Generate(t.Context(), newModel(t, "http://127.0.0.1:1"), llm.Request{Messages: []llm.Message{called, c.message}})
		var e *llm.Error
		if !errors.As(err, &e) || e.Class != llm.BadRequest || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error is %v, want %q", c.message, err, c.want)
		}
	}
}

func TestNew(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "from-the-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	for _, c := range []struct {
		c    Config
		want string
	}{
		{Config{}, "anthropic: no model is set"},
		{Config{Model: "m"}, "authentication failed: api.anthropic.com: no API key: set ANTHROPIC_API_KEY"},
		{Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: "x"}}, `anthropic: base URL "x": it must be an address like https://api.anthropic.com/`},
	} {
		if _, err := New(c.c); err == nil || err.Error() != c.want {
			t.Errorf("New(%+v): %v, want %s", c.c, err, c.want)
		}
	}
	s := wiretest.StartServer(t, wiretest.StreamHandler(events(start, end("end_turn"), stopped)))
	for _, base := range []string{"", "/", "/v1", "/v1/"} {
		m, err := New(Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: s.URL + base, Headers: map[string]string{"anthropic-beta": "x"}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{llm.User("hi")}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, got := range s.Requests() {
		if h := got.Header; len(h.Values("X-Api-Key"))+len(h.Values("Authorization")) != 0 || h.Get("Anthropic-Beta") != "x" || got.Path != "/v1/messages" {
			t.Errorf("sent %s with %v", got.Path, h)
		}
	}
}
