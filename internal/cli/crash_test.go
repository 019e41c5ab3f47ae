//go:build unix

package cli_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// eventful is a graph with all kinds of outcomes that could be lost: model calls, parallel
// scripts, a map, and questions.
const eventful = `
-- eventful/graph.yaml --
name: eventful
model: local:small
start: ask
reducers: {log: append}
nodes:
  ask:
    type: llm
    prompt: "first {{initial_prompt}}"
    state_updates: {one: "{{output}}"}
    next: [left, right]
  left: {type: script, script: left.sh, state_updates: {}, next: review}
  right: {type: script, script: right.sh, state_updates: {}, next: review}
  review:
    type: approval
    question: "Go on with {{l}} and {{r}}?"
    options: [yes, no]
    routes: {yes: each, no: done}
    on_other: done
  each: {type: map, over: "{{items}}", as: item, branch: item, collect_into: seen, next: name}
  item: {type: script, script: item.sh}
  name: {type: input, question: Name?, default: Bob, state_updates: {who: "{{input}}"}, next: again}
  again: {type: llm, prompt: "second {{one}}", state_updates: {two: "{{output}}"}, next: done}
  done: {type: end, output: "{{one}} {{l}} {{r}} {{seen}} {{who}} {{two}}"}
-- eventful/left.sh --
echo left >> "$RADDLE_WORKSPACE/log"; echo '{"l": "L", "items": [1, 2, 3]}'
-- eventful/right.sh --
echo right >> "$RADDLE_WORKSPACE/log"; echo '{"r": "R"}'
-- eventful/item.sh --
echo item >> "$RADDLE_WORKSPACE/log"; echo '{"output": "i"}'
`

// A provider is a server that speaks the wire of OpenAI and counts.
type provider struct {
	mu    sync.Mutex
	calls map[string]int // by the first word of the prompt
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	prompt := req.Messages[len(req.Messages)-1].Content
	word, _, _ := strings.Cut(prompt, " ")
	p.mu.Lock()
	p.calls[word]++
	p.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	for _, text := range []string{"reply to ", word} {
		fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"small\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", text)
		w.(http.Flusher).Flush()
	}
	fmt.Fprint(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"small\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\n\ndata: [DONE]\n\n")
}

// count returns how often each outcome was made: replies by the server, scripts by
// their log.
func (p *provider) count(w *workplace) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := maps.Clone(p.calls)
	for line := range strings.Lines(w.read("log")) {
		n[strings.TrimSpace(line)]++
	}
	return n
}

// local sets up the server as the client "local".
func (p *provider) local(w *workplace) {
	server := httptest.NewServer(p)
	w.t.Cleanup(server.Close)
	w.write(".config/raddle/config.yaml", "clients: [{name: local, type: openai-compatible, api_base: \""+server.URL+"/v1\", models: [small]}]\n")
}

