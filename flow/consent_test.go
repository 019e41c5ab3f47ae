package flow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/graph"
)

// A script of a directory for which nobody stands asks before it runs, and only
// the answer for this once lets it.
func TestScriptsNobodyStandsForAsk(t *testing.T) {
	for answer, runs := range map[string]bool{"once": true, "no": false, "yes": false} {
		t.Run(answer, func(t *testing.T) {
			dir := t.TempDir()
			writeCaseFile(t, dir, "graph.yaml", "name: g\nstart: s\nnodes:\n  s: {type: script, script: s.sh, next: e}\n  e: {type: end, output: ran}\n")
			writeCaseFile(t, dir, "s.sh", "touch ran\n")
			a, err := Load(dir, Host{Workspace: dir, Tooling: Tooling{Doubts: func(string) bool { return true }}})
			if err != nil {
				t.Fatal(err)
			}
			g, err := a.CompileGraph()
			if err != nil {
				t.Fatal(err)
			}
			r := &graph.Runner{Graph: g, Store: graph.NewMemory()}
			res, err := r.Invoke(t.Context(), a.Input(""))
			if err != nil || res.Status != graph.Waiting || !strings.Contains(res.Questions[0].Prompt, "s.sh") {
				t.Fatalf("%v, %v, %v", res.Status, res.Questions, err)
			}
			res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: res.Thread, Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: answer}}})
			_, missing := os.Stat(filepath.Join(dir, "ran"))
			if done := err == nil && res.Status == graph.Done; done != runs || (missing == nil) != runs {
				t.Errorf("%v, %v, script ran: %v", res.Status, err, missing == nil)
			}
		})
	}
}

// Consent is never given ahead, whether the answer names the question or not.
func TestConsentIsNotGivenAhead(t *testing.T) {
	for _, ahead := range []graph.Answer{{Value: "once"}, {ID: "s", Value: "once"}} {
		dir := t.TempDir()
		writeCaseFile(t, dir, "graph.yaml", "name: g\nstart: s\nnodes:\n  s: {type: script, script: s.sh, next: e}\n  e: {type: end, output: ran}\n")
		writeCaseFile(t, dir, "s.sh", "touch ran\n")
		a, err := Load(dir, Host{Workspace: dir, Tooling: Tooling{Doubts: func(string) bool { return true }}})
		if err != nil {
			t.Fatal(err)
		}
		g, err := a.CompileGraph()
		if err != nil {
			t.Fatal(err)
		}
		in := a.Input("")
		in.Ahead = []graph.Answer{ahead}
		res, err := (&graph.Runner{Graph: g, Store: graph.NewMemory()}).Invoke(t.Context(), in)
		if _, missing := os.Stat(filepath.Join(dir, "ran")); err != nil || res.Status != graph.Waiting || missing == nil {
			t.Errorf("%+v: %v, %v", ahead, res.Status, err)
		}
	}
}

func TestScriptsNobodyStandsForAreRefusedWhereNobodyIs(t *testing.T) {
	dir := t.TempDir()
	writeCaseFile(t, dir, "graph.yaml", "name: g\nstart: s\nnodes:\n  s: {type: script, script: s.sh, next: e}\n  e: {type: end}\n")
	writeCaseFile(t, dir, "s.sh", "exit 0\n")
	a, err := Load(dir, Host{Headless: true, Tooling: Tooling{Doubts: func(string) bool { return true }}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := a.CompileGraph()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), a.Input("")); err == nil || !strings.Contains(err.Error(), "no person has consented") {
		t.Error(err)
	}
}
