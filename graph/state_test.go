package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
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
		`key "unknown" is not declared in the graph`:                     graph.Last[int]("unknown").Set(1),
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
			s, err := history.Inspect(t.Context(), r.Store, thread, 0)
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
				t.Error("a key that was not written is present")
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
				unknown, _ := s.Value("unknown")
				return graph.Update{Halt: &graph.Halt{Value: fmt.Sprint(x, mine, unknown, s.Keys())}}, nil
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
	crashed := copyBefore(t, r.Store, nth(journal.KindEnd, 1))
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
	s, err := history.Inspect(t.Context(), crashed, thread, 0)
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

// manyKeys is an open graph with a node that writes many keys, and one that reads one.
func manyKeys(t *testing.T, n int) *graph.Graph {
	return compile(t, graph.Def{Name: "many", Open: func(name string) graph.AnyKey { return graph.Dyn(name) }, Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Routes: []string{"b"}, Run: func(context.Context, graph.State) (graph.Update, error) {
			u := graph.Update{Goto: []string{"b"}}
			for i := range n {
				u.Writes = append(u.Writes, graph.Dyn(fmt.Sprint("k", i)).Set(int64(i)))
			}
			return u, nil
		}},
		{Name: "b", Routes: []string{graph.End}, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			if v, ok := s.Value(fmt.Sprint("k", n-1)); !ok || v != int64(n-1) {
				return graph.Update{}, fmt.Errorf("the last key is %v", v)
			}
			return graph.Update{}, errors.New("stop here")
		}},
	}})
}

// allocated is how many bytes a function allocates.
func allocated(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}

// A step that writes many new keys, and a resume that reads them, cost what the keys
// cost: the work is counted in bytes, which do not depend on the machine.
func TestManyKeysAreLinear(t *testing.T) {
	cost := map[int][2]float64{}
	const few, many = 2000, 16000
	for _, n := range []int{few, many} {
		r := &graph.Runner{Graph: manyKeys(t, n), Store: journal.NewMemory()}
		run := func(drive func() error) float64 {
			return allocated(func() {
				if err := drive(); err == nil || !strings.Contains(err.Error(), "stop here") {
					t.Fatal(err)
				}
			})
		}
		cost[n] = [2]float64{
			run(func() error { _, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); return err }),
			run(func() error { _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"}); return err }),
		}
	}
	for i, what := range []string{"the run", "the resume"} {
		if times := cost[many][i] / cost[few][i]; times > 2*many/few {
			t.Errorf("%s: %d times the keys allocate %.1f times the bytes", what, many/few, times)
		}
	}
}

// What makes the state larger than it may be is not kept, names the key, and can be
// repeated with a higher limit.
func TestTheStateHasALimit(t *testing.T) {
	size, fails := 0, true
	text := graph.Last[string]("text")
	log := graph.Append[string]("log")
	g := compile(t, graph.Def{Name: "g", Keys: []graph.AnyKey{text, log}, Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			return graph.Put(text.Set(strings.Repeat("x", size)), log.Set([]string{"one"})), nil
		}},
		{Name: "b", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			if got := len(text.Get(s)); got != size {
				return graph.Update{}, fmt.Errorf("%d bytes", got)
			}
			fails = false
			return graph.Put(text.Set("short")), nil // what makes it smaller is taken
		}},
	}, Edges: []graph.Edge{{From: []string{"a"}, To: []string{"b"}}, {From: []string{"b"}, To: []string{graph.End}}}})
	for _, size = range []int{900, 1100} {
		r := &graph.Runner{Graph: g, Store: journal.NewMemory(), MaxState: 1000}
		_, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
		var large *graph.StateSizeError
		if size < 1000 {
			if err != nil || fails {
				t.Fatalf("%v, %v", err, fails)
			}
			continue
		}
		var node *graph.NodeError
		if !errors.As(err, &large) || large.Key != "text" || large.Write < size || large.Limit != 1000 || large.Size <= size || !errors.As(err, &node) || node.Node != "a" {
			t.Fatalf("%v", err)
		}
		if _, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"}); !errors.As(err, &large) {
			t.Fatalf("resumed: %v", err)
		}
		r.MaxState = 0
		if _, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"}); err != nil {
			t.Errorf("without a limit: %v", err)
		}
	}
	// The first writes count, too.
	r := &graph.Runner{Graph: g, Store: journal.NewMemory(), MaxState: 1000}
	var large *graph.StateSizeError
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: []graph.Write{text.Set(strings.Repeat("x", 2000))}}); !errors.As(err, &large) {
		t.Errorf("first writes: %v", err)
	}
}

