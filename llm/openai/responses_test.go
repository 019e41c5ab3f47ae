package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wiretest"
)

func newResponses(t testing.TB, base string) *Responses {
	t.Helper()
	m, err := NewResponses(Config{Model: "gpt-x", Endpoint: llm.Endpoint{BaseURL: base + "/v1", APIKey: wiretest.Key}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// responseEvents makes a stream of events, each the data of one.
func responseEvents(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		fmt.Fprintf(&b, "data: %s\n\n", d)
	}
	return b.String()
}

const (
	responseCreated   = `{"type":"response.created","response":{"id":"resp_1","model":"gpt-x-1","error":null}}`
	responseCompleted = `{"type":"response.completed","response":{"id":"resp_1","model":"gpt-x-1","error":null,"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3}}}}`
)

func TestResponsesFailures(t *testing.T) {
	wiretest.CheckFailures(t, wiretest.Provider{
		New: func(t testing.TB, base string, read time.Duration) llm.Model {
			m, err := NewResponses(Config{Model: "gpt-x", Endpoint: llm.Endpoint{BaseURL: base + "/v1", APIKey: wiretest.Key, KeyName: "MY_KEY", ReadTimeout: read}})
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
		KeyName: "MY_KEY",
		Start:   responseEvents(responseCreated, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hel"}`),
		Rest:    responseEvents(`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"lo"}`, responseCompleted),
		Error: func(status int, message string) string {
			code := map[int]string{401: "invalid_api_key", 429: "rate_limit_exceeded"}[status]
			data, err := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "code": code}})
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		},
		StreamError: responseEvents(`{"type":"error","error":{"message":"too busy","code":503}}`),
	})
}

// Everything that a reply has is in its message, survives JSON, and goes back to the same host only, without ids.
func TestResponsesKeepWhatTheyDoNotUnderstand(t *testing.T) {
	reasoning := `{"id":"rs_1","type":"reasoning","status":null,"summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"gAAA","new":{"n":9007199254740993}}`
	search := `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}`
	text := `{"id":"m_1","type":"message","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"Hello","annotations":[{"type":"url_citation","url":"https://example.org"}]}]}`
	call := `{"id":"fc_1","type":"function_call","status":"completed","call_id":"c1","name":"f","arguments":"{\"n\":1}","namespace":"tools"}`
	var events []string
	events = append(events, responseCreated)
	for i, item := range []string{reasoning, search, text, call} {
		events = append(events, fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item))
	}
	s := wiretest.StartServer(t, wiretest.StreamHandler(responseEvents(append(events, responseCompleted)...)))
	m := newResponses(t, s.URL)
	reply, err := llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{llm.User("hi")}})
	if err != nil {
		t.Fatal(err)
	}
	if want := (llm.Usage{Input: 10, Output: 5, Cached: 4, Written: 2, Reasoning: 3, Searches: 1}); reply.Usage != want || reply.Stop != llm.StopTools {
		t.Errorf("usage %+v, stop %s", reply.Usage, reply.Stop)
	}
	data, err := json.Marshal(reply.Message)
	if err != nil {
		t.Fatal(err)
	}
	var kept llm.Message
	if err := json.Unmarshal(data, &kept); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(reply.Message, kept); d != "" {
		t.Errorf("after a round trip (-want +got):\n%s", d)
	}
	history := []llm.Message{llm.User("hi"), kept, {Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "c1", Name: "f", Content: []llm.Part{llm.Text{Text: "18"}}}}}}
	if _, err := llm.Generate(t.Context(), m, llm.Request{Messages: history}); err != nil {
		t.Fatal(err)
	}
	wiretest.EqualJSON(t, []byte(`[
		{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},
		{"type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"gAAA","new":{"n":9007199254740993}},
		{"type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}},
		{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Hello","annotations":[{"type":"url_citation","url":"https://example.org"}]}]},
		{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"n\":1}","namespace":"tools"},
		{"type":"function_call_output","call_id":"c1","output":"18"}]`), inputOf(t, s.Requests()[1].Body))

	other := wiretest.StartServer(t, wiretest.StreamHandler(responseEvents(responseCreated, responseCompleted)))
	if _, err := llm.Generate(t.Context(), newResponses(t, other.URL), llm.Request{Messages: history}); err != nil {
		t.Fatal(err)
	}
	wiretest.EqualJSON(t, []byte(`[
		{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"[The provider searched the web for \"x\".]"}]},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello"}]},
		{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"n\":1}"},
		{"type":"function_call_output","call_id":"c1","output":"18"}]`), inputOf(t, other.Requests()[0].Body))
}

