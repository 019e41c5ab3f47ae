package coverage_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"raddle.dev/draw"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/proving/coverage"
	"raddle.dev/internal/testkit/testfile"
)

// text is a graph with a fan-out and a join, a loop, a map, an approval whose answers lead to one node, and a fallback.
const text = `
name: paths
initial_state: {items: [], rounds: 0}
start: split
nodes:
  split: {type: script, script: split.sh, next: [left, right]}
  left: {type: script, script: none.sh, state_updates: {}, next: join}
  right: {type: script, script: none.sh, fallback: broken, state_updates: {}, next: join}
  join: {type: script, script: none.sh, next: each}
  each: {type: map, over: "{{items}}", as: item, branch: one, output_key: made, collect_into: all, next: again}
  one: {type: script, script: one.sh, state_updates: {made: "{{item}}"}}
  again: {type: script, script: again.sh, next: ask}
  ask: {type: approval, question: ok?, options: ["yes", "no", later], routes: {"yes": end, "no": end, later: broken}, on_other: end}
  end: {type: end, output: ended}
  broken: {type: end, output: broken}
`

func runPaths(t *testing.T, p *coverage.Profile, a *flow.Agent, answer string) {
	t.Helper()
	g, err := a.CompileGraph()
	if err != nil {
		t.Fatal(err)
	}
	run := p.StartRun()
	in := a.Input("")
	in.Thread, in.Topics = t.Name()+answer, coverage.Topics
	in.Reply = func(q graph.Question) (any, bool) {
		run.AddAnswer(q, answer)
		return answer, true
	}
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	for ev, err := range r.Run(t.Context(), in) {
		if err != nil {
			t.Fatal(err)
		}
		run.AddEvent(ev)
	}
	run.End()
}

// TestProfile runs one graph along different paths.
func TestProfile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "paths")
	testfile.WriteFiles(t, dir, map[string]string{"graph.yaml": text, "split.sh": "x", "none.sh": "x", "one.sh": "x", "again.sh": `x # {"_next": "each"}`})
	items, rounds, failing := "[]", 0, ""
	a, err := flow.Load(dir, flow.Host{Around: func(_ context.Context, c flow.NodeCall, _ func(context.Context) (string, error)) (string, error) {
		switch c.Node {
		case failing:
			return "", os.ErrInvalid
		case "split":
			return `{"items": ` + items + `}`, nil
		case "again":
			if rounds > 0 {
				rounds--
				return `{"_next": "each"}`, nil
			}
		}
		return "{}", nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	p := coverage.New(a.Structure())
	check := func(golden string) {
		t.Helper()
		var b bytes.Buffer
		if err := p.Report().WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if b.String() != golden {
			t.Errorf("got:\n%swant:\n%s", b.String(), golden)
		}
	}
	runPaths(t, p, a, "yes")
	check(`coverage of paths: 66.7 % (8 of 10 nodes, 8 of 14 edges)
  not reached: node one
  not reached: node broken
  not followed: right → broken (fallback)
  not followed: each → one (for each item)
  not followed: again → each
  not followed: ask → end (no)
  not followed: ask → broken (later)
  not followed: ask → end (other)
  map each: no case with 1, several repetitions
  loop again → each: no case with 1, several repetitions
`)
	items, rounds = `["a"]`, 1
	runPaths(t, p, a, "no")
	items, rounds = `["a", "b"]`, 2
	runPaths(t, p, a, "something else")
	check(`coverage of paths: 87.5 % (9 of 10 nodes, 12 of 14 edges)
  not reached: node broken
  not followed: right → broken (fallback)
  not followed: ask → broken (later)
`)
	failing = "right"
	runPaths(t, p, a, "fails before the question")
	check(`coverage of paths: 95.8 % (10 of 10 nodes, 13 of 14 edges)
  not followed: ask → broken (later)
`)
	failing = ""
	runPaths(t, p, a, "later")
	r := p.Report()
	var o draw.Options
	r.AddToPicture(&o)
	if r.Percent != 100 || r.Runs != 5 || o.Run["one"].Text != "10×" || !o.Taken[[2]string{"each", "one"}] {
		t.Errorf("%+v %+v", r, o)
	}
}
