package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
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

func TestTheDigestTellsGraphsApart(t *testing.T) {
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

func wantError(t *testing.T, what string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) || strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: %v; want %q", what, err, p)
		}
	}
}

func TestRunnersWithoutAGraphSaySo(t *testing.T) {
	ctx := t.Context()
	for name, g := range map[string]*graph.Graph{"nil": nil, "zero": {}} {
		r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
		res, err := r.Invoke(ctx, graph.Input{})
		wantError(t, name+" Invoke", err, "make one with Compile", "no Graph")
		if res.Status != graph.NotStarted {
			t.Errorf("%s: status %v", name, res.Status)
		}
		_, err = r.InvokeResume(ctx, graph.Resume{Thread: "t"})
		wantError(t, name+" InvokeResume", err, "no Graph")
		for ev, err := range r.Run(ctx, graph.Input{Topics: graph.AllTopics}) {
			wantError(t, name+" Run", err, "no Graph")
			if ev.Body != nil {
				t.Errorf("%s: event %v", name, ev)
			}
		}
		for _, err := range r.Resume(ctx, graph.Resume{Thread: "t"}) {
			wantError(t, name+" Resume", err, "no Graph")
		}
		_, err = r.State(ctx, "t", 0)
		wantError(t, name+" State", err, "no Graph")
		_, err = r.Edit(ctx, "t", graph.Last[int]("n").Set(1))
		wantError(t, name+" Edit", err, "no Graph")
		_, err = r.EditNext(ctx, "t", []string{"a"})
		wantError(t, name+" EditNext", err, "no Graph")
		wantError(t, name+" CheckAnswers", r.CheckAnswers(ctx, "t"), "no Graph")
	}
}

func TestCompileRefusesGraphsThatWereNotCompiled(t *testing.T) {
	for _, n := range []graph.Node{{Name: "a", Graph: &graph.Graph{}}, {Name: "a", Run: idle, Graph: &graph.Graph{}}, {Name: "a", Run: idle, Children: map[string]graph.ChildGraph{"kid": {Graph: &graph.Graph{}}}}} {
		_, err := graph.Compile(graph.Def{Name: "g", Start: []string{"a"}, Nodes: []graph.Node{n}, Edges: []graph.Edge{edge("a", graph.End)}})
		wantError(t, "Compile", err, `node "a" was not made by Compile`)
	}
}

func TestFunctionsWithoutAStoreSaySo(t *testing.T) {
	ctx := t.Context()
	_, inspect := history.Inspect(ctx, nil, "t", 0)
	_, prune := history.Prune(ctx, nil, "t", history.Keep{})
	_, lineage := history.Lineage(ctx, nil, "")
	_, diff := history.Diff(ctx, nil, journal.Point{Thread: "t"}, journal.Point{Thread: "u"})
	_, blame := history.Blame(ctx, nil, "t", "k")
	for name, err := range map[string]error{"Fork": history.Fork(ctx, nil, "t", 0, "u"), "Abandon": history.Abandon(ctx, nil, "t", ""), "Delete": history.Delete(ctx, nil, "t"),
		"Inspect": inspect, "Prune": prune, "Lineage": lineage, "Diff": diff, "Blame": blame} {
		wantError(t, name, err, "the Store is nil")
	}
	for _, err := range history.Entries(ctx, nil, "t") {
		wantError(t, "History", err, "the Store is nil")
	}
	for _, err := range history.Checkpoints(ctx, nil, "t") {
		wantError(t, "Checkpoints", err, "the Store is nil")
	}
}