func inputOf(t *testing.T, body []byte) json.RawMessage {
	t.Helper()
	var r struct{ Input json.RawMessage }
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	return r.Input
}

// A longer conversation begins with the bytes of the shorter one: the provider's cache needs that.
func TestResponsesRepeatTheirBeginning(t *testing.T) {
	s := wiretest.StartServer(t, wiretest.StreamHandler(responseEvents(responseCreated, responseCompleted)))
	m := newResponses(t, s.URL)
	messages := []llm.Message{llm.User("a"), {Role: llm.RoleAssistant, Parts: []llm.Part{
		llm.Reasoning{Signature: "gAAA", Origin: m.origin, Extra: json.RawMessage(`{"z":1,"a":2,"summary":[]}`)}, llm.ToolCall{ID: "c", Name: "f", Args: json.RawMessage(`{"z":1,"a":2}`)}}},
		{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "c", Name: "f"}}}}
	r := llm.Request{System: "s", Tools: []llm.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"type":"object","properties":{"z":{},"a":{}}}`)}}, Messages: messages}
	longer := r
	longer.Messages = append(messages[:3:3], llm.User("b"))
	for _, r := range []llm.Request{r, longer} {
		if _, err := llm.Generate(t.Context(), m, r); err != nil {
			t.Fatal(err)
		}
	}
	first, second := strings.TrimRight(string(s.Requests()[0].Body), "}]\n"), string(s.Requests()[1].Body)
	if !strings.HasPrefix(second, first) {
		t.Errorf("the second request does not begin as the first:\n%s\n%s", first, second)
	}
}

// Reasoning that nothing follows is refused by the API, so that it is not sent: a reply that was cut off, or one whose call was removed.
// TestSampling sends a temperature to models that take one, and to no others.
func TestSampling(t *testing.T) {
	for _, test := range []struct {
		model, effort string
		sent          bool
	}{
		{"gpt-4.1", "", true},
		{"gpt-4o-mini-2024-07-18", "", true},
		{"gpt-5-chat-latest", "", true},
		{"o1-mini", "", false},
		{"gpt-5", "", false},
		{"openai/gpt-5.2-pro", "high", false},
		{"gpt-5.4", "none", true},
		{"my-deployment", "", true},
		{"qwen3:8b", "low", true},
	} {
		r := llm.Request{Temperature: new(0.5), TopP: new(0.9), Effort: test.effort, Messages: []llm.Message{llm.User("Hello")}}
		m := &Responses{name: test.model}
		responses, err := m.buildRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		chat, err := (&Model{name: test.model}).buildRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		for wire, sent := range map[string]bool{
			"responses": responses.Temperature != nil && responses.TopP != nil,
			"chat":      chat.Temperature != nil && chat.TopP != nil,
		} {
			if sent != test.sent {
				t.Errorf("%s, model %s, effort %q: temperature is sent: %t, want %t", wire, test.model, test.effort, sent, test.sent)
			}
		}
	}
}

func TestResponsesLeaveOutLooseReasoning(t *testing.T) {
	s := wiretest.StartServer(t, wiretest.StreamHandler(responseEvents(responseCreated, responseCompleted)))
	m := newResponses(t, s.URL)
	thought := llm.Reasoning{Signature: "gAAA", Origin: m.origin, Extra: json.RawMessage(`{"summary":[]}`)}
	if _, err := llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{llm.User("a"), {Role: llm.RoleAssistant, Parts: []llm.Part{thought, thought, llm.Text{Text: "x"}, thought}}, llm.User("b")}}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(s.Requests()[0].Body), `"type":"reasoning"`); got != 1 {
		t.Errorf("%d items of reasoning were sent: %s", got, s.Requests()[0].Body)
	}
}

func TestResponsesEnds(t *testing.T) {
	for name, c := range map[string]struct {
		event string
		stop  llm.StopReason
		fails string
	}{
		"length":  {`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`, llm.StopLength, ""},
		"filter":  {`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}`, llm.StopFilter, ""},
		"refused": {`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"refusal","refusal":"No."}]}}` + "\n\ndata: " + responseCompleted, llm.StopFilter, ""},
		"failed":  {`{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow down"}}}`, "", "rate limit: 127.0.0.1: slow down"},
		"error":   {`{"type":"error","code":"server_error","message":"it broke","param":null}`, "", "server error: 127.0.0.1: it broke"},
		"early":   {`{"type":"response.output_text.delta","output_index":0,"delta":"half"}`, "", "Connection reset"},
	} {
		s := wiretest.StartServer(t, wiretest.StreamHandler(responseEvents(responseCreated, c.event)))
		reply, err := llm.Generate(t.Context(), newResponses(t, s.URL), llm.Request{Messages: []llm.Message{llm.User("hi")}})
		if c.fails != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.fails) {
				t.Errorf("%s: error %v, want %s", name, err, c.fails)
			}
		} else if err != nil || reply.Stop != c.stop {
			t.Errorf("%s: stop %q, error %v, want %q", name, reply.Stop, err, c.stop)
		}
	}
}

