//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/internal/testkit/testneed"
)

func needBash(t *testing.T) {
	t.Helper()
	testneed.RequirePrograms(t, "bash")
}

// A gate is a named pipe between a test and a script: the script waits in it until
// the test opens it.
type gate struct {
	w    *workplace
	path string
}

func (w *workplace) gate(name string) gate {
	w.t.Helper()
	g := gate{w, filepath.Join(w.dir, name)}
	if err := syscall.Mkfifo(g.path, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return g
}

// arrive blocks until a script opens the gate for reading, and returns a function that lets
// the script continue.
func (g gate) arrive() (pass func()) {
	g.w.t.Helper()
	opened := make(chan *os.File, 1)
	go func() {
		f, err := os.OpenFile(g.path, os.O_WRONLY, 0)
		if err != nil {
			close(opened)
			return
		}
		opened <- f
	}()
	select {
	case f := <-opened:
		if f == nil {
			g.w.t.Fatalf("%s cannot be opened", g.path)
		}
		return func() { _ = f.Close() }
	case <-time.After(patience):
		g.w.t.Fatalf("nothing arrived at %s", g.path)
	}
	return nil
}

// gated is two scripts, the first of which waits at a gate.
const gated = `
-- slow/graph.yaml --
name: slow
start: a
nodes:
  a: {type: script, script: a.sh, next: b, timeout: 100}
  b: {type: script, script: b.sh, next: done}
  done: {type: end, output: "a ran {{a}} times"}
-- slow/a.sh --
echo a >> "$RADDLE_WORKSPACE/log"
cat "$RADDLE_WORKSPACE/gate"
printf '{"a": %s}' "$(grep -c a "$RADDLE_WORKSPACE/log")"
-- slow/b.sh --
echo b >> "$RADDLE_WORKSPACE/log"
echo '{}'
`

func (w *workplace) begin(args ...string) (*exec.Cmd, *console) {
	w.t.Helper()
	cmd, c := w.command(args...), newConsole()
	cmd.Stderr = c
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, c
}

func (w *workplace) send(cmd *exec.Cmd, sig syscall.Signal) {
	w.t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		w.t.Fatal(err)
	}
}

// The first signal lets the current step finish, and saves the run.
func TestSignalDrains(t *testing.T) {
	needBash(t)
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		t.Run(sig.String(), func(t *testing.T) {
			w := newWorkplace(t, gated)
			g := w.gate("gate")
			cmd, c := w.begin("run", "./slow")
			pass := g.arrive()
			w.send(cmd, sig)
			c.await(t, "Stopping after this step.")
			pass()
			if got := wait(t, cmd); got != code {
				t.Errorf("exit code %d, want %d\n%s", got, code, c)
			}
			if got := w.read("log"); got != "a\n" {
				t.Errorf("the scripts that ran: %q, want only the one under way", got)
			}
			runs := w.runs()
			if len(runs) != 1 || runs[0].Status != "paused" {
				t.Fatalf("runs: %v", runs)
			}
			if want := "next: raddle resume " + runs[0].Run; !strings.Contains(c.String(), want) {
				t.Errorf("standard error lacks %q:\n%s", want, c)
			}
			r := w.run("resume", "-q", runs[0].Run)
			if r.out != "a ran 1 times\n" || w.read("log") != "a\nb\n" {
				t.Errorf("resumed: %q %q, log %q", r.out, r.err, w.read("log"))
			}
		})
	}
}

// The second signal interrupts the running work. It runs again.
func TestSecondSignalCancels(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, gated)
	g := w.gate("gate")
	cmd, c := w.begin("run", "./slow", "--output", "stream-json")
	first := g.arrive()
	w.send(cmd, syscall.SIGINT)
	c.await(t, "Ctrl-C again")
	w.send(cmd, syscall.SIGINT)
	if got := wait(t, cmd); got != 130 {
		t.Errorf("exit code %d, want 130\n%s", got, c)
	}
	first()
	runs := w.runs()
	if len(runs) != 1 || runs[0].Status != "canceled" {
		t.Fatalf("runs: %v\n%s", runs, c)
	}
	again, c := w.begin("resume", runs[0].Run)
	g.arrive()()
	if got := wait(t, again); got != 0 || w.read("log") != "a\na\nb\n" {
		t.Errorf("resumed: exit code %d, log %q\n%s", got, w.read("log"), c)
	}
}

