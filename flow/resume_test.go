package flow

import (
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/llm/script"
)

// resumable is an agent whose run can be driven again after its files were mended.
type resumable struct {
	t     *testing.T
	dir   string
	store graph.Store
}

func newResumable(t *testing.T, files map[string]string) *resumable {
	r := &resumable{t, filepath.Join(t.TempDir(), "agent"), graph.NewMemory()}
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
	a, err := Load(r.dir, Host{})
	if err != nil {
		r.t.Fatal(err)
	}
	g, err := a.Graph()
	if err != nil {
		r.t.Fatal(err)
	}
	runner := &graph.Runner{Graph: g, Store: r.store}
	if _, err := graph.Inspect(r.t.Context(), r.store, "t", 0); err != nil {
		in := a.Input("")
		in.Thread = "t"
		return runner.Invoke(r.t.Context(), in)
	}
	return runner.InvokeResume(r.t.Context(), graph.Resume{Thread: "t", Answers: answers, AcceptChanges: true})
}

// What a node can never go on with is not recorded: once the script is mended, a
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
	res, err := r.drive() // s failed without fallback: it goes on to m, which fails
	if err == nil || !strings.Contains(err.Error(), "did not write `output_key`") {
		t.Fatalf("%v, %v", res.Status, err)
	}
	r.write(map[string]string{"w.sh": `echo '{"output": 7}'`})
	if res, err = r.drive(); err != nil || OutcomeOf(res).Output != " [7]" {
		t.Fatalf("%q, %v", OutcomeOf(res).Output, err)
	}
}

// An answer that its node refused is not taken again: the resumed run asks anew.
func TestARefusedAnswerIsAskedForAgain(t *testing.T) {
	r := newResumable(t, map[string]string{"graph.yaml": `
name: g
start: ask
nodes:
  ask: {type: input, question: "name?", validation: "len(input) > 3", state_updates: {name: "{{input}}"}, next: e}
  e: {type: end, output: "{{name}}"}
`})
	res, err := r.drive()
	for _, step := range []struct{ id, answer string }{{"ask", "ab"}, {"", ""}, {"ask#2", "abc"}, {"", ""}, {"ask#3", "abcd"}} {
		if step.id == "" {
			if err == nil || !strings.Contains(err.Error(), "Input failed validation") {
				t.Fatalf("%v, %v", res.Status, err)
			}
			res, err = r.drive()
			continue
		}
		if err != nil || len(res.Questions) != 1 || res.Questions[0].ID != step.id {
			t.Fatalf("%v, %+v, %v", res.Status, res.Questions, err)
		}
		res, err = r.drive(graph.Answer{ID: step.id, Value: step.answer})
	}
	if err != nil || OutcomeOf(res).Output != "abcd" {
		t.Errorf("%q, %v", OutcomeOf(res).Output, err)
	}
}

func TestTheDefaultIsNotValidatedWhoeverGivesIt(t *testing.T) {
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
	if _, err := a.Graph(); err != nil {
		t.Fatal(err)
	}
	if got := a.children["child"].model(""); got != "vendor:one" {
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
	g, err := a.Graph()
	if err != nil {
		t.Fatal(err)
	}
	r := &graph.Runner{Graph: g, Store: graph.NewMemory()}
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
