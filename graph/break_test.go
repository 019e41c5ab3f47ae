package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// stops resumes a run until it ends and lists where it stopped.
func stops(t *testing.T, r *graph.Runner) (at [][]graph.Break, last graph.Result) {
	t.Helper()
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
	for err == nil && res.Status == graph.Paused && len(at) < 10 {
		at = append(at, res.Breaks)
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
	}
	if err != nil || res.Status != graph.Done {
		t.Fatalf("%v, %v after %v", res.Status, err, at)
	}
	return at, res
}

func TestBreaksStopOnceAndArmAgain(t *testing.T) {
	n := graph.Sum[int]("n")
	var mu sync.Mutex
	ran := map[string]int{}
	count := func(name string) graph.Node {
		return graph.Node{Name: name, Run: func(context.Context, graph.State) (graph.Update, error) {
			mu.Lock()
			defer mu.Unlock()
			ran[name]++
			return graph.Put(n.Set(1)), nil
		}}
	}
	b, c := count("b"), count("c")
	b.BreakBefore, b.BreakAfter, c.BreakAfter = true, true, true
	g := compile(t, graph.Def{Name: "breaks", Keys: []graph.AnyKey{n}, Start: []string{"a"}, Nodes: []graph.Node{count("a"), b, c, count("d")},
		Edges: []graph.Edge{edge("a", "b", "c"), edge("c", graph.End), edge("b", "d"), {From: []string{"d"}, Cases: map[string]string{"again": "b", "stop": graph.End}, Pick: func(s graph.State) ([]string, error) {
			if n.Get(s) < 5 {
				return []string{"again"}, nil
			}
			return []string{"stop"}, nil
		}}}})
	at, _ := stops(t, &graph.Runner{Graph: g, Store: journal.NewMemory()})
	want := [][]graph.Break{
		{{Node: "b"}}, {{Node: "b", After: true}, {Node: "c", After: true}},
		{{Node: "b"}}, {{Node: "b", After: true}},
	}
	if diff := cmp.Diff(want, at); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 2, "c": 1, "d": 2}, ran); diff != "" {
		t.Error(diff)
	}
}

func TestABreakBeforeSendsLosesNoTask(t *testing.T) {
	i, got := graph.Last[int]("i"), graph.Append[int]("got")
	g := compile(t, graph.Def{Name: "fan", Keys: []graph.AnyKey{i, got}, Start: []string{"split"}, Nodes: []graph.Node{
		{Name: "split", BreakAfter: true, Routes: []string{"work"}, Run: func(context.Context, graph.State) (graph.Update, error) {
			var u graph.Update
			for k := range 3 {
				u.Send = append(u.Send, graph.Send{To: "work", Overlay: []graph.Write{i.Set(k)}})
			}
			return u, nil
		}},
		{Name: "work", BreakBefore: true, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			return graph.Put(got.Set([]int{i.Get(s)})), nil
		}},
	}, Edges: []graph.Edge{edge("work", graph.End)}})
	at, res := stops(t, &graph.Runner{Graph: g, Store: journal.NewMemory()})
	if diff := cmp.Diff([][]graph.Break{{{Node: "split", After: true}, {Node: "work"}}}, at); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{0, 1, 2}, got.Get(res.State)); diff != "" {
		t.Error(diff)
	}
}

func TestABreakInsideAChildPausesTheWholeRun(t *testing.T) {
	n := graph.Sum[int]("n")
	one := func(context.Context, graph.State) (graph.Update, error) { return graph.Put(n.Set(1)), nil }
	child := compile(t, graph.Def{Name: "child", Keys: []graph.AnyKey{n}, Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: one}, {Name: "y", Run: one, BreakBefore: true}},
		Edges: []graph.Edge{edge("x", "y"), edge("y", graph.End)}})
	g := compile(t, graph.Def{Name: "parent", Keys: []graph.AnyKey{n}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Graph: child,
		Out: func(_ graph.State, c graph.Child) (graph.Update, error) { return graph.Put(n.Set(n.Get(c.State))), nil }}}, Edges: []graph.Edge{edge("a", graph.End)}})
	at, res := stops(t, &graph.Runner{Graph: g, Store: journal.NewMemory()})
	if diff := cmp.Diff([][]graph.Break{{{Node: "a/y"}}}, at); diff != "" {
		t.Error(diff)
	}
	if n.Get(res.State) != 2 {
		t.Errorf("n = %d", n.Get(res.State))
	}
}

