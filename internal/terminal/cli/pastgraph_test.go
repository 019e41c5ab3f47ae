//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every format draws a past run with the graph that it has used, also after its file has changed or is gone; a resume that accepts the
// changes continues with another graph, and a moment before that is still drawn with the first.
func TestPastRunsAreDrawnInEveryFormat(t *testing.T) {
	const first = `
name: past
start: alpha
nodes:
  alpha: {type: script, script: alpha.sh, next: ask}
  ask: {type: input, question: Who?, next: omega}
  omega: {type: end, output: over}
`
	second := strings.ReplaceAll(strings.ReplaceAll(first, "alpha", "beta"), "omega", "gamma")
	w := newWorkplace(t, "-- past/graph.yaml --"+first+"-- past/alpha.sh --\necho '{}'\n-- past/beta.sh --\necho '{}'\n")
	if r := w.run("run", "-q", "./past", "x"); r.code != 5 {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	formats := map[string]string{"mermaid": "alpha", "dot": "alpha", "svg": `data-node="alpha"`, "json": `"alpha"`, "text": "alpha"}
	expect := func(run, want, never string) {
		t.Helper()
		for format, node := range formats {
			r := w.run("graph", run, "--format", format)
			if r.code != 0 || !strings.Contains(r.out, strings.ReplaceAll(node, "alpha", want)) || strings.Contains(r.out, never) {
				t.Errorf("graph %s as %s, want %s and not %s: exit code %d\n%s%s", run, format, want, never, r.code, r.out, r.err)
			}
		}
		if r := w.run("graph", run, "-o", "p.png"); r.code != 0 {
			t.Errorf("png: %s", r.err)
		}
		if r := w.run("watch", run); !strings.Contains(run, "@") && (strings.Contains(r.err, never) || !strings.Contains(r.err, want)) {
			t.Errorf("watch %s, want %s and not %s:\n%s", run, want, never, r.err)
		}
	}
	expect("last", "alpha", "beta")
	w.write("past/graph.yaml", second)
	expect("last", "alpha", "beta")
	if r := w.run("graph", "last"); !strings.Contains(r.err, "have changed since") {
		t.Errorf("graph says about the changed file\n%s", r.err)
	}
	if err := os.RemoveAll(filepath.Join(w.dir, "past/graph.yaml")); err != nil {
		t.Fatal(err)
	}
	expect("last", "alpha", "beta")
	w.write("past/graph.yaml", strings.ReplaceAll(second, "beta", "alpha")) // another node at the end
	if r := w.run("resume", "last", "--accept-changes", "--answer", "me"); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	expect("last", "gamma", "omega")
	expect("last@1", "alpha", "gamma")
}

// Who answers a run that someone else has answered learns what was answered and when.
func TestASecondAnswerIsExplained(t *testing.T) {
	w := newWorkplace(t, "-- ask/graph.yaml --\nname: ask\nstart: ask\nnodes:\n  ask: {type: input, question: Who?, next: done}\n  done: {type: end, output: over}\n")
	w.run("run", "-q", "./ask", "x")
	if r := w.run("resume", "last", "--answer", "ask=me"); r.code != 0 {
		t.Fatal(r.err)
	}
	for _, answer := range []string{"ask=you", "you"} {
		if r := w.run("resume", "last", "--answer", answer); r.code == 0 || !strings.Contains(r.err, `question "ask" of run`) || !strings.Contains(r.err, `was answered "me" at `) {
			t.Errorf("--answer %s: exit code %d\n%s", answer, r.code, r.err)
		}
	}
}