func TestARunThatNeverBeganSaysSo(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	k := graph.Last[int]("k")
	g := compile(t, graph.Def{Name: "g", Keys: []graph.AnyKey{k}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: asks(nil)}}, Edges: []graph.Edge{edge("a", graph.End)}})
	r := kept(g)
	res, err := r.Invoke(ended, graph.Input{Thread: thread})
	if !errors.Is(err, context.Canceled) || res.Status != graph.NotStarted || res.Status.String() != "not-started" {
		t.Errorf("status %v, error %v", res.Status, err)
	}
	res, err = r.Invoke(t.Context(), graph.Input{Thread: thread, Set: []graph.Write{graph.Last[string]("other").Set("x")}})
	if err == nil || res.Status != graph.NotStarted {
		t.Errorf("status %v, error %v", res.Status, err)
	}
	if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "nowhere"}); !errors.Is(err, journal.ErrNoThread) || res.Status != graph.NotStarted {
		t.Errorf("status %v, error %v", res.Status, err)
	}
	if res, err = start(t, r); err != nil || res.Status != graph.Waiting {
		t.Fatalf("status %v, error %v", res.Status, err)
	}
	if res, err = start(t, r); err == nil || res.Status != graph.NotStarted {
		t.Errorf("a thread that is not free: status %v, error %v", res.Status, err)
	}
}

func TestHistoryIsReadable(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Start: []string{"a"}, Edges: []graph.Edge{edge("a", graph.End)}, Nodes: []graph.Node{{Name: "a",
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.DoEffect(ctx, graph.Effect{Name: "pay", Key: "k1", InDoubt: graph.DoubtAsk}, func(context.Context) (int, error) { return 1, nil })
			if err == nil {
				_, err = graph.Interrupt[bool](ctx, graph.Ask{Prompt: "ok?"})
			}
			return graph.Update{}, err
		}}}})
	r := kept(g)
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, r, graph.Answer{ID: "a", Value: true}); err != nil {
		t.Fatal(err)
	}
	seen := map[journal.Kind]string{}
	for e, err := range history.Entries(t.Context(), r.Store, thread) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(e.What, "\x00") {
			t.Errorf("%v: %q", e.Kind, e.What)
		}
		seen[e.Kind] = e.What + "|" + e.ID
	}
	for kind, want := range map[journal.Kind]string{
		journal.KindIntent: "0.a.0 pay =k1|0.a.0\x00pay\x00=k1", journal.KindEffect: "0.a.0 pay =k1|0.a.0\x00pay\x00=k1", journal.KindAnswer: "0.a.0 0|",
	} {
		if seen[kind] != want {
			t.Errorf("%v: %q, want %q", kind, seen[kind], want)
		}
	}
}

// askGraph is a node "b" that asks, in a child of node "sub", next to a named child.
func askGraph(t *testing.T) *graph.Graph {
	t.Helper()
	child := compile(t, graph.Def{Name: "child", Start: []string{"b"}, Nodes: []graph.Node{{Name: "b", Run: asks(nil)}}, Edges: []graph.Edge{edge("b", graph.End)}})
	return compile(t, graph.Def{Name: "g", Start: []string{"review"}, Edges: []graph.Edge{edge("review", "sub"), edge("sub", graph.End)},
		Nodes: []graph.Node{{Name: "review", Run: asks(nil)}, {Name: "sub", Graph: child}}})
}

func TestTheOneOpenQuestionNeedsNoID(t *testing.T) {
	r := kept(askGraph(t))
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	if err := r.CheckAnswers(t.Context(), thread, graph.Answer{Value: "x"}); err != nil {
		t.Error(err)
	}
	if _, err := resume(t, r, graph.Answer{Value: "x"}, graph.Answer{ID: "review", Value: "y"}); err == nil || !strings.Contains(err.Error(), "answered twice") {
		t.Errorf("error %v", err)
	}
	res, err := resume(t, r, graph.Answer{Value: "x"})
	if err != nil || res.Status != graph.Waiting || res.Questions[0].ID != "sub/b" {
		t.Fatalf("%v %v %v", res.Status, res.Questions, err)
	}
	if res, err = resume(t, r, graph.Answer{Value: "x"}); err != nil || res.Status != graph.Done {
		t.Fatalf("%v %v", res.Status, err)
	}
	both := compile(t, graph.Def{Name: "two", Start: []string{"a", "b"}, Nodes: []graph.Node{{Name: "a", Run: asks(nil)}, {Name: "b", Run: asks(nil)}}, Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)}})
	r = kept(both)
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	_, err = resume(t, r, graph.Answer{Value: "x"})
	wantError(t, "two are open", err, "names no question, and 2 are open", "a, b")
}

