package overview

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
)

// explained runs a graph and explains its run; what ends or cancels it comes in between.
func explained(t *testing.T, graphText string, then func(p *app.Process, id string)) string {
	t.Helper()
	work := t.TempDir()
	testfile.WriteFile(t, filepath.Join(work, "g", "graph.yaml"), graphText)
	testfile.WriteFile(t, filepath.Join(work, "g", "replies.yaml"), "- text: prose\n- text: prose\n- text: prose\n- text: '{\"other\": 1}'\n")
	testfile.WriteFile(t, filepath.Join(work, "g", "fails.sh"), "exit 1\n")
	testfile.WriteFile(t, filepath.Join(work, "g", "again.sh"), "test -e again && echo '{}' || { touch again; echo '{\"_next\": \"a\"}'; }\n")
	p, err := app.Open(app.Options{Work: work, Environ: []string{"HOME=" + work, "PATH=" + os.Getenv("PATH")}, Store: "memory:"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	run, err := p.StartRun(app.Request{Agent: "./g"})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = run.Drive(t.Context(), app.Driver{}) // how it has ended is explained
	run.Close()
	if then != nil {
		then(p, run.ID)
	}
	v, err := p.Runs.ReadView(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	s, err := DescribeRun(t.Context(), p, v)
	if err != nil {
		t.Fatal(err)
	}
	e := Explain(s, v)
	var b strings.Builder
	fmt.Fprintln(&b, e.Status+":", e.Why)
	for _, stage := range e.Path {
		fmt.Fprintln(&b, strings.Join(append(stage.Nodes, stage.What), " "))
	}
	for _, a := range e.Do {
		fmt.Fprintln(&b, "-", a.Command+":", a.What)
	}
	return strings.ReplaceAll(b.String(), run.ID, "RUN")
}

// Every status has its reason, and commands that continue the run.
func TestExplain(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	const end = "\n  e: {type: end, output: x}\n"
	for name, c := range map[string]struct {
		graph string
		then  func(p *app.Process, id string)
		want  string
	}{
		"done": {graph: "name: g\nstart: e\nnodes:" + end, want: "done: it is done\ne \n- raddle runs show RUN: shows all of it\n"},
		"exit code": {graph: "name: g\nstart: e\nnodes:\n  e: {type: end, exit_code: 70}\n", want: `done: it is done, with the exit code 70 of its end
e 
- raddle runs show RUN: shows all of it
`},
		"waiting": {graph: "name: g\nstart: ask\nnodes:\n  ask: {type: input, question: 'Who?', next: e}" + end, want: `waiting: it waits for an answer:
ask asks: Who?
ask waiting here
- raddle resume RUN --answer ask=TEXT: answers it
- raddle inbox: shows all open questions, and takes answers on a terminal
- raddle runs show RUN: shows all of it
`},
		"a time": {graph: "name: g\nstart: rest\nnodes:\n  rest: {type: wait, until: '2999-01-02T03:04:05Z', next: e}" + end, want: `waiting: it waits until 2999-01-02T03:04:05Z, at rest
rest waiting here
- raddle wake: continues it when the time has come, as a server of the store does
- raddle runs show RUN: shows all of it
`},
		"an event": {graph: "name: g\nstart: pay\nnodes:\n  pay: {type: wait, event: paid, next: e}" + end, want: `waiting: it waits for an event:
pay waits for the event paid
pay waiting here
- raddle events send paid JSON --run RUN: sends the event to this run
- raddle runs show RUN: shows all of it
`},
		"failed": {graph: "name: g\nstart: a\nnodes:\n  a: {type: input, question: '{{gone}}', next: e}" + end, want: `failed: at node 'a': Failed to interpolate input question: Template interpolation failed: 'gone' not found in state
a failed here
- raddle resume RUN: runs a again, and continues
- raddle resume RUN --accept-changes: continues with files that you have changed
- raddle runs show RUN: shows all of it
`},
		"cause": {graph: "name: g\nmodel: script:replies.yaml\nstart: a\nnodes:\n  a: {type: llm, prompt: p, output_schema: {type: object, properties: {gone: {type: string}}}, next: b}\n" +
			"  b: {type: input, question: '{{gone}}', next: e}" + end, want: `failed: at node 'b': Failed to interpolate input question: Template interpolation failed: 'gone' not found in state
a a, whose reply was not JSON
b failed here
- raddle resume RUN: runs a again, and what follows it
- raddle runs fork RUN@1 --resume: the same in a copy, and this run stays as it is
- raddle resume RUN --accept-changes: continues with files that you have changed
- raddle runs show RUN: shows all of it
`},
		"waiting, without items": {graph: "name: g\ninitial_state: {words: [a, b]}\nstart: each\nnodes:\n" +
			"  each: {type: map, over: '{{words}}', as: word, branch: one, collect_into: all, on_failure: skip, next: ask}\n  one: {type: script, script: fails.sh}\n" +
			"  ask: {type: input, question: 'Send {{each.done}}?', next: e}" + end, want: `waiting: it waits for an answer:
ask asks: Send 0?
each 
ask waiting here
- raddle resume RUN --answer ask=TEXT: answers it
- raddle inbox: shows all open questions, and takes answers on a terminal
- raddle resume RUN --only-failed: repeats only the 2 failed items of maps, in a copy of the run
- raddle runs show RUN: shows all of it
`},
		"it has run again": {graph: "name: g\nmodel: script:replies.yaml\nstart: a\nnodes:\n  a: {type: llm, prompt: p, output_schema: {type: object, properties: {gone: {type: string}}}, next: b}\n" +
			"  b: {type: script, script: again.sh, targets: [a], next: c}\n  c: {type: input, question: '{{gone}}', next: e}" + end, want: `failed: at node 'c': Failed to interpolate input question: Template interpolation failed: 'gone' not found in state
a a, whose reply was not JSON
b 
a 
b 
c failed here
- raddle resume RUN: runs c again, and continues
- raddle resume RUN --accept-changes: continues with files that you have changed
- raddle runs show RUN: shows all of it
`},
		"cancelled": {graph: "name: g\nstart: ask\nnodes:\n  ask: {type: input, question: 'Who?', next: e}" + end, then: func(p *app.Process, id string) {
			if _, err := app.RecordChange(t.Context(), p, app.RunChange{ID: id, Cancel: true}); err != nil {
				t.Error(err)
			}
		}, want: `abandoned: cancelled by hand
- raddle runs fork RUN@1 --resume: continues a copy of it from its newest checkpoint
- raddle runs show RUN: shows all of it
`},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, explained(t, c.graph, c.then)); d != "" {
				t.Error(d)
			}
		})
	}
}