// A visit stops once, however often the node asks, fails or crashes after it; also
// in children that stop together, and when a snapshot lies in between.
func TestABreakThatWasPassedStaysPassed(t *testing.T) {
	var c tally
	child := compile(t, graph.Def{Name: "child", Keys: all, Start: []string{"x"}, Nodes: []graph.Node{
		{Name: "x", BreakBefore: true, Run: asker("x1", "x2")}, {Name: "y", BreakBefore: true, Run: asker("y")}}, Edges: []graph.Edge{edge("x", "y"), edge("y", graph.End)}})
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", BreakBefore: true, Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			if u, err := asker("a")(ctx, s); err != nil {
				return u, err
			}
			if c.add("a") == 1 {
				return graph.Update{}, errors.New("not yet")
			}
			return graph.Update{}, nil
		}},
		{Name: "p", Graph: child}, {Name: "q", BreakBefore: true, Graph: child},
	}, Edges: []graph.Edge{edge("a", "p", "q"), edge("p", graph.End), edge("q", graph.End)}})
	r := kept(g)
	r.Executor = backward{} // the order of Result.Breaks is that of the tasks
	var at []string
	res, err := start(t, r)
	for i := 0; res.Status != graph.Done && i < 30; i++ {
		at = append(at, fmt.Sprint(res.Breaks))
		if res.Status == graph.Waiting {
			if res, err = resume(t, r); res.Status != graph.Waiting {
				t.Fatalf("%v at %v, %v", res.Status, res.Breaks, err)
			}
			at = append(at, fmt.Sprint(res.Breaks))
		}
		var as []graph.Answer
		if len(res.Questions) > 0 {
			as = append(as, says(res.Questions[i%len(res.Questions)].ID, ""))
		}
		if _, err := history.Prune(t.Context(), r.Store, thread, history.Keep{}); err != nil {
			t.Fatal(err)
		}
		res, err = resume(t, r, as...)
	}
	is(t, graph.Done, res, err)
	all := strings.Join(at, " ")
	for _, want := range []string{"[{a false}]", "[{q false}]", "[{p/x false} {q/x false}]", "{p/y false}", "{q/y false}"} {
		if strings.Count(all, want) != 1 {
			t.Errorf("%s: %s", want, all)
		}
	}
}

// A break may name a task by its index, as the results of a Send do: it holds for the node.
func TestABreakWithTheIndexOfATask(t *testing.T) {
	child := parallel(t, graph.Node{Name: "one", Run: idle})
	r := kept(parallel(t, graph.Node{Name: "n", Graph: child}))
	res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Break: []graph.Break{{Node: "n[3]/one"}}})
	if is(t, graph.Paused, res, err); !slices.Equal(res.Breaks, []graph.Break{{Node: "n/one"}}) {
		t.Errorf("%+v", res.Breaks)
	}
}

// If a child has stopped at a break, time answers nothing before the resume.
func TestABreakBesideATimerThatIsDue(t *testing.T) {
	settled(t, func(t *testing.T) {
		var c tally
		child := parallel(t,
			graph.Node{Name: "slow", BreakAfter: true, Run: func(context.Context, graph.State) (graph.Update, error) {
				<-time.After(time.Minute)
				return graph.Update{}, nil
			}},
		)
		r := kept(parallel(t, graph.Node{Name: "sleeps", Run: c.sleeps("slept", time.Second)}, graph.Node{Name: "child", Graph: child}))
		res, err := start(t, r)
		if is(t, graph.Waiting, res, err); len(res.Breaks) != 1 {
			t.Errorf("it has stopped at %v", res.Breaks)
		}
		if n := countKind(t, r.Store, journal.KindAnswer); n != 0 || c.of("slept") != 0 {
			t.Errorf("%d answers, slept %d", n, c.of("slept"))
		}
		res, err = resume(t, r)
		if is(t, graph.Done, res, err); c.of("slept") != 1 {
			t.Errorf("slept %d times", c.of("slept"))
		}
	})
}
