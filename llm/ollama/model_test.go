package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wiretest"
)

const done = `{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":2}` + "\n"

// serve starts a server whose model can do limit tokens, and that answers a chat with lines.
func serve(t *testing.T, limit int, lines string) *wiretest.Server {
	t.Helper()
	return wiretest.StartServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/show" {
			fmt.Fprintf(w, `{"model_info":{"general.architecture":"llama","llama.context_length":%d,"llama.block_count":3}}`, limit)
			return
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		fmt.Fprint(w, lines)
	})
}

func newModel(t *testing.T, c Config) *Model {
	t.Helper()
	c.Model = "m"
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The window is what the client sets, or what the model can do, at most the default; the server is asked for it once.
func TestWindow(t *testing.T) {
	for _, test := range []struct {
		limit, context, want int
		paths                string
	}{
		{8192, 0, 8192, "/api/show /api/chat /api/chat"},
		{131072, 0, DefaultContext, "/api/show /api/chat /api/chat"},
		{131072, 65536, 65536, "/api/chat /api/chat"},
		{0, 0, DefaultContext, "/api/show /api/chat /api/chat"},
	} {
		for _, end := range []string{"", "/", "/v1", "/v1/"} {
			s := serve(t, test.limit, done)
			m := newModel(t, Config{Endpoint: llm.Endpoint{BaseURL: s.URL + end, APIKey: "secret"}, Context: test.context})
			for range 2 {
				if _, err := llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{llm.User("hi")}}); err != nil && !strings.Contains(err.Error(), "empty") {
					t.Fatal(err)
				}
			}
			var paths []string
			for _, r := range s.Requests() {
				paths = append(paths, r.Path)
				if r.Header.Get("Authorization") != "Bearer secret" {
					t.Errorf("%s: the key is not sent", r.Path)
				}
				if r.Path != "/api/chat" {
					continue
				}
				wiretest.EqualJSON(t, fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":"hi"}],"options":{"num_ctx":%d},"truncate":false,"shift":false,"stream":true}`, test.want), r.Body)
			}
			if got := strings.Join(paths, " "); got != test.paths {
				t.Errorf("%d tokens at %q: requests to %s, want %s", test.limit, end, got, test.paths)
			}
		}
	}
}

