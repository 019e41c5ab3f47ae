package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

func TestCompileRefusesWhatCannotRun(t *testing.T) {
	two := []graph.Node{{Name: "a", Run: idle}, {Name: "b", Run: idle}}
	over := graph.Edge{From: []string{"a"}, To: []string{"b"}, Cases: map[string]string{"x": "b"}}
	for want, d := range map[string]graph.Def{
		"Start names no node":                                    {Nodes: two[:1], Edges: []graph.Edge{edge("a", graph.End)}},
		`Start names node "c", which is not declared`:            {Start: []string{"c"}, Nodes: two[:1], Edges: []graph.Edge{edge("a", graph.End)}},
		`node "b" cannot be reached from a`:                      {Start: []string{"a"}, Nodes: two, Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)}},
		`node "b" leads nowhere`:                                 {Start: []string{"a"}, Nodes: two, Edges: []graph.Edge{edge("a", "b")}},
		`the join before "b" can never fire: not all of a, c`:    {Start: []string{"a"}, Nodes: append(two, graph.Node{Name: "c", Run: idle}), Edges: []graph.Edge{join("b", "a", "c"), edge("b", "c")}},
		"the join of a, b leads to END":                          {Start: []string{"a", "b"}, Nodes: two, Edges: []graph.Edge{join(graph.End, "a", "b")}},
		`the join before "b" names source "a" twice`:             {Start: []string{"a"}, Nodes: two, Edges: []graph.Edge{join("b", "a", "a"), edge("b", graph.End)}},
		"an edge leads from END":                                 {Start: []string{"a"}, Nodes: two[:1], Edges: []graph.Edge{edge("a", graph.End), edge(graph.End, "a")}},
		`the edge from "a" needs To, or Pick with Cases`:         {Start: []string{"a"}, Nodes: two, Edges: []graph.Edge{over, edge("b", graph.End)}},
		`OnError of node "a" names the node itself`:              {Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: idle, OnError: "a"}}, Edges: []graph.Edge{edge("a", graph.End)}},
		`did you mean "review"?`:                                 {Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: idle}, {Name: "review", Run: idle}}, Edges: []graph.Edge{edge("a", "review"), edge("review", "reveiw")}},
		`node "a" has In, Out or Inherit but no Graph`:           {Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: idle, Inherit: true}}, Edges: []graph.Edge{edge("a", graph.End)}},
		"a key in Keys was not made by":                          {Keys: []graph.AnyKey{nil, graph.Key[int]{}}, Start: []string{"a"}, Nodes: two[:1], Edges: []graph.Edge{edge("a", graph.End)}},
		`Start names "a" twice, or END`:                          {Start: []string{"a", "a"}, Nodes: two[:1], Edges: []graph.Edge{edge("a", graph.End)}},
		`node name "END": a name is not empty, not END, and has`: {Start: []string{"END"}, Nodes: []graph.Node{{Name: "END", Run: idle}}, Edges: []graph.Edge{edge("END", "END")}},
	} {
		d.Name = "bad"
		if _, err := graph.Compile(d); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "graph bad: ") {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

// Two branches of a node are both followed: the later does not replace the first.
func TestTwoBranchesOfANodeAreBothFollowed(t *testing.T) {
	var c tally
	g := compile(t, graph.Def{Name: "two", Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Run: idle}, {Name: "b", Run: c.counts("b")}, {Name: "c", Run: c.counts("c")},
	}, Edges: []graph.Edge{
		branch("a", map[string]string{"x": "b"}, func(graph.State) string { return "x" }),
		branch("a", map[string]string{"x": "c"}, func(graph.State) string { return "x" }),
		edge("b", graph.End), edge("c", graph.End),
	}})
	res, err := start(t, kept(g))
	if is(t, graph.Done, res, err); c.of("b") != 1 || c.of("c") != 1 {
		t.Errorf("b ran %d times, c %d times", c.of("b"), c.of("c"))
	}
}

