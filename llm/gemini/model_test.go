package gemini

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wiretest"
)

// responses makes a stream of responses.
func responses(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\r\n\r\n")
	}
	return b.String()
}

const (
	usage = `"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":10,"thoughtsTokenCount":5,"cachedContentTokenCount":4,"totalTokenCount":27}`
	stop  = `{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],` + usage + `,"modelVersion":"gemini-x-1","responseId":"r1"}`
)

func parts(list string) string {
	return `{"candidates":[{"content":{"parts":[` + list + `],"role":"model"},"index":0}],"modelVersion":"gemini-x-1","responseId":"r1"}`
}

func finish(reason string) string {
	return `{"candidates":[{"finishReason":"` + reason + `","finishMessage":"so it is"}],` + usage + `,"modelVersion":"gemini-x-1","responseId":"r1"}`
}

func newModel(t testing.TB, base string) *Model {
	t.Helper()
	m, err := New(Config{Model: "gemini-x", Endpoint: llm.Endpoint{BaseURL: base, APIKey: wiretest.Key}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFailures(t *testing.T) {
	names := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
		429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED", 529: "UNAVAILABLE"}
	document := func(status int, message string, details ...any) string {
		data, err := json.Marshal([]any{map[string]any{"error": map[string]any{
			"code": status, "message": message, "status": names[status], "details": details,
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	wiretest.CheckFailures(t, wiretest.Provider{
		New: func(t testing.TB, base string, read time.Duration) llm.Model {
			m, err := New(Config{Model: "gemini-x", Endpoint: llm.Endpoint{BaseURL: base, APIKey: wiretest.Key, KeyName: "MY_KEY", ReadTimeout: read}})
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
		KeyName:     "MY_KEY",
		Start:       responses(parts(`{"text":"Hel"}`)),
		Rest:        responses(parts(`{"text":"lo"}`), stop),
		Error:       func(status int, message string) string { return strings.Trim(document(status, message), "[]") },
		StreamError: responses(`{"error":{"code":503,"message":"too busy","status":"UNAVAILABLE"}}`),
	})
	for _, c := range []struct {
		name, body string
		status     int
		want       llm.Error
	}{
		{"a wrong key has the status 400", document(400, "API key not valid.", map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}), 400,
			llm.Error{Class: llm.Auth, Status: 400, Code: "API_KEY_INVALID", Host: "127.0.0.1", Message: "API key not valid.; set GEMINI_API_KEY to a key that is valid for this model"}},
		{"the wait stands in the details", document(429, "Slow down.", map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}), 429,
			llm.Error{Class: llm.RateLimited, Status: 429, Host: "127.0.0.1", Code: "RESOURCE_EXHAUSTED", Message: "Slow down.", RetryAfter: 17500 * time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wiretest.StartServer(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(c.status)
				wiretest.SendText(w, c.body)
			})
			_, err := llm.Generate(t.Context(), newModel(t, s.URL), llm.Request{Messages: []llm.Message{llm.User("hi")}})
			var e *llm.Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, *e); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
		})
	}
}

func TestReplies(t *testing.T) {
	counted := llm.Usage{Input: 12, Output: 15, Cached: 4, Reasoning: 5}
	think := func(s string) llm.Part { return llm.Reasoning{Text: s, Origin: "gemini"} }
	for _, c := range []struct {
		name   string
		stream string
		parts  []llm.Part
		stop   llm.StopReason
	}{
		{"text", responses(parts(`{"text":"Hel"}`), parts(`{"text":"lo"}`), stop), []llm.Part{llm.Text{Text: "Hello"}}, llm.StopEnd},
		{"nothing", responses(stop), nil, llm.StopEnd},
		{"an unspecified reason is none", responses(strings.Replace(parts(`{"text":"a"}`), `"index"`, `"finishReason":"FINISH_REASON_UNSPECIFIED","index"`, 1), stop),
			[]llm.Part{llm.Text{Text: "a"}}, llm.StopEnd},
		{"no last empty line", strings.TrimSpace(responses(parts(`{"text":"a"}`), stop)), []llm.Part{llm.Text{Text: "a"}}, llm.StopEnd},
		{"length", responses(parts(`{"text":"a"}`), finish("MAX_TOKENS")), []llm.Part{llm.Text{Text: "a"}}, llm.StopLength},
		{"safety", responses(finish("SAFETY")), nil, llm.StopFilter},
		{"other", responses(finish("OTHER")), nil, "OTHER"},
		{"thoughts", responses(parts(`{"text":"h","thought":true}`), parts(`{"text":"m","thought":true},{"text":"a"}`), parts(`{"text":"b"},{"text":"!","thought":true}`), stop),
			[]llm.Part{think("hm"), llm.Text{Text: "ab"}, think("!")}, llm.StopEnd},
		{"calls", responses(
			parts(`{"text":"Let me see."},{"functionCall":{"name":"f","args":{"n":9007199254740993,"a":1.10}},"thoughtSignature":"c2VhbA=="}`),
			parts(`{"functionCall":{"id":"x1","name":"g","args":{}}},{"functionCall":{"name":"h"}}`), stop),
			[]llm.Part{
				llm.Text{Text: "Let me see."},
				llm.ToolCall{ID: "call_1_0", Name: "f", Args: json.RawMessage(`{"n":9007199254740993,"a":1.10}`), Signature: "c2VhbA==", Origin: "gemini"},
				llm.ToolCall{ID: "x1", Name: "g", Args: json.RawMessage(`{}`)},
				llm.ToolCall{ID: "call_1_2", Name: "h", Args: json.RawMessage(`{}`)},
			}, llm.StopTools},
		{"calls with null arguments", responses(parts(`{"functionCall":{"name":"f","args":null}}`), stop),
			[]llm.Part{llm.ToolCall{ID: "call_1_0", Name: "f", Args: json.RawMessage(`{}`)}}, llm.StopTools},
		{"sealed text", responses(parts(`{"text":"Hel"}`), parts(`{"text":"lo"},{"text":"","thoughtSignature":"c2VhbA=="}`), stop),
			[]llm.Part{llm.Text{Text: "Hello"}, llm.Reasoning{Signature: "c2VhbA==", Origin: "gemini"}}, llm.StopEnd},
		{"text sealed at its beginning", responses(parts(`{"text":"Hel","thoughtSignature":"c2VhbA=="}`), parts(`{"text":"lo"}`), stop),
			[]llm.Part{llm.Text{Text: "Hel"}, llm.Reasoning{Signature: "c2VhbA==", Origin: "gemini"}, llm.Text{Text: "lo"}}, llm.StopEnd},
		{"media", responses(parts(`{"inlineData":{"mimeType":"image/png","data":"AQID"}},{"inlineData":{"mimeType":"audio/wav","data":"BA=="}}`), stop),
			[]llm.Part{llm.Image{MIME: "image/png", Data: []byte{1, 2, 3}}, llm.File{MIME: "audio/wav", Data: []byte{4}}}, llm.StopEnd},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wiretest.StartServer(t, wiretest.StreamHandler(c.stream))
			got, err := llm.Generate(t.Context(), newModel(t, s.URL), llm.Request{Messages: []llm.Message{llm.User("hi")}})
			if err != nil {
				t.Fatal(err)
			}
			want := llm.Reply{
				ID: "r1", Model: "gemini-x-1",
				Message: llm.Message{Role: llm.RoleAssistant, Parts: c.parts}, Stop: c.stop, Usage: counted,
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("reply (-want +got):\n%s", d)
			}
		})
	}
}

func TestNoReply(t *testing.T) {
	for _, c := range []struct{ name, stream, want string }{
		{"blocked", responses(`{"promptFeedback":{"blockReason":"SAFETY"},` + usage + `}`), "bad request: 127.0.0.1: the prompt was blocked (SAFETY)"},
		{"malformed call", responses(finish("MALFORMED_FUNCTION_CALL")), "server error: 127.0.0.1: the model wrote a tool call that is not valid: so it is"},
		{"unfinished", responses(parts(`{"text":"a"}`), finish("CONTINUATION")), "Connection reset: "},
		{"unknown shape", responses(`{"candidates":3}`), "server error: 127.0.0.1: the stream contains an event of an unknown form: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wiretest.StartServer(t, wiretest.StreamHandler(c.stream))
			_, err := llm.Generate(t.Context(), newModel(t, s.URL), llm.Request{Messages: []llm.Message{llm.User("hi")}})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error is %v, want %s", err, c.want)
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
}