type (
	report struct {
		Name string
		Err  error
	}
	nestedReport struct {
		Name  string
		Items []report
	}
	loose      struct{ V any }
	opaque     struct{ n int }
	oneWay     struct{ n int }
	oneWayText int
	shyText    string
	branching  struct {
		Name     string
		Children []*branching
		By       map[string]*branching
	}
	hiddenPart struct{ N int }
	embedsPtr  struct{ *hiddenPart }
	locked     struct {
		sync.Mutex
		N int
	}
	based      struct{ big.Int }
	withStatus struct{ Status graph.Status }
	tagged     struct {
		N  int
		Fn func() `json:"-"`
	}
	twoWay struct{ v any }
)

func (oneWay) MarshalJSON() ([]byte, error)     { return []byte(`"x"`), nil }
func (oneWayText) MarshalText() ([]byte, error) { return []byte("one"), nil }
func (shyText) MarshalText() ([]byte, error)    { return []byte("***"), nil }
func (t twoWay) MarshalJSON() ([]byte, error)   { return json.Marshal(t.v) }
func (t *twoWay) UnmarshalJSON(b []byte) error  { return json.Unmarshal(b, &t.v) }
func (o opaque) String() string                 { return fmt.Sprint(o.n) }
func (o oneWay) String() string                 { return fmt.Sprint(o.n) }

// compileKey compiles a graph that has the key and nothing else of interest.
func compileKey(k graph.AnyKey) (*graph.Graph, error) {
	return graph.Compile(graph.Def{
		Name: "keys", Keys: []graph.AnyKey{k}, Start: []string{"w"},
		Nodes: []graph.Node{{Name: "w", Run: idle}},
		Edges: []graph.Edge{edge("w", graph.End)},
	})
}

func TestCompileRefusesKeysThatCannotBeReadAgain(t *testing.T) {
	for _, c := range []struct {
		key  graph.AnyKey
		path string
		why  string
	}{
		{graph.Last[report]("k"), "report.Err", "is error, an interface"},
		{graph.Last[*report]("k"), "report.Err", "is error"},
		{graph.Append[report]("k"), "report.Err", "is error"},
		{graph.Merge[string, report]("k"), "report.Err", "is error"},
		{graph.Last[nestedReport]("k"), "nestedReport.Items[].Err", "is error"},
		{graph.Last[loose]("k"), "loose.V", "is any"},
		{graph.Append[loose]("k"), "loose.V", "is any"},
		{graph.Last[struct{ V map[string]any }]("k"), "struct.V[]", "is any"},
		{graph.Last[struct{ V []any }]("k"), "struct.V[]", "is any"},
		{graph.Last[chan int]("k"), "it", "is a chan"},
		{graph.Last[func()]("k"), "it", "is a func"},
		{graph.Last[complex128]("k"), "it", "is a complex128"},
		{graph.Last[struct{ F func() }]("k"), "struct.F", "is a func"},
		{graph.Last[opaque]("k"), "opaque", "not exported"},
		{graph.Last[struct{ U url.URL }]("k"), "struct.U.User", "not exported"},
		{graph.Last[oneWay]("k"), "it", "no UnmarshalJSON"},
		{graph.Last[[]oneWayText]("k"), "it", "no UnmarshalText"},
		{graph.Last[withStatus]("k"), "withStatus.Status", "no UnmarshalText"},
		{graph.Last[map[bool]int]("k"), "it", "keys are bool"},
		{graph.Last[map[any]int]("k"), "it", "keys are any"},
		{graph.Merge[[2]int, int]("k"), "it", "keys are [2]int"},
		{graph.Last[embedsPtr]("k"), "embedsPtr.hiddenPart", "embedded pointer"},
		{graph.Merge[string, big.Int]("k"), "it", "pointer receiver"},
	} {
		_, err := compileKey(c.key)
		var fault *graph.TypeError
		if !errors.As(err, &fault) {
			t.Errorf("%T: compiled: %v", c.key, err)
			continue
		}
		if fault.Path != c.path || !strings.Contains(fault.Reason, c.why) || fault.Fix == "" || !strings.Contains(err.Error(), `key "k"`) {
			t.Errorf("%T: %v\n  path %q, want %q and %q", c.key, err, fault.Path, c.path, c.why)
		}
	}
}