// say is a node that appends its name.
func say(name string) graph.Node {
	return graph.Node{Name: name, Run: writes(list.Set([]string{name}))}
}

// goes is a node that names its targets.
func goes(routes []string, to ...string) graph.Func {
	return func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{Goto: to, Writes: []graph.Write{list.Set([]string{"went"})}}, nil
	}
}

// lineOf runs a graph of the common keys and returns what its nodes appended.
func lineOf(t testing.TB, d graph.Def, want graph.Status) (string, graph.Result, error) {
	t.Helper()
	d.Keys = all
	if d.Name == "" {
		d.Name = "line"
	}
	res, err := start(t, kept(compile(t, d)))
	is(t, want, res, err)
	return strings.Join(list.Get(res.State), " "), res, err
}

func TestGotoTakesThePlaceOfEdges(t *testing.T) {
	nodes := []graph.Node{say("b"), say("c"), say("d")}
	d := graph.Def{Start: []string{"a"}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End), edge("c", graph.End), edge("d", graph.End)}}
	for want, to := range map[string][]string{"went c d": {"d", "c", "c"}, "went": {graph.End}, "went b": nil} {
		d.Nodes = append([]graph.Node{{Name: "a", Routes: []string{"c", "d"}, Run: goes(nil, to...)}}, nodes...)
		if got, _, _ := lineOf(t, d, graph.Done); got != want {
			t.Errorf("goto %v: %s, want %s", to, got, want)
		}
	}
	d.Nodes[0].Run = func(context.Context, graph.State) (graph.Update, error) { return graph.Update{Goto: []string{}}, nil }
	if got, _, _ := lineOf(t, d, graph.Done); got != "" {
		t.Errorf("an empty goto led to %s", got)
	}
}

func TestTargetsThatMayNotBeNamedAreErrors(t *testing.T) {
	d := graph.Def{Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Routes: []string{"c"}}, say("b"), say("c")},
		Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End), edge("c", graph.End)}}
	for want, run := range map[string]graph.Func{
		"goto b [END c]": goes(nil, "b"),
		"goto d [END c]": goes(nil, "c", "d"),
		"send b [END c]": func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Send: []graph.Send{{To: "b"}}}, nil
		},
		"send END [END c]": func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Send: []graph.Send{{To: graph.End}}}, nil
		},
	} {
		d.Nodes[0].Run = run
		_, _, err := lineOf(t, d, graph.Failed)
		var e *graph.RouteError
		if !errors.As(err, &e) || e.Node != "a" || fmt.Sprint(e.By, " ", e.Target, " ", e.Allowed) != want {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

func TestABranchIsTakenOncePerTarget(t *testing.T) {
	labels := []string{"x", "y", "x", "also x", ""}
	d := graph.Def{Start: []string{"a"}, Nodes: []graph.Node{say("a"), say("b"), say("c")}, Edges: []graph.Edge{
		{From: []string{"a"}, Cases: map[string]string{"x": "b", "also x": "b", "y": "c", "end": graph.End}, Pick: func(graph.State) ([]string, error) { return labels, nil }},
		edge("b", graph.End), edge("c", graph.End)}}
	if got, _, _ := lineOf(t, d, graph.Done); got != "a b c" {
		t.Error(got)
	}
	for _, labels = range [][]string{nil, {}, {"end"}, {""}} {
		if got, _, _ := lineOf(t, d, graph.Done); got != "a" {
			t.Error(got)
		}
	}
	for _, unknown := range []string{"z", "b", " "} {
		labels = []string{"x", unknown}
		_, _, err := lineOf(t, d, graph.Failed)
		var e *graph.RouteError
		if !errors.As(err, &e) || e.Node != "a" || e.Target != unknown || e.By != "branch" || !slices.Equal(e.Allowed, []string{"also x", "end", "x", "y"}) {
			t.Errorf("label %q: %v", unknown, err)
		}
	}
}

// A branch sees the writes of the whole step, whichever node finishes first.
func TestABranchSeesTheWholeStep(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a", "b"}, Nodes: []graph.Node{
		{Name: "a", Run: writes(newReducerKey.Set(1))}, {Name: "b", Run: writes(newReducerKey.Set(2))}, say("three"), say("other"),
	}, Edges: []graph.Edge{edge("b", graph.End), edge("three", graph.End), edge("other", graph.End),
		branch("a", map[string]string{"y": "three", "n": "other"}, func(s graph.State) string {
			if newReducerKey.Get(s) == 3 {
				return "y"
			}
			return "n"
		})}})
	for _, e := range []graph.Executor{sequential{}, backward{}, nil} {
		r := kept(g)
		r.Executor = e
		res, err := start(t, r)
		if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != "[three]" {
			t.Errorf("%T: %v", e, list.Get(res.State))
		}
	}
}

