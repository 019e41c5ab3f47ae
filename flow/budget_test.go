package flow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
)

// Parallel llm nodes, with tools and without, the branches of a map and an agent
// below spend from one budget: what a call is refused ends the run, whatever the file
// says of failures, and a resume with more goes on.
func TestNodesShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(_ context.Context, v view) llm.Message {
			time.Sleep(time.Second)
			return words("done " + v.asked)
		}
		x := newTroupe(t, map[string]string{
			"wide/graph.yaml": `
name: wide
start: a
reducers: {out: append}
initial_state: {list: [1, 2, 3, 4]}
nodes:
  a: {type: script, script: "split.sh", next: [one, two, tooled, below]}
  one: {type: llm, prompt: "one", fallback: m, state_updates: {out: "{{output}}"}, next: m}
  two: {type: llm, prompt: "two", fallback: m, state_updates: {out: "{{output}}"}, next: m}
  tooled: {type: llm, prompt: "three", tools: [user__ask], fallback: m, state_updates: {out: "{{output}}"}, next: m}
  below: {type: agent, agent: sub, prompt: "four", state_updates: {out: "{{output}}"}, next: m}
  m: {type: map, over: "{{list}}", branch: each, as: item, output_key: x, collect_into: said, next: e}
  each: {type: llm, prompt: "item {{item}}", state_updates: {x: "{{output}}"}}
  e: {type: end, output: "{{said}}"}
`, "wide/split.sh": "echo '{}'\n", "sub/config.yaml": "name: sub\n",
		}, map[string]role{"wide": slow, "sub": slow})
		store := graph.NewMemory()
		const perCall = 11
		for _, k := range []struct{ calls, tokens, want int }{{3, 0, 3}, {0, 5*perCall + 1, 6}, {0, 100_000, 8}} {
			a, r := x.runner("wide", Host{Tooling: Tooling{Budget: agent.Budget{Calls: k.calls, Tokens: k.tokens}}}, store)
			res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
			if errors.Is(err, graph.ErrNoThread) {
				in := a.Input("Go.")
				in.Thread = "t"
				res, err = r.Invoke(t.Context(), in)
			}
			made := 0
			for _, n := range x.requests {
				made += n
			}
			var over *agent.BudgetError
			switch {
			case made != k.want:
				t.Errorf("with %+v: %d calls in all, want %d; %v, %v", k, made, k.want, res.Status, err)
			case made == 8 && (err != nil || !strings.Contains(fmt.Sprint(OutcomeOf(res).Output), "done item 4")):
				t.Errorf("%v, %v, %v", res.Status, err, OutcomeOf(res).Output)
			case made < 8 && (!errors.As(err, &over) || !over.Shared || over.Of != "wide"):
				t.Errorf("with %+v: %v, %v", k, res.Status, err)
			}
		}
	})
}