// Each kind of model and host gets what it accepts.
func TestResponsesHosts(t *testing.T) {
	for _, c := range []struct {
		host, key, header string
	}{
		{"api.openai.com", "k", "Authorization"}, {"x.openai.azure.com", "k", "api-key"}, {"x.openai.azure.com", "eyJ0", "Authorization"}, {"127.0.0.1", "k", "Authorization"},
	} {
		if got := authHeader(c.host, c.key); len(got) != 1 || got[c.header] == "" {
			t.Errorf("%s: %v", c.host, got)
		}
	}
	for model, want := range map[string]bool{"gpt-5.6": true, "o3": true, "gpt-4.1": false, "gpt-4o-mini": false, "gpt-5-chat-latest": false, "my-deployment": true} {
		if mayReason(model) != want {
			t.Errorf("mayReason(%s) is not %v", model, want)
		}
	}
	s := wiretest.StartServer(t, wiretest.StreamHandler(""))
	m, err := NewResponses(Config{Model: "m", Endpoint: llm.Endpoint{BaseURL: s.URL}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{llm.User("a")}, Stop: []string{"x"}}); err == nil || !strings.Contains(err.Error(), "wire: chat") {
		t.Errorf("stop texts: %v", err)
	}
}

// A 4xx is refused again, whatever its body says.
func TestRefusedRequestsAreNotRetried(t *testing.T) {
	for _, code := range []string{"server_error", "rate_limit_exceeded", "overloaded_error", "timeout_error", "UNAVAILABLE", "INTERNAL"} {
		s := wiretest.StartServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			wiretest.SendText(w, `{"error":{"type":"`+code+`","code":"`+code+`","message":"no"}}`)
		})
		for _, m := range []llm.Model{newModel(t, s.URL), newResponses(t, s.URL)} {
			_, err := llm.Generate(t.Context(), m, llm.Request{Messages: []llm.Message{llm.User("hi")}})
			if err == nil || !strings.HasPrefix(err.Error(), "bad request (400)") {
				t.Errorf("%s: %v", code, err)
			}
		}
	}
}