func TestAnUnevenDiamond(t *testing.T) {
	d := graph.Def{Start: []string{"s"}, Nodes: []graph.Node{say("s"), say("a"), say("b"), say("b2"), say("j")},
		Edges: []graph.Edge{edge("s", "a", "b"), edge("b", "b2"), edge("j", graph.End), edge("a", "j"), edge("b2", "j")}}
	if got, _, _ := lineOf(t, d, graph.Done); got != "s a b b2 j j" {
		t.Errorf("with edges: %s", got)
	}
	d.Edges = append(d.Edges[:3], join("j", "a", "b2"))
	if got, _, _ := lineOf(t, d, graph.Done); got != "s a b b2 j" {
		t.Errorf("with a join: %s", got)
	}
	d.Edges = append(d.Edges, join("j", "b", "s"))
	if got, _, _ := lineOf(t, d, graph.Done); got != "s a b b2 j j" {
		t.Errorf("with two joins that fire in different steps: %s", got)
	}
}

func TestAJoinThatCannotFireIsStuck(t *testing.T) {
	d := graph.Def{Start: []string{"s"}, Nodes: []graph.Node{say("s"), say("a"), say("b"), say("j")}, Edges: []graph.Edge{
		branch("s", map[string]string{"a": "a", "b": "b"}, func(graph.State) string { return "a" }), join("j", "a", "b"), edge("j", graph.End)}}
	_, _, err := lineOf(t, d, graph.Stuck)
	var e *graph.StuckError
	if !errors.As(err, &e) || e.Target != "j" || !slices.Equal(e.Have, []string{"a"}) || !slices.Equal(e.Miss, []string{"b"}) {
		t.Error(err)
	}
	d.Nodes[1].Run = func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{Halt: &graph.Halt{}}, nil
	}
	if got, res, _ := lineOf(t, d, graph.Done); got != "s" || res.Value != nil { // a halt ends the waiting too
		t.Error(got)
	}
	d.Nodes[1].Run, d.MustHalt, d.Edges = idle, true, append(d.Edges[:2], edge("j", graph.End), edge("a", "b"))
	if _, _, err := lineOf(t, d, graph.Stuck); !errors.As(err, &e) || e.Target != "" {
		t.Error(err)
	}
}

