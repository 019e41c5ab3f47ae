package graph_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

func TestChainRunsInOrder(t *testing.T) {
	log := graph.Append[string]("log")
	say := func(s string) graph.Func {
		return func(context.Context, graph.State) (graph.Update, error) { return graph.Put(log.Set([]string{s})), nil }
	}
	g := compile(t, graph.Def{
		Name: "chain", Keys: []graph.AnyKey{log}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: say("a")}, {Name: "b", Run: say("b")}, {Name: "c", Run: say("c")}},
		Edges: []graph.Edge{edge("a", "b"), edge("b", "c"), edge("c", graph.End)},
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
	if err != nil || res.Status != graph.Done || res.Steps != 3 {
		t.Fatalf("result %+v, error %v", res, err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, log.Get(res.State)); diff != "" {
		t.Error(diff)
	}
}

func edge(from string, to ...string) graph.Edge { return graph.Edge{From: []string{from}, To: to} }

func compile(t testing.TB, d graph.Def) *graph.Graph {
	t.Helper()
	g, err := graph.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func contains(s, sub string) bool {
	for i := range len(s) - len(sub) + 1 {
		if s[i:i+len(sub)] == sub {
			return true
		}
	}
	return false
}

func TestTwoWritersConflict(t *testing.T) {
	k := graph.Last[int]("k")
	write := func(context.Context, graph.State) (graph.Update, error) { return graph.Put(k.Set(1)), nil }
	g := compile(t, graph.Def{
		Name: "two", Keys: []graph.AnyKey{k}, Start: []string{"a", "b"},
		Nodes: []graph.Node{{Name: "a", Run: write}, {Name: "b", Run: write}},
		Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)},
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
	var c *graph.ConflictError
	if !errors.As(err, &c) || res.Status != graph.Failed {
		t.Fatalf("status %v, error %v", res.Status, err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, c.Nodes); diff != "" {
		t.Error(diff)
	}
}

func TestRetrySeesTheSameInputAndKeepsEffects(t *testing.T) {
	n := graph.Sum[int]("n")
	calls, effects := 0, 0
	g := compile(t, graph.Def{
		Name: "retry", Keys: []graph.AnyKey{n}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Retry: graph.Retry{Attempts: 3}, Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			calls++
			v, err := graph.Do(ctx, "pay", func(context.Context) (int, error) { effects++; return 7, nil })
			if err != nil {
				return graph.Update{}, err
			}
			if graph.Attempt(ctx) < 3 {
				return graph.Put(n.Set(100)), fmt.Errorf("attempt %d", graph.Attempt(ctx))
			}
			return graph.Put(n.Set(v)), nil
		}}},
		Edges: []graph.Edge{edge("a", graph.End)},
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
	if err != nil || calls != 3 || effects != 1 || n.Get(res.State) != 7 {
		t.Fatalf("calls %d, effects %d, n %d, error %v", calls, effects, n.Get(res.State), err)
	}
}

func TestOnErrorTakesOver(t *testing.T) {
	k := graph.Last[string]("k")
	g := compile(t, graph.Def{
		Name: "recover", Keys: []graph.AnyKey{k}, Start: []string{"a"},
		Nodes: []graph.Node{
			{Name: "a", OnError: "b", Run: func(context.Context, graph.State) (graph.Update, error) { panic("boom") }},
			{Name: "b", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
				return graph.Put(k.Set(graph.Cause(ctx))), nil
			}},
		},
		Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)},
	})
	res, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{})
	if err != nil || !contains(k.Get(res.State), "boom") {
		t.Fatalf("k %q, error %v", k.Get(res.State), err)
	}
}

func TestTimeouts(t *testing.T) {
	wait := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		<-ctx.Done()
		return graph.Update{}, ctx.Err()
	}
	def := graph.Def{Name: "slow", Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: wait}}, Edges: []graph.Edge{edge("a", graph.End)}}
	def.Nodes[0].Timeout = time.Millisecond
	res, err := (&graph.Runner{Graph: compile(t, def)}).Invoke(t.Context(), graph.Input{})
	if res.Status != graph.Failed || !errors.Is(err, graph.ErrTimeout) {
		t.Errorf("node: %v, %v", res.Status, err)
	}
	def.Nodes = []graph.Node{{Name: "a", Run: wait}}
	def.Timeout = time.Millisecond
	res, err = (&graph.Runner{Graph: compile(t, def)}).Invoke(t.Context(), graph.Input{})
	var l *graph.LimitError
	if res.Status != graph.TimedOut || !errors.As(err, &l) || !l.During {
		t.Errorf("graph: %v, %v", res.Status, err)
	}
}

