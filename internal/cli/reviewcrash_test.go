//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
	"raddle.dev/store/sqlite"
)

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
	w := newWorkplace(t, "")
	dir := filepath.Join(w.dir, "review")
	if err := os.CopyFS(dir, os.DirFS("../../examples/review")); err != nil {
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
	return &workplace{t: t, dir: w.dir, env: append(slices.Clone(w.env), "XDG_STATE_HOME="+own, "RADDLE_CONFIG_DIR="+own, "RAN="+c.notes)}, c
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
	for l, err := range graph.History(w.t.Context(), db, run) {
		if err != nil {
			w.t.Fatal(err)
		}
		if l.Kind != graph.KindEffect {
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
	dir, err := filepath.Abs("../../examples/review")
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
// up to the first of them, whatever was running.
func TestReviewStoppedAtEveryRecord(t *testing.T) {
	t.Parallel()
	want := reviewText(t)
	w, _ := reviewed(t)
	if r := w.run("run", "-q", "./review", "go"); r.code != 0 || r.out != want {
		t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	run := w.runs()[0].Run
	var journal []graph.Record
	db, err := sqlite.Open(filepath.Join(w.state(), "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range db.Read(t.Context(), run, graph.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		journal = append(journal, r)
	}
	if err := db.Close(); err != nil || len(journal) < 100 {
		t.Fatalf("%v, %d records", err, len(journal))
	}
	for n := 1; n < len(journal); n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w, c := w.apart(t)
			w.stopped(run, journal[:n])
			c.goOn(w, run, want)
		})
	}
}

// stopped sets up a store with a journal that ends too early.
func (w *workplace) stopped(run string, journal []graph.Record) {
	w.t.Helper()
	db, err := sqlite.Open(filepath.Join(w.state(), "runs.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := db.Append(w.t.Context(), run, 0, journal); err != nil {
		w.t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		w.t.Fatal(err)
	}
}