func TestRequest(t *testing.T) {
	m := newModel(t, Config{})
	temperature := 0.5
	q, err := m.buildRequest(llm.Request{
		System: "Be brief.", Temperature: &temperature, MaxTokens: 9, Stop: []string{"END"}, Effort: "minimal",
		Tools:  []llm.ToolSpec{{Name: "now"}, {Name: "find", Description: "Finds.", Schema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`)}},
		Schema: json.RawMessage(`{"type":"object"}`),
		Messages: []llm.Message{
			{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "a"}, llm.Image{MIME: "image/png", Data: []byte("png")}, llm.Text{Text: "b"}}},
			{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Reasoning{Text: "mine", Origin: m.origin}, llm.Reasoning{Text: "foreign", Origin: "chat@x"}, llm.Text{Text: "c"}, llm.ToolCall{ID: "1", Name: "now", Args: json.RawMessage(`{}`)}, llm.ToolCall{ID: "2", Name: "find", Args: json.RawMessage(`{"q":12345678901234567890}`)}}},
			{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "1", Name: "now", Content: []llm.Part{llm.Text{Text: "noon"}, llm.Image{MIME: "image/png", Data: []byte("clock")}}}, llm.ToolResult{CallID: "2", Name: "find", Content: []llm.Part{llm.Text{Text: "no"}}, Error: true}}},
		},
	}, 4096)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	wiretest.EqualJSON(t, []byte(`{"model":"m","think":"low","truncate":false,"shift":false,"stream":true,"options":{"num_ctx":4096,"temperature":0.5,"num_predict":9,"stop":["END"]},
		"tools":[{"type":"function","function":{"name":"now","description":"","parameters":{"type":"object","properties":{}}}},{"type":"function","function":{"name":"find","description":"Finds.","parameters":{"type":"object","properties":{"q":{"type":"string"}}}}}],
		"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"a\n\nb","images":["cG5n"]},
		{"role":"assistant","content":"c","thinking":"mine","tool_calls":[{"id":"1","function":{"index":0,"name":"now","arguments":{}}},{"id":"2","function":{"index":1,"name":"find","arguments":{"q":12345678901234567890}}}]},
		{"role":"tool","content":"noon","tool_name":"now","tool_call_id":"1"},{"role":"tool","content":"Error: no","tool_name":"find","tool_call_id":"2"},{"role":"user","content":"Attached by the tool:","images":["Y2xvY2s="]}]}`), body)
	q, err = m.buildRequest(llm.Request{Schema: json.RawMessage(`{"type":"object"}`), Effort: "none"}, 4096)
	if err != nil || string(q.Format) != `{"type":"object"}` || q.Think != false {
		t.Errorf("%+v, %v", q, err)
	}
}

// What the wire cannot carry is refused before anything is sent.
func TestRefusesBeforeSending(t *testing.T) {
	s := serve(t, 8192, done)
	m := newModel(t, Config{Endpoint: llm.Endpoint{BaseURL: s.URL}, Context: 1})
	for name, part := range map[string]llm.Part{"a file": llm.File{Name: "a.pdf", MIME: "application/pdf", Data: []byte("%PDF")}, "an address": llm.Image{MIME: "image/png", URL: "https://x/y.png"}} {
		_, err := llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{part}}}})
		var e *llm.Error
		if !errors.As(err, &e) || e.Class != llm.BadRequest || len(s.Requests()) != 0 {
			t.Errorf("%s: %v, %d requests", name, err, len(s.Requests()))
		}
	}
}

func TestReplies(t *testing.T) {
	s := serve(t, 8192, `{"model":"m:8b","message":{"role":"assistant","content":"","thinking":"Hm"},"done":false}

{"message":{"role":"assistant","content":"","thinking":"m."},"done":false,"unknown":1}
{"message":{"role":"assistant","content":"It"},"done":false}
{"message":{"role":"assistant","content":" is.","tool_calls":[{"id":"x","function":{"name":"a","arguments":{"n":12345678901234567890}}},{"function":{"name":"b","arguments":null}}]},"done":false}
`+done)
	reply, err := llm.Generate(t.Context(), newModel(t, Config{Endpoint: llm.Endpoint{BaseURL: s.URL}}), llm.Request{Messages: []llm.Message{llm.User("hi")}})
	if err != nil {
		t.Fatal(err)
	}
	calls := reply.Message.ToolCalls()
	if reply.Text() != "It is." || reply.Stop != llm.StopTools || reply.Usage != (llm.Usage{Input: 7, Output: 2}) || reply.Model != "m" || len(calls) != 2 {
		t.Fatalf("%+v", reply)
	}
	if calls[0].ID != "x" || string(calls[0].Args) != `{"n":12345678901234567890}` || calls[1].ID != "call_1_1" || string(calls[1].Args) != `{}` {
		t.Errorf("%+v", calls)
	}
	if thought, is := reply.Message.Parts[0].(llm.Reasoning); !is || thought.Text != "Hmm." || !strings.HasPrefix(thought.Origin, "ollama@127.0.0.1:") {
		t.Errorf("%+v", reply.Message.Parts[0])
	}
}

func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		answer string
		class  llm.Class
		want   string
	}{
		"too long":            {400, `{"error":"the input length exceeds the context length"}`, llm.ContextLength, "the window is 8192 tokens; set context for this client"},
		"too long, runner":    {500, `{"error":"request (9000 tokens) exceeds the available context size (8192 tokens)"}`, llm.ContextLength, "set context"},
		"no thoughts":         {400, `{"error":"\"m\" does not support thinking"}`, llm.BadRequest, `"m" does not support thinking`},
		"no such model":       {404, `{"error":"model 'm' not found"}`, llm.BadRequest, "check the name of the model"},
		"broken inside":       {200, `{"message":{"content":"It"},"done":false}` + "\n" + `{"error":"llama runner process has terminated"}` + "\n", llm.Server, "runner process has terminated"},
		"cut":                 {200, `{"message":{"content":"It"},"done":false}` + "\n" + `{"message":{"content":" i`, llm.Network, ""},
		"ended early":         {200, `{"message":{"content":"It"},"done":false}` + "\n", llm.Network, ""},
		"a line of something": {200, "{\"message\":{\"content\":\"It\"},\"done\":false}\nnonsense\n", llm.Server, "not JSON"},
		"nothing":             {200, "", llm.Network, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := wiretest.StartServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/show" {
					fmt.Fprint(w, `{"model_info":{"general.architecture":"a","a.context_length":8192}}`)
					return
				}
				if test.status == 200 {
					w.Header().Set("Content-Type", "application/x-ndjson")
				}
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.answer)
			})
			_, err := llm.Generate(t.Context(), newModel(t, Config{Endpoint: llm.Endpoint{BaseURL: s.URL}}), llm.Request{Messages: []llm.Message{llm.User("hi")}})
			var e *llm.Error
			if !errors.As(err, &e) || e.Class != test.class || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v (%+v), want %s with %q", err, e, test.class, test.want)
			}
		})
	}
	s := wiretest.StartServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error":"model 'm' not found"}`)
	})
	if _, err := llm.Generate(t.Context(), newModel(t, Config{Endpoint: llm.Endpoint{BaseURL: s.URL}}), llm.Request{Messages: []llm.Message{llm.User("hi")}}); err == nil || !strings.Contains(err.Error(), "model 'm' not found") {
		t.Errorf("a model that is not there: %v", err)
	}
}

