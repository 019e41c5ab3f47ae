package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
)

var (
	list          = graph.Append[string]("list")
	newReducerKey = graph.Sum[int]("total")
	only          = graph.Last[string]("only")
	table         = graph.Merge[string, int]("table")
	chain         = graph.Fold("chain", func(old string, _ bool, upd string) (string, error) { return "(" + old + upd + ")", nil })
	all           = []graph.AnyKey{list, newReducerKey, only, table, chain}
)

// parallel is nodes that run in one step, in this order of declaration.
func parallel(t testing.TB, nodes ...graph.Node) *graph.Graph {
	d := graph.Def{Name: "parallel", Keys: all, Nodes: nodes}
	for _, n := range nodes {
		d.Start = append(d.Start, n.Name)
		d.Edges = append(d.Edges, edge(n.Name, graph.End))
	}
	return compile(t, d)
}

func TestWritesAreFoldedInTheOrderOfDeclaration(t *testing.T) {
	var nodes []graph.Node
	for _, n := range []string{"c", "a", "b"} {
		nodes = append(nodes, graph.Node{Name: n, Run: writes(list.Set([]string{n}), chain.Set(n), newReducerKey.Set(1), table.Set(map[string]int{n: 1, "last": len(nodes)}))})
	}
	g := parallel(t, nodes...)
	for i := range 300 {
		r := kept(g)
		switch i {
		case 0:
			r.Executor = sequential{}
		case 1:
			r.Executor = backward{}
		}
		res, err := start(t, r)
		is(t, graph.Done, res, err)
		if got := fmt.Sprint(list.Get(res.State), chain.Get(res.State), newReducerKey.Get(res.State), table.Get(res.State)); got != "[c a b](((c)a)b)3 map[a:1 b:1 c:1 last:2]" {
			t.Fatal(got)
		}
	}
}

func TestTasksOfOneNodeConflictToo(t *testing.T) {
	g := compile(t, graph.Def{Name: "sends", Keys: all, Start: []string{"split"}, Nodes: []graph.Node{
		{Name: "split", Routes: []string{"work"}, Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Send: []graph.Send{{To: "work"}, {To: "work"}}}, nil
		}},
		{Name: "work", Run: writes(only.Set("x"))},
	}, Edges: []graph.Edge{edge("work", graph.End)}})
	res, err := start(t, kept(g))
	is(t, graph.Failed, res, err)
	var c *graph.ConflictError
	if !errors.As(err, &c) || !slices.Equal(c.Nodes, []string{"work", "work"}) || c.Key != "only" {
		t.Error(err)
	}
}

// One task may write a key twice; what it wrote last counts.
func TestOneTaskMayWriteAKeyTwice(t *testing.T) {
	res, err := start(t, kept(parallel(t, graph.Node{Name: "a", Run: writes(only.Set("x"), list.Set([]string{"1"}), only.Set("y"), list.Set([]string{"2"}))})))
	if is(t, graph.Done, res, err); only.Get(res.State) != "y" || len(list.Get(res.State)) != 2 {
		t.Error(only.Get(res.State), list.Get(res.State))
	}
}

func TestWritesThatDoNotFitAreNamed(t *testing.T) {
	refuses := graph.Fold("refuses", func(int, bool, int) (int, error) { return 0, errors.New("never") })
	breaks := graph.Last[int]("breaks").WithCodec(graph.Codec[int]{Tag: "t", Encode: func([]byte, int) ([]byte, error) { panic("no") }, Decode: func([]byte) (int, error) { return 0, nil }})
	for want, w := range map[string]graph.Write{
		`key "only" is declared with type string, written with type int`: graph.Last[int]("only").Set(1),
		`key "nobody" is not declared in the graph`:                      graph.Last[int]("nobody").Set(1),
		`key "refuses": never`:                                           refuses.Set(1),
		`key "bag": a value of type chan int cannot be stored`:           graph.Dyn("bag").Set(make(chan int)),
		`key "breaks": panic in the codec: no`:                           breaks.Set(1),
		"a Write was not made by Set or Reset":                           {},
	} {
		for _, sibling := range []bool{false, true} {
			d := graph.Def{Name: "g", Keys: append(slices.Clone(all), refuses, graph.Dyn("bag"), breaks), Start: []string{"a"},
				Nodes: []graph.Node{{Name: "a", Run: writes(newReducerKey.Set(1), w)}, {Name: "b", Run: idle}}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)}}
			if sibling {
				d.Start = append(d.Start, "b")
			}
			r := kept(compile(t, d))
			res, err := start(t, r)
			if is(t, graph.Failed, res, err); !strings.Contains(err.Error(), want) {
				t.Errorf("beside a sibling %v: want %s, got %v", sibling, want, err)
			}
			if len(res.State.Keys()) != 0 {
				t.Errorf("%s: something was written: %v", want, res.State.Keys())
			}
			s, err := graph.Inspect(t.Context(), r.Store, thread, 0)
			if err != nil || s.Status != graph.Failed || len(s.Values) != 0 {
				t.Errorf("%s: the journal holds %+v, %v", want, s, err)
			}
		}
	}
}