// A join in a loop fires once each round, though its sources finish in different
// steps, and whichever is declared first.
func TestAJoinInALoopArmsAgain(t *testing.T) {
	slow := []graph.Node{say("s"), say("a"), say("b"), say("b2"), say("j")}
	for _, order := range [][]int{{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {3, 1, 0, 4, 2}} {
		d := graph.Def{Start: []string{"s"}, Edges: []graph.Edge{edge("s", "a", "b"), edge("b", "b2"), join("j", "a", "b2"),
			branch("j", map[string]string{"again": "s", "stop": graph.End}, func(s graph.State) string {
				if strings.Count(strings.Join(list.Get(s), ""), "j") < 3 {
					return "again"
				}
				return "stop"
			})}}
		for _, i := range order {
			d.Nodes = append(d.Nodes, slow[i])
		}
		got, _, _ := lineOf(t, d, graph.Done)
		if n := strings.Count(got, "j"); n != 3 {
			t.Errorf("order %v: the join fired %d times: %s", order, n, got)
		}
	}
}

// A source that is done twice before its join fires counts once: also when its
// second time is in the step that completes the join, and whichever node is declared first.
func TestASourceThatIsDoneTwiceCountsOnce(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		two := []graph.Node{{Name: "a", Run: writes(newReducerKey.Set(1))}, {Name: "b", Run: idle}}
		d := graph.Def{Start: []string{"a", "s"}, Nodes: []graph.Node{two[order[0]], two[order[1]], {Name: "s", Run: idle}, say("j")},
			Edges: []graph.Edge{branch("a", map[string]string{"again": "a", "stop": graph.End}, func(s graph.State) string {
				if newReducerKey.Get(s) < 2 {
					return "again"
				}
				return "stop"
			}), edge("s", "b"), edge("b", graph.End), join("j", "a", "b"), edge("j", graph.End)}}
		if got, _, _ := lineOf(t, d, graph.Done); got != "j" {
			t.Errorf("order %v: %s", order, got)
		}
	}
}

// Joins that wait are kept while a run waits for a person, and for another process.
func TestAHalfFullJoinSurvivesAResume(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a", "b"}, Nodes: []graph.Node{say("a"), say("b"), {Name: "ask", Run: asks(nil)}, say("j")},
		Edges: []graph.Edge{edge("b", "ask"), join("j", "a", "ask"), edge("j", graph.End)}})
	r := kept(g)
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	res, err = resume(t, r, says("ask", ""))
	if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != "[a b j]" {
		t.Error(list.Get(res.State))
	}
}

// sends is a node that starts a task of work for each number, from 1.
func sends(n int) graph.Node {
	return graph.Node{Name: "split", Routes: []string{"work"}, Run: func(context.Context, graph.State) (graph.Update, error) {
		u := graph.Update{Send: make([]graph.Send, n)}
		for i := range u.Send {
			u.Send[i] = graph.Send{To: "work", Overlay: []graph.Write{newReducerKey.Set(i + 1), list.Set([]string{"mine"})}}
		}
		return u, nil
	}}
}

// work appends what it sees.
var work = graph.Node{Name: "work", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
	return graph.Put(list.Set([]string{fmt.Sprint(newReducerKey.Get(s), len(list.Get(s)))})), nil
}}

func TestOnlySendsSeeTheirOverlays(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "11 1 gather", 3: "11 1 12 1 13 1 gather"} {
		d := graph.Def{Start: []string{"split"}, Nodes: []graph.Node{say("gather"), sends(n), work}, Edges: []graph.Edge{edge("work", "gather"), edge("gather", graph.End)}}
		d.Nodes[1].Run = func(run graph.Func) graph.Func {
			return func(ctx context.Context, s graph.State) (graph.Update, error) {
				u, err := run(ctx, s)
				u.Writes = []graph.Write{newReducerKey.Set(10)}
				return u, err
			}
		}(d.Nodes[1].Run)
		got, res, _ := lineOf(t, d, graph.Done)
		if got != want || newReducerKey.Get(res.State) != 10 {
			t.Errorf("%d sends: %s, total %d", n, got, newReducerKey.Get(res.State))
		}
	}
}

