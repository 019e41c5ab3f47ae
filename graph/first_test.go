package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"raddle.dev/graph"
)

// First values are there before the first step and beneath what the caller sets;
// a thread gets them once, a child with each call, and the journal has them.
func TestFirstValues(t *testing.T) {
	first := []graph.Write{only.Set("first"), list.Set([]string{"one"}), newReducerKey.Set(5)}
	see := func(_ context.Context, s graph.State) (graph.Update, error) {
		return graph.Put(list.Set([]string{fmt.Sprint(only.Get(s), newReducerKey.Get(s))})), nil
	}
	d := graph.Def{Name: "g", Keys: all, First: first, Start: []string{"see"}, Nodes: []graph.Node{{Name: "see", Run: see}}, Edges: []graph.Edge{edge("see", graph.End)}}
	g := compile(t, d)
	first[0] = only.Set("changed") // the graph has its own
	for _, store := range []graph.Store{nil, graph.NewMemory()} {
		r := &graph.Runner{Graph: g, Store: store}
		res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
		if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != "[one first5]" {
			t.Errorf("%T: %v", store, list.Get(res.State))
		}
		if store != nil { // a second run of the thread
			s, err := r.State(t.Context(), "t", 1)
			if err != nil || only.Get(s) != "first" || newReducerKey.Get(s) != 5 {
				t.Errorf("at the start: %v, %v", only.Get(s), err)
			}
			res, err = r.Invoke(t.Context(), graph.Input{Thread: "t", Set: []graph.Write{newReducerKey.Set(1)}})
			if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != "[one first5 first6]" {
				t.Errorf("second run: %v", list.Get(res.State))
			}
		}
		res, err = r.Invoke(t.Context(), graph.Input{Thread: "other", Set: []graph.Write{only.Set("mine"), list.Set([]string{"two"})}})
		if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != "[one two mine5]" {
			t.Errorf("%T, with input: %v", store, list.Get(res.State))
		}
	}
}

// A child gets them at each call.
func TestFirstValuesOfAChild(t *testing.T) {
	inc := func(context.Context, graph.State) (graph.Update, error) { return graph.Put(newReducerKey.Set(1)), nil }
	child := compile(t, graph.Def{Name: "child", Keys: all, First: []graph.Write{newReducerKey.Set(10)}, Start: []string{"i"}, Nodes: []graph.Node{{Name: "i", Run: inc}}, Edges: []graph.Edge{edge("i", graph.End)}})
	out := func(_ graph.State, ch graph.Child) (graph.Update, error) {
		return graph.Put(newReducerKey.Set(newReducerKey.Get(ch.State))), nil
	}
	r := kept(compile(t, graph.Def{Name: "top", Keys: all, Start: []string{"c"}, Nodes: []graph.Node{{Name: "c", Graph: child, Out: out}, {Name: "d", Graph: child, Out: out}},
		Edges: []graph.Edge{edge("c", "d"), edge("d", graph.End)}}))
	res, err := start(t, r)
	if is(t, graph.Done, res, err); newReducerKey.Get(res.State) != 22 {
		t.Error(newReducerKey.Get(res.State))
	}
}

// First values that cannot be are faults of the definition.
func TestFirstValuesAreProved(t *testing.T) {
	other := graph.Last[string]("unheard of")
	_, err := graph.Compile(graph.Def{Name: "g", Keys: all, First: []graph.Write{other.Set("x")}, Start: []string{"a"}, Nodes: []graph.Node{say("a")}, Edges: []graph.Edge{edge("a", graph.End)}})
	if err == nil || !strings.Contains(err.Error(), `First: `) || !strings.Contains(err.Error(), "unheard of") {
		t.Error(err)
	}
	broken := graph.Fold("sum", func(int, bool, int) (int, error) { return 0, errors.New("no sums today") })
	_, err = graph.Compile(graph.Def{Name: "g", Keys: []graph.AnyKey{broken}, First: []graph.Write{broken.Set(1)}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: idle}}, Edges: []graph.Edge{edge("a", graph.End)}})
	if err == nil || !strings.Contains(err.Error(), "no sums today") {
		t.Error(err)
	}
}