func TestAbsentIsNotNull(t *testing.T) {
	bag := graph.Dyn("bag")
	check := func(present bool) graph.Func {
		return func(_ context.Context, s graph.State) (graph.Update, error) {
			v, ok := bag.Lookup(s)
			w, named := s.Value("bag")
			if v != nil || w != nil || ok != present || named != present || slices.Contains(s.Keys(), "bag") != present {
				t.Errorf("present %v: %v %v, %v %v, %v", present, v, ok, w, named, s.Keys())
			}
			if n, ok := newReducerKey.Lookup(s); n != 0 || ok || len(list.Get(s)) != 0 {
				t.Error("a key nobody wrote is present")
			}
			return graph.Put(bag.Set(nil)), nil
		}
	}
	g := compile(t, graph.Def{Name: "null", Keys: append(slices.Clone(all), bag), Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Run: check(false)}, {Name: "b", Run: asks(nil)}, {Name: "c", Run: check(true)},
	}, Edges: []graph.Edge{edge("a", "b"), edge("b", "c"), edge("c", graph.End)}})
	r := kept(g)
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	res, err = resume(t, r, says("b", ""))
	is(t, graph.Done, res, err)
}

// One sibling trims a list to which others append: the order of declaration says
// what is trimmed away.
func TestResetBesideAppends(t *testing.T) {
	add := func(s string) graph.Write { return list.Set([]string{s}) }
	trim := list.Reset([]string{"trimmed"})
	for want, nodes := range map[string][]graph.Func{
		"[trimmed b c]":   {writes(add("gone"), trim), writes(add("b")), writes(add("c"))},
		"[trimmed b c d]": {writes(add("gone")), writes(trim, add("b")), writes(add("c"), add("d"))},
		"[trimmed]":       {writes(add("gone")), writes(add("gone")), writes(trim)},
	} {
		d := graph.Def{Name: "trim", Keys: all, Nodes: []graph.Node{{Name: "ask", Run: asks(nil)}}, Edges: []graph.Edge{edge("ask", graph.End)}}
		for i, run := range nodes {
			name := fmt.Sprint("n", i)
			d.Nodes = append(d.Nodes, graph.Node{Name: name, Run: run})
			d.Edges, d.Start = append(d.Edges, edge(name, "ask")), append(d.Start, name)
		}
		r := kept(compile(t, d))
		res, err := start(t, r, list.Set([]string{"old", "older"}))
		if is(t, graph.Waiting, res, err); fmt.Sprint(list.Get(res.State)) != want {
			t.Errorf("%v, want %v", list.Get(res.State), want)
		}
		res, err = resume(t, r, says("ask", ""))
		if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != want {
			t.Errorf("resumed: %v, want %v", list.Get(res.State), want)
		}
	}
}

