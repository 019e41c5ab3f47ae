package agent_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/tool"
)

// busyFaults are answers that another request may get past.
func busyFaults() map[string]http.HandlerFunc {
	const told, page = `{"error":{"message":"told by the server","type":"x"}}`, "<html><title>Bad Gateway</title></html>"
	text := textChunk("half of an ans")
	call := `{"id":"r","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"look","arguments":"{\"n\":"}}]}}]}`
	return map[string]http.HandlerFunc{
		"429":                   status(429, told),
		"429 with seconds":      status(429, told, "Retry-After", "20"),
		"429 with milliseconds": status(429, told, "Retry-After-Ms", "1500"),
		"429 with a date": func(w http.ResponseWriter, r *http.Request) {
			status(429, told, "Retry-After", time.Now().Add(30*time.Second).UTC().Format(http.TimeFormat))(w, r)
		},
		"429 with a date that has passed": status(429, told, "Retry-After", "Fri, 01 Jan 1999 15:04:05 GMT"),
		"429 with nonsense":               status(429, told, "Retry-After", "soon"),
		"429 with a web page":             status(429, page, "Content-Type", "text/html"),
		"429 without a body":              status(429, ""),
		"408":                             status(408, told),
		"500":                             status(500, told),
		"500 without a body":              status(500, ""),
		"500 with bad JSON":               status(500, `{"error":`),
		"502 with a web page":             status(502, page, "Content-Type", "text/html"),
		"503":                             status(503, told, "Retry-After", "5"),
		"504":                             status(504, page, "Content-Type", "text/html"),
		"520":                             status(520, page, "Content-Type", "text/html"),
		"529":                             status(529, told),
		"an error in the stream":          events(`{"error":{"message":"told","type":"server_error","code":"server_error"}}`),
		"an error behind some text":       events(text, `{"error":{"message":"told","type":"server_error"}}`),
		"a rate limit in the stream":      events(`{"error":{"message":"told","type":"rate_limit_error","code":"rate_limit_exceeded"}}`),
		"closed without an answer":        raw(""),
		"closed in the status line":       raw("HTTP/1.1 20"),
		"closed in the headers":           raw("HTTP/1.1 200 OK\r\nContent-Type: text/ev"),
		"closed behind the headers":       cut(),
		"closed behind some text":         cut(text),
		"closed in an event":              raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n20\r\ndata: {\"id\":"),
		"closed in a call":                cut(call),
		"an end without a reason":         events(text),
		"an end in a call":                events(call),
		"no event":                        events(),
		"only the end":                    events("[DONE]"),
		"no choice":                       events(`{"id":"r","choices":[]}`, "[DONE]"),
		"null choices":                    events(`{"id":"r","choices":null}`, "[DONE]"),
		"bad JSON":                        events(`{"id":`, "[DONE]"),
		"bad JSON behind some text":       events(text, `{"id":"r","choices":[{"index":0,`, "[DONE]"),
		"text for JSON":                   events("upstream connect error"),
		"choices of a wrong type":         events(`{"id":"r","choices":"none"}`, "[DONE]"),
		"binary garbage":                  events("\x00\xff\xfe\x01"),
	}
}

// An agent gets past each fault, at its first request, behind an outcome, and three times
// in a row: no run ends that could have continued, every wait is reported, and every history is valid.
func TestAgentsGetPastFaults(t *testing.T) {
	for name, fault := range busyFaults() {
		for _, k := range []struct {
			where   string
			answers []http.HandlerFunc
			faults  int
		}{
			{"first", []http.HandlerFunc{fault, looking(), answering()}, 1},
			{"behind an outcome", []http.HandlerFunc{looking(), fault, answering()}, 1},
			{"again and again", []http.HandlerFunc{looking(), fault, fault, looking(), fault, answering()}, 3},
		} {
			t.Run(name+", "+k.where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					runFaults(t, k.answers, k.faults, "fine")
				})
			})
		}
	}
	// A web page is no passing fault of an address that has not answered yet.
	page := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<html><title>Sign in</title></html>"))
	}
	t.Run("a web page behind an outcome", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { runFaults(t, []http.HandlerFunc{looking(), page, answering()}, 1, "fine") })
	})
}

// Faults in sequence: each of them costs one wait.
func TestAgentsGetPastFaultsInSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := busyFaults()
		sequence := []string{"429 with seconds", "closed behind some text", "bad JSON", "503", "closed without an answer", "an error in the stream", "529", "closed in a call"}
		var answers []http.HandlerFunc
		for _, name := range sequence {
			answers = append(answers, list[name], looking())
		}
		runFaults(t, append(answers, answering()), len(sequence), "fine")
	})
}