// The third signal quits at once; the run is as if it had crashed.
func TestThirdSignalQuits(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, strings.Replace(gated, "cat ", "trap '' TERM\ncat ", 1))
	g := w.gate("gate")
	cmd, c := w.begin("run", "./slow")
	defer g.arrive()()
	w.send(cmd, syscall.SIGINT)
	c.await(t, "Ctrl-C again")
	w.send(cmd, syscall.SIGINT)
	c.await(t, "to quit at once")
	w.send(cmd, syscall.SIGINT)
	if got := wait(t, cmd); got != 130 {
		t.Errorf("exit code %d, want 130\n%s", got, c)
	}
}

// One process drives a run. A second one is refused, and lists show the first.
func TestOneDriver(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, gated)
	g := w.gate("gate")
	cmd, _ := w.begin("run", "./slow")
	pass := g.arrive()
	runs := w.runs()
	if len(runs) != 1 || runs[0].Status != "running" {
		t.Fatalf("runs: %v", runs)
	}
	for _, args := range [][]string{{"resume", runs[0].Run}, {"runs", "rm", runs[0].Run}, {"runs", "edit", runs[0].Run, "a=1"}, {"runs", "prune", runs[0].Run}} {
		r := w.run(args...)
		if r.code != 8 || !strings.Contains(r.err, "is being driven by process "+itoa(cmd.Process.Pid)) {
			t.Errorf("%v: exit code %d, %s", args, r.code, r.err)
		}
	}
	pass()
	if got := wait(t, cmd); got != 0 {
		t.Errorf("exit code %d", got)
	}
	if runs := w.runs(); runs[0].Status != "done" {
		t.Errorf("runs: %v", runs)
	}
}

// To cancel a run that is being driven stops it first: its process ends the step and saves the run.
func TestCancelStopsTheDriver(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, gated)
	g := w.gate("gate")
	cmd, c := w.begin("run", "./slow")
	_ = g.arrive() // and is never let go
	run := w.runs()[0].Run
	cancel, said := w.begin("runs", "cancel", run)
	c.await(t, "another process has stopped it, to end it")
	if got := wait(t, cmd); got != 8 {
		t.Errorf("the driver: exit code %d, want 8\n%s", got, c)
	}
	if got := wait(t, cancel); got != 0 {
		t.Errorf("cancel: exit code %d\n%s", got, said)
	}
	if runs := w.runs(); runs[0].Status != "abandoned" {
		t.Errorf("runs: %v", runs)
	}
	if r := w.run("resume", run); r.code != 8 || !strings.Contains(r.err, "is over (abandoned)") {
		t.Errorf("resume: exit code %d, %s", r.code, r.err)
	}
}

// What a killed process has left behind is ended before a run is edited, and the
// current step starts again.
func TestEditAfterAKill(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, gated)
	g := w.gate("gate")
	cmd, _ := w.begin("run", "./slow")
	first := g.arrive()
	w.send(cmd, syscall.SIGKILL)
	wait(t, cmd)
	first()
	run := w.runs()[0].Run
	if r := w.run("runs", "edit", run, "extra=1"); r.code != 0 {
		t.Fatalf("edit: exit code %d, %s", r.code, r.err)
	}
	again, c := w.begin("resume", run)
	g.arrive()()
	if got := wait(t, again); got != 0 || w.read("log") != "a\na\nb\n" {
		t.Errorf("resumed: exit code %d, log %q\n%s", got, w.read("log"), c)
	}
	if r := w.run("runs", "show", run); !strings.Contains(r.out, "extra: 1") {
		t.Errorf("show: %s%s", r.out, r.err)
	}
}

// A process that was killed leaves a run that crashed, and no child.
func TestKilledRunContinues(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, gated)
	g := w.gate("gate")
	cmd, _ := w.begin("run", "./slow")
	first := g.arrive()
	w.send(cmd, syscall.SIGKILL)
	wait(t, cmd)
	first()
	runs := w.runs()
	if len(runs) != 1 || runs[0].Status != "crashed" {
		t.Fatalf("runs: %v", runs)
	}
	again, c := w.begin("resume", runs[0].Run)
	g.arrive()()
	if got := wait(t, again); got != 0 || w.read("log") != "a\na\nb\n" {
		t.Errorf("resumed: exit code %d, log %q\n%s", got, w.read("log"), c)
	}
}

