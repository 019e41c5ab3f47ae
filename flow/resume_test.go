package flow

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/llm/script"
)

// resumable is an agent whose run can be driven again after its files were mended.
type resumable struct {
	t     *testing.T
	dir   string
	store journal.Store
}

func newResumable(t *testing.T, files map[string]string) *resumable {
	r := &resumable{t, filepath.Join(t.TempDir(), "agent"), journal.NewMemory()}
	r.write(files)
	return r
}

func (r *resumable) write(files map[string]string) {
	for name, text := range files {
		writeCaseFile(r.t, r.dir, name, text)
	}
}

// drive starts the run, or resumes it with answers.
func (r *resumable) drive(answers ...graph.Answer) (graph.Result, error) {
	r.t.Helper()
	return r.driveIn(Host{}, answers...)
}

// driveIn is drive in given surroundings.
func (r *resumable) driveIn(h Host, answers ...graph.Answer) (graph.Result, error) {
	r.t.Helper()
	a, err := Load(r.dir, h)
	if err != nil {
		r.t.Fatal(err)
	}
	g, err := a.CompileGraph()
	if err != nil {
		r.t.Fatal(err)
	}
	runner := &graph.Runner{Graph: g, Store: r.store}
	if _, err := history.Inspect(r.t.Context(), r.store, "t", 0); err != nil {
		in := a.Input("")
		in.Thread = "t"
		return runner.Invoke(r.t.Context(), in)
	}
	return runner.InvokeResume(r.t.Context(), graph.Resume{Thread: "t", Answers: answers, AcceptChanges: true})
}

// Output with which a node can never continue is not recorded: after a correction of the script, a
// resumed run runs it again.
func TestAMendedScriptRunsAgain(t *testing.T) {
	const graphText = `
name: g
initial_state: {items: [1]}
start: s
nodes:
  s: {type: script, script: s.sh, next: m}
  m: {type: map, over: "{{items}}", as: i, branch: w, collect_into: out, next: e}
  w: {type: script, script: w.sh}
  e: {type: end, output: "{{k}} {{out}}"}
`
	r := newResumable(t, map[string]string{"graph.yaml": graphText, "s.sh": `echo '{"_next": "nowhere"}'`, "w.sh": `echo '{"other": 1}'`})
	if _, err := r.drive(); err == nil || !strings.Contains(err.Error(), "Node 'nowhere' not found") {
		t.Fatal(err)
	}
	r.write(map[string]string{"s.sh": "echo oops"})
	res, err := r.drive() // s failed without fallback: the run continues with m, which fails
	if err == nil || !strings.Contains(err.Error(), "did not write `output_key`") {
		t.Fatalf("%v, %v", res.Status, err)
	}
	r.write(map[string]string{"w.sh": `echo '{"output": 7}'`})
	if res, err = r.drive(); err != nil || OutcomeOf(res).Output != " [7]" {
		t.Fatalf("%q, %v", OutcomeOf(res).Output, err)
	}
}

// Answers that older versions recorded before they were checked fail their node, and
// the resumed run asks again.
func TestARecordedAnswerThatFailsItsValidationFailsTheNode(t *testing.T) {
	r := newResumable(t, map[string]string{"graph.yaml": `
name: g
start: ask
nodes:
  ask: {type: input, question: "name?", validation: "len(input) > 3", state_updates: {name: "{{input}}"}, next: e}
  e: {type: end, output: "{{name}}"}
`})
	if _, err := r.drive(); err != nil {
		t.Fatal(err)
	}
	r.record(graph.Answer{ID: "ask", Value: "ab"})
	res, err := r.drive()
	if err == nil || !strings.Contains(err.Error(), "Input failed validation 'len(input) > 3' (got 2 chars)") {
		t.Fatalf("%v, %v", res.Status, err)
	}
	res, err = r.drive()
	if err != nil || len(res.Questions) != 1 || res.Questions[0].ID != "ask#2" {
		t.Fatalf("%v, %+v, %v", res.Status, res.Questions, err)
	}
	res, err = r.drive(graph.Answer{ID: "ask#2", Value: "abcd"})
	if err != nil || OutcomeOf(res).Output != "abcd" {
		t.Errorf("%q, %v", OutcomeOf(res).Output, err)
	}
}

// record journals an answer to the node ask that nothing has checked, and dies.
func (r *resumable) record(answer graph.Answer) {
	r.t.Helper()
	ctx, die := context.WithCancel(r.t.Context())
	g, err := graph.Compile(graph.Def{Name: "g", Start: []string{"ask"}, Nodes: []graph.Node{{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Kind: "input"})
		die()
		return graph.Update{}, cmp.Or(err, ctx.Err())
	}}}, Edges: []graph.Edge{{From: []string{"ask"}, To: []string{graph.End}}}, Open: func(name string) graph.AnyKey { return graph.Last[any](name).WithCodec(valueCodec) }})
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := (&graph.Runner{Graph: g, Store: r.store}).InvokeResume(ctx, graph.Resume{Thread: "t", Answers: []graph.Answer{answer}, AcceptChanges: true})
	if res.Status != graph.Canceled {
		r.t.Fatal(res.Status, err)
	}
}