func TestVisitAndStepLimits(t *testing.T) {
	nop := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	def := graph.Def{Name: "loop", Start: []string{"a"}, MaxVisits: 3, Nodes: []graph.Node{{Name: "a", Run: nop}}, Edges: []graph.Edge{edge("a", "a")}}
	res, err := (&graph.Runner{Graph: compile(t, def)}).Invoke(t.Context(), graph.Input{})
	var l *graph.LimitError
	if res.Status != graph.VisitLimit || !errors.As(err, &l) || l.Count != 4 || res.Steps != 3 {
		t.Errorf("visits: %v after %d steps, %v", res.Status, res.Steps, err)
	}
	def.MaxVisits, def.MaxSteps = 0, 5
	res, err = (&graph.Runner{Graph: compile(t, def)}).Invoke(t.Context(), graph.Input{})
	if res.Status != graph.StepLimit || err == nil || res.Steps != 5 {
		t.Errorf("steps: %v after %d steps, %v", res.Status, res.Steps, err)
	}
}

func TestHaltDropsSiblings(t *testing.T) {
	nop := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	g := compile(t, graph.Def{Name: "halt", Start: []string{"a", "b"},
		Nodes: []graph.Node{{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Halt: &graph.Halt{Value: "out"}}, nil
		}}, {Name: "b", Run: nop}, {Name: "c", Run: nop}},
		Edges: []graph.Edge{edge("a", graph.End), edge("b", "c"), edge("c", graph.End)}})
	var dropped []string
	var res graph.Result
	for e, err := range (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Run(t.Context(), graph.Input{Topics: graph.AllTopics}) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case graph.StepCommitted:
			dropped = append(dropped, b.Dropped...)
		case graph.RunEnded:
			res = b.Result
		}
	}
	if diff := cmp.Diff([]string{"c"}, dropped); diff != "" || res.Value != "out" || res.Status != graph.Done {
		t.Errorf("%s, value %v, status %v", diff, res.Value, res.Status)
	}
}

// Tasks of a step may wait for each other: each of them gets a goroutine.
func TestTasksOfAStepMeet(t *testing.T) {
	const tasks = 9
	for range 3 {
		var all sync.WaitGroup
		all.Add(tasks)
		meets := func(context.Context, graph.State) (graph.Update, error) {
			all.Done()
			all.Wait()
			return graph.Update{}, nil
		}
		d := graph.Def{Name: "g"}
		for i := range tasks {
			name := fmt.Sprint("n", i)
			d.Start = append(d.Start, name)
			d.Nodes = append(d.Nodes, graph.Node{Name: name, Run: meets})
			d.Edges = append(d.Edges, edge(name, graph.End))
		}
		res, err := (&graph.Runner{Graph: compile(t, d)}).Invoke(t.Context(), graph.Input{})
		is(t, graph.Done, res, err)
	}
}

// Two failing tasks of a step fail it together, whichever ends first.
func TestAllFailuresOfAStepAreReported(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Start: []string{"a", "b", "c"}, Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End), edge("c", graph.End)},
		Nodes: []graph.Node{{Name: "a", Run: fails("one")}, {Name: "b", Run: idle}, {Name: "c", Run: fails("two")}}})
	for _, st := range []journal.Store{nil, journal.NewMemory()} {
		_, err := (&graph.Runner{Graph: g, Store: st}).Invoke(t.Context(), graph.Input{Thread: thread})
		const want = "2 tasks of step 0 failed:\n  node a (step 0, attempt 1): one\n  node c (step 0, attempt 1): two"
		if ne := (*graph.NodeError)(nil); !errors.As(err, &ne) || err.Error() != want {
			t.Error(err)
		}
	}
}