// killAt runs raddle until it has reported a number of events, and kills it. It returns
// false if the run was over before.
func (w *workplace) killAt(n int, args ...string) bool {
	w.t.Helper()
	cmd := w.command(append(args, "-q", "--output", "stream-json")...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	over := true
	for i := 1; lines.Scan(); i++ {
		if i == n {
			over = false
			_ = cmd.Process.Kill()
		}
		if strings.Contains(lines.Text(), `"kind":"result"`) {
			over = true
		}
	}
	_ = cmd.Wait()
	return !over
}

// recorded counts the effects that a run's journal holds, by their node.
func (w *workplace) recorded(run string) map[string]int {
	w.t.Helper()
	r := w.run("runs", "history", run, "--output", "json")
	var lines []struct{ Kind, What, Path string }
	if err := json.Unmarshal([]byte(r.out), &lines); err != nil {
		w.t.Fatalf("%v: %s%s", err, r.out, r.err)
	}
	n := map[string]int{}
	for _, l := range lines {
		if l.Kind == "effect" {
			n[strings.Split(l.What, ".")[1]]++
		}
	}
	return n
}

// Killed after any event, the run is resumed, perhaps killed again, and ends as if
// nothing had happened. What its journal held when it was killed is not made
// again.
func TestKilledAtEveryEvent(t *testing.T) {
	t.Parallel()
	needBash(t)
	const want = `reply to first L R ["i","i","i"] Bob reply to second`
	made := map[string]string{"ask": "first", "again": "second", "left": "left", "right": "right"}
	for n, more := 1, true; more; n++ {
		more = t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorkplace(t, eventful)
			p := &provider{calls: map[string]int{}}
			p.local(w)
			if !w.killAt(n, "run", "./eventful", "x", "--answer", "yes") {
				more = false
				return
			}
			runs := w.runs()
			if len(runs) != 1 {
				t.Fatalf("killed after event %d: runs %v", n, runs)
			}
			before, held := p.count(w), w.recorded(runs[0].Run)
			if runs[0].Status == "crashed" {
				w.killAt(3, "resume", runs[0].Run)
			}
			r := w.run("resume", "-q", runs[0].Run)
			if over := strings.Contains(r.err, "is over (done)"); !over && (r.code != 0 || r.out != want+"\n") {
				t.Errorf("resumed: exit code %d, %q, %s", r.code, r.out, r.err)
			}
			if show := w.run("runs", "show", runs[0].Run); !strings.Contains(show.out, "output     "+want) {
				t.Errorf("the run shows:\n%s", show.out)
			}
			after := p.count(w)
			for node, count := range held {
				if what := made[node]; what != "" && after[what] != before[what] {
					t.Errorf("%d outcomes of %s were recorded, and %d more were made", count, node, after[what]-before[what])
				}
			}
			if n := after["item"] - before["item"]; n > 2*(3-held["item"]) {
				t.Errorf("%d items were recorded, and %d more were made", held["item"], n)
			}
		}) && more
	}
}

// The same for every example; examples run without a network.
func TestKilledExamples(t *testing.T) {
	t.Parallel()
	needBash(t)
	dirs, err := filepath.Glob("../../examples/*/graph.yaml")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range dirs {
		dir, err := filepath.Abs(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			args := []string{"run", dir, "prompt", "--answer", "yes"}
			want := newWorkplace(t, "").run(append(args, "-q")...)
			if want.code != 0 {
				t.Fatalf("exit code %d: %s", want.code, want.err)
			}
			for n := 1; ; n += 4 {
				w := newWorkplace(t, "")
				if !w.killAt(n, args...) {
					break
				}
				run := w.runs()[0].Run
				r := w.run("resume", "-q", run)
				if strings.Contains(r.err, "is over (done)") {
					continue
				}
				if diff := cmp.Diff(want, r, cmp.AllowUnexported(result{})); diff != "" {
					t.Errorf("killed after event %d and resumed (-want +got):\n%s", n, diff)
				}
			}
		})
	}
}

// If the reader closes the output, the run stops and can continue.
func TestReaderGoesAway(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, gated)
	g := w.gate("gate")
	cmd := w.command("run", "./slow", "--output", "stream-json")
	errs := newConsole()
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pass := g.arrive()
	if _, err := io.ReadFull(out, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	pass()
	if code := wait(t, cmd); code != 141 || strings.Contains(errs.String(), "broken pipe") {
		t.Errorf("exit code %d, want 141\n%s", code, errs)
	}
	runs := w.runs()
	if len(runs) != 1 || !slices.Contains([]string{"canceled", "paused"}, runs[0].Status) {
		t.Fatalf("runs: %v", runs)
	}
	again, c := w.begin("resume", runs[0].Run)
	if w.recorded(runs[0].Run)["a"] == 0 {
		g.arrive()()
	}
	if code := wait(t, again); code != 0 {
		t.Errorf("resumed: exit code %d\n%s", code, c)
	}
}

// A standard output that cannot be written to is an error.
func TestFullOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full on this system")
	}
	defer full.Close()
	w := newWorkplace(t, gated)
	cmd := w.command("check", "./slow")
	errs := newConsole()
	cmd.Stdout, cmd.Stderr = full, errs
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(errs.String(), "the result cannot be written") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}
