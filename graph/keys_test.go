package graph_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"raddle.dev/graph"
)

// rawKey returns a key whose values are stored as they are.
func rawKey(name string) graph.Key[string] {
	return graph.Last[string](name).WithCodec(graph.Codec[string]{
		Tag:    "raw",
		Encode: func(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil },
		Decode: func(b []byte) (string, error) { return string(b), nil },
	})
}

func TestACodecHasBothFunctions(t *testing.T) {
	encode := func(dst []byte, _ string) ([]byte, error) { return dst, nil }
	decode := func([]byte) (string, error) { return "", nil }
	for name, c := range map[string]graph.Codec[string]{"Encode": {Encode: encode}, "Decode": {Decode: decode}, "neither": {}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a codec with %s alone is taken", name)
				}
			}()
			graph.Last[string]("k").WithCodec(c)
		}()
	}
	graph.Last[string]("k").WithCodec(graph.Codec[string]{Encode: encode, Decode: decode})
}

func TestTheZeroState(t *testing.T) {
	if v, ok := (graph.State{}).Value("k"); ok || v != nil {
		t.Errorf("%v, %t", v, ok)
	}
	if keys := (graph.State{}).Keys(); keys != nil {
		t.Errorf("%q", keys)
	}
}

// A reader may change the lists in the maps that it gets, and no one else sees it.
func TestListsInMapsAreCopied(t *testing.T) {
	lists := graph.Merge[string, []int]("lists")
	anything := graph.Last[any]("anything")
	var seen []string
	change := func(_ context.Context, s graph.State) (graph.Update, error) {
		seen = append(seen, fmt.Sprint(lists.Get(s), anything.Get(s)))
		lists.Get(s)["x"][0]++
		return graph.Update{}, nil
	}
	g := compile(t, graph.Def{
		Name:  "lists",
		Keys:  []graph.AnyKey{lists, anything},
		Nodes: []graph.Node{{Name: "a", Run: change}, {Name: "b", Run: change}},
		Start: []string{"a"},
		Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)},
	})
	for _, v := range []any{nil, "text", map[string]any{"k": "v"}} {
		seen = nil
		set := []graph.Write{lists.Set(map[string][]int{"x": {1}}), anything.Set(v)}
		res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{Set: set})
		is(t, graph.Done, res, err)
		want := fmt.Sprint(map[string][]int{"x": {1}}, v)
		if len(seen) != 2 || seen[0] != want || seen[1] != want || lists.Get(res.State)["x"][0] != 1 {
			t.Errorf("seen %q, want %q twice; then %v", seen, want, lists.Get(res.State))
		}
	}
}

// Two tasks that write the same of many keys are in conflict, and one that writes each of them twice is not.
func TestConflictsAmongManyKeys(t *testing.T) {
	var keys []graph.AnyKey
	var writes2, last []graph.Write
	for i := range 60 {
		k := graph.Last[int](fmt.Sprint("k", i))
		keys = append(keys, k)
		writes2 = append(writes2, k.Set(1), k.Set(2))
		last = []graph.Write{k.Set(3)}
	}
	def := func(nodes ...graph.Node) *graph.Graph {
		d := graph.Def{Name: "many", Keys: keys, Nodes: nodes}
		for _, n := range nodes {
			d.Start = append(d.Start, n.Name)
			d.Edges = append(d.Edges, edge(n.Name, graph.End))
		}
		return compile(t, d)
	}
	twice := graph.Node{Name: "twice", Run: writes(writes2...)}
	res, err := start(t, kept(def(twice)))
	is(t, graph.Done, res, err)
	if v, ok := res.State.Value("k59"); !ok || v != 2 {
		t.Errorf("k59 is %v", v)
	}
	_, err = start(t, kept(def(twice, graph.Node{Name: "other", Run: writes(last...)})))
	var conflict *graph.ConflictError
	if !errors.As(err, &conflict) || conflict.Key != "k59" {
		t.Errorf("%v", err)
	}
}
