package flow_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/flow"
	"raddle.dev/graph"
)

// The handbook answers from each of its documents, names it, and answers from a changed one on the next run.
func TestHandbook(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "handbook")
	if err := os.CopyFS(dir, os.DirFS("../examples/handbook")); err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{"knowledge.yaml", "knowledge.db", "knowledge.db-wal", "knowledge.db-shm"} {
		if err := os.RemoveAll(filepath.Join(dir, made)); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(question string) string {
		t.Helper()
		r := &exampleRun{t, dir, &transcripts{calls: map[string]int{}}}
		runner, a := r.runner(graph.NewMemory())
		res, err := runner.Invoke(t.Context(), a.Input(question))
		if err != nil {
			t.Fatal(a.Explain(err))
		}
		return flow.OutcomeOf(res).Output
	}
	for _, c := range []struct{ question, answer, first string }{
		{"How long is the notice period?", "Four weeks to the end", "leave.md"},
		{"What must I do with a burn?", "lukewarm water", "safety.docx"},
		{"How much may a hotel cost?", "Up to 110 euros", "expenses.pdf"},
		{"What is paid for the night shift?", "25 percent", "hours.html"},
	} {
		out := ask(c.question)
		_, sources, ok := strings.Cut(out, "Sources: [")
		first, _, _ := strings.Cut(sources, ",")
		if !ok || !strings.Contains(out, c.answer) || !strings.Contains(first, c.first) {
			t.Errorf("%s\n%s\nwant %q from %s", c.question, out, c.answer, c.first)
		}
	}
	path := filepath.Join(dir, "documents", "leave.md")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), "four weeks to the end", "six weeks to the end", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out := ask("How long is the notice period?"); strings.Contains(out, "Four weeks") || !strings.Contains(out, "leave.md") {
		t.Errorf("after the change: %s", out)
	}
}
