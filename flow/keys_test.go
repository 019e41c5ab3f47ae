//go:build unix

package flow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// rowBytes is about what a store needs for a record in addition to its content.
const rowBytes = 256

// written counts the bytes that a store is given.
type written struct {
	journal.Store
	bytes int
}

func (w *written) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	for _, r := range recs {
		w.bytes += len(r.Head) + len(r.Data) + rowBytes
	}
	return w.Store.Append(ctx, thread, after, recs)
}

// A list that a loop appends to costs the journal what is added, not the list
// again with every step; a reader without the graph sees it whole.
func TestAGrowingListIsStoredOnce(t *testing.T) {
	bytesOf := func(rounds int) int {
		dir := filepath.Join(t.TempDir(), "loop")
		writeCaseFile(t, dir, "graph.yaml", fmt.Sprintf(`
name: loop
settings: {max_loop_iterations: 10000, validate_before_run: false}
reducers: {log: append, n: sum}
initial_state: {log: [first], left: %d}
start: turn
nodes:
  turn: {type: input, question: more?, state_updates: {log: "an entry of the log with some text in it"}, next: again}
  again: {type: approval, question: again?, options: ["yes", "no"], routes: {"yes": turn, "no": done}, on_other: done}
  done: {type: end, output: "{{log}}"}
`, rounds))
		a, err := Load(dir, Host{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := a.CompileGraph()
		if err != nil {
			t.Fatal(err)
		}
		in := a.Input("")
		in.Thread = "t"
		for range rounds - 1 {
			in.Ahead = append(in.Ahead, graph.Answer{ID: "turn", Value: "x"}, graph.Answer{ID: "again", Value: "yes"})
		}
		in.Ahead = append(in.Ahead, graph.Answer{ID: "turn", Value: "x"}, graph.Answer{ID: "again", Value: "no"})
		w := &written{Store: journal.NewMemory()}
		res, err := (&graph.Runner{Graph: g, Store: w}).Invoke(t.Context(), in)
		if err != nil || res.Status != graph.Done {
			t.Fatalf("%v, %v", res.Status, err)
		}
		list, _ := res.State.Value("log")
		if items, _ := list.([]any); len(items) != rounds+1 {
			t.Fatalf("%d entries after %d rounds", len(items), rounds)
		}
		s, err := history.Inspect(t.Context(), w, "t", 0)
		if err != nil || string(StoredJSON(s.Values)) != string(StateJSON(res.State)) {
			t.Errorf("the journal says %s, the state is %s (%v)", StoredJSON(s.Values), StateJSON(res.State), err)
		}
		return w.bytes
	}
	small, large := bytesOf(300), bytesOf(1200)
	if ratio := float64(large) / float64(small); ratio > 6 {
		t.Errorf("300 rounds wrote %d bytes, 1200 wrote %d: %.2f times as much", small, large, ratio)
	}
}

func TestSecretsReachNeitherStateNorJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "leak")
	writeCaseFile(t, dir, "graph.yaml", `
name: leak
start: s
nodes:
  s: {type: script, script: s.sh, next: e}
  e: {type: end, output: "{{key}}"}
`)
	writeCaseFile(t, dir, "s.sh", "echo \"{\\\"key\\\": \\\"$TOKEN\\\"}\"\n")
	const secret = "tok-very-secret-1"
	a, err := Load(dir, Host{Env: append(os.Environ(), "TOKEN="+secret), Redactor: NewRedactor(secret)})
	if err != nil {
		t.Fatal(err)
	}
	g, err := a.CompileGraph()
	if err != nil {
		t.Fatal(err)
	}
	mem := journal.NewMemory()
	in := a.Input("")
	in.Thread = "t"
	res, err := (&graph.Runner{Graph: g, Store: mem}).Invoke(t.Context(), in)
	if err != nil || OutcomeOf(res).Output != "[redacted]" {
		t.Fatalf("%q, %v", OutcomeOf(res).Output, err)
	}
	for r, err := range mem.Read(t.Context(), "t", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if all := string(r.Head) + string(r.Data); strings.Contains(all, secret) {
			t.Errorf("record %d (%s) holds the secret", r.Seq, r.Kind)
		}
	}
}