func TestTheDefaultIsNeverValidated(t *testing.T) {
	r := newResumable(t, map[string]string{"graph.yaml": `
name: g
start: ask
nodes:
  ask: {type: input, question: "name?", default: ab, validation: "len(input) > 3", state_updates: {name: "{{input}}"}, next: e}
  e: {type: end, output: "{{name}}"}
`})
	if _, err := r.drive(); err != nil {
		t.Fatal(err)
	}
	res, err := r.drive(graph.Answer{ID: "ask", Value: "ab"})
	if err != nil || OutcomeOf(res).Output != "ab" {
		t.Errorf("%q, %v", OutcomeOf(res).Output, err)
	}
}

func TestAChildWithoutAModelGetsItsParents(t *testing.T) {
	root := t.TempDir()
	writeCaseFile(t, filepath.Join(root, "child"), "graph.yaml", `
name: child
start: l
nodes:
  l: {type: llm, prompt: hi, next: e}
  e: {type: end}
`)
	writeCaseFile(t, filepath.Join(root, "parent"), "graph.yaml", `
name: parent
model: "vendor:one"
start: a
nodes:
  a: {type: agent, agent: child, prompt: go, next: e}
  e: {type: end}
`)
	a, err := Load(filepath.Join(root, "parent"), Host{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.CompileGraph(); err != nil {
		t.Fatal(err)
	}
	if got := a.children["child"].modelID(""); got != "vendor:one" {
		t.Errorf("the child's model is %q", got)
	}
}

// A node of a graph may run an agent that is a model with tools: as part of the
// same run.
func TestAChildMayBeAModelWithTools(t *testing.T) {
	root := t.TempDir()
	writeCaseFile(t, filepath.Join(root, "other"), "config.yaml", `
name: other
instructions: You are {{who}} on {{__os_family__}}.
variables: [{name: who, description: the role, default: Ada}]
`)
	writeCaseFile(t, filepath.Join(root, "other"), "transcript.yaml", `
- match: ["You are Ada on", "go"]
  turn: 1
  text: Let me ask.
  tool_calls: [{name: user__confirm, args: {question: Sure?}}]
- turn: 2
  text: Done.
`)
	writeCaseFile(t, filepath.Join(root, "parent"), "graph.yaml", `
name: parent
model: "script:x"
start: a
nodes:
  a: {type: agent, agent: other, prompt: go, state_updates: {said: "{{output}}"}, next: e}
  e: {type: end, output: "{{said}}"}
`)
	m, err := script.Open(filepath.Join(root, "other", "transcript.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := Load(filepath.Join(root, "parent"), Host{Models: oneModel{m}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := a.CompileGraph()
	if err != nil {
		t.Fatal(err)
	}
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), a.Input("hello"))
	if err != nil || res.Status != graph.Waiting || len(res.Questions) != 1 {
		t.Fatalf("%v, %v, questions %v", res.Status, err, res.Questions)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: res.Thread, Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "yes"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := OutcomeOf(res).Output; got != "Let me ask.\nDone." {
		t.Errorf("output %q", got)
	}
}

// A script that could not be started fails the run, whatever its node says of
// failures: only a script that ran can have failed. Once the cause is removed, a
// resumed run continues there.
func TestAScriptThatCannotStartFailsTheRun(t *testing.T) {
	causes := map[string]func(t *testing.T, h *Host){
		"no interpreter": func(_ *testing.T, h *Host) { h.Env = []string{"PATH=/nonexistent"} },
		"no place for a large state": func(t *testing.T, _ *Host) {
			file := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("TMPDIR", filepath.Join(file, "below"))
		},
	}
	for name, cause := range causes {
		for _, failure := range []string{"next: e", "fallback: f, next: e"} {
			t.Run(name+", "+failure, func(t *testing.T) {
				r := newResumable(t, map[string]string{"s.sh": `echo '{"x": "paid"}'`, "graph.yaml": `
name: g
settings: {validate_before_run: false}
initial_state: {big: "` + strings.Repeat("x", 2*inlineState) + `"}
start: s
nodes:
  s: {type: script, script: s.sh, ` + failure + `}
  f: {type: end, output: "failed"}
  e: {type: end, output: "done {{x}}"}
`})
				t.Run("broken", func(t *testing.T) {
					var h Host
					cause(t, &h)
					res, err := r.driveIn(h)
					if err == nil || res.Status != graph.Failed {
						t.Errorf("%v, %q, %v", res.Status, OutcomeOf(res).Output, err)
					}
				})
				r.write(map[string]string{"s.sh": `echo '{"x": "paid"}'`})
				if res, err := r.drive(); err != nil || OutcomeOf(res).Output != "done paid" {
					t.Errorf("resumed: %q, %v", OutcomeOf(res).Output, err)
				}
			})
		}
	}
}
