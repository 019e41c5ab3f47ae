package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wiretest"
)

// chunks makes a stream of chunks with the given choices, each the inside of
// choices[0], and the terminal marker.
func chunks(deltas ...string) string {
	return events(deltas...) + "data: [DONE]\n\n"
}

func events(deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x-1","choices":[{"index":0,%s}]}`+"\n\n", d)
	}
	return b.String()
}

const (
	stop  = `"delta":{},"finish_reason":"stop"`
	usage = `data: {"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,` +
		`"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}}` + "\n\n"
)

func newModel(t testing.TB, base string) *Model {
	t.Helper()
	m, err := New(Config{Model: "gpt-x", Endpoint: llm.Endpoint{BaseURL: base + "/v1", APIKey: wiretest.Key}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFailures(t *testing.T) {
	wiretest.CheckFailures(t, wiretest.Provider{
		New: func(t testing.TB, base string, read time.Duration) llm.Model {
			m, err := New(Config{Model: "gpt-x", Endpoint: llm.Endpoint{BaseURL: base + "/v1", APIKey: wiretest.Key, KeyName: "MY_KEY", ReadTimeout: read}})
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
		KeyName: "MY_KEY",
		Start:   events(`"delta":{"role":"assistant","content":""},"finish_reason":null`, `"delta":{"content":"Hel"}`),
		Rest:    chunks(`"delta":{"content":"lo"}`, stop),
		Error: func(status int, message string) string {
			code := map[int]string{401: "invalid_api_key", 429: "rate_limit_exceeded"}[status]
			data, err := json.Marshal(map[string]any{"error": map[string]any{
				"message": message, "type": "invalid_request_error", "param": nil, "code": code,
			}})
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		},
		StreamError: `data: {"error":{"message":"too busy","code":503}}` + "\n\n",
	})
}

func TestReplies(t *testing.T) {
	call := func(id, name, args string) llm.ToolCall {
		return llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
	}
	text := func(s string) llm.Part { return llm.Text{Text: s} }
	think := func(s string) llm.Part { return llm.Reasoning{Text: s} }
	for _, c := range []struct {
		name   string
		stream string
		parts  []llm.Part
		stop   llm.StopReason
		usage  llm.Usage
	}{
		{name: "text and usage", stream: events(`"delta":{"content":"Hel"}`, `"delta":{"content":"lo"}`, stop) + usage + "data: [DONE]\n\n",
			parts: []llm.Part{text("Hello")}, stop: llm.StopEnd, usage: llm.Usage{Input: 10, Output: 5, Cached: 4, Reasoning: 3}},
		{name: "nothing", stream: chunks(stop), stop: llm.StopEnd},
		{name: "comments, null error, no DONE", stream: ": hi\n\n" + strings.ReplaceAll(events(`"delta":{"content":"a"}`, stop), `"id"`, `"error":null,"id"`),
			parts: []llm.Part{text("a")}, stop: llm.StopEnd},
		{name: "DONE without an empty line", stream: events(`"delta":{"content":"a"}`) + "data: [DONE]", parts: []llm.Part{text("a")}, stop: llm.StopEnd},
		{name: "length", stream: chunks(`"delta":{"content":"a"}`, `"delta":{},"finish_reason":"length"`), parts: []llm.Part{text("a")}, stop: llm.StopLength},
		{name: "filter", stream: chunks(`"delta":{},"finish_reason":"content_filter"`), stop: llm.StopFilter},
		{name: "refusal", stream: chunks(`"delta":{"refusal":"No."}`, stop), parts: []llm.Part{text("No.")}, stop: llm.StopFilter},
		{name: "unknown reason", stream: chunks(`"delta":{},"finish_reason":"tired"`), stop: "tired"},
		{name: "reasoning_content", stream: chunks(`"delta":{"reasoning_content":"h"}`, `"delta":{"reasoning_content":"m"}`, `"delta":{"content":"a"}`, stop),
			parts: []llm.Part{think("hm"), text("a")}, stop: llm.StopEnd},
		{name: "reasoning under both names", stream: chunks(`"delta":{"reasoning":"hm","reasoning_content":"hm","content":null}`, `"delta":{"content":"a"}`, stop),
			parts: []llm.Part{think("hm"), text("a")}, stop: llm.StopEnd},
		{name: "typed content", stream: chunks(
			`"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`, `"delta":{"content":[{"type":"text","text":"a"}]}`, stop),
			parts: []llm.Part{think("hm"), text("a")}, stop: llm.StopEnd},
		{name: "interleaved calls", stream: chunks(
			`"delta":{"tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"f","arguments":""}}]}`,
			`"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]}`,
			`"delta":{"tool_calls":[{"index":1,"id":"c1","type":"function","function":{"name":"g","arguments":"{\"n\":900719"}}]}`,
			`"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"Oslo\"}"}},{"index":1,"function":{"arguments":"9254740993}"}}]}`,
			`"delta":{},"finish_reason":"tool_calls"`),
			parts: []llm.Part{call("c0", "f", `{"city":"Oslo"}`), call("c1", "g", `{"n":9007199254740993}`)}, stop: llm.StopTools},
		{name: "calls without an index", stream: chunks(
			`"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"n\":1}"}},{"id":"b","function":{"name":"f","arguments":"{\"n\":2}"}}]}`, stop),
			parts: []llm.Part{call("a", "f", `{"n":1}`), call("b", "f", `{"n":2}`)}, stop: llm.StopTools},
		{name: "calls without an id, and with one id for two", stream: chunks(
			`"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}},{"index":1,"function":{"name":"f"}}]}`,
			`"delta":{"tool_calls":[{"index":2,"id":"x","function":{"name":"f"}},{"index":3,"id":"x","function":{"name":"f"}}]}`,
			`"delta":{},"finish_reason":"tool_calls"`),
			parts: []llm.Part{call("call_1_0", "f", `{}`), call("call_1_1", "f", `{}`), call("x", "f", `{}`), call("call_1_3", "f", `{}`)}, stop: llm.StopTools},
		{name: "arguments as an object", stream: chunks(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"n": 1}}}]}`, stop),
			parts: []llm.Part{call("a", "f", `{"n": 1}`)}, stop: llm.StopTools},
		{name: "text between calls", stream: chunks(`"delta":{"content":"x"}`,
			`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, `"delta":{"content":"y"}`, stop),
			parts: []llm.Part{text("xy"), call("a", "f", `{}`)}, stop: llm.StopTools},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wiretest.StartServer(t, wiretest.StreamHandler(c.stream))
			got, err := llm.Generate(t.Context(), newModel(t, s.URL), llm.Request{Messages: []llm.Message{llm.User("hi")}})
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range c.parts {
				if r, ok := p.(llm.Reasoning); ok {
					r.Origin = "chat@" + strings.TrimPrefix(s.URL, "http://")
					c.parts[i] = r
				}
			}
			want := llm.Reply{
				ID: got.ID, Model: got.Model,
				Message: llm.Message{Role: llm.RoleAssistant, Parts: c.parts}, Stop: c.stop, Usage: c.usage,
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("reply (-want +got):\n%s", d)
			}
		})
	}
}

