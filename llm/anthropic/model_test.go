package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wiretest"
)

// events makes a stream of events, each named after its type as Anthropic does.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(d), &e); err != nil {
			panic(err)
		}
		b.WriteString("event: " + e.Type + "\ndata: " + d + "\n\n")
	}
	return b.String()
}

const (
	start = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-x-1",` +
		`"stop_reason":null,"usage":{"input_tokens":6,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":1}}}`
	textStart = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	textDone  = `{"type":"content_block_stop","index":0}`
	ping      = `{"type":"ping"}`
	stopped   = `{"type":"message_stop"}`
)

func end(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":15}}`
}

func text(index, s string) string {
	return `{"type":"content_block_delta","index":` + index + `,"delta":{"type":"text_delta","text":"` + s + `"}}`
}

func newModel(t testing.TB, base string) *Model {
	t.Helper()
	m, err := New(Config{Model: "claude-x", Endpoint: llm.Endpoint{BaseURL: base, APIKey: wiretest.Key}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFailures(t *testing.T) {
	types := map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
		429: "rate_limit_error", 500: "api_error", 503: "api_error", 504: "timeout_error", 529: "overloaded_error"}
	wiretest.CheckFailures(t, wiretest.Provider{
		New: func(t testing.TB, base string, read time.Duration) llm.Model {
			m, err := New(Config{Model: "claude-x", Endpoint: llm.Endpoint{BaseURL: base, APIKey: wiretest.Key, KeyName: "MY_KEY", ReadTimeout: read}})
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
		KeyName: "MY_KEY",
		Start:   events(start, ping, textStart, text("0", "Hel")),
		Rest:    events(text("0", "lo"), textDone, end("end_turn"), stopped),
		Error: func(status int, message string) string {
			data, err := json.Marshal(map[string]any{
				"type": "error", "request_id": "req_429", "error": map[string]any{"type": types[status], "message": message},
			})
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		},
		StreamError: events(`{"type":"error","error":{"type":"overloaded_error","message":"too busy"}}`),
	})
}

func TestReplies(t *testing.T) {
	usage := llm.Usage{Input: 12, Output: 15, Cached: 4, Written: 2}
	for _, c := range []struct {
		name   string
		stream string
		parts  []llm.Part
		stop   llm.StopReason
		usage  llm.Usage
	}{
		{"text", events(start, textStart, text("0", "Hel"), ping, text("0", "lo"), textDone, end("end_turn"), stopped),
			[]llm.Part{llm.Text{Text: "Hello"}}, llm.StopEnd, usage},
		{"nothing", events(start, end("end_turn"), stopped), nil, llm.StopEnd, usage},
		{"events without a name", strings.ReplaceAll(events(start, textStart, text("0", "a"), end("end_turn"), stopped), "event:", "x:"),
			[]llm.Part{llm.Text{Text: "a"}}, llm.StopEnd, usage},
		{"no message_stop", events(start, textStart, text("0", "a"), end("stop_sequence")), []llm.Part{llm.Text{Text: "a"}}, llm.StopEnd, usage},
		{"length", events(start, end("max_tokens"), stopped), nil, llm.StopLength, usage},
		{"window", events(start, end("model_context_window_exceeded"), stopped), nil, llm.StopLength, usage},
		{"refusal", events(start, end("refusal"), stopped), nil, llm.StopFilter, usage},
		{"pause", events(start, end("pause_turn"), stopped), nil, "pause_turn", usage},
		{"late usage", events(start, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":100,"cache_read_input_tokens":50,`+
			`"cache_creation_input_tokens":0,"output_tokens":9,"output_tokens_details":{"thinking_tokens":5}}}`, stopped),
			nil, llm.StopEnd, llm.Usage{Input: 150, Cached: 50, Output: 9, Reasoning: 5}},
		{"thoughts", events(start,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"seal"}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"hidden"}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"thinking","thinking":""}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"signature_delta","signature":"only"}}`,
			`{"type":"content_block_start","index":3,"content_block":{"type":"text","text":"a"}}`, text("3", "b"), end("end_turn"), stopped),
			[]llm.Part{
				llm.Reasoning{Text: "hm", Signature: "seal", Origin: "anthropic"},
				llm.Reasoning{Signature: "hidden", Redacted: true, Origin: "anthropic"},
				llm.Reasoning{Signature: "only", Origin: "anthropic"},
				llm.Text{Text: "ab"},
			}, llm.StopEnd, usage},
		{"interleaved calls", events(start, textStart, text("0", "a"),
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"city\":"}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t2","name":"g","input":{}}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"n\":9007199254740993}"}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"Oslo\"}"}}`,
			`{"type":"content_block_stop","index":2}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t3","name":"h","input":{}}}`,
			`{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"t4","name":"h","input":{"whole":1}}}`,
			end("tool_use"), stopped),
			[]llm.Part{
				llm.Text{Text: "a"},
				llm.ToolCall{ID: "t1", Name: "f", Args: json.RawMessage(`{"city":"Oslo"}`)},
				llm.ToolCall{ID: "t2", Name: "g", Args: json.RawMessage(`{"n":9007199254740993}`)},
				llm.ToolCall{ID: "t3", Name: "h", Args: json.RawMessage(`{}`)},
				llm.ToolCall{ID: "t4", Name: "h", Args: json.RawMessage(`{"whole":1}`)},
			}, llm.StopTools, usage},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wiretest.StartServer(t, wiretest.StreamHandler(c.stream))
			got, err := llm.Generate(t.Context(), newModel(t, s.URL), llm.Request{Messages: []llm.Message{llm.User("hi")}})
			if err != nil {
				t.Fatal(err)
			}
			want := llm.Reply{
				ID: "msg_1", Model: "claude-x-1",
				Message: llm.Message{Role: llm.RoleAssistant, Parts: c.parts}, Stop: c.stop, Usage: c.usage,
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("reply (-want +got):\n%s", d)
			}
		})
	}
}

func TestBadToolCalls(t *testing.T) {
	call := `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}`
	part := `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"city\":"}}`
	for _, c := range []struct{ name, stream, want string }{
		{"cut by the limit", events(start, call, part, end("max_tokens"), stopped), `"{\"city\":"`},
		{"cut before they began", events(start, call, end("max_tokens"), stopped), `""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wiretest.StartServer(t, wiretest.StreamHandler(c.stream))
			reply, err := llm.Generate(t.Context(), newModel(t, s.URL), llm.Request{Messages: []llm.Message{llm.User("hi")}})
			calls := reply.Message.ToolCalls()
			if err != nil || reply.Stop != llm.StopLength || len(calls) != 1 || string(calls[0].Args) != c.want {
				t.Errorf("reply is %+v, error %v, want the arguments %s", reply, err, c.want)
			}
		})
	}
}

// TestCutAfterEnd: once the reason to stop has come, the reply is complete.
func TestCutAfterEnd(t *testing.T) {
	s := wiretest.StartServer(t, func(w http.ResponseWriter, r *http.Request) {
		wiretest.StreamHandler(events(start, textStart, text("0", "a"), end("end_turn")))(w, r)
		panic(http.ErrAbortHandler)
	})
	reply, err := llm.Generate(t.Context(), newModel(t, s.URL), llm.Request{Messages: []llm.Message{llm.User("hi")}})
	if err != nil || reply.Text() != "a" {
		t.Errorf("reply is %q, error %v", reply.Text(), err)
	}
}
