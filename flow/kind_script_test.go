//go:build linux

package flow

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"raddle.dev/flow/check"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/proc"
)

// What a script starts ends with it, also where it has left the script's group,
// and after the script's own timeout.
func TestChildrenOfScriptsEnd(t *testing.T) {
	for name, then := range map[string]string{"script ends": "echo '{}'", "script times out": "sleep 1000"} {
		t.Run(name, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := unix.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1) // the last process that holds the fifo has ended
			go func() {
				f, err := os.Open(fifo)
				if err == nil {
					_, err = io.ReadAll(f)
				}
				ended <- err
			}()
			r := newResumable(t, map[string]string{
				"graph.yaml": "name: g\nstart: s\nnodes:\n  s: {type: script, script: s.sh, timeout: 1, fallback: e, next: e}\n  e: {type: end}\n",
				"s.sh":       "exec 9>" + fifo + "\nsetsid sleep 1000 >/dev/null 2>&1 </dev/null &\n" + then + "\n",
			})
			if _, err := r.drive(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A whole number that no integer type holds becomes a float: that is said.
func TestRoundedNumbersAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{"n": 123456789012345678901234567890}`:                                         "123456789012345678901234567890",
		`{"a": [1, {"n": -99999999999999999999}], "b": 123456789012345678901234567890}`: "-99999999999999999999",
		`{"n": 18446744073709551615, "m": -9223372036854775808, "f": 1e30, "z": -0}`:    "",
	} {
		if r, err := parseScriptOutput(text); err != nil || r.Rounded != want {
			t.Errorf("%s: %q, %v", text, r.Rounded, err)
		}
	}
}

// TestScriptsRunWhereTheCallerIs: a script sees the project that raddle was started in, unless the graph or
// the node says that it runs in the agent's directory.
func TestScriptsRunWhereTheCallerIs(t *testing.T) {
	for _, k := range []struct{ graph, node, want string }{
		{"", "", "project"},
		{"", "working_dir: caller", "project"},
		{"", "working_dir: agent", "agent"},
		{"working_dir: agent", "", "agent"},
		{"working_dir: agent", "working_dir: caller", "project"},
		{"working_dir: caller", "", "project"},
	} {
		t.Run(k.graph+","+k.node, func(t *testing.T) {
			root := t.TempDir()
			agent, project := filepath.Join(root, "agent"), filepath.Join(root, "project")
			if err := os.Mkdir(project, 0o755); err != nil {
				t.Fatal(err)
			}
			writeCaseFile(t, agent, "graph.yaml", "name: g\n"+k.graph+"\nstart: s\nnodes:\n  s:\n    type: script\n    script: s.sh\n    next: e\n    "+k.node+
				"\n  e: {type: end, output: \"{{here}}\"}\n")
			writeCaseFile(t, agent, "s.sh", `printf '{"here": "%s"}' "$(basename "$PWD")"`)
			a, err := Load(agent, Host{Workspace: project})
			if err != nil {
				t.Fatal(err)
			}
			g, err := a.CompileGraph()
			if err != nil {
				t.Fatal(err)
			}
			res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), a.Input(""))
			if got, _ := res.Value.(string); err != nil || got != k.want {
				t.Errorf("it ran in %q, want %q (%v)", got, k.want, err)
			}
		})
	}
}

// TestWorkingDirHint: check names the file that a script will not find.
func TestWorkingDirHint(t *testing.T) {
	for script, want := range map[string]string{
		"cat data/owners.txt\n":                          "data/owners.txt",
		"done <./list.txt\n":                             "./list.txt",
		"open('list.txt')\n":                             "list.txt",
		"# cat list.txt\n":                               "",
		"cat \"$LLM_AGENT_DATA_DIR/list.txt\"\n":         "",
		"cat \"$(dirname \"$0\")/../list.txt\"\n":        "",
		"cat shared.txt; make build\n":                   "",
		"cat none.txt\n":                                 "",
		"cd \"${PROJECT_DIR:-.}\"; cat README.md go.mod": "",
	} {
		root := t.TempDir()
		agent, project := filepath.Join(root, "agent"), filepath.Join(root, "project")
		for _, name := range []string{"data/owners.txt", "list.txt", "shared.txt"} {
			writeCaseFile(t, agent, name, "x")
		}
		writeCaseFile(t, project, "shared.txt", "x")
		writeCaseFile(t, agent, "s.sh", script)
		f, err := ParseGraph("graph.yaml", []byte("name: g\nstart: s\nnodes:\n  s: {type: script, script: s.sh, next: e}\n  e: {type: end, output: ok}\n"))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range check.ValidateFile(f, check.Context{Dir: agent, Workspace: project}) {
			if f.Code == "working-dir" {
				got = f.Message
			}
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", script, got, want)
		}
	}
}

// TestUntrustedScriptsAsk: a script of a directory that is not trusted asks before it runs, and
// runs only if the answer is "once".
func TestUntrustedScriptsAsk(t *testing.T) {
	for answer, runs := range map[string]bool{"once": true, "no": false, "yes": false} {
		t.Run(answer, func(t *testing.T) {
			dir := t.TempDir()
			writeCaseFile(t, dir, "graph.yaml", "name: g\nstart: s\nnodes:\n  s: {type: script, script: s.sh, next: e}\n  e: {type: end, output: ran}\n")
			writeCaseFile(t, dir, "s.sh", "touch ran\n")
			a, err := Load(dir, Host{Workspace: dir, Tooling: Tooling{TrustsDir: func(string) bool { return false }}})
			if err != nil {
				t.Fatal(err)
			}
			g, err := a.CompileGraph()
			if err != nil {
				t.Fatal(err)
			}
			r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
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

// A person's answer counts where a box holds that did not hold when raddle asked: after "no" the script does not run, after "once" it runs as
// the person was told, outside. An open question stays open.
func TestAnAnswerCountsWhereABoxHolds(t *testing.T) {
	for _, c := range []struct {
		name, runs string
		answers    []graph.Answer
	}{
		{"no", "", []graph.Answer{{ID: "s", Value: "no"}}},
		{"refused", "", []graph.Answer{{ID: "s", Refused: "nobody is there"}}},
		{"once", "outside", []graph.Answer{{ID: "s", Value: "once"}}},
		{"open", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			writeCaseFile(t, dir, "graph.yaml", "name: g\nstart: s\nnodes:\n  s: {type: script, script: s.sh, next: e}\n  e: {type: end, output: ran}\n")
			writeCaseFile(t, dir, "s.sh", "echo outside > ran\n")
			holds := false
			confine := func(ctx context.Context, _ proc.Command) (proc.Result, error) {
				return proc.Result{Stdout: []byte("{}")}, os.WriteFile(filepath.Join(dir, "ran"), []byte("in the box\n"), 0o600)
			}
			a, err := Load(dir, Host{Workspace: dir, Tooling: Tooling{
				TrustsDir: func(string) bool { return false },
				HoldsBox:  func() bool { return holds },
				Confine:   confine,
			}})
			if err != nil {
				t.Fatal(err)
			}
			g, err := a.CompileGraph()
			if err != nil {
				t.Fatal(err)
			}
			r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
			res, err := r.Invoke(t.Context(), a.Input(""))
			if err != nil || res.Status != graph.Waiting {
				t.Fatalf("%v, %v", res.Status, err)
			}
			holds = true
			for range 2 { // a run that failed stays refused when it is resumed
				res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: res.Thread, Answers: c.answers})
				c.answers = nil
				ran, _ := os.ReadFile(filepath.Join(dir, "ran"))
				if strings.TrimSpace(string(ran)) != c.runs || (res.Status == graph.Done) != (c.runs != "") {
					t.Errorf("%v, %v: ran %q, want %q", res.Status, err, ran, c.runs)
				}
				if err == nil {
					break
				}
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
		a, err := Load(dir, Host{Workspace: dir, Tooling: Tooling{TrustsDir: func(string) bool { return false }}})
		if err != nil {
			t.Fatal(err)
		}
		g, err := a.CompileGraph()
		if err != nil {
			t.Fatal(err)
		}
		in := a.Input("")
		in.Ahead = []graph.Answer{ahead}
		res, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), in)
		if _, missing := os.Stat(filepath.Join(dir, "ran")); err != nil || res.Status != graph.Waiting || missing == nil {
			t.Errorf("%+v: %v, %v", ahead, res.Status, err)
		}
	}
}

func TestUntrustedScriptsAreRefusedIfHeadless(t *testing.T) {
	dir := t.TempDir()
	writeCaseFile(t, dir, "graph.yaml", "name: g\nstart: s\nnodes:\n  s: {type: script, script: s.sh, next: e}\n  e: {type: end}\n")
	writeCaseFile(t, dir, "s.sh", "exit 0\n")
	a, err := Load(dir, Host{Headless: true, Tooling: Tooling{TrustsDir: func(string) bool { return false }}})
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
