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
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
	"raddle.dev/store/sqlite"
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
			w := newReleasedWorkplace(t, eventful)
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
	dirs, err := filepath.Glob("../../../examples/*/graph.yaml")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range dirs {
		dir, err := filepath.Abs(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			answer := "yes"
			code := 0
			if filepath.Base(dir) == "leave" { // with a "yes" it waits for days
				answer = "no"
				code = 64
			}
			args := []string{"run", dir, "prompt", "--answer", answer}
			want := newReleasedWorkplace(t, "").run(append(args, "-q")...)
			if want.code != code {
				t.Fatalf("exit code %d: %s", want.code, want.err)
			}
			for n := 1; ; n += 4 {
				w := newReleasedWorkplace(t, "")
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

// A cast speaks the wire of OpenAI, answers each request from a transcript,
// whatever the requests before, and counts the requests.
type cast struct {
	t          *testing.T
	transcript []byte
	notes      string // the file in which tools record that they have run
	requests   atomic.Int64
}

// A line is a message of the wire, as far as a transcript looks at it.
type line struct{ Role, Content string }

func (c *cast) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.requests.Add(1)
	var body struct{ Messages []line }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	model, err := script.Parse("transcript.yaml", c.transcript)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply, err := llm.Generate(r.Context(), model, asked(body.Messages))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	delta := map[string]any{"content": reply.Text()}
	var calls []any
	for _, p := range reply.Message.Parts {
		if call, ok := p.(llm.ToolCall); ok {
			calls = append(calls, map[string]any{"index": len(calls), "id": call.ID, "type": "function",
				"function": map[string]any{"name": call.Name, "arguments": string(call.Args)}})
		}
	}
	finish := "stop"
	if calls != nil {
		delta["tool_calls"], finish = calls, "tool_calls"
	}
	for _, choice := range []any{map[string]any{"index": 0, "delta": delta}, map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}} {
		chunk, err := json.Marshal(map[string]any{"id": "1", "object": "chat.completion.chunk", "model": "small", "choices": []any{choice}})
		if err != nil {
			c.t.Error(err)
		}
		fmt.Fprintf(w, "data: %s\n\n", chunk)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// asked returns what a transcript is asked.
func asked(lines []line) (r llm.Request) {
	for _, l := range lines {
		switch m := (llm.Message{Role: llm.Role(l.Role)}); l.Role {
		case "system", "developer":
			r.System += l.Content
		case "tool":
			m.Parts = []llm.Part{llm.ToolResult{Content: []llm.Part{llm.Text{Text: l.Content}}}}
			r.Messages = append(r.Messages, m)
		default:
			m.Parts = []llm.Part{llm.Text{Text: l.Content}}
			r.Messages = append(r.Messages, m)
		}
	}
	return r
}

// reviewed is a place with the example, whose tools record that they have run
// and whose models are called over the network.
func reviewed(t *testing.T) (*workplace, *cast) {
	t.Helper()
	needBash(t)
	w := newReleasedWorkplace(t, "")
	dir := filepath.Join(w.dir, "review")
	if err := os.CopyFS(dir, os.DirFS("../../../examples/review")); err != nil {
		t.Fatal(err)
	}
	for file, c := range map[string][2]string{
		"config.yaml": {"model: script:transcript.yaml", "model: local:small"},
		"tools.sh":    {"set -euo pipefail\n", "set -euo pipefail\necho \"$LLM_AGENT_FUNC\" >>\"$RAN\"\n"},
	} {
		text := w.read(filepath.Join("review", file))
		if !strings.Contains(text, c[0]) {
			t.Fatalf("%s has no %q", file, c[0])
		}
		w.write(filepath.Join("review", file), strings.Replace(text, c[0], c[1], 1))
	}
	return w.apart(t)
}

// apart returns the same place with its own runs, configuration, models and notes.
func (w *workplace) apart(t *testing.T) (*workplace, *cast) {
	t.Helper()
	own := t.TempDir()
	c := &cast{t: t, transcript: []byte(w.read("review/transcript.yaml")), notes: filepath.Join(own, "ran")}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	config := "clients: [{name: local, type: openai-compatible, api_base: \"" + server.URL + "/v1\", models: [small]}]\n"
	if err := os.WriteFile(filepath.Join(own, "config.yaml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	return &workplace{t: t, dir: w.dir, program: w.program, env: append(slices.Clone(w.env), "XDG_STATE_HOME="+own, "RADDLE_CONFIG_DIR="+own, "RAN="+c.notes)}, c
}

// made counts the requests of models, and the tools that ran.
func (c *cast) made() [2]int {
	text, err := os.ReadFile(c.notes)
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	return [2]int{int(c.requests.Load()), strings.Count(string(text), "\n")}
}

// kept counts the same in the journal: replies, and outcomes of the tools that record
// that they ran. Each occurs once.
func (w *workplace) kept(run string) (n [2]int) {
	w.t.Helper()
	db, err := sqlite.Open(filepath.Join(w.state(), "runs.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	seen := map[string]bool{}
	for l, err := range history.Entries(w.t.Context(), db, run) {
		if err != nil {
			w.t.Fatal(err)
		}
		if l.Kind != journal.KindEffect {
			continue
		}
		if key := l.Path + " " + l.What; seen[key] {
			w.t.Errorf("%s is in the journal twice", key)
		} else {
			seen[key] = true
		}
		switch what := strings.ReplaceAll(l.What, "\x00", " "); {
		case strings.Contains(what, " model "):
			n[0]++
		case strings.Contains(what, " tool ") && !strings.Contains(what, " tool agent__"):
			n[1]++
		}
	}
	return n
}

// state is the directory of the runs.
func (w *workplace) state() (dir string) {
	for _, kv := range w.env {
		if value, ok := strings.CutPrefix(kv, "XDG_STATE_HOME="); ok {
			dir = filepath.Join(value, "raddle") // the last one counts
		}
	}
	return dir
}

// goOn resumes a run that has stopped at some point and checks that it ends like one that
// has not, and repeats nothing that its journal holds.
func (c *cast) goOn(w *workplace, run, want string) {
	w.t.Helper()
	made, kept := c.made(), w.kept(run)
	r := w.run("resume", "-q", run)
	if over := strings.Contains(r.err, "is over (done)"); !over && (r.code != 0 || r.out != want) {
		w.t.Fatalf("resumed: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	after, now := c.made(), w.kept(run)
	for i, what := range []string{"requests of models", "runs of tools"} {
		if did, held := after[i]-made[i], now[i]-kept[i]; did != held {
			w.t.Errorf("%d %s for %d new outcomes: %d were recorded before, %d are now", did, what, held, kept[i], now[i])
		}
	}
	if now[0] == 0 || now[1] != 10 {
		w.t.Errorf("the journal has %d replies and %d outcomes", now[0], now[1])
	}
}

// reviewText runs the example as its readers do, and returns the text that the killed runs must end with.
func reviewText(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../examples/review")
	if err != nil {
		t.Fatal(err)
	}
	r := newWorkplace(t, "").run("run", dir, "May this change be merged?", "--strict")
	for _, want := range []string{"orders.py:9", "cart.py:10", "test_cart.py:8"} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Fatalf("exit code %d, %q is missing\n%s%s", r.code, want, r.out, r.err)
		}
	}
	if strings.Count(r.err, " completed in ") != 4 || strings.Contains(r.err, "warning") {
		t.Errorf("it told:\n%s", r.err)
	}
	return r.out
}

// A team is killed with SIGKILL at many points of the run, and resumed.
func TestKilledReview(t *testing.T) {
	t.Parallel()
	want := reviewText(t)
	for n, over := 1, false; !over; n += 23 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w, c := reviewed(t)
			if over = !w.killAt(n, "run", "./review", "go"); over {
				return
			}
			c.goOn(w, w.runs()[0].Run, want)
		})
	}
}

// A process can die between any two records. Then the disk holds the journal
// up to the first of them, whatever was running. make soak tries each record, make test every third.
func TestReviewStoppedAtEveryRecord(t *testing.T) {
	t.Parallel()
	want := reviewText(t)
	w, _ := reviewed(t)
	if r := w.run("run", "-q", "./review", "go"); r.code != 0 || r.out != want {
		t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	run := w.runs()[0].Run
	var all []journal.Record
	db, err := sqlite.Open(filepath.Join(w.state(), "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range db.Read(t.Context(), run, journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := db.Close(); err != nil || len(all) < 100 {
		t.Fatalf("%v, %d records", err, len(all))
	}
	step := 3
	if testneed.Soaks() {
		step = 1
	}
	for n := 1; n < len(all); n += step {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w, c := w.apart(t)
			w.stopped(run, all[:n])
			c.goOn(w, run, want)
		})
	}
}

// stopped sets up a store with a journal that ends too early.
func (w *workplace) stopped(run string, all []journal.Record) {
	w.t.Helper()
	db, err := sqlite.Open(filepath.Join(w.state(), "runs.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := db.Append(w.t.Context(), run, 0, all); err != nil {
		w.t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// fiveTools is an agent whose five tools record that they have run.
const fiveTools = `
-- five/config.yaml --
name: Five
model: script:transcript.yaml
-- five/transcript.yaml --
- match: go
  turn: 1
  tool_calls: [{name: look, args: {}}, {name: put, args: {}}, {name: send, args: {}}, {name: pay, args: {}}, {name: peek, args: {}}]
- match: go
  turn: 2
  text: all done
-- five/tools.sh --
set -e
note() { echo "$1 $RADDLE_IDEMPOTENCY_KEY" >>ran; echo "did $1" >>"$LLM_OUTPUT"; }
# @cmd Looks.
# raddle: read-only
look() { note look; }
# @cmd Puts.
# raddle: idempotent
put() { note put; }
# @cmd Sends.
send() { note send; }
# @cmd Pays.
pay() { note pay; }
# @cmd Looks again.
# raddle: read-only
peek() { note peek; }
`

// outcomes lists the tools whose outcome a run's journal holds.
func (w *workplace) outcomes(run string) map[string]bool {
	w.t.Helper()
	r := w.run("runs", "history", run, "--output", "json")
	var lines []struct{ Kind, What string }
	if err := json.Unmarshal([]byte(r.out), &lines); err != nil {
		w.t.Fatalf("%v: %s%s", err, r.out, r.err)
	}
	held := map[string]bool{}
	for _, l := range lines {
		if _, name, ok := strings.Cut(l.What, "tool "); ok && l.Kind == "effect" {
			name, _, _ = strings.Cut(name, ".")
			name, _, _ = strings.Cut(name, ":")
			name, _, _ = strings.Cut(name, " ")
			held[name] = true
		}
	}
	return held
}

// ran counts how often each tool has run, and with how many keys.
func (w *workplace) ran() (times map[string]int, keys map[string]map[string]bool) {
	times, keys = map[string]int{}, map[string]map[string]bool{}
	for line := range strings.Lines(w.read("ran")) {
		name, key, _ := strings.Cut(strings.TrimSpace(line), " ")
		if times[name]++; keys[name] == nil {
			keys[name] = map[string]bool{}
		}
		keys[name][key] = true
	}
	return times, keys
}

// Killed with SIGKILL after any event and resumed, a run with five calls ends as
// if nothing had happened: no call with a recorded outcome runs again, a call that was
// declared harmless runs again with its key, and for the others a person is asked.
func TestKilledBetweenCalls(t *testing.T) {
	t.Parallel()
	needBash(t)
	for n, more := 1, true; more; n++ {
		more = t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newReleasedWorkplace(t, fiveTools)
			if !w.killAt(n, "run", "./five", "go") {
				more = false
				return
			}
			runs := w.runs()
			if len(runs) != 1 {
				t.Fatalf("runs %v", runs)
			}
			before, _ := w.ran()
			held := w.outcomes(runs[0].Run)
			r := w.run("resume", "-q", runs[0].Run, "--answer", "skip", "--answer", "skip")
			if over := strings.Contains(r.err, "is over (done)"); !over && (r.code != 0 || r.out != "all done\n") {
				t.Fatalf("resumed: exit code %d, %q, %s", r.code, r.out, r.err)
			}
			after, keys := w.ran()
			for _, name := range []string{"look", "put", "send", "pay", "peek"} {
				harmless := name != "send" && name != "pay"
				switch {
				case held[name] && after[name] != before[name]:
					t.Errorf("the outcome of %s was recorded, and it ran again", name)
				case !harmless && after[name] > 1 || after[name] > 2:
					t.Errorf("%s ran %d times", name, after[name])
				case harmless && after[name] == 0:
					t.Errorf("%s never ran", name)
				case after[name] > 0 && (len(keys[name]) != 1 || keys[name][""]):
					t.Errorf("%s ran with the keys %v", name, keys[name])
				}
			}
		}) && more
	}
}

// A killed raddle leaves the temporary files of its script behind: the state, which
// is too large for the environment. The next start removes them.
func TestKilledLeavesNoTemporaryFiles(t *testing.T) {
	t.Parallel()
	needBash(t)
	w := newWorkplace(t, strings.Replace(gated, "start: a", "initial_state: {big: "+strings.Repeat("x", 40_000)+"}\nstart: a", 1))
	temp := filepath.Join(w.dir, "temp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "TMPDIR="+temp)
	leftover := func() (files []string) {
		err := filepath.WalkDir(temp, func(path string, _ os.DirEntry, err error) error {
			if path != temp {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	g := w.gate("gate")
	cmd, _ := w.begin("run", "./slow")
	pass := g.arrive()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wait(t, cmd)
	pass()
	if len(leftover()) == 0 {
		t.Fatal("the killed process has left nothing: this test shows nothing")
	}
	ended := make(chan result, 1)
	go func() { ended <- w.run("resume", w.runs()[0].Run) }()
	g.arrive()()
	if r := <-ended; r.code != 0 {
		t.Fatalf("resumed: %d, %s", r.code, r.err)
	}
	if files := leftover(); len(files) > 0 {
		t.Errorf("left behind: %q", files)
	}
}
