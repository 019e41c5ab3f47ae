//go:build unix

package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

const calling = `
-- call/graph.yaml --
name: call
model: local:small
start: ask
nodes:
  ask:
    type: llm
    prompt: Hello
    max_attempts: 3
    timeout: %d
    state_updates: {said: "{{output}}"}
    fallback: other
    next: done
  other: {type: end, output: "fallback: {{said}}"}
  done: {type: end, output: "{{said}}"}
`

// A failing provider is asked again if that may help; other failures are
// reported, and the fallback is used, except for a key that is refused.
func TestProviderFailures(t *testing.T) {
	good := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","model":"small","choices":[{"index":0,"delta":{"content":"fine"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}
	refuse := func(status int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":"told by the server","type":"x","code":"y"}}`)
		}
	}
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		piece := `data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 64<<10) + `"}}]}` + "\n\n"
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
		}
	}
	tests := map[string]struct {
		bad     func(http.ResponseWriter, *http.Request)
		times   int64 // number of bad replies; then the server works
		timeout int   // of the node, in seconds
		config  string

		code     int
		requests int64
		out, err string
	}{
		"a key that is refused":          {bad: refuse(401), times: 9, code: 4, requests: 1, err: "authentication failed (401)"},
		"too many requests, for a while": {bad: refuse(429), times: 2, requests: 3, out: "fine", err: "llm node attempt 2 failed (transient)"},
		"too many requests, for good":    {bad: refuse(429), times: 9, requests: 3, out: "fallback: LLM node failed: rate limit (429)", err: "rate limit (429)"},
		"a server error is not repeated": {bad: refuse(500), times: 9, requests: 1, out: "fallback: LLM node failed: server error (500)", err: "told by the server"},
		"a stream that breaks off": {bad: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","model":"small","choices":[{"index":0,"delta":{"content":"fi"}}]}`+"\n\n")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, times: 1, requests: 2, out: "fine", err: "Connection reset"},
		"a server that hangs, until the node's timeout": {bad: hang, times: 9, timeout: 1, requests: 1, out: "fallback: LLM node failed: llm node timed out after 1s"},
		"a server that hangs, until the client's":       {bad: hang, times: 1, config: "read_timeout: 0.3\n", requests: 2, out: "fine", err: "request timed out"},
		"a reply without end": {bad: endless, times: 9, config: "max_reply: 1\n", requests: 1,
			out: "fallback: LLM node failed: reply beyond the limit", err: "the reply is larger than 1 MiB, which is the limit (max_reply)"},
		"a reply that takes too long": {bad: endless, times: 9, config: "max_reply: 0\nstream_timeout: 0.3\n", requests: 1,
			out: "fallback: LLM node failed: reply beyond the limit", err: "the reply was not complete after 300ms, which is the limit (stream_timeout)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // only then does a server notice that its client has gone
				if requests.Add(1) <= test.times {
					test.bad(w, r)
					return
				}
				good(w)
			}))
			defer server.Close()
			if test.timeout == 0 {
				test.timeout = 60
			}
			w := newWorkplace(t, fmt.Sprintf(calling, test.timeout))
			w.write(".config/raddle/config.yaml", test.config+"clients: [{name: local, type: openai-compatible, api_base: \""+server.URL+"/v1\", api_key: a-secret-key}]\n")
			r := w.run("run", "./call")
			if r.code != test.code || !strings.HasPrefix(r.out, test.out) || !strings.Contains(r.err, test.err) || requests.Load() != test.requests {
				t.Errorf("exit code %d, %d requests, output %q\n%s", r.code, requests.Load(), r.out, r.err)
			}
			if strings.Contains(r.out+r.err, "a-secret-key") {
				t.Errorf("the key is told: %s%s", r.out, r.err)
			}
		})
	}
}
