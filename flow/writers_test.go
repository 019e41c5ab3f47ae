package flow

import (
	"slices"
	"testing"
)

// The nodes that are to write a key are those that name it; only if none does, those that may write any key.
func TestListWriters(t *testing.T) {
	f := mustParse(t, `
name: g
start: plan
nodes:
  plan: {type: llm, prompt: p, output_schema: {type: object, properties: {angles: {type: array}}}, next: any}
  any: {type: script, script: any.sh, next: each}
  each: {type: map, over: "{{angles}}", as: a, branch: one, collect_into: all, on_failure: skip, next: said}
  one: {type: script, script: one.sh}
  said: {type: llm, prompt: p, state_updates: {said: "{{output}}"}, next: e}
  e: {type: end}
`)
	for key, want := range map[string][]string{"angles": {"plan"}, "all": {"each"}, "each": {"each"}, "said": {"said"}, "other": {"any", "one"}} {
		if got := ListWriters(f, key); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
}