// A server without descriptions of models is one with the default window.
func TestNoDescription(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusOK} {
		s := wiretest.StartServer(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/show" {
				w.WriteHeader(status)
				fmt.Fprint(w, "404 page not found")
				return
			}
			w.Header().Set("Content-Type", "application/x-ndjson")
			fmt.Fprint(w, `{"message":{"content":"Hi"},"done":false}`+"\n"+done)
		})
		reply, err := llm.Generate(t.Context(), newModel(t, Config{Endpoint: llm.Endpoint{BaseURL: s.URL}}), llm.Request{Messages: []llm.Message{llm.User("hi")}})
		if err != nil || reply.Text() != "Hi" || !strings.Contains(string(s.Requests()[1].Body), fmt.Sprintf(`"num_ctx":%d`, DefaultContext)) {
			t.Errorf("%d: %q, %v", status, reply.Text(), err)
		}
	}
}

// A call that is cancelled does not wait for another one that asks the server what the model can do.
func TestCancelledWhileAnotherAsks(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	s := wiretest.StartServer(t, func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-answer
	})
	m := newModel(t, Config{Endpoint: llm.Endpoint{BaseURL: s.URL}})
	first := make(chan struct{})
	go func() {
		defer close(first)
		_, _ = m.findWindow(t.Context())
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.findWindow(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(answer)
	<-first
}

// An event of any size and shape, in pieces of any size, is read as the server wrote it.
func FuzzStream(f *testing.F) {
	f.Add(done)
	f.Add("{\"message\":{\"content\":\"x\"}}\r\n\r\n" + done)
	f.Add("data: {}\n\n" + done)
	f.Fuzz(func(t *testing.T, lines string) {
		s := serve(t, 8192, lines)
		reply, err := llm.Generate(t.Context(), newModel(t, Config{Endpoint: llm.Endpoint{BaseURL: s.URL}, Context: 1}), llm.Request{Messages: []llm.Message{llm.User("hi")}})
		if err == nil && !strings.Contains(lines, "done") {
			t.Errorf("%q is a reply: %+v", lines, reply)
		}
	})
}
