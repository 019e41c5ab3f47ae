package runview

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/storage/runs"
)

// An explanation is one screen: a step whose failure names it is written once, and of many failures the first ones are shown.
func TestExplanation(t *testing.T) {
	e := &overview.Explanation{
		Run:    "r1",
		Agent:  "g",
		Status: "failed",
		Why:    "at node 'look': 'angles' not found in state",
		Cause:  &runs.Cause{Key: "angles", Node: "plan", Reason: "Script output must be a JSON object, not array or primitive", At: 5, From: 1},
		Path: []overview.Stage{
			{At: 6, Nodes: []string{"plan"}, What: "plan, whose output was not a JSON object"},
			{At: 9, Nodes: []string{"a", "b"}, What: "b, which had failed: no"},
			{Nodes: []string{"look"}, What: "failed here"},
		},
		Failures: []runs.Failure{{At: 5, Node: "plan", Error: "x"}, {At: 8, Node: "b", Error: "no"}, {At: 8, Node: "c", Error: "no"}, {At: 8, Node: "d", Error: "no"}},
		Do:       []overview.Action{{Command: "raddle resume r1", What: "runs plan again"}, {Command: "raddle runs show r1", What: "shows all of it"}},
	}
	want := `run      r1, g: failed
why      at node 'look': 'angles' not found in state
cause    "angles" was to come from plan, whose output was not a JSON object (@5)
path     @6    plan, whose output was not a JSON object
         @9    a, b: b, which had failed: no
         →     look: failed here
failed   @5    plan: x
         @8    b: no
         @8    c: no
         (1 more: raddle runs show RUN --output json)
do       raddle resume r1
             runs plan again
         raddle runs show r1
             shows all of it
`
	if d := cmp.Diff(want, FormatExplanation(e)); d != "" {
		t.Error(d)
	}
}
