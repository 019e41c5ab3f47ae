package graph_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

func TestANodeCallsItsChildOnce(t *testing.T) {
	child := parallel(t, graph.Node{Name: "one", Run: idle})
	var twice error
	g := parallel(t, graph.Node{Name: "n", Graph: child, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Call(ctx)
		_, twice = graph.Call(ctx)
		return graph.Update{}, err
	}})
	res, err := start(t, kept(g))
	is(t, graph.Done, res, err)
	if twice == nil || !strings.Contains(twice.Error(), "node n calls its child twice") {
		t.Error(twice)
	}
}

// A child sees what its parent has of its own keys, and what the parent has now, not what another run had.
func TestWhatAChildInherits(t *testing.T) {
	both := graph.Last[string]("both")
	above := graph.Last[string]("above")
	var seen []string
	child := compile(t, graph.Def{
		Name: "child",
		Keys: []graph.AnyKey{both},
		Nodes: []graph.Node{{Name: "look", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			seen = append(seen, both.Get(s)+fmt.Sprint(s.Keys()))
			return graph.Update{}, nil
		}}},
		Start: []string{"look"},
		Edges: []graph.Edge{edge("look", graph.End)},
	})
	g := compile(t, graph.Def{
		Name: "parent",
		Keys: []graph.AnyKey{above, both},
		Nodes: []graph.Node{{
			Name:     "n",
			Children: map[string]graph.ChildGraph{"k": {Graph: child, Inherit: true}},
			Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				c, err := graph.CallChild(ctx, "x", "k")
				if keys := c.State.Keys(); slices.Contains(keys, "above") {
					t.Errorf("the child has the keys %q", keys)
				}
				return graph.Update{}, err
			},
		}},
		Start: []string{"n"},
		Edges: []graph.Edge{edge("n", graph.End)},
	})
	for _, set := range [][]graph.Write{{above.Set("x"), both.Set("one")}, {above.Set("x")}, {both.Set("two")}} {
		res, err := kept(g).Invoke(t.Context(), graph.Input{Set: set})
		is(t, graph.Done, res, err)
	}
	if want := []string{"one[both]", "[]", "two[both]"}; !slices.Equal(seen, want) {
		t.Errorf("the children saw %q, want %q", seen, want)
	}
}

// The failures that have ended paths of named children are those of the run.
func TestFailuresOfNamedChildren(t *testing.T) {
	child := compile(t, graph.Def{
		Name:  "child",
		Nodes: []graph.Node{{Name: "try", OnError: graph.End, Run: fails("no luck")}},
		Start: []string{"try"},
		Edges: []graph.Edge{edge("try", graph.End)},
	})
	for _, st := range []journal.Store{nil, journal.NewMemory()} {
		g := parallel(t, graph.Node{
			Name:     "n",
			Children: map[string]graph.ChildGraph{"k": {Graph: child}},
			Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				for _, name := range []string{"x", "y"} {
					if _, err := graph.CallChild(ctx, name, "k"); err != nil {
						return graph.Update{}, err
					}
				}
				return graph.Update{}, nil
			},
		})
		res, err := (&graph.Runner{Graph: g, Store: st}).Invoke(t.Context(), graph.Input{Thread: thread})
		is(t, graph.Done, res, err)
		var paths []string
		for _, f := range res.Failures {
			paths = append(paths, f.Path+f.Node)
		}
		if slices.Sort(paths); !slices.Equal(paths, []string{"n/x/try", "n/y/try"}) {
			t.Errorf("with the store %v the failures are %q", st, paths)
		}
	}
}

// In and Out belong to a child that the node runs by itself.
func TestFunctionsAroundAChild(t *testing.T) {
	in := func(graph.State) ([]graph.Write, error) { return nil, nil }
	out := func(graph.State, graph.Child) (graph.Update, error) { return graph.Update{}, nil }
	for name, n := range map[string]graph.Node{"In": {In: in}, "Out": {Out: out}, "both": {In: in, Out: out}} {
		n.Name = "n"
		n.Run = idle
		for want, child := range map[string]*graph.Graph{"has In, Out or Inherit but no Graph": nil, "has both Run and In or Out": quiet} {
			n.Graph = child
			d := graph.Def{Name: "g", Nodes: []graph.Node{n}, Start: []string{"n"}, Edges: []graph.Edge{edge("n", graph.End)}}
			if _, err := graph.Compile(d); err == nil || !strings.Contains(err.Error(), `node "n" `+want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}
