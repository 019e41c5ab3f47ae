package check_test

import (
	"slices"
	"testing"

	"raddle.dev/flow/check"
)

const explained = `name: g
start: a
nodes:
  a: {type: approval, question: q, options: ["1", "2", "3"], routes: {"1": plan, "2": sketch, "3": skip}, on_other: skip}
  plan: {type: llm, prompt: p, output_schema: {type: object, properties: {outline: {type: string}}}, next: draft}
  sketch: {type: llm, prompt: p, state_updates: {outline: "x"}, next: draft}
  skip: {type: approval, question: q, options: ["1"], routes: {"1": draft}, on_other: draft}
  draft: {type: llm, prompt: "{{outline}}", next: done}
  done: {type: end, output: ok}
`

func TestExplainKeySaysOnHowManyWays(t *testing.T) {
	f := mustParse(t, explained)
	facts := check.ExplainKey(f, "draft", "outline")
	if facts.Ways != 3 || facts.Set != 2 || !slices.Equal(facts.Setters, []string{"plan", "sketch"}) {
		t.Errorf("facts = %+v", facts)
	}
	if want := []string{"a", "skip", "draft"}; !slices.Equal(facts.Unset, want) {
		t.Errorf("unset on %v, want %v", facts.Unset, want)
	}
	if facts = check.ExplainKey(f, "done", "nothing"); facts.Set != 0 || facts.Setters != nil || facts.Ways != 1 {
		t.Errorf("facts of a key that nothing sets = %+v", facts)
	}
}
