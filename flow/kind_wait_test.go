package flow

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// A waitRun drives a graph file that waits.
type waitRun struct {
	t      *testing.T
	runner *graph.Runner
	agent  *Agent
}

// newWaitRun loads a graph with these nodes. The first one is named first.
func newWaitRun(t *testing.T, nodes string) *waitRun {
	t.Helper()
	dir := t.TempDir()
	writeCaseFile(t, dir, "graph.yaml", "name: g\nstart: first\ninitial_state: {when: 2h, day: 2000-01-05}\nnodes:\n"+nodes)
	a, err := Load(dir, Host{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	g, err := a.CompileGraph()
	if err != nil {
		t.Fatal(err)
	}
	return &waitRun{t, &graph.Runner{Graph: g, Store: journal.NewMemory()}, a}
}

func (r *waitRun) start() graph.Result {
	r.t.Helper()
	in := r.agent.Input("hello")
	in.Thread = "t"
	res, err := r.runner.Invoke(r.t.Context(), in)
	if err != nil {
		r.t.Fatal(r.agent.Explain(err))
	}
	return res
}

func (r *waitRun) resume(answers ...graph.Answer) (graph.Result, error) {
	return r.runner.InvokeResume(r.t.Context(), graph.Resume{Thread: "t", Answers: answers})
}

// ends requires that the run, resumed, is done with an output.
func (r *waitRun) ends(want string, answers ...graph.Answer) {
	r.t.Helper()
	res, err := r.resume(answers...)
	if err != nil {
		r.t.Fatal(r.agent.Explain(err))
	}
	if got := OutcomeOf(res).Output; res.Status != graph.Done || got != want {
		r.t.Errorf("the run is %v with %q, want %q", res.Status, got, want)
	}
}

func TestWaitNode(t *testing.T) {
	const rest = "state_updates: {waited: yes it has}, next: done}\n  done: {type: end, output: \"{{waited}}\"}\n"
	for field, want := range map[string]time.Duration{
		"for: 1d12h":                       36 * time.Hour,
		"for: \"{{when}}\"":                2 * time.Hour,
		"until: 2000-01-01T06:30:00Z":      6*time.Hour + 30*time.Minute,
		"until: 2000-01-03":                48 * time.Hour,
		"until: \"{{day}}T00:00:00Z\"":     4 * 24 * time.Hour,
		"until: 2000-01-02T01:00:00+01:00": 24 * time.Hour,
	} {
		t.Run(field, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newWaitRun(t, "  first: {type: wait, "+field+", "+rest)
				res := r.start()
				if d := time.Until(res.Due); res.Status != graph.Waiting || d != want {
					t.Fatalf("the run is %v for %v, want %v", res.Status, d, want)
				}
				time.Sleep(want - time.Second)
				if res, err := r.resume(); err != nil || res.Status != graph.Waiting {
					t.Fatal(res.Status, err)
				}
				time.Sleep(time.Second)
				r.ends("yes it has")
			})
		})
	}
}

func TestWaitNodeBesideAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWaitRun(t, `  first: {type: wait, for: 0s, next: [a, b]}
  a: {type: wait, for: 1h, next: done}
  b: {type: wait, for: 2h, next: done}
  done: {type: end, output: both}
`)
		r.start()
		time.Sleep(time.Hour)
		if res, err := r.resume(); err != nil || len(res.Timers) != 1 {
			t.Fatal(res.Timers, err)
		}
		time.Sleep(time.Hour)
		r.ends("both")
	})
}

func TestDeadlines(t *testing.T) {
	const approval = "  first: {type: approval, question: ok?, options: [go, stop], routes: {go: yes, stop: no}, on_other: other, state_updates: {a: \"{{choice}}\"}, deadline: 48h"
	const input = "  first: {type: input, question: ok?, validation: len(input) > 1, state_updates: {a: \"{{input}}\"}, next: yes, deadline: \"{{when}}\""
	const ends = "}\n  yes: {type: end, output: \"yes {{a}}\"}\n  no: {type: end, output: \"no {{a}}\"}\n  other: {type: end, output: \"other {{a}}\"}\n"
	for _, c := range []struct{ name, nodes, want string }{
		{"a node", approval + ", on_deadline: no" + ends, "no "},
		{"an answer", approval + ", on_deadline: {answer: stop}" + ends, "no stop"},
		{"any answer", approval + ", on_deadline: {answer: \"{{when}}\"}" + ends, "other 2h"},
		{"a node after an input", input + ", on_deadline: other" + ends, "other "},
		{"an answer of an input", input + ", on_deadline: {answer: later}" + ends, "yes later"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newWaitRun(t, c.nodes)
				if res := r.start(); len(res.Questions) != 1 || !res.Questions[0].Due.Equal(res.Due) {
					t.Fatalf("%+v", res.Questions)
				}
				time.Sleep(50 * time.Hour)
				if _, err := r.resume(graph.Answer{Value: "go"}); err == nil || !strings.Contains(err.Error(), "too late") {
					t.Errorf("a late answer: %v", err)
				}
				r.ends(c.want)
			})
		})
	}
}

