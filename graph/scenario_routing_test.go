package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
)

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

func TestAJoinThatWaitsForNobodyIsStuck(t *testing.T) {
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

func TestSendsSeeTheirOverlaysAndNobodyElseDoes(t *testing.T) {
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