func TestCompileAcceptsKeysThatComeBack(t *testing.T) {
	for _, k := range []graph.AnyKey{
		graph.Last[branching]("k"), graph.Append[*branching]("k"), graph.Last[locked]("k"), graph.Last[tagged]("k"), graph.Last[big.Int]("k"), graph.Last[*big.Int]("k"),
		graph.Last[struct{ At time.Time }]("k"), graph.Last[json.RawMessage]("k"), graph.Last[struct{ Raw json.RawMessage }]("k"), graph.Last[struct{}]("k"),
		graph.Last[twoWay]("k"), graph.Last[struct{ T twoWay }]("k"), graph.Append[any]("k"), graph.Merge[string, any]("k"), graph.Last[[]map[string]any]("k"),
		graph.Last[error]("k"), graph.Last[[]error]("k"), graph.Last[shyText]("k"), graph.Last[map[time.Time]int]("k"), graph.Last[based]("k"),
		graph.Last[report]("k").WithCodec(graph.JSONCodec[report]()), graph.Last[loose]("k").WithCodec(graph.JSONCodec[loose]()),
	} {
		if _, err := compileKey(k); err != nil {
			t.Errorf("%T: %v", k, err)
		}
	}
}

// An open graph meets keys only when they are written.
func TestAnOpenGraphRefusesThemWhenTheyAreWritten(t *testing.T) {
	bad := graph.Last[report]("bad")
	g := compile(t, graph.Def{
		Name: "open", Start: []string{"w"}, Open: func(name string) graph.AnyKey { return graph.Dyn(name) },
		Nodes: []graph.Node{{Name: "w", Run: writes(bad.Set(report{Name: "x"}))}},
		Edges: []graph.Edge{edge("w", graph.End)},
	})
	_, err := start(t, kept(g))
	if fault := (*graph.TypeError)(nil); !errors.As(err, &fault) || fault.Path != "report.Err" {
		t.Errorf("error %v", err)
	}
}

// What pointer receivers encode is what they decode.
func TestPointerReceiversAreCalled(t *testing.T) {
	k := graph.Last[big.Int]("k")
	n := *big.NewInt(1 << 60)
	g := compile(t, graph.Def{
		Name: "big", Keys: []graph.AnyKey{k}, Start: []string{"w"},
		Nodes: []graph.Node{{Name: "w", Run: writes(k.Set(n))}},
		Edges: []graph.Edge{edge("w", graph.End)},
	})
	r := kept(g)
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	s, err := r.State(t.Context(), thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := k.Get(s); got.Cmp(&n) != 0 {
		t.Errorf("read %s", got.String())
	}
}

// The effect is not made when its result could not be read again, and a question
// is not asked when no answer could.
func TestResultsAndAnswersAreCheckedBeforeAnythingHappens(t *testing.T) {
	made := 0
	body := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Do(ctx, "pay", func(context.Context) (report, error) { made++; return report{}, nil })
		return graph.Update{}, err
	}
	for name, run := range map[string]graph.Func{
		"effect": body,
		"answer": func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Interrupt[report](ctx, graph.Ask{Prompt: "?"})
			return graph.Update{}, err
		},
		"shared": func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Share[report](ctx, "s")
			return graph.Update{}, err
		},
	} {
		g := compile(t, graph.Def{Name: "do", Start: []string{"w"}, Nodes: []graph.Node{{Name: "w", Run: run}}, Edges: []graph.Edge{edge("w", graph.End)}})
		for range 2 {
			res, err := kept(g).Invoke(t.Context(), graph.Input{Thread: name})
			if fault := (*graph.TypeError)(nil); !errors.As(err, &fault) || fault.Path != "report.Err" || res.Status != graph.Failed {
				t.Errorf("%s: status %v, error %v", name, res.Status, err)
			}
		}
	}
	if made != 0 {
		t.Errorf("the effect was made %d times", made)
	}
}

