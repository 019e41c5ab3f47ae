package flow

import (
	"slices"
	"strings"
	"testing"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
)

// A node has the defaults of the fields that its type has, unless it sets them, and the edges that follow from them.
func TestDefaultsOfNodes(t *testing.T) {
	f := mustParse(t, `
name: g
start: a
defaults: {timeout: 60, max_attempts: 3, retry_patience: 7, fallback: sorry, on_failure: skip, budget: {calls: 9, on_exceeded: done}}
nodes:
  a: {type: llm, prompt: p, next: b}
  b: {type: llm, prompt: p, timeout: 5, max_attempts: 1, retry_patience: null, fallback: null, budget: {tokens: 1}, next: c}
  c: {type: script, script: s.sh, next: d}
  d: {type: map, over: "{{x}}", as: i, branch: each, collect_into: o, next: done}
  each: {type: agent, agent: x, prompt: p}
  sorry: {type: script, script: s.sh, next: done}
  done: {type: end}
`)
	edges := func(id string) string {
		var to []string
		for _, e := range f.Node(id).DeclaredEdges() {
			to = append(to, e.Field+">"+e.To)
		}
		return strings.Join(to, " ")
	}
	a, b, c := f.Node("a").Body.(*llmNode), f.Node("b").Body.(*llmNode), f.Node("c").Body.(*scriptNode)
	if *a.timeout != 60 || a.maxAttempts != 3 || *a.patience != 7 || a.fallback != "sorry" || f.Node("a").Budget.Calls != 9 {
		t.Errorf("a is %+v, %+v", a, f.Node("a").Budget)
	}
	if *b.timeout != 5 || b.maxAttempts != 1 || b.patience != nil || b.fallback != "" || f.Node("b").Budget.Calls != 0 {
		t.Errorf("b is %+v, %+v", b, f.Node("b").Budget)
	}
	if c.timeout != 60 || c.fallback != "sorry" || f.Node("sorry").Body.(*scriptNode).fallback != "" {
		t.Errorf("c is %+v", c)
	}
	if d := f.Node("d"); d.Branch.OnFailure != spec.OnFailureSkip || f.Node("each").Body.(*agentNode).timeout != 60 {
		t.Errorf("d is %+v", d.Branch)
	}
	for id, want := range map[string]string{"a": "next>b fallback>sorry budget>done", "b": "next>c", "sorry": "next>done"} {
		if got := edges(id); got != want {
			t.Errorf("the edges of %s are %s, want %s", id, got, want)
		}
	}
	if at := f.Node("c").At("timeout"); at.Line != 4 {
		t.Errorf("the timeout of c is at %s", at)
	}
	f = mustParse(t, "name: g\nstart: e\ndefaults: {timeot: 3}\nnodes: {e: {type: end}}\n")
	if !slices.ContainsFunc(f.Findings, func(w strictyaml.Finding) bool { return strings.Contains(w.Message, "defaults.timeot") }) {
		t.Error(f.Findings)
	}
}
