package graph_test

import (
	"context"
	"errors"
	"testing"

	"raddle.dev/graph"
)

func TestDelete(t *testing.T) {
	k := graph.Last[int]("k")
	g := compile(t, graph.Def{Name: "g", Keys: []graph.AnyKey{k}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: writes(k.Set(1))}}, Edges: []graph.Edge{edge("a", graph.End)}})
	r := kept(g)
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	if err := graph.Fork(t.Context(), r.Store, thread, 0, "copy"); err != nil {
		t.Fatal(err)
	}
	if err := graph.Delete(t.Context(), r.Store, thread); err != nil {
		t.Fatal(err)
	}
	for i, err := range graph.History(t.Context(), r.Store, thread) {
		t.Error("left:", i, err)
	}
	if err := graph.Delete(t.Context(), r.Store, thread); !errors.Is(err, graph.ErrNoThread) {
		t.Errorf("error %v", err)
	}
	if s, err := r.State(t.Context(), "copy", 0); err != nil || k.Get(s) != 1 {
		t.Errorf("the fork: %v", err)
	}
	if res, err := start(t, r); err != nil || res.Status != graph.Done {
		t.Errorf("the name cannot be used again: %v %v", res.Status, err)
	}
}

// A thread is not deleted under a drive.
func TestDeleteRefusesAThreadThatIsDriven(t *testing.T) {
	var deleted error
	r := &graph.Runner{Store: graph.NewMemory()}
	r.Graph = compile(t, graph.Def{Name: "g", Start: []string{"a"}, Edges: []graph.Edge{edge("a", graph.End)}, Nodes: []graph.Node{{Name: "a",
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			deleted = graph.Delete(ctx, r.Store, thread)
			return graph.Update{}, nil
		}}}})
	res, err := start(t, r)
	if busy := (*graph.BusyError)(nil); err != nil || res.Status != graph.Done || !errors.As(deleted, &busy) {
		t.Errorf("%v %v; Delete: %v", res.Status, err, deleted)
	}
}