// TestArgumentsThatAreNoJSON: they come as a string, so that the model can read the error.
func TestArgumentsThatAreNoJSON(t *testing.T) {
	for written, want := range map[string]string{`{\"city\":`: `"{\"city\":"`, `{}{}`: `"{}{}"`, `[1]`: `[1]`} {
		s := wiretest.StartServer(t, wiretest.StreamHandler(chunks(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"`+written+`"}}]}`, stop)))
		reply, err := llm.Generate(t.Context(), newModel(t, s.URL), llm.Request{Messages: []llm.Message{llm.User("hi")}})
		if calls := reply.Message.ToolCalls(); err != nil || len(calls) != 1 || string(calls[0].Args) != want {
			t.Errorf("%s: calls are %+v, error %v, want %s", written, calls, err, want)
		}
	}
}

// TestCallWithoutAName: the caller gets the call, and can answer that there is no such tool.
func TestCallWithoutAName(t *testing.T) {
	s := wiretest.StartServer(t, wiretest.StreamHandler(chunks(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}`, stop)))
	r, err := llm.Generate(t.Context(), newModel(t, s.URL), llm.Request{Messages: []llm.Message{llm.User("hi")}})
	if err != nil {
		t.Fatal(err)
	}
	if calls := r.Message.ToolCalls(); len(calls) != 1 || calls[0].ID != "a" || calls[0].Name != "unnamed" {
		t.Errorf("%+v", calls)
	}
}