// States that were read stay as they were, whatever is appended later, in the
// run, in overlays and in children.
func TestAStateThatWasReadNeverChanges(t *testing.T) {
	type view struct {
		s    graph.State
		list []string
		copy []string
	}
	var mu tally
	var views []view
	see := func(_ context.Context, s graph.State) (graph.Update, error) {
		l := list.Get(s)
		mu.mu.Lock()
		views = append(views, view{s, l, slices.Clone(l)})
		mu.mu.Unlock()
		_ = append(l, "clobbered")
		return graph.Put(list.Set([]string{fmt.Sprint(len(l)), "x"})), nil
	}
	child := compile(t, graph.Def{Name: "child", Keys: all, Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: see}, {Name: "y", Run: see}}, Edges: []graph.Edge{edge("x", "y"), edge("y", graph.End)}})
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Routes: []string{"b", "sub"}, Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			u, err := see(ctx, s)
			for i := range 4 {
				u.Send = append(u.Send, graph.Send{To: []string{"b", "sub"}[i%2], Overlay: []graph.Write{list.Set([]string{"overlay"})}})
			}
			return u, err
		}},
		{Name: "b", Run: see},
		{Name: "sub", Graph: child, Inherit: true},
		{Name: "c", Run: see},
	}, Edges: []graph.Edge{edge("b", "c"), edge("sub", "c"), branch("c", map[string]string{"again": "a", "stop": graph.End}, func(s graph.State) string {
		if len(list.Get(s)) < 60 {
			return "again"
		}
		return "stop"
	})}})
	res, err := start(t, kept(g), list.Set(make([]string, 3, 100)))
	is(t, graph.Done, res, err)
	for _, v := range views {
		if !slices.Equal(v.list, v.copy) || !slices.Equal(list.Get(v.s), v.copy) || cap(v.list) != len(v.list) {
			t.Fatalf("what a node had read changed from %v to %v", v.copy, v.list)
		}
	}
}

// What the caller hands in or gets is not what the run works on.
func TestListsOfTheCallerAreCopied(t *testing.T) {
	mine := append(make([]string, 0, 10), "a")
	keep := func(context.Context, graph.State) (graph.Update, error) { return graph.Put(list.Set(mine)), nil }
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: keep}, {Name: "b", Run: func(context.Context, graph.State) (graph.Update, error) {
		mine[0] = "changed"
		return graph.Update{}, nil
	}}}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)}})
	for _, w := range []graph.Write{list.Set(mine), list.Reset(mine)} {
		mine[0] = "a"
		res, err := start(t, kept(g), w)
		if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != "[a a]" {
			t.Error(list.Get(res.State))
		}
	}
}

type point struct{ X, Y int }

// Values come back from a journal as they went in, with their Go types.
func TestValuesKeepTheirTypesAcrossAResume(t *testing.T) {
	graph.Register[point]("raddle.dev/graph_test.point")
	bag, big, raw, at := graph.Dyn("bag"), graph.Last[int64]("big"), graph.Last[[]byte]("raw"), graph.Last[time.Time]("at")
	custom, ptr := graph.Last[point]("custom"), graph.Last[*point]("ptr")
	when := time.Date(2026, 2, 3, 4, 5, 6, 7, time.FixedZone("x", 3600))
	values := []any{nil, true, false, 3, "", "text", "t", int64(1) << 60, uint64(1) << 63, 1.5, []byte{0, 255}, when, point{1, 2},
		[]any{}, []any{1, int64(2), "s", nil, []byte("b"), map[string]any{"k": []any{uint64(9)}}}, map[string]any{}}
	for _, v := range values {
		g := compile(t, graph.Def{Name: "g", Keys: []graph.AnyKey{bag, big, raw, at, custom, ptr}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: asks(nil)}}, Edges: []graph.Edge{edge("a", graph.End)}})
		r := kept(g)
		want, err := start(t, r, bag.Set(v), big.Set(1<<60+1), raw.Set([]byte{}), at.Set(when), custom.Set(point{3, 4}), ptr.Set(nil))
		is(t, graph.Waiting, want, err)
		got, err := resume(t, r, says("a", ""))
		is(t, graph.Done, got, err)
		if diff := cmp.Diff(endOf(want).State, endOf(got).State); diff != "" {
			t.Errorf("%T: %s", v, diff)
		}
		var seen any
		halt := compile(t, graph.Def{Name: "h", Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			var err error
			if seen, err = graph.Do(ctx, "any", func(context.Context) (any, error) { return v, nil }); err != nil {
				return graph.Update{}, err
			}
			_, err = graph.Interrupt[string](ctx, graph.Ask{})
			return graph.Update{Halt: &graph.Halt{Value: seen}}, err
		}}}, Edges: []graph.Edge{edge("a", graph.End)}})
		r = kept(halt)
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		if res, err = resume(t, r, says("a", "")); !cmp.Equal(seen, v) || !cmp.Equal(res.Value, v) || err != nil {
			t.Errorf("%T: the effect came back as %#v, the halt as %#v; %v", v, seen, res.Value, err)
		}
		if again, err := resume(t, r); !cmp.Equal(again.Value, v) || err != nil {
			t.Errorf("%T: from the journal the halt is %#v, %v", v, again.Value, err)
		}
	}
}