// Values that other packages keep in a journal are written as JSON too.
func TestStoredJSON(t *testing.T) {
	tests := map[string]struct {
		tag   string
		parts []string
		want  string
	}{
		"a text":                    {tag: "string", parts: []string{"price?"}, want: `"price?"`},
		"a text that is a number":   {tag: "string", parts: []string{"17"}, want: `"17"`},
		"an empty text":             {tag: "string", parts: []string{""}, want: `""`},
		"a number":                  {tag: "int", parts: []string{"17"}, want: `17`},
		"bytes":                     {tag: "[]uint8", parts: []string{"=x"}, want: `"=x"`},
		"a list in parts":           {tag: "json", parts: []string{"[1]", "[]", "[2,3]"}, want: `[1,2,3]`},
		"a list that began as none": {tag: "json", parts: []string{"null", "[2]"}, want: `[2]`},
		"a mapping in parts":        {tag: "json", parts: []string{`{"a":1,"b":2}`, `{"b":3}`}, want: `{"a":1,"b":3}`},
		"nothing":                   {tag: "json", parts: nil, want: `[]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := history.StoredValue{Key: "k", Tag: test.tag}
			for _, p := range test.parts {
				s.Parts = append(s.Parts, []byte(p))
			}
			if got := string(StoredJSON([]history.StoredValue{s})); got != `{"k":`+test.want+`}` {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// Templates cannot make texts without end: the node fails and says what to do.
func TestRenderedTextsHaveALimit(t *testing.T) {
	doubling := "name: g\ninitial_state: {k0: \"0123456789\"}\nstart: a\nnodes:\n  a:\n    type: script\n    script: a.sh\n    next: e\n    state_updates:\n"
	for i := range 28 {
		doubling += fmt.Sprintf("      k%d: \"{{k%d}}{{k%d}}\"\n", i+1, i, i)
	}
	doubling += "  e: {type: end}\n"
	wide := "name: g\ninitial_state: {k: \"" + strings.Repeat("x", 900) + "\"}\nstart: a\nnodes:\n  a: {type: script, script: a.sh, next: e, state_updates: {"
	for i := range 6 {
		wide += fmt.Sprintf("w%d: \"{{k}}\", ", i)
	}
	wide += "last: \"x\"}}\n  e: {type: end}\n"
	list := "name: g\ninitial_state: {k: [\"" + strings.Repeat("x", 600) + "\", \"" + strings.Repeat("y", 600) + "\"]}\nstart: e\nnodes:\n"
	for _, k := range []struct {
		name, text string
		most       int
		want       string // "": it is done
	}{
		{"doubled again and again, 16 MiB", doubling, 0, "state_updates, key 'k21': the rendered text is larger than 16 MiB: shorten the values in it, or raise `max_value` in raddle's config.yaml"},
		{"doubled again and again", doubling, 1000, "state_updates, key 'k7': the rendered text is larger than 1000 bytes"},
		{"many that are not too large", wide, 1000, "all texts of the node together: the rendered text is larger than 1000 bytes"},
		{"many that are not too large, without a limit", wide, -1, ""},
		{"as large as it may be", wide, 1500, ""},
		{"an end", list + "  e: {type: end, output: \"{{k}}\"}\n", 1000, "the output of an end node: the rendered text is larger than 1000 bytes"},
		{"a prompt", list + "  e: {type: llm, model: \"m:x\", prompt: \"{{k}}\", next: f}\n  f: {type: end, output: \"{{k[0]}}\"}\n", 1000, ""},
		{"a default", list + "  e: {type: input, question: \"what?\", default: \"{{k}}\", next: f}\n  f: {type: end}\n", 1000, "the default of an input node: the rendered text is larger than 1000 bytes"},
	} {
		t.Run(k.name, func(t *testing.T) {
			r := newResumable(t, map[string]string{"graph.yaml": k.text, "a.sh": "echo '{}'"})
			models := &busyModels{}
			res, err := r.driveIn(Host{Bounds: Bounds{Value: k.most}, Models: models})
			if k.want == "" {
				if err != nil || res.Status != graph.Done || len(models.times) > 0 {
					t.Fatalf("%v, %v, %d requests", res.Status, err, len(models.times))
				}
				return
			}
			var size *spec.ValueSizeError
			if !errors.As(err, &size) || !strings.Contains(err.Error(), k.want) {
				t.Errorf("%v, %v, want %q", res.Status, err, k.want)
			}
		})
	}
}