// runFaults runs an agent against a server and checks how it got through.
func runFaults(t *testing.T, answers []http.HandlerFunc, waits int, want string) {
	t.Helper()
	s, m, stop := serveFaults(t, answers...)
	defer stop()
	var c counted
	var told []string
	r := &graph.Runner{Graph: compile(t, agent.Config{Model: m, Tools: []tool.Tool{c.tool("look", "", false)}}), Store: journal.NewMemory()}
	res, err := watchTurn(t, r, func(v any) {
		if wait, ok := v.(agent.RetryScheduled); ok {
			told = append(told, wait.Text())
		}
	})
	if err != nil || res.Status != graph.Done || agent.LastResponse(res.State) != want {
		t.Errorf("%v, %q, error %v", res.Status, agent.LastResponse(res.State), err)
	}
	if len(told) != waits {
		t.Errorf("%d waits were reported, want %d: %q", len(told), waits, told)
	}
	if s.requests != len(answers) {
		t.Errorf("%d requests, want %d", s.requests, len(answers))
	}
	for _, f := range s.refused {
		t.Errorf("the server refuses a history: %s", f)
	}
}

// What a model gets wrong is its own to mend: the run continues, and what is repeated of it in
// the history is valid.
func TestAgentsGetPastOddCalls(t *testing.T) {
	odd := map[string]http.HandlerFunc{}
	for _, args := range []string{"", " ", "null", "[]", `["a"]`, `"text"`, "12", "{", `{"n":`, `{"n":1,}`, "```json\n{\"n\":1}\n```", "{'n':1}", `{"n":1} and so on`, `{}{}`, `{"n":NaN}`, `{"n":1,"n":2}`,
		`"{\"n\":1}"`, "{\"n\":\"\u0000\"}", strings.Repeat("[", 2000), `{"n":"` + strings.Repeat("x", 100_000) + `"}`} {
		odd["arguments "+args[:min(len(args), 20)]] = callOf("look", args)
	}
	for _, name := range []string{"functions.look", "multi_tool_use.parallel", "look<|channel|>", "look.sh", "lo ok", strings.Repeat("n", 100), "löök", "look\n", "look/../x", "mcp:look", "", "LOOK", "unknown"} {
		odd["name "+name[:min(len(name), 24)]] = callOf(name, `{"n":1}`)
	}
	const f = `"type":"function","function":{"name":"look","arguments":"{}"}`
	for name, list := range map[string]string{
		"no id":              `[{"index":0,` + f + `}]`,
		"an empty id":        `[{"index":0,"id":"",` + f + `}]`,
		"a null id":          `[{"index":0,"id":null,` + f + `}]`,
		"a long id":          `[{"index":0,"id":"` + strings.Repeat("i", 300) + `",` + f + `}]`,
		"an odd id":          `[{"index":0,"id":"a b\tc|é",` + f + `}]`,
		"equal ids":          `[{"index":0,"id":"a",` + f + `},{"index":1,"id":"a",` + f + `},{"index":2,"id":"a",` + f + `}]`,
		"no index":           `[{"id":"a",` + f + `}]`,
		"a high index":       `[{"index":7,"id":"a",` + f + `}]`,
		"40 calls":           many(40),
		"no type":            `[{"index":0,"id":"a","function":{"name":"look","arguments":"{}"}}]`,
		"arguments, no text": `[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":{"n":1}}}]`,
	} {
		odd[name] = callsOf(list)
	}
	odd["reasoning before the call"] = events(append([]string{`{"id":"r","choices":[{"index":0,"delta":{"reasoning_content":"hmm"}}]}`,
		`{"id":"r","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a",` + f + `}]}}]}`}, endChunks("tool_calls")...)...)
	odd["calls that end with stop"] = events(append([]string{`{"id":"r","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a",` + f + `}]}}]}`}, endChunks("stop")...)...)
	for name, reply := range odd {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// Twice the same, so that ids come again in a later round.
				runFaults(t, []http.HandlerFunc{reply, looking(), reply, answering()}, 0, "fine")
			})
		})
	}
}

// What another request cannot change ends the run at once, and says why.
func TestFaultsThatStay(t *testing.T) {
	for _, k := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"400", status(400, `{"error":{"message":"told by the server"}}`), "bad request (400)"},
		{"401", status(401, `{"error":{"message":"told by the server"}}`), "authentication failed (401)"},
		{"403", status(403, `{"error":{"message":"told by the server"}}`), "authentication failed (403)"},
		{"404", status(404, `{"error":{"message":"told by the server"}}`), "check the name of the model and the base URL"},
		{"422", status(422, `{"detail":"told by the server"}`), "bad request (422)"},
		{"a spent quota", status(429, `{"error":{"message":"told by the server","type":"insufficient_quota","code":"insufficient_quota"}}`), "rate limit (429)"},
		{"a web page at first", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html><title>Sign in</title></html>"))
		}, "Sign in"},
		{"a redirect", status(302, "", "Location", "http://elsewhere.test/"), "the endpoint redirects to"},
		{"more time than there is", status(429, "", "Retry-After", "3600"), "asks to wait 1 h"},
	} {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m, stop := serveFaults(t, k.answer)
				defer stop()
				began := time.Now()
				_, err := (&graph.Runner{Graph: compile(t, agent.Config{Model: m}), Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("hi")})
				if err == nil || !strings.Contains(err.Error(), k.want) || s.requests != 1 || time.Since(began) > time.Second {
					t.Errorf("%d requests in %v, error %v, want %q", s.requests, time.Since(began), err, k.want)
				}
			})
		})
	}
}