// In an open graph nodes write undeclared names; they are kept, and
// what a changed graph no longer declares is kept too.
func TestUndeclaredKeysAreKept(t *testing.T) {
	def := func(open bool) graph.Def {
		d := graph.Def{Name: "open", Start: []string{"a", "b"}, Nodes: []graph.Node{
			{Name: "a", Routes: []string{"c"}, Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Update{Writes: []graph.Write{graph.Dyn("x").Set(1)}, Send: []graph.Send{{To: "c", Overlay: []graph.Write{graph.Dyn("mine").Set("o")}}}}, nil
			}},
			{Name: "b", Run: writes(graph.Dyn("y").Set("why"), graph.Dyn("z").Set([]any{1}))},
			{Name: "c", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
				if _, err := graph.Interrupt[string](ctx, graph.Ask{}); err != nil {
					return graph.Update{}, err
				}
				x, _ := s.Value("x")
				mine, _ := s.Value("mine")
				nobody, _ := s.Value("nobody")
				return graph.Update{Halt: &graph.Halt{Value: fmt.Sprint(x, mine, nobody, s.Keys())}}, nil
			}},
		}, Edges: []graph.Edge{edge("b", graph.End), edge("c", graph.End)}}
		if open {
			d.Open = func(name string) graph.AnyKey { return graph.Dyn(name) }
		} else {
			d.Keys = []graph.AnyKey{graph.Dyn("x"), graph.Dyn("mine")}
		}
		return d
	}
	r := kept(compile(t, def(true)))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	crashed := before(t, r.Store, nth(graph.KindEnd, 1))
	res, err = resume(t, r, says("c[1]", ""))
	if is(t, graph.Done, res, err); res.Value != "1o<nil> [mine x y z]" {
		t.Error(res.Value)
	}
	strict := &graph.Runner{Graph: compile(t, def(false)), Store: crashed}
	var changed *graph.ChangedError
	if _, err := resume(t, strict); !errors.As(err, &changed) {
		t.Fatal(err)
	}
	res, err = strict.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true, Answers: []graph.Answer{says("c[1]", "")}})
	if is(t, graph.Done, res, err); res.Value != "1o<nil> [mine x]" {
		t.Error(res.Value)
	}
	s, err := graph.Inspect(t.Context(), crashed, thread, 0)
	var keys []string
	for _, v := range s.Values {
		keys = append(keys, v.Key)
	}
	if err != nil || !slices.Equal(keys, []string{"x", "y", "z"}) {
		t.Errorf("%v, %v", keys, err)
	}
}

// Answers of a type that says itself how it reads JSON can be given.
func TestQuestionsOfAnyType(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	askFor(t, when, when)
	askFor(t, []byte("bytes"), []byte("bytes"))
	askFor(t, json.RawMessage(`{"a":1}`), map[string]any{"a": 1})
	askFor(t, point{1, 2}, point{1, 2})
	askFor(t, []int{1}, []int{1})
	askFor(t, true, true)
	askFor(t, 1.5, 1.5)
	askFor[any](t, "x", "x")
}

func askFor[T any](t *testing.T, want T, answer any) {
	t.Helper()
	var got T
	g := compile(t, graph.Def{Name: "g", Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: func(ctx context.Context, _ graph.State) (_ graph.Update, err error) {
		got, err = graph.Interrupt[T](ctx, graph.Ask{})
		return graph.Update{}, err
	}}}, Edges: []graph.Edge{edge("a", graph.End)}})
	r := kept(g)
	_, _ = start(t, r)
	if res, err := resume(t, r, graph.Answer{ID: "a", Value: answer}); err != nil || res.Status != graph.Done || !cmp.Equal(got, want) {
		t.Errorf("%T: %v, %v, %v", want, got, res.Status, err)
	}
}