// A compiled graph is frozen: what its Def was made of may change.
func TestACompiledGraphDoesNotChangeWithItsDef(t *testing.T) {
	from, to, startAt, routes := []string{"a", "b"}, []string{"j"}, []string{"a", "b"}, []string{graph.End}
	cases := map[string]string{"x": graph.End}
	d := graph.Def{Name: "frozen", Start: startAt, Nodes: []graph.Node{
		{Name: "a", Run: idle}, {Name: "b", Run: idle}, {Name: "j", Run: idle}, {Name: "k", Run: idle, Routes: routes},
	}, Edges: []graph.Edge{{From: from, To: to}, edge("j", "k"), branch("k", cases, func(graph.State) string { return "x" })}}
	g := compile(t, d)
	structure, digest := fmt.Sprint(g.Structure()), g.Digest()
	from[0], to[0], startAt[0], routes[0], cases["x"] = "changed", "changed", "changed", "changed", "changed"
	d.Nodes[0].Name, d.Nodes[1].Run = "changed", fails("changed")
	if got := fmt.Sprint(g.Structure()); got != structure || g.Digest() != digest {
		t.Errorf("%s\nbecame\n%s", structure, got)
	}
	res, err := start(t, kept(g))
	is(t, graph.Done, res, err)
}

func TestTheDigestDiffersBetweenGraphs(t *testing.T) {
	seen := map[string]string{}
	base := func() graph.Def {
		return graph.Def{Name: "g", Keys: []graph.AnyKey{counter}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: idle}, {Name: "b", Run: idle}},
			Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)}}
	}
	child := func(d graph.Def) *graph.Graph { return compile(t, d) }
	for what, change := range map[string]func(*graph.Def){
		"nothing":       func(*graph.Def) {},
		"the version":   func(d *graph.Def) { d.Version = "2" },
		"a key":         func(d *graph.Def) { d.Keys = append(d.Keys, graph.Last[int]("other")) },
		"a key's type":  func(d *graph.Def) { d.Keys[0] = graph.Last[string]("count") },
		"an edge":       func(d *graph.Def) { d.Edges[1] = edge("b", "a", graph.End) },
		"a route":       func(d *graph.Def) { d.Nodes[1].Routes = []string{"a"} },
		"a child":       func(d *graph.Def) { d.Nodes[0].Graph = child(base()) },
		"another child": func(d *graph.Def) { c := base(); c.Version = "2"; d.Nodes[0].Graph = child(c) },
	} {
		d := base()
		change(&d)
		digest := child(d).Digest()
		if other, ok := seen[digest]; ok {
			t.Errorf("the digest is the same with a change of %s and of %s", what, other)
		}
		seen[digest] = what
	}
}

// odd are names that are not good, or not usual.
var odd = rapid.SampledFrom([]string{"", graph.End, "a/b", "x#y", "[0]", "a+b", "a>b", "ä", "\x00", "unknown", strings.Repeat("n", 200)})

// rarely is true in one of n draws.
func rarely(t *rapid.T, n int) bool { return rapid.IntRange(1, n).Draw(t, "rarely") == 1 }