// An answer is JSON that others wrote: an any in it loses nothing.
func TestAnswersMayHoldAny(t *testing.T) {
	var got loose
	g := compile(t, graph.Def{Name: "ask", Start: []string{"w"}, Edges: []graph.Edge{edge("w", graph.End)}, Nodes: []graph.Node{{Name: "w",
		Run: func(ctx context.Context, _ graph.State) (_ graph.Update, err error) {
			got, err = graph.Interrupt[loose](ctx, graph.Ask{Prompt: "?"})
			return graph.Update{}, err
		}}}})
	r := kept(g)
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, r, graph.Answer{ID: "w", Value: loose{V: 1.5}}); err != nil || got.V != 1.5 {
		t.Errorf("got %v, error %v", got, err)
	}
}

type mixedPart struct{ N int }

func init() { graph.Register[mixedPart]("storable-test.part") }

// mixedValues are values of interface type that must come back as they went in.
func mixedValues() map[string]any {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return map[string]any{
		"nil": nil, "bool": true, "int": 1, "int8": int8(-8), "int16": int16(-16), "int32": int32(-32), "int64": int64(1 << 60),
		"uint": uint(1), "uint8": uint8(8), "uint16": uint16(16), "uint32": uint32(32), "uint64": uint64(1 << 63), "float32": float32(1.5), "float64": 2.5,
		"text": "\xff no UTF-8", "bytes": []byte{0, 1}, "time": at, "duration": time.Second, "number": json.Number("1.50"), "raw": json.RawMessage(`{"a":1}`),
		"part": mixedPart{7}, "part pointer": &mixedPart{8}, "parts": []mixedPart{{1}}, "part map": map[string]mixedPart{"a": {2}},
		"texts": []string{"a", "b"}, "no texts": []string(nil), "ints": map[string]int{"a": 1}, "by number": map[int]string{1: "a"}, "times": []time.Time{at},
		"list": []any{1, "a", []any{int64(2)}, map[string]any{"x": uint8(1)}}, "map": map[string]any{"n": int64(3), "l": []any{nil}},
		"maps": []map[string]any{{"a": int64(1)}, nil}, "lists": [][]any{{1}, nil}, "deep": map[string][]map[string]any{"a": {{"b": int8(1)}}},
	}
}

// throughJournal writes a value in one drive and reads it from the journal.
func throughJournal[T any](t *testing.T, k graph.Key[T], v T) T {
	t.Helper()
	g := compile(t, graph.Def{
		Name: "journal", Keys: []graph.AnyKey{k}, Start: []string{"w"},
		Nodes: []graph.Node{{Name: "w", Run: writes(k.Set(v))}, {Name: "end", Run: idle}},
		Edges: []graph.Edge{edge("w", "end"), edge("end", graph.End)},
	})
	r := kept(g)
	if _, err := start(t, r); err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	s, err := r.State(t.Context(), thread, 0)
	if err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	return k.Get(s)
}

func wantSame(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: read %#v (%[2]T), wrote %#v (%[3]T)", what, got, want)
	}
}

