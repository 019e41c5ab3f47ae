package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// runPartial runs a graph, and returns its agent, the runner, and the state and the number of the record after its map.
func runPartial(t *testing.T, text string, models Models) (*Agent, *graph.Runner, graph.State, history.Checkpoint) {
	t.Helper()
	r := newResumable(t, map[string]string{"graph.yaml": text})
	if res, err := r.driveIn(Host{Models: models}); err != nil {
		t.Fatal(res.Status, err)
	}
	a, err := Load(r.dir, Host{Models: models})
	if err != nil {
		t.Fatal(err)
	}
	g, err := a.CompileGraph()
	if err != nil {
		t.Fatal(err)
	}
	runner := &graph.Runner{Graph: g, Store: r.store}
	for c, err := range history.Checkpoints(t.Context(), r.store, "t") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Path == "" && c.Kind == journal.KindStep && slices.Equal(c.Next, []string{"e"}) {
			s, err := runner.State(t.Context(), "t", c.Seq)
			if err != nil {
				t.Fatal(err)
			}
			return a, runner, s, c
		}
	}
	t.Fatal("the map has no step")
	return nil, nil, graph.State{}, history.Checkpoint{}
}

// Only the failed items run again, whenever the repetition is killed, and their results are at their places.
func TestRepeatFailedItems(t *testing.T) {
	for word, want := range map[string]string{
		"collect": `1 of 3 ["ok look a","ok look b","ok look c",{"error":"bad request (400): no look d","item":"d"}]`,
		"skip":    `1 of 3 ["ok look a","ok look b","ok look c"]`,
	} {
		models := &itemModels{fail: failsFor("look b", "look d")}
		a, runner, s, at := runPartial(t, fmt.Sprintf(partialGraph, word), models)
		models.takeCalls()
		models.fail = failsFor("look d")
		writes, next, err := a.RepeatFailedItems("each", s, at.Next)
		if err != nil || !slices.Equal(next, []string{"each"}) {
			t.Fatal(next, err)
		}
		for crash := 0; ; crash++ {
			into := fmt.Sprint("copy", crash)
			if err := history.Fork(t.Context(), runner.Store, "t", at.Seq, into); err != nil {
				t.Fatal(err)
			}
			if _, err := runner.EditNext(t.Context(), into, next, writes...); err != nil {
				t.Fatal(err)
			}
			models.takeCalls()
			dies := &graphtest.Crash{Store: runner.Store, Limit: crash}
			res, err := (&graph.Runner{Graph: runner.Graph, Store: dies}).InvokeResume(t.Context(), graph.Resume{Thread: into})
			killed := dies.HasCrashed()
			if killed {
				res, err = runner.InvokeResume(t.Context(), graph.Resume{Thread: into})
			}
			if got := OutcomeOf(res).Output; err != nil || got != want {
				t.Fatalf("%s, killed at append %d: %v\n got %s\nwant %s", word, crash, err, got, want)
			}
			if asked := slices.Sorted(maps.Keys(models.takeCalls())); !slices.Equal(asked, []string{"look b", "look d"}) {
				t.Fatalf("%s, killed at append %d: asked %q", word, crash, asked)
			}
			if !killed {
				break
			}
		}
	}
}

// What cannot be repeated alone is refused with the reason.
func TestRepeatFailedItemsRefuses(t *testing.T) {
	reduced := strings.Replace(fmt.Sprintf(partialGraph, "skip"), "start:", "reducers: {out: extend}\nstart:", 1)
	for text, want := range map[string]string{
		fmt.Sprintf(partialGraph, "mend"): "were handled by 'mend'",
		reduced:                           "which has the reducer extend",
	} {
		a, _, s, at := runPartial(t, text, &itemModels{fail: failsFor("look b")})
		if _, _, err := a.RepeatFailedItems("each", s, at.Next); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	a, _, _, _ := runPartial(t, fmt.Sprintf(partialGraph, "skip"), &itemModels{fail: failsFor("look b")})
	for name, list := range map[string]any{"short": []any{"x"}, "text": "x"} {
		s, err := graph.NewState(a.Replace("out", list), a.Replace("each", newCounts(3, []FailedItem{{Index: 1, Item: "b", Error: "no"}})))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := a.RepeatFailedItems("each", s, nil); err == nil || !strings.Contains(err.Error(), "no longer as the map has written them") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := a.RepeatFailedItems("gone", graph.State{}, nil); err == nil {
		t.Error("a node that is gone is no error")
	}
}
