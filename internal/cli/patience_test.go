//go:build unix

package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

const patient = `
-- agent/config.yaml --
name: agent
model: local:small
-- graph/graph.yaml --
name: graph
model: local:small
retry_patience: 120
initial_state: {items: [1, 2]}
start: each
nodes:
  each: {type: map, over: "{{items}}", as: i, branch: one, collect_into: said, next: e}
  one: {type: llm, prompt: "{{i}}"}
  e: {type: end, output: "fine"}
-- seed/graph.yaml --
name: seed
model: local:small
start: one
nodes:
  one: {type: llm, prompt: "hi", max_attempts: 2, state_updates: {said: "{{output}}"}, next: e}
  e: {type: end, output: "{{said}}"}
`

// busyProvider refuses the first requests, and then answers.
func busyProvider(t *testing.T, refused int64, status int, header, value string) (*workplace, *atomic.Int64) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if requests.Add(1) <= refused {
			w.Header().Set(header, value)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, `{"error":{"message":"too busy"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","model":"small","choices":[{"index":0,"delta":{"content":"fine"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	w := newWorkplace(t, patient)
	w.write(".config/raddle/config.yaml", "clients: [{name: local, type: openai-compatible, api_base: \""+server.URL+"/v1\", api_key: k}]\n")
	return w, &requests
}

// Agents, and graphs that say so, wait for a provider as long as it asks, and say that they wait.
func TestWaitsAreShown(t *testing.T) {
	for _, k := range []struct {
		agent    string
		refused  int64
		status   int
		requests int64
		shown    []string
	}{
		{"./agent", 2, 429, 3, []string{"rate limited, trying again in 0.1 s (2nd request)", "rate limited, trying again in 0.1 s (3rd request)"}},
		{"./agent", 1, 500, 2, []string{"server error (500), trying again in 0.1 s (2nd request)"}},
		{"./agent", 1, 529, 2, []string{"the provider is overloaded, trying again in 0.1 s (2nd request)"}},
		{"./graph", 2, 503, 4, []string{"[each/one[1]] the provider is overloaded, trying again in 0.1 s", "[each/one[2]] the provider is overloaded, trying again in 0.1 s"}},
		{"./seed", 1, 429, 2, []string{"rate limited, trying again in 0.1 s (2nd request)"}},
	} {
		t.Run(fmt.Sprint(k.agent, " ", k.status), func(t *testing.T) {
			w, requests := busyProvider(t, k.refused, k.status, "Retry-After-Ms", "100")
			r := w.run("run", k.agent, "hi")
			if r.code != 0 || r.out != "fine\n" || requests.Load() != k.requests {
				t.Errorf("exit code %d, %q, %d requests\n%s", r.code, r.out, requests.Load(), r.err)
			}
			for _, line := range k.shown {
				if !strings.Contains(r.err, line) {
					t.Errorf("%q is not shown:\n%s", line, r.err)
				}
			}
		})
	}
}

// The first signal ends a wait at once, also in a graph, whose steps otherwise finish.
func TestASignalEndsAWait(t *testing.T) {
	for _, name := range []string{"./agent", "./graph", "./seed"} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(fmt.Sprint(name, " ", sig), func(t *testing.T) {
				w, _ := busyProvider(t, 2, 429, "Retry-After", "60")
				cmd, c := w.begin("run", name, "hi")
				c.await(t, "trying again in 1 min (2nd request)")
				if name == "./graph" {
					c.await(t, "[each/one[1]]")
					c.await(t, "[each/one[2]]")
				}
				w.send(cmd, sig)
				if got := wait(t, cmd); got != map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143}[sig] {
					t.Fatalf("exit code %d\n%s", got, c)
				}
				if strings.Contains(c.String(), "Stopping") {
					t.Errorf("it has waited:\n%s", c)
				}
			})
		}
	}
}

// raddle does not wait for a provider that asks for more time than the limit.
func TestAWaitThatIsTooLong(t *testing.T) {
	w, requests := busyProvider(t, 1, 429, "Retry-After", "3600")
	r := w.run("run", "./agent", "hi")
	if r.code != 1 || requests.Load() != 1 || !strings.Contains(r.err, "the provider asks to wait 1 h, which is longer than the rest of the retry patience of 2 min (retry_patience)") {
		t.Errorf("exit code %d, %d requests\n%s", r.code, requests.Load(), r.err)
	}
	w.write(".config/raddle/config.yaml", "retry_patience: 1x\n")
	if r := w.run("run", "./agent", "hi"); r.code != 3 || !strings.Contains(r.err, "retry_patience") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}