const interrupted = `
-- stop/config.yaml --
name: stop
model: local:small
-- stop/tools.sh --
# @cmd Does something once.
hold() {
  echo held >> log
  cat gate >/dev/null
  echo done >> "$LLM_OUTPUT"
}
`

// A heldModel is a strict server of a model that says one thing after the other, and
// can be held while it does.
type heldModel struct {
	t    *testing.T
	url  string
	hold chan struct{} // of the first request: the reply does not continue until it is closed
	here chan struct{} // closed when the first reply has reached that point

	mu    sync.Mutex
	count int
}

// The phases say how far the first reply is when it is held.
const (
	beforeReply = "before the first token"
	midReply    = "in the middle of the reply"
	notHeld     = ""
)

func serveHeld(t *testing.T, phase, first string, later ...string) *heldModel {
	p := &heldModel{t: t, hold: make(chan struct{}), here: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = llmtest.OpenAI().Check(body)
		}
		if err != nil {
			t.Errorf("the request is refused: %v\n%s", err, body)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		p.mu.Lock()
		n := p.count
		p.count++
		p.mu.Unlock()
		held := func(at string) {
			if n == 0 && at == phase {
				w.(http.Flusher).Flush()
				close(p.here)
				select {
				case <-p.hold:
				case <-r.Context().Done():
				}
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		held(beforeReply)
		reply := first
		if n > 0 {
			reply = later[min(n, len(later))-1]
		}
		write := func(delta, finish string) {
			fmt.Fprintf(w, `data: {"id":"%d","object":"chat.completion.chunk","model":"small","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", n, delta, finish)
		}
		if reply == "hold" || reply == "ask" {
			args := map[string]string{"hold": `{}`, "ask": `{\"question\":\"Which?\",\"options\":[\"a\",\"b\"]}`}[reply]
			name := map[string]string{"hold": "hold", "ask": "user__ask"}[reply]
			write(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c%d","type":"function","function":{"name":"%s","arguments":"%s"}}]}`, n, name, args), "null")
			write("{}", `"tool_calls"`)
		} else {
			write(`{"content":"`+reply[:2]+`"}`, "null")
			held(midReply)
			write(`{"content":"`+reply[2:]+`"}`, `"stop"`)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *heldModel) workplace() *workplace {
	w := newWorkplace(p.t, interrupted)
	w.write(".config/raddle/config.yaml", "clients: [{name: local, type: openai-compatible, api_base: \""+p.url+"/v1\", api_key: k}]\n")
	return w
}

// An interrupted reply is requested again, and the provider accepts the
// conversation.
func TestInterruptedReply(t *testing.T) {
	for _, phase := range []string{beforeReply, midReply} {
		for _, session := range []string{"", "kept"} {
			t.Run(phase+" "+session, func(t *testing.T) {
				p := serveHeld(t, phase, "never told", "all is well")
				w := p.workplace()
				args := []string{"run", "./stop", "go"}
				if session != "" {
					args = append(args, "-s", session)
				}
				cmd, c := w.begin(args...)
				<-p.here
				w.send(cmd, syscall.SIGINT) // one is enough
				if got := wait(t, cmd); got != 130 {
					t.Fatalf("exit code %d\n%s", got, c)
				}
				r := w.run("resume", "-q", w.runs()[0].Run)
				if r.code != 0 || r.out != "all is well\n" {
					t.Errorf("resumed: exit code %d, %q\n%s", r.code, r.out, r.err)
				}
				if session != "" {
					if r := w.run("run", "-q", "./stop", "-s", session, "and now?"); r.code != 0 || r.out != "all is well\n" {
						t.Errorf("the next turn: exit code %d, %q\n%s", r.code, r.out, r.err)
					}
				}
			})
		}
	}
}

// A running tool finishes at the first signal, and is not called again. A
// second one interrupts it: its effect is unknown, and so a person is asked.
func TestInterruptedTool(t *testing.T) {
	needBash(t)
	for name, cut := range map[string]bool{"drained": false, "cut short": true} {
		t.Run(name, func(t *testing.T) {
			w := serveHeld(t, notHeld, "hold", "all is well").workplace()
			g := w.gate("gate")
			cmd, c := w.begin("run", "./stop", "go")
			pass := g.arrive()
			w.send(cmd, syscall.SIGINT)
			c.await(t, "Ctrl-C again")
			if cut {
				w.send(cmd, syscall.SIGINT)
			} else {
				pass()
			}
			if got := wait(t, cmd); got != 130 {
				t.Fatalf("exit code %d\n%s", got, c)
			}
			run := w.runs()[0].Run
			if cut {
				pass()
				r := w.run("resume", "-q", run)
				if r.code != 5 || !strings.Contains(r.err, "answers: retry, skip") {
					t.Fatalf("resumed: exit code %d\n%s%s", r.code, r.out, r.err)
				}
				r = w.run("resume", "-q", run, "--answer", "skip")
				if r.code != 0 || r.out != "all is well\n" {
					t.Errorf("answered: exit code %d, %q\n%s", r.code, r.out, r.err)
				}
			} else if r := w.run("resume", "-q", run); r.code != 0 || r.out != "all is well\n" {
				t.Errorf("resumed: exit code %d, %q\n%s", r.code, r.out, r.err)
			}
			if got := w.read("log"); got != "held\n" {
				t.Errorf("the tool ran: %q, want once", got)
			}
		})
	}
}

// Ctrl-C at a question leaves it open.
func TestInterruptedQuestion(t *testing.T) {
	w := serveHeld(t, notHeld, "ask", "all is well").workplace()
	s := w.screen(nil, "run", "./stop", "go")
	s.await("Other…")
	s.press(ctrlC)
	s.ends(5, "next: raddle resume ")
	if r := w.run("resume", "-q", w.runs()[0].Run, "--answer", "b"); r.code != 0 || r.out != "all is well\n" {
		t.Errorf("answered: exit code %d, %q\n%s", r.code, r.out, r.err)
	}
}

// If the newest turn of a session was killed, the list shows that turn, not the first one.
func TestKilledTurnIsListed(t *testing.T) {
	needBash(t)
	w := serveHeld(t, notHeld, "all is well", "hold", "over").workplace()
	g := w.gate("gate")
	if r := w.run("run", "-q", "./stop", "-s", "kept", "first"); r.code != 0 {
		t.Fatalf("the first turn: %s", r.err)
	}
	type turn struct {
		Run, Status, Agent, Graph string
		Started, Updated          time.Time
	}
	list := func() (turns []turn) {
		r := w.run("runs", "ls", "--output", "json")
		if err := json.Unmarshal([]byte(r.out), &turns); err != nil || len(turns) != 1 {
			t.Fatalf("%v %s%s", err, r.out, r.err)
		}
		return turns
	}
	first := list()[0]
	cmd, _ := w.begin("run", "./stop", "-s", "kept", "second")
	pass := g.arrive()
	w.send(cmd, syscall.SIGKILL)
	wait(t, cmd)
	pass()
	if got := list()[0]; got.Run == first.Run || got.Status != "crashed" || got.Agent != "stop" || got.Graph != first.Graph || !got.Started.After(first.Updated) {
		t.Errorf("%+v, after %+v", got, first)
	}
}

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

// SIGQUIT prints what the process does and has an exit code of its own; the run can be
// resumed.
func TestQuit(t *testing.T) {
	needBash(t)
	w := serveHeld(t, notHeld, "hold", "all is well").workplace()
	g := w.gate("gate")
	cmd, c := w.begin("run", "./stop", "go")
	pass := g.arrive()
	w.send(cmd, syscall.SIGQUIT)
	if got := wait(t, cmd); got != 131 || !strings.Contains(c.String(), "raddle: SIGQUIT\n") || !strings.Contains(c.String(), "goroutine 1 ") {
		t.Errorf("exit code %d\n%s", got, c)
	}
	pass()
	if r := w.run("resume", "-q", w.runs()[0].Run, "--in-doubt", "skip"); r.code != 0 || r.out != "all is well\n" {
		t.Errorf("%+v", r)
	}
}

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