// A node that fails at its deadline asks again when its run is resumed.
func TestDeadlineThatFails(t *testing.T) {
	for _, how := range []string{"", ", on_deadline: fail"} {
		synctest.Test(t, func(t *testing.T) {
			r := newWaitRun(t, "  first: {type: input, question: ok?, next: done, state_updates: {a: \"{{input}}\"}, deadline: 1m"+how+"}\n  done: {type: end, output: \"{{a}}\"}\n")
			r.start()
			time.Sleep(time.Minute)
			res, err := r.resume()
			if err == nil || res.Status != graph.Failed || !strings.Contains(r.agent.Explain(err).Error(), "no one has answered before the deadline") {
				t.Fatal(res.Status, err)
			}
			if res, err = r.resume(); err != nil || res.Status != graph.Waiting || time.Until(res.Due) != time.Minute {
				t.Fatal(res.Status, res.Due, err)
			}
			r.ends("fine", graph.Answer{Value: "fine"})
		})
	}
}

func TestWaitNodeThatCannotWait(t *testing.T) {
	for field, want := range map[string]string{
		"for: \"{{day}}\"":    "`2000-01-05` is not a duration",
		"until: \"{{when}}\"": "`2h` is not a time",
		"until: \"{{none}}\"": "none",
	} {
		r := newWaitRun(t, "  first: {type: wait, "+field+", next: done}\n  done: {type: end}\n")
		in := r.agent.Input("hello")
		if _, err := r.runner.Invoke(t.Context(), in); err == nil || !strings.Contains(r.agent.Explain(err).Error(), want) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// What a file says about time is checked when it is read, and its edges and placeholders with the others.
func TestWaitingIsChecked(t *testing.T) {
	file := func(nodes string) string { return "name: g\nstart: a\nnodes:\n" + nodes }
	for nodes, want := range map[string]string{
		"  a: {type: wait, next: b}\n  b: {type: end}\n":                                                       "missing field `for`",
		"  a: {type: wait, for: 1h, until: 2026-01-01, next: b}\n  b: {type: end}\n":                           "exactly one",
		"  a: {type: wait, for: 90, next: b}\n  b: {type: end}\n":                                              "`90` is not a duration: write for example 90s",
		"  a: {type: wait, for: [1h], next: b}\n  b: {type: end}\n":                                            "invalid type: sequence, expected a string",
		"  a: {type: wait, until: soon, next: b}\n  b: {type: end}\n":                                          "`soon` is not a time",
		"  a: {type: input, question: q, on_deadline: b, next: b}\n  b: {type: end}\n":                         "there is no `deadline`",
		"  a: {type: input, question: q, deadline: 1h, on_deadline: {anwser: b}, next: b}\n  b: {type: end}\n": "did you mean `answer`?",
		"  a: {type: wait, fro: 1h, next: b}\n  b: {type: end}\n":                                              "missing field `for`",
	} {
		_, err := ParseGraph("graph.yaml", []byte(file(nodes)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", nodes, err, want)
		}
	}
	const all = `  a: {type: approval, question: q, options: [x], routes: {x: b}, on_other: b, state_updates: {k: "1"}, deadline: 1h, on_deadline: late}
  late: {type: wait, for: "{{k}}", next: b}
  b: {type: approval, question: q, options: [x], routes: {x: fail}, on_other: fail, deadline: 1h, on_deadline: {answer: y}}
  fail: {type: input, question: q, validation: len(input) > 3, deadline: 1h, on_deadline: fail, next: c}
  c: {type: approval, question: q, options: [x], routes: {x: end}, on_other: end, deadline: 1h, on_deadline: nowhere}
  end: {type: end}
`
	f, err := ParseGraph("graph.yaml", []byte(file(all)))
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, found := range append(append(check.ValidateFile(f, check.Context{Loaded: true}), check.ProvePlaceholders(f)...), check.AdviseFile(f, nil)...) {
		codes = append(codes, found.Code)
	}
	if got := strings.Join(codes, " "); got != "unknown-target template-unassigned deadline-answer deadline-fail" {
		t.Errorf("the findings are %q", got)
	}
	var edges []spec.Edge
	for _, n := range f.Nodes {
		edges = append(edges, n.FollowedEdges()...)
	}
	if edges[2].To != "late" || edges[2].Picture != "deadline" {
		t.Errorf("the edges are %+v", edges)
	}
}