// TestCutOffCalls: only the last call of a reply can be cut off; the others have no arguments if they have no text.
func TestCutOffCalls(t *testing.T) {
	for name, c := range map[string]struct{ calls, want string }{
		"inside the arguments":      {`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"ci"}}`, `"{\"ci"`},
		"before the arguments":      {`{"index":0,"id":"a","function":{"name":"f"}}`, `""`},
		"behind complete arguments": {`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{}`},
		"in the second call":        {`{"index":0,"id":"a","function":{"name":"f"}},{"index":1,"id":"b","function":{"name":"f","arguments":"{"}}`, `{} "{"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := wiretest.StartServer(t, wiretest.StreamHandler(chunks(`"delta":{"tool_calls":[`+c.calls+`]}`, `"delta":{},"finish_reason":"length"`)))
			reply, err := llm.Generate(t.Context(), newModel(t, s.URL), llm.Request{Messages: []llm.Message{llm.User("hi")}})
			var args []string
			for _, call := range reply.Message.ToolCalls() {
				args = append(args, string(call.Args))
			}
			if got := strings.Join(args, " "); err != nil || reply.Stop != llm.StopLength || got != c.want {
				t.Errorf("arguments %s, error %v, reply %+v, want %s", got, err, reply, c.want)
			}
		})
	}
}

func TestBadStreams(t *testing.T) {
	for _, c := range []struct{ name, stream, want string }{
		{"content of no known shape", chunks(`"delta":{"content":[3]}`, stop),
			"server error: 127.0.0.1: the stream contains content of an unknown form: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wiretest.StartServer(t, wiretest.StreamHandler(c.stream))
			_, err := llm.Generate(t.Context(), newModel(t, s.URL), llm.Request{Messages: []llm.Message{llm.User("hi")}})
			var e *llm.Error
			if !errors.As(err, &e) || e.Class != llm.Server || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		})
	}
}

// TestCutAfterFinish: once the reason to stop has come, the reply is complete.
func TestCutAfterFinish(t *testing.T) {
	s := wiretest.StartServer(t, func(w http.ResponseWriter, r *http.Request) {
		wiretest.StreamHandler(events(`"delta":{"content":"a"}`, stop))(w, r)
		panic(http.ErrAbortHandler)
	})
	reply, err := llm.Generate(t.Context(), newModel(t, s.URL), llm.Request{Messages: []llm.Message{llm.User("hi")}})
	if err != nil || reply.Text() != "a" {
		t.Errorf("reply is %q, error %v", reply.Text(), err)
	}
}

func TestDeltas(t *testing.T) {
	s := wiretest.StartServer(t, wiretest.StreamHandler(chunks(
		`"delta":{"role":"assistant","content":""}`,
		`"delta":{"reasoning_content":"hm"}`,
		`"delta":{"content":"a"}`,
		`"delta":{"tool_calls":[{"index":1,"id":"c1","function":{"name":"g","arguments":""}}]}`,
		`"delta":{"tool_calls":[{"index":0,"id":"c0","function":{"name":"f","arguments":"{"}}]}`,
		`"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}`,
		`"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`,
		`"delta":{},"finish_reason":"tool_calls"`)))
	want := []llm.Delta{
		{Reasoning: "hm"},
		{Text: "a"},
		{ToolCall: &llm.ToolCallDelta{Index: 0, ID: "c1", Name: "g"}},
		{ToolCall: &llm.ToolCallDelta{Index: 1, ID: "c0", Name: "f", Args: "{"}},
		{ToolCall: &llm.ToolCallDelta{Index: 0, Args: "{}"}},
		{ToolCall: &llm.ToolCallDelta{Index: 1, Args: "}"}},
		{Done: &llm.Reply{ID: "chatcmpl-1", Model: "gpt-x-1", Stop: llm.StopTools, Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{
			llm.Reasoning{Text: "hm", Origin: "chat@" + strings.TrimPrefix(s.URL, "http://")},
			llm.Text{Text: "a"},
			llm.ToolCall{ID: "c1", Name: "g", Args: json.RawMessage(`{}`)},
			llm.ToolCall{ID: "c0", Name: "f", Args: json.RawMessage(`{}`)},
		}}}},
	}
	var got []llm.Delta
	for d, err := range newModel(t, s.URL).Stream(t.Context(), llm.Request{Messages: []llm.Message{llm.User("hi")}}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("deltas (-want +got):\n%s", d)
	}
}

func BenchmarkOpenAIStream(b *testing.B) {
	const words = 500
	deltas := make([]string, words)
	for i := range deltas {
		deltas[i] = fmt.Sprintf(`"delta":{"content":"word%d "}`, i)
	}
	s := wiretest.StartServer(b, wiretest.StreamHandler(events(deltas...)+events(stop)+usage+"data: [DONE]\n\n"))
	m := newModel(b, s.URL)
	r := llm.Request{System: "Be brief.", Messages: []llm.Message{llm.User("hi")}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := llm.Generate(b.Context(), m, r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(words*b.N)/b.Elapsed().Seconds(), "deltas/s")
}