func TestAnyInsideKeysKeepsItsTypes(t *testing.T) {
	vs := mixedValues()
	var list []any
	for _, name := range []string{"nil", "int64", "bytes", "part", "map"} {
		list = append(list, vs[name])
	}
	for name, v := range vs {
		wantSame(t, "Dyn "+name, throughJournal(t, graph.Dyn("k"), v), v)
		wantSame(t, "Append "+name, throughJournal(t, graph.Append[any]("k"), []any{v}), []any{v})
		wantSame(t, "Merge "+name, throughJournal(t, graph.Merge[string, any]("k"), map[string]any{"a": v}), map[string]any{"a": v})
	}
	wantSame(t, "Last map", throughJournal(t, graph.Last[map[string]any]("k"), vs), vs)
	wantSame(t, "Last list", throughJournal(t, graph.Last[[]any]("k"), list), list)
	maps := []map[string]any{vs, {}, nil}
	wantSame(t, "list of maps", throughJournal(t, graph.Last[[]map[string]any]("k"), maps), maps)
	wantSame(t, "append maps", throughJournal(t, graph.Append[map[string]any]("k"), maps), maps)
	nested := map[string]map[string]any{"a": vs}
	wantSame(t, "map of maps", throughJournal(t, graph.Last[map[string]map[string]any]("k"), nested), nested)
	byNumber := map[int][]any{2: list, 10: nil, -1: {}}
	wantSame(t, "by number", throughJournal(t, graph.Merge[int, []any]("k"), byNumber), byNumber)
	array := [2]any{int64(1), "x"}
	wantSame(t, "array", throughJournal(t, graph.Last[[2]any]("k"), array), array)
	wantSame(t, "pointer", throughJournal(t, graph.Last[*[]any]("k"), &list), &list)
	wantSame(t, "no list", throughJournal(t, graph.Last[[]any]("k"), nil), []any(nil))
	stringers := []fmt.Stringer{time.Second, nil}
	wantSame(t, "other interface", throughJournal(t, graph.Last[[]fmt.Stringer]("k"), stringers), stringers)
}

func TestAnyInsideResultsKeepsItsTypes(t *testing.T) {
	vs := mixedValues()
	var got []map[string]any
	g := compile(t, graph.Def{Name: "do", Start: []string{"w"}, Edges: []graph.Edge{edge("w", graph.End)}, Nodes: []graph.Node{{Name: "w",
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			v, err := graph.Do(ctx, "make", func(context.Context) (map[string]any, error) { return vs, nil })
			if err != nil {
				return graph.Update{}, err
			}
			got = append(got, v)
			_, err = graph.Interrupt[bool](ctx, graph.Ask{Prompt: "?"})
			return graph.Update{}, err
		}}}})
	r := kept(g)
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, r, graph.Answer{ID: "w", Value: true}); err != nil || len(got) != 2 {
		t.Fatal(err, len(got))
	}
	wantSame(t, "recorded result", got[1], got[0])
}

// What cannot come back is refused when it is written, by its key.
func TestUnknownTypesInsideAnyAreRefused(t *testing.T) {
	k := graph.Merge[string, any]("meta")
	for _, v := range []any{opaque{1}, []opaque{{1}}, map[bool]int{}, [2]int{}, make(chan int), func() {}, errors.New("x"), oneWayText(1)} {
		g := compile(t, graph.Def{Name: "bad", Keys: []graph.AnyKey{k}, Start: []string{"w"},
			Nodes: []graph.Node{{Name: "w", Run: writes(k.Set(map[string]any{"a": v}))}}, Edges: []graph.Edge{edge("w", graph.End)}})
		if _, err := start(t, kept(g)); err == nil || !strings.Contains(err.Error(), `key "meta"`) || !strings.Contains(err.Error(), "cannot be stored") {
			t.Errorf("%T: %v", v, err)
		}
	}
}

// Journals of older versions hold plain JSON where a list or map of any was
// written: JSONCodec writes the same bytes under the same tag.
func TestValuesOfOlderJournalsDecodeAsBefore(t *testing.T) {
	old, now := graph.Merge[string, any]("meta").WithCodec(graph.JSONCodec[map[string]any]()), graph.Merge[string, any]("meta")
	def := func(k graph.Key[map[string]any]) graph.Def {
		return graph.Def{Name: "old", Keys: []graph.AnyKey{k}, Start: []string{"w"},
			Nodes: []graph.Node{{Name: "w", Run: writes(k.Set(map[string]any{"n": int64(1), "l": []any{"a"}})), BreakAfter: true}, {Name: "x", Run: writes(k.Set(map[string]any{"m": int64(2)}))}},
			Edges: []graph.Edge{edge("w", "x"), edge("x", graph.End)}}
	}
	r := kept(compile(t, def(old)))
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	r.Graph = compile(t, def(now))
	res, err := resume(t, r)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"n": 1.0, "l": []any{"a"}, "m": int64(2)}
	wantSame(t, "in the run", now.Get(res.State), want)
	s, err := r.State(t.Context(), thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "in the journal", now.Get(s), want)
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
