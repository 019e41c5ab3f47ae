package flow

import (
	"context"
	"slices"
	"sync"
	"testing"

	"raddle.dev/graph"
)

// TestNodeMiddleware answers for a script and for two agents, one of them a graph, none of which can run, and lets
// another script run.
func TestNodeMiddleware(t *testing.T) {
	r := newResumable(t, map[string]string{
		"graph.yaml": "name: g\nstart: a\nnodes:\n" +
			"  a: {type: script, script: s.sh, next: real}\n" +
			"  real: {type: script, script: real.sh, next: b}\n" +
			"  b: {type: agent, agent: child, prompt: \"{{x}}\", state_updates: {y: \"{{output}}\"}, next: c}\n" +
			"  c: {type: agent, agent: plain, prompt: \"{{y}}\", state_updates: {z: \"{{output}}\"}, next: ask}\n" +
			"  ask: {type: input, question: more, next: e}\n" +
			"  e: {type: end, output: \"{{x}} {{y}} {{z}} {{r}}\"}\n",
		"s.sh":                 "exit 1\n",
		"real.sh":              "echo '{\"r\": \"real\"}'\n",
		"../child/graph.yaml":  "name: child\nstart: e\nnodes:\n  e: {type: end, output: not stubbed}\n",
		"../plain/config.yaml": "name: plain\ninstructions: talk\n",
	})
	var mu sync.Mutex
	var calls []string
	h := Host{Around: func(ctx context.Context, c NodeCall, next func(context.Context) (string, error)) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, graph.TaskPath(ctx)+" "+c.Kind+" "+c.Input)
		switch c.Node {
		case "a":
			return `{"x": "one"}`, nil
		case "b":
			return "two", nil
		case "c":
			return "three", nil
		}
		return next(ctx)
	}}
	res, err := r.driveIn(h)
	if err != nil || res.Status != graph.Waiting {
		t.Fatal(res.Status, err)
	}
	res, err = r.driveIn(h, graph.Answer{ID: res.Questions[0].ID, Value: "no"})
	if err != nil {
		t.Fatal(err)
	}
	if got := OutcomeOf(res).Output; got != "one two three real" {
		t.Errorf("output %q", got)
	}
	want := []string{`0.a.0 script {"initial_prompt":""}`, `1.real.0 script {"initial_prompt":"","x":"one"}`, `2.b.0 agent one`, `3.c.0 agent two`}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}