// A node that is a target of Send and of edges in one step runs for each Send and
// once for the edges; and a Send delays no task.
func TestSendsAndEdgesToOneNode(t *testing.T) {
	for _, n := range []int{2, 40} { // few and many tasks are looked up differently
		d := graph.Def{Start: []string{"split", "x", "y"}, Nodes: []graph.Node{work, sends(n), say("x"), say("y"), say("z"), say("gather")},
			Edges: []graph.Edge{edge("split", "work"), edge("x", "work", "z"), edge("y", "work"), edge("work", "gather"), edge("z", "gather"), edge("gather", graph.End)}}
		got, res, _ := lineOf(t, d, graph.Done)
		want := "x y 0 2"
		for i := range n {
			want += fmt.Sprint(" ", i+1, 3)
		}
		if want += " z gather"; strings.ReplaceAll(got, "  ", " ") != want || res.Steps != 3 {
			t.Errorf("%d sends: %s\nwant %s; %d steps", n, got, want, res.Steps)
		}
	}
}

// Several nodes send to one; several starts lead to one; the tasks have names of
// their own and every one of them runs.
func TestSendsOfSeveralNodes(t *testing.T) {
	send := func(to ...string) graph.Func {
		return func(context.Context, graph.State) (graph.Update, error) {
			var u graph.Update
			for _, n := range to {
				u.Send = append(u.Send, graph.Send{To: n})
			}
			return u, nil
		}
	}
	path := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		return graph.Put(list.Set([]string{graph.TaskPath(ctx)})), nil
	}
	d := graph.Def{Start: []string{"a", "b"}, Nodes: []graph.Node{
		{Name: "a", Routes: []string{"x", "y"}, Run: send("x", "y", "x")}, {Name: "b", Routes: []string{"x"}, Run: send("x")},
		{Name: "y", Run: path}, {Name: "x", Run: path},
	}, Edges: []graph.Edge{edge("x", graph.End), edge("y", graph.End)}}
	if got, _, _ := lineOf(t, d, graph.Done); got != "1.y.2 1.x.1 1.x.3 1.x.4" {
		t.Error(got)
	}
}

func TestANodeMayGoToItself(t *testing.T) {
	d := graph.Def{Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Routes: []string{"a"}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		u := graph.Put(list.Set([]string{fmt.Sprint(graph.Visit(ctx))}))
		if u.Goto = []string{"a"}; graph.Visit(ctx) == 5 {
			u.Goto = []string{graph.End}
		}
		return u, nil
	}}}}
	if got, _, _ := lineOf(t, d, graph.Done); got != "1 2 3 4 5" {
		t.Error(got)
	}
}

// All that leads to an error handler in one step is one task of it, and it learns
// of a failure wherever its node stands.
func TestAHandlerLearnsOfTheFailure(t *testing.T) {
	for n := range 20 { // few and many tasks are looked up differently
		d := graph.Def{Nodes: []graph.Node{{Name: "handler", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			return graph.Put(list.Set([]string{graph.Cause(ctx)})), nil
		}}}, Edges: []graph.Edge{edge("handler", graph.End)}}
		for i := range n + 2 {
			node := graph.Node{Name: fmt.Sprint("n", i), Run: idle}
			if i > n/2 {
				node.Run, node.OnError = fails("no"), "handler"
			}
			d.Nodes, d.Start = append(d.Nodes, node), append(d.Start, node.Name)
			d.Edges = append(d.Edges, edge(node.Name, "handler"))
		}
		if got, _, _ := lineOf(t, d, graph.Done); got != fmt.Sprintf("node n%d (step 0, attempt 1): no", n/2+1) {
			t.Errorf("%d nodes: %q", n+2, got)
		}
	}
}

