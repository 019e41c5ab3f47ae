package storetool

import (
	"context"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/foreign"
)

// Runs that are copied from a store of someone else are foreign in the copy, marks are copied, and own runs have none. A store with
// marks has the same journals, and no faults.
func TestCopyMarks(t *testing.T) {
	ctx := t.Context()
	from := journal.NewMemory()
	key := graph.Last[int]("k")
	g, err := graph.Compile(graph.Def{Name: "g", Keys: []graph.AnyKey{key}, Start: []string{"n"}, Nodes: []graph.Node{{Name: "n", Routes: []string{graph.End}, Run: func(context.Context, graph.State) (graph.Update, error) {
		return graph.Put(key.Set(1)), nil
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range []string{"own", "imported"} {
		if _, err := (&graph.Runner{Graph: g, Store: from}).Invoke(ctx, graph.Input{Thread: thread, Run: thread}); err != nil {
			t.Fatal(err)
		}
	}
	if err := foreign.Put(ctx, from, "imported", foreign.Mark{From: "a.raddle", Accepted: &foreign.Acceptance{Whole: true}}); err != nil {
		t.Fatal(err)
	}
	for origin, want := range map[string]map[string]string{
		"":                {"own": "", "imported": "a.raddle"},
		"sqlite:/other/x": {"own": "sqlite:/other/x", "imported": "sqlite:/other/x"},
	} {
		to := journal.NewMemory()
		for i, threads := range []int{2, 0} {
			if done, err := CopyStore(ctx, from, to, origin); err != nil || done.Threads != threads {
				t.Errorf("copy %d from %q: %+v, %v", i, origin, done, err)
			}
		}
		for thread, where := range want {
			m, err := foreign.Find(ctx, to, thread)
			if err != nil || (m == nil) != (where == "") || m != nil && (m.From != where || (m.Accepted != nil) != (origin == "")) {
				t.Errorf("copied from %q, %s has %+v, %v", origin, thread, m, err)
			}
		}
		if checked, err := CheckStore(ctx, to); err != nil || checked.Threads != 2 || len(checked.Faults) > 0 {
			t.Errorf("check: %+v, %v", checked, err)
		}
		if sizes, err := MeasureStore(ctx, to); err != nil || sizes.Threads != 2 {
			t.Errorf("stats: %+v, %v", sizes, err)
		}
	}
}