// definitions are arbitrary; some are good.
func definitions(depth int) *rapid.Generator[graph.Def] {
	return rapid.Custom(func(t *rapid.T) graph.Def {
		pool := []string{"a", "b", "c", "d", "e"}[:rapid.IntRange(1, 5).Draw(t, "pool")]
		name := func() string {
			if rarely(t, 60) {
				return odd.Draw(t, "odd")
			}
			return rapid.SampledFrom(pool).Draw(t, "name")
		}
		some := func(least, most int) (ns []string) {
			for range rapid.IntRange(least, most).Draw(t, "some") {
				if n := name(); !slices.Contains(ns, n) || rarely(t, 20) {
					ns = append(ns, n)
				}
			}
			return ns
		}
		d := graph.Def{Name: "g", Start: some(1, 2), MaxSteps: rapid.IntRange(-1, 12).Draw(t, "steps"), MaxVisits: rapid.IntRange(-1, 5).Draw(t, "visits"),
			Concurrency: rapid.IntRange(-1, 2).Draw(t, "cap"), FailFast: rapid.Bool().Draw(t, "fast"), MustHalt: rapid.Bool().Draw(t, "must")}
		if rarely(t, 5) {
			d.Keys = rapid.SliceOfN(rapid.SampledFrom([]graph.AnyKey{nil, graph.Key[int]{}, counter, rLog, graph.Last[string]("log"), graph.Dyn("")}), 0, 2).Draw(t, "keys")
		}
		for _, n := range pool {
			if rarely(t, 60) {
				n = odd.Draw(t, "odd")
			}
			d.Nodes = append(d.Nodes, node(t, n, some(0, 2), depth))
			if !rarely(t, 4) {
				d.Edges = append(d.Edges, edge(n, graph.End))
			}
			if rarely(t, 4) {
				d.Nodes[len(d.Nodes)-1].OnError = name()
			}
		}
		for range rapid.IntRange(0, 6).Draw(t, "edges") {
			d.Edges = append(d.Edges, leading(t, some))
		}
		return d
	})
}

func node(t *rapid.T, name string, routes []string, depth int) graph.Node {
	n := graph.Node{Name: name, Routes: routes, MaxVisits: rapid.IntRange(-1, 3).Draw(t, "visits")}
	if !rarely(t, 60) {
		n.Run = wanders(n.Routes)
	}
	if depth > 0 && rarely(t, 5) {
		n.Graph, _ = graph.Compile(definitions(depth-1).Draw(t, "def"))
	}
	return n
}

// leading is an edge, a join or a branch.
func leading(t *rapid.T, some func(least, most int) []string) graph.Edge {
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return graph.Edge{From: some(0, 3), To: some(0, 2)}
	case 1:
		cases, labels := map[string]string{}, []string(nil)
		for _, to := range some(1, 2) {
			cases["to "+to], labels = to, append(labels, "to "+to)
		}
		return graph.Edge{From: some(1, 1), Cases: cases, Pick: func(graph.State) ([]string, error) { return labels, nil }}
	case 2:
		return graph.Edge{From: some(2, 3), To: some(1, 1)}
	}
	return graph.Edge{From: some(1, 1), To: some(1, 1)}
}

// wanders goes wherever the node may: by Goto, by Send, or along its edges.
func wanders(routes []string) graph.Func {
	return func(ctx context.Context, _ graph.State) (u graph.Update, err error) {
		switch visit := graph.Visit(ctx); {
		case visit == 4:
			return u, errors.New("it fails")
		case len(routes) == 0:
			return u, nil
		case visit%2 == 1:
			u.Goto = routes
		default:
			for _, r := range routes {
				if r != graph.End {
					u.Send = append(u.Send, graph.Send{To: r})
				}
			}
			if u.Send == nil {
				u.Goto = []string{graph.End}
			}
		}
		return u, nil
	}
}

// Compile never panics, and what it accepts never ends for want of a target.
func TestCompileHoldsForArbitraryDefinitions(t *testing.T) {
	accepted := 0
	property(t, func(t *rapid.T) {
		for range 40 {
			d := definitions(1).Draw(t, "def")
			g, err := graph.Compile(d)
			if err != nil {
				continue
			}
			accepted++
			if _, err := json.Marshal(g.Structure()); err != nil {
				t.Fatal(err)
			}
			res, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t"})
			var route *graph.RouteError
			if errors.As(err, &route) {
				t.Fatalf("%v, %v", res.Status, err)
			}
			if err != nil {
				_, err = (&graph.Runner{Graph: g, Store: journal.NewMemory()}).InvokeResume(t.Context(), graph.Resume{Thread: "t"})
				if !errors.Is(err, journal.ErrNoThread) {
					t.Fatal(err)
				}
			}
		}
	})
	t.Logf("%d definitions were accepted", accepted)
	if accepted < 40 {
		t.Errorf("%d definitions were accepted: too few to tell", accepted)
	}
}

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
	for _, store := range []journal.Store{nil, journal.NewMemory()} {
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

// anyRouteDef is a graph whose first node names the next one itself, and may
// name any.
func anyRouteDef(choose string) graph.Def {
	end := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	return graph.Def{
		Name: "any", Start: []string{"first"},
		Nodes: []graph.Node{
			{Name: "first", AnyRoute: true, Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Update{Goto: []string{choose}}, nil
			}},
			{Name: "a", Run: end},
			{Name: "b", Run: end},
		},
		Edges: []graph.Edge{{From: []string{"a"}, To: []string{graph.End}}, {From: []string{"b"}, To: []string{graph.End}}},
	}
}