// What a step led to is in its event: nothing, for a Send of nothing; what a Halt
// made void, by name.
func TestStepsSayWhereTheyLead(t *testing.T) {
	d := graph.Def{Name: "g", Keys: all, Start: []string{"split", "a"}, Nodes: []graph.Node{sends(0), work, say("a"), say("b"),
		{Name: "stop", Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Halt: &graph.Halt{}}, nil
		}}},
		Edges: []graph.Edge{edge("work", graph.End), edge("a", "b", "stop"), edge("b", "a", "stop"), edge("stop", graph.End)}}
	var got []string
	for e, err := range kept(compile(t, d)).Run(t.Context(), graph.Input{Topics: graph.TopicStep}) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(graph.StepCommitted); ok {
			got = append(got, fmt.Sprint(b.Nodes, b.Keys, b.Next, b.Moves, b.Dropped, b.Halted))
		}
	}
	if diff := cmp.Diff([]string{"[split a] [list] [b stop] [{split []} {a [b stop]}] [] false", "[b stop] [list] [] [{b [a stop]} {stop [END]}] [a stop] true"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNewStateFoldsWrites(t *testing.T) {
	list, sum, name := graph.Append[string]("list"), graph.Sum[int]("sum"), graph.Last[string]("name")
	s, err := graph.NewState(list.Set([]string{"a"}), sum.Set(1), list.Set([]string{"b"}), sum.Set(2))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, list.Get(s)); diff != "" || sum.Get(s) != 3 {
		t.Error(diff, sum.Get(s))
	}
	if v, present := name.Lookup(s); present || v != "" {
		t.Errorf("a key that was not written: %q %v", v, present)
	}
	if diff := cmp.Diff([]string{"list", "sum"}, s.Keys()); diff != "" {
		t.Error(diff)
	}
	empty, err := graph.NewState()
	if _, present := name.Lookup(empty); err != nil || present {
		t.Error(err, present)
	}
}

func TestNewStateReportsWhatCannotBeFolded(t *testing.T) {
	picky := graph.Fold("picky", func(_ int, _ bool, n int) (int, error) {
		if n < 0 {
			return 0, errors.New("negative")
		}
		return n, nil
	})
	_, err := graph.NewState(picky.Set(-1))
	wantError(t, "reducer", err, `key "picky": negative`)
	_, err = graph.NewState(graph.Write{})
	wantError(t, "no key", err, "not made by Set or Reset")
	_, err = graph.NewState(graph.Last[int]("k").Set(1), graph.Last[string]("k").Set("x"))
	wantError(t, "two types", err, `key "k" is declared with type int, written with type string`)
	_, err = graph.NewState(graph.Last[report]("k").Set(report{}))
	wantError(t, "no way back", err, "report.Err")
}

func TestWrittenReadsWrites(t *testing.T) {
	list, same, other := graph.Append[string]("list"), graph.Append[string]("list"), graph.Last[int]("other")
	node := func(_ context.Context, s graph.State) (graph.Update, error) {
		return graph.Put(list.Set(append(list.Get(s), "b")), other.Reset(7)), nil
	}
	s, err := graph.NewState(list.Set([]string{"a"}))
	if err != nil {
		t.Fatal(err)
	}
	u, err := node(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	v, ok := same.WrittenValue(u.Writes[0])
	if diff := cmp.Diff([]string{"a", "b"}, v); diff != "" || !ok || u.Writes[0].IsReset() {
		t.Error(diff, ok)
	}
	if _, ok := other.WrittenValue(u.Writes[0]); ok {
		t.Error("another key's write")
	}
	if n, ok := other.WrittenValue(u.Writes[1]); !ok || n != 7 || !u.Writes[1].IsReset() || u.Writes[1].Value() != 7 {
		t.Error(n, ok)
	}
	if _, ok := other.WrittenValue(graph.Write{}); ok || (graph.Write{}).Value() != nil {
		t.Error("the zero Write")
	}
	if v, ok := graph.Dyn("d").WrittenValue(graph.Dyn("d").Set(nil)); !ok || v != nil {
		t.Errorf("a nil: %v %v", v, ok)
	}
}
