package graph_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"raddle.dev/graph"
)

// The consent to a changed child holds for the drives that follow, also for one that is not asked for it, and only for
// that change.
func TestConsentToAChangedChildIsKept(t *testing.T) {
	def := func(extra ...graph.Node) *graph.Graph {
		child := parallel(t, append([]graph.Node{{Name: "one", Run: asker("first", "second")}}, extra...)...)
		return parallel(t, graph.Node{
			Name:     "n",
			Children: map[string]graph.ChildGraph{"k": {Graph: child, OutsideDigest: true}},
			Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := graph.CallChild(ctx, "x", "k")
				return graph.Update{}, err
			},
		})
	}
	r := kept(def())
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	r.Graph = def(graph.Node{Name: "two", Run: idle})
	var changed *graph.ChangedError
	_, err = resume(t, r)
	if !errors.As(err, &changed) || changed.Child != "n/x" || changed.Thread != thread || changed.Was == "" || changed.Is == "" {
		t.Fatalf("%+v, %v", changed, err)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true})
	is(t, graph.Waiting, res, err)
	res, err = resume(t, r, says(res.Questions[0].ID, "a"))
	is(t, graph.Waiting, res, err)
	again := r.Graph
	r.Graph = def(graph.Node{Name: "three", Run: idle})
	if _, err = resume(t, r); !errors.As(err, &changed) {
		t.Errorf("another change: %v", err)
	}
	r.Graph = again
	res, err = resume(t, r, says(res.Questions[0].ID, "b"))
	is(t, graph.Done, res, err)
}

// The tasks of a step that is continued are in the order of the graph that continues it.
func TestTheOrderOfAChangedGraphCounts(t *testing.T) {
	def := func(names ...string) *graph.Graph {
		d := graph.Def{Name: "order", Keys: all, Start: names}
		for _, name := range names {
			n := say(name)
			n.BreakBefore = true
			d.Nodes = append(d.Nodes, n)
			d.Edges = append(d.Edges, edge(name, graph.End))
		}
		return compile(t, d)
	}
	r := kept(def("a", "b", "c"))
	res, err := start(t, r)
	is(t, graph.Paused, res, err)
	r.Graph = def("c", "b", "a")
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true})
	if is(t, graph.Done, res, err); !slices.Equal(list.Get(res.State), []string{"c", "b", "a"}) {
		t.Error(list.Get(res.State))
	}
}