func runAnyRoute(t *testing.T, choose string) (path []string, err error) {
	r := &graph.Runner{Graph: compileDef(t, anyRouteDef(choose))}
	for e, runErr := range r.Run(t.Context(), graph.Input{Thread: "t", Topics: graph.AllTopics}) {
		if runErr != nil {
			err = runErr
			break
		}
		if _, ok := e.Body.(graph.TaskStarted); ok {
			path = append(path, e.Node)
		}
	}
	return path, err
}

func TestAnyRoute(t *testing.T) {
	for choose, want := range map[string][]string{"a": {"first", "a"}, "b": {"first", "b"}, graph.End: {"first"}} {
		if path, err := runAnyRoute(t, choose); err != nil || !slices.Equal(path, want) {
			t.Errorf("Goto %s: path %q, %v", choose, path, err)
		}
	}
	_, err := runAnyRoute(t, "c")
	var route *graph.RouteError
	if !errors.As(err, &route) || !slices.Equal(route.Allowed, []string{graph.End, "a", "b", "first"}) {
		t.Errorf("Goto c: %v, allowed %q", err, route.Allowed)
	}
}

func TestAnyRouteIsPartOfTheDigest(t *testing.T) {
	with, without := anyRouteDef("a"), anyRouteDef("a")
	without.Nodes[0].AnyRoute, without.Nodes[0].Routes = false, []string{"a", "b"}
	if compileDef(t, with).Digest() == compileDef(t, without).Digest() {
		t.Error("the same digest for a node with AnyRoute and one with Routes")
	}
}

// A structure of a graph whose nodes may name any other does not grow with the
// square of its nodes.
func TestAnyRouteStructure(t *testing.T) {
	s := compileDef(t, anyRouteDef("a")).Structure()
	if !s.Nodes[0].AnyRoute || s.Nodes[1].AnyRoute || strings.Contains(fmt.Sprint(s.Edges), "first") {
		t.Errorf("%+v", s)
	}
}

func compileDef(t *testing.T, d graph.Def) *graph.Graph {
	t.Helper()
	g, err := graph.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestCompileReportsAllFaultsAtOnce(t *testing.T) {
	nop := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	k := graph.Last[int]("k")
	_, err := graph.Compile(graph.Def{
		Name: "bad", Keys: []graph.AnyKey{k, k},
		Nodes: []graph.Node{{Name: "a", Run: nop, Routes: []string{"nowhere"}}, {Name: "a", Run: nop}, {Name: "x/y", Run: nop}, {Name: "empty"}},
		Edges: []graph.Edge{edge("a", "ghost"), {From: []string{"a"}, Pick: func(graph.State) ([]string, error) { return nil, nil }, Cases: map[string]string{"l": "phantom"}}, {From: []string{"a", "mist"}, To: []string{"a"}}},
	})
	if err == nil {
		t.Fatal("compiled")
	}
	for _, want := range []string{`key "k" is declared twice`, `node "a" is declared twice`, `"nowhere"`, `"ghost"`, `"phantom"`, `"mist"`, `x/y`, `"empty" has neither`, "Start names no node"} {
		if !contains(err.Error(), want) {
			t.Errorf("the error lacks %s:\n%v", want, err)
		}
	}
}
