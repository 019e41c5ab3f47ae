package graph_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// By default the siblings of a failed task finish, and are not run again.
func TestSiblingsOfAFailureFinish(t *testing.T) {
	var c tally
	failed := make(chan struct{})
	g := parallel(t,
		graph.Node{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
			defer close(failed)
			return graph.Update{}, errors.New("a is down")
		}},
		graph.Node{Name: "b", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			<-failed
			return graph.Put(list.Set([]string{fmt.Sprint("b", c.add("b"))})), ctx.Err()
		}},
		graph.Node{Name: "c", Run: func(context.Context, graph.State) (graph.Update, error) {
			if c.add("c") == 1 {
				return graph.Update{}, errors.New("c is down")
			}
			return graph.Put(list.Set([]string{"c"})), nil
		}})
	r := kept(g)
	res, err := start(t, r)
	is(t, graph.Failed, res, err)
	var step *graph.StepError
	if !errors.As(err, &step) || len(step.Tasks) != 2 || step.Tasks[0].Node != "a" || step.Tasks[1].Node != "c" || step.Tasks[1].Attempt != 1 {
		t.Fatalf("all failures, in task order: %v", err)
	}
	failed = make(chan struct{})
	if res, err = resume(t, r); res.Status != graph.Failed || c.of("b") != 1 || c.of("c") != 2 {
		t.Errorf("%v; b ran %d times, c %d times", err, c.of("b"), c.of("c"))
	}
}

// With FailFast the first failure cancels the siblings, at once, and is the only
// one that is reported.
func TestFailFastCancelsSiblings(t *testing.T) {
	settled(t, func(t *testing.T) {
		d := graph.Def{Name: "fast", FailFast: true, Start: []string{"a", "b", "c"}, Nodes: []graph.Node{
			{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
				time.Sleep(time.Second)
				return graph.Update{}, errors.New("down")
			}},
			{Name: "b", OnError: "d", Retry: graph.Retry{Attempts: 5}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				<-ctx.Done()
				return graph.Update{}, ctx.Err()
			}},
			{Name: "c", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				<-ctx.Done()
				return graph.Update{}, fmt.Errorf("fetch: %w", context.Cause(ctx))
			}},
			{Name: "d", Run: idle},
		}}
		for _, n := range d.Nodes {
			d.Edges = append(d.Edges, edge(n.Name, graph.End))
		}
		begun := time.Now()
		res, err := start(t, kept(compile(t, d)))
		is(t, graph.Failed, res, err)
		var step *graph.StepError
		if !errors.As(err, &step) || len(step.Tasks) != 1 || step.Tasks[0].Node != "a" || time.Since(begun) != time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

func TestRetriesWaitAndAreReported(t *testing.T) {
	settled(t, func(t *testing.T) {
		var at []time.Duration
		begun := time.Now()
		g := parallel(t, graph.Node{Name: "a", Retry: graph.Retry{Attempts: 6, Delay: time.Second, Factor: 3, MaxDelay: 10 * time.Second, If: func(err error) bool { return err.Error() != "node a (step 0, attempt 5): fatal" }},
			Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if at = append(at, time.Since(begun)); graph.Attempt(ctx) == 5 {
					return graph.Update{}, errors.New("fatal")
				}
				return graph.Put(only.Set("nothing")), errors.New("not yet")
			}})
		var got []string
		var last error
		for e, err := range kept(g).Run(t.Context(), graph.Input{Topics: graph.TopicTask}) {
			switch b := e.Body.(type) {
			case graph.TaskRetry:
				got = append(got, fmt.Sprint("retry ", b.Attempt, b.After))
			case graph.TaskDone:
				got = append(got, fmt.Sprint("done ", b.Attempts, b.Took))
			}
			last = err
		}
		want := []string{"retry 1 1s", "retry 2 3s", "retry 3 9s", "retry 4 10s", "done 5 23s"}
		if diff := cmp.Diff(want, got); diff != "" || last == nil {
			t.Errorf("%v\n%s", last, diff)
		}
		if diff := cmp.Diff([]time.Duration{0, 1e9, 4e9, 13e9, 23e9}, at); diff != "" {
			t.Error(diff)
		}
	})
}

func TestATimeoutIsPerAttempt(t *testing.T) {
	settled(t, func(t *testing.T) {
		var c tally
		g := parallel(t, graph.Node{Name: "a", Timeout: time.Second, Retry: graph.Retry{Attempts: 3}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			if c.add("a") == 3 {
				return graph.Put(only.Set("in time")), nil
			}
			<-ctx.Done()
			return graph.Update{}, ctx.Err()
		}})
		begun := time.Now()
		res, err := start(t, kept(g))
		if is(t, graph.Done, res, err); only.Get(res.State) != "in time" || time.Since(begun) != 2*time.Second {
			t.Error(only.Get(res.State), time.Since(begun))
		}
	})
}

// A cancelled run is not a failure of its nodes: it is not routed and not retried.
func TestACancelledRunIsNotAFailure(t *testing.T) {
	for _, inChild := range []bool{false, true} {
		var c tally
		ctx, cancel := context.WithCancel(t.Context())
		node := graph.Node{Name: "a", OnError: "h", Retry: graph.Retry{Attempts: 3}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			if c.add("a") == 1 {
				cancel()
				return graph.Update{}, errors.New("whatever")
			}
			return graph.Update{}, nil
		}}
		def := graph.Def{Name: "g", Start: []string{"a"}, Nodes: []graph.Node{node, {Name: "h", Run: c.counts("h")}}, Edges: []graph.Edge{edge("a", graph.End), edge("h", graph.End)}}
		if inChild {
			def.Nodes[0].Graph, def.Nodes[0].Run = compile(t, graph.Def{Name: "c", Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: node.Run, OnError: "y"}, {Name: "y", Run: c.counts("h")}},
				Edges: []graph.Edge{edge("x", graph.End), edge("y", graph.End)}}), nil
		}
		r := kept(compile(t, def))
		res, err := r.Invoke(ctx, graph.Input{Thread: thread})
		is(t, graph.Canceled, res, err)
		var e *graph.CanceledError
		if !errors.As(err, &e) || !errors.Is(err, context.Canceled) || !e.During {
			t.Error(err)
		}
		res, err = resume(t, r)
		if is(t, graph.Done, res, err); c.of("a") != 2 || c.of("h") != 0 {
			t.Errorf("in a child %v: a ran %d times, the handler %d times", inChild, c.of("a"), c.of("h"))
		}
	}
}

// A panic in anything of the caller's is an error that names it; the process and
// its other runs continue.
func TestPanicsAreErrorsWhereverTheyAre(t *testing.T) {
	child := compile(t, graph.Def{Name: "c", Keys: all, Start: []string{"x"}, Nodes: []graph.Node{say("x")}, Edges: []graph.Edge{edge("x", graph.End)}})
	bomb := graph.Last[string]("bomb").WithCodec(graph.Codec[string]{Tag: "t",
		Encode: func(b []byte, s string) ([]byte, error) { return append(b, s...), nil },
		Decode: func([]byte) (string, error) { panic("in Decode") }})
	for want, n := range map[string]graph.Node{
		"in Run": {Run: func(context.Context, graph.State) (graph.Update, error) { panic("in Run") }},
		"in If":  {Run: fails("no"), Retry: graph.Retry{Attempts: 2, If: func(error) bool { panic("in If") }}},
		"in In":  {Graph: child, In: func(graph.State) ([]graph.Write, error) { panic("in In") }},
		"in Out": {Graph: child, Out: func(graph.State, graph.Child) (graph.Update, error) { panic("in Out") }},
		"in Do": {Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Do(ctx, "e", func(context.Context) (int, error) { panic("in Do") })
			return graph.Update{}, err
		}},
		"in Codec": {Run: writes(only.WithCodec(graph.Codec[string]{Tag: "string", Encode: func([]byte, string) ([]byte, error) { panic("in Codec") }, Decode: func([]byte) (string, error) { return "", nil }}).Set("x"))},
	} {
		n.Name = "a"
		g := parallel(t, n, graph.Node{Name: "b", Run: idle}, graph.Node{Name: "c", Run: idle})
		res, err := start(t, kept(g))
		is(t, graph.Failed, res, err)
		var e *graph.NodeError
		if !errors.As(err, &e) || e.Node != "a" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		} else if e.Stack == nil {
			t.Errorf("%s: no stack", want)
		}
	}
	d := graph.Def{Name: "g", Keys: []graph.AnyKey{bomb}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: asks(nil)}}, Edges: []graph.Edge{edge("a", graph.End)}}
	r := kept(compile(t, d))
	res, err := start(t, r, bomb.Set("x"))
	is(t, graph.Waiting, res, err)
	if _, err := resume(t, r, says("a", "")); err == nil || !strings.Contains(err.Error(), `key "bomb": panic in the codec: in Decode`) {
		t.Error(err)
	}
}

// The failure of a child is its node's, unless the node handles it; the error says
// where it was.
func TestAFailureInAChildIsItsNodes(t *testing.T) {
	inner := compile(t, graph.Def{Name: "inner", Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: fails("deep down")}}, Edges: []graph.Edge{edge("x", graph.End)}})
	outer := compile(t, graph.Def{Name: "outer", Start: []string{"mid"}, Nodes: []graph.Node{{Name: "mid", Graph: inner}}, Edges: []graph.Edge{edge("mid", graph.End)}})
	d := graph.Def{Name: "g", Keys: all, Start: []string{"top"}, Nodes: []graph.Node{{Name: "top", Graph: outer}, {Name: "h", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		return graph.Put(only.Set(graph.Cause(ctx))), nil
	}}}, Edges: []graph.Edge{edge("top", graph.End, "h"), edge("h", graph.End)}}
	res, err := start(t, kept(compile(t, d)))
	is(t, graph.Failed, res, err)
	var deepest *graph.NodeError
	for e := err; e != nil; {
		var n *graph.NodeError
		if !errors.As(e, &n) {
			break
		}
		deepest, e = n, n.Err
	}
	if deepest == nil || deepest.Path != "top/mid/" || deepest.Node != "x" || !strings.HasSuffix(err.Error(), "deep down") {
		t.Errorf("%+v of %v", deepest, err)
	}
	d.Nodes[0].OnError, d.Edges[0] = "h", edge("top", graph.End)
	res, err = start(t, kept(compile(t, d)))
	if is(t, graph.Done, res, err); !strings.HasSuffix(only.Get(res.State), "deep down") {
		t.Error(only.Get(res.State))
	}
}

// A store that fails while a child runs ends the run: no node is retried for it
// and no handler hears of it, not even when it is only a snapshot that is lost.
func TestAStoreThatFailsIsNotANodesFailure(t *testing.T) {
	var c tally
	child := compile(t, graph.Def{Name: "c", Keys: all, Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: writes(list.Reset([]string{strings.Repeat("y", 20_000)}), newReducerKey.Set(1))}},
		Edges: []graph.Edge{branch("x", map[string]string{"again": "x", "stop": graph.End}, func(s graph.State) string {
			if newReducerKey.Get(s) < 30 {
				return "again"
			}
			return "stop"
		})}})
	d := graph.Def{Name: "g", Start: []string{"sub"}, Nodes: []graph.Node{{Name: "sub", Graph: child, OnError: "h", Retry: graph.Retry{Attempts: 5, If: func(error) bool { c.add("retry"); return true }}}, {Name: "h", Run: c.counts("h")}},
		Edges: []graph.Edge{edge("sub", graph.End), edge("h", graph.End)}}
	for _, kind := range []journal.Kind{journal.KindSnapshot, journal.KindStep, journal.KindCall, journal.KindReturn} {
		store := &choosy{Store: journal.NewMemory(), refuses: kind}
		res, err := start(t, &graph.Runner{Graph: compile(t, d), Store: store})
		if is(t, graph.Failed, res, err); store.refused != 1 || !errors.Is(err, errRefused) || c.of("h")+c.of("retry") > 0 {
			t.Errorf("%v: refused %d appends, %v", kind, store.refused, err)
		}
	}
}

// choosy is a store that refuses one kind of record.
type choosy struct {
	journal.Store
	refuses journal.Kind
	refused int
}

var errRefused = errors.New("disk full")

func (s *choosy) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	for _, r := range recs {
		if r.Kind == s.refuses {
			s.refused++
			return errRefused
		}
	}
	return s.Store.Append(ctx, thread, after, recs)
}

// Values that many goroutines of one node emit all arrive, those of each goroutine
// in order.
func TestAllThatIsEmittedArrives(t *testing.T) {
	const goroutines, values = 20, 50
	emits := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		var c tally
		done := make(chan struct{})
		for g := range goroutines {
			go func() {
				for i := range values {
					graph.Emit(ctx, [2]int{g, i})
				}
				if c.add("done") == goroutines {
					close(done)
				}
			}()
		}
		<-done
		return graph.Update{}, nil
	}
	child := compile(t, graph.Def{Name: "c", Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: emits}}, Edges: []graph.Edge{edge("x", graph.End)}})
	settled(t, func(t *testing.T) {
		next := map[string]int{}
		g := parallel(t, graph.Node{Name: "a", Run: emits}, graph.Node{Name: "b", Graph: child})
		for e, err := range kept(g).Run(t.Context(), graph.Input{Topics: graph.TopicEmit}) {
			if err != nil {
				t.Fatal(err)
			}
			if b, ok := e.Body.(graph.ValueEmitted); ok {
				v := b.Value.([2]int)
				k := fmt.Sprint(e.Path, e.Node, v[0])
				if next[k] != v[1] {
					t.Fatalf("%s: got %d, want %d", k, v[1], next[k])
				}
				next[k]++
			}
		}
		if len(next) != 2*goroutines {
			t.Errorf("values of %d goroutines", len(next))
		}
		for k, n := range next {
			if n != values {
				t.Errorf("%s: %d values", k, n)
			}
		}
	})
}

// An event inside a child tells the nodes above it.
func TestEventsHaveTheirPath(t *testing.T) {
	g := parallel(t, graph.Node{Name: "n0", Run: idle})
	for i := range 3 {
		g = parallel(t, graph.Node{Name: fmt.Sprint("n", i+1), Graph: g})
	}
	var got []string
	for e, err := range kept(g).Run(t.Context(), graph.Input{Topics: graph.TopicTask | graph.TopicStep}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimPrefix(fmt.Sprintf("%T %s%s", e.Body, e.Path, e.Node), "graph."))
	}
	want := []string{"TaskStarted n3", "TaskStarted n3/n2", "TaskStarted n3/n2/n1", "TaskStarted n3/n2/n1/n0",
		"TaskDone n3/n2/n1/n0", "StepCommitted n3/n2/n1/", "TaskDone n3/n2/n1", "StepCommitted n3/n2/", "TaskDone n3/n2", "StepCommitted n3/", "TaskDone n3", "StepCommitted ", "RunEnded "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A step that cannot be folded or routed names the tasks that caused it. They run again
// when the run is resumed, and the others do not.
func TestTheTasksAtFaultForAStepRunAgain(t *testing.T) {
	even := graph.Fold("even", func(_ int, _ bool, n int) (int, error) {
		if n%2 != 0 {
			return 0, fmt.Errorf("%d is odd", n)
		}
		return n, nil
	})
	ratio := graph.Fold("ratio", func(_ float64, _ bool, f float64) (float64, error) { return 1 / f, nil })
	halt := graph.Update{Halt: &graph.Halt{Value: 1}}
	odd := graph.Put(even.Set(1))
	for name, c := range map[string]struct {
		bad, good map[string]graph.Update
		again     string
	}{
		"a reducer":          {map[string]graph.Update{"b": odd}, nil, "b"},
		"a value to store":   {map[string]graph.Update{"c": graph.Put(ratio.Set(0))}, nil, "c"},
		"a route":            {map[string]graph.Update{"b": {Goto: []string{"x"}}}, nil, "b"},
		"overwrites":         {map[string]graph.Update{"a": graph.Put(only.Set("a")), "c": graph.Put(only.Set("c"))}, map[string]graph.Update{"c": graph.Put(only.Set("c"))}, "a c"},
		"halts":              {map[string]graph.Update{"a": halt, "b": halt}, map[string]graph.Update{"a": halt}, "a b"},
		"still and for ever": {map[string]graph.Update{"b": odd}, map[string]graph.Update{"b": odd}, "b"},
	} {
		for _, inChild := range []bool{false, true} {
			var ran tally
			node := func(name string) graph.Node {
				return graph.Node{Name: name, Routes: []string{graph.End}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
					_, err := graph.Do(ctx, "effect", func(context.Context) (int, error) { return ran.add("effect of " + name), nil })
					if ran.add(name) == 1 {
						return c.bad[name], err
					}
					return c.good[name], err
				}}
			}
			d := graph.Def{Name: "g", Keys: append([]graph.AnyKey{even, ratio}, all...), Start: []string{"a", "b", "c"}, Nodes: []graph.Node{node("a"), node("b"), node("c")}}
			if inChild {
				d = graph.Def{Name: "p", Start: []string{"sub"}, Nodes: []graph.Node{{Name: "sub", Graph: compile(t, d), Retry: graph.Retry{Attempts: 2}}}, Edges: []graph.Edge{edge("sub", graph.End)}}
			}
			r := kept(compile(t, d))
			res, err := start(t, r)
			if !inChild {
				is(t, graph.Failed, res, err)
				res, err = resume(t, r)
			}
			want := graph.Done
			if c.good["b"].Writes != nil {
				want = graph.Failed
			}
			is(t, want, res, err)
			var again []string
			for _, n := range []string{"a", "b", "c"} {
				if ran.of(n) > 1 {
					again = append(again, n)
				}
				if ran.of("effect of "+n) != 1 {
					t.Errorf("%s: the effect of %s happened %d times", name, n, ran.of("effect of "+n))
				}
			}
			if strings.Join(again, " ") != c.again {
				t.Errorf("%s, in a child %v: %v ran again, want %s", name, inChild, again, c.again)
			}
		}
	}
}

// A node that ends its goroutine has failed, wherever it runs, and no task waits
// for it for ever.
func TestANodeThatEndsItsGoroutineHasFailed(t *testing.T) {
	exits := func(context.Context, graph.State) (graph.Update, error) {
		runtime.Goexit()
		return graph.Update{}, nil
	}
	a := graph.Node{Name: "a", Run: exits}
	child := graph.Node{Name: "a", Graph: parallel(t, graph.Node{Name: "x", Run: exits})}
	for name, d := range map[string]graph.Def{
		"alone":              {Nodes: []graph.Node{a}},
		"with siblings":      {Nodes: []graph.Node{a, say("b"), say("c"), say("d")}},
		"one after other":    {Nodes: []graph.Node{a, say("b"), say("c"), say("d")}, Concurrency: 1},
		"the last":           {Nodes: []graph.Node{say("b"), say("c"), a}, Concurrency: 2},
		"failing fast":       {Nodes: []graph.Node{a, say("b")}, FailFast: true},
		"in a child":         {Nodes: []graph.Node{child}},
		"in a child of many": {Nodes: []graph.Node{child, say("b")}},
	} {
		for _, handled := range []bool{false, true} {
			settled(t, func(t *testing.T) {
				d := d
				d.Name, d.Keys, d.Nodes, d.Start, d.Edges = "g", all, slices.Clone(d.Nodes), nil, nil
				for i, n := range d.Nodes {
					d.Start = append(d.Start, n.Name)
					d.Edges = append(d.Edges, edge(n.Name, graph.End))
					if n.Name == "a" && handled {
						d.Nodes[i].OnError = "h"
					}
				}
				want := graph.Failed
				if handled {
					want = graph.Done
					d.Nodes, d.Edges = append(d.Nodes, graph.Node{Name: "h", Run: idle}), append(d.Edges, edge("h", graph.End))
				}
				r := kept(compile(t, d))
				var res graph.Result
				var err error
				for e, last := range r.Run(t.Context(), graph.Input{Thread: thread, Topics: graph.AllTopics}) {
					if b, ok := e.Body.(graph.RunEnded); ok {
						res = b.Result
					}
					err = last
				}
				is(t, want, res, err)
				if err != nil && !strings.Contains(err.Error(), "Goexit") {
					t.Errorf("%s: %v", name, err)
				}
				var done []string
				for _, rec := range journalOf(t, r.Store, thread) {
					done = append(done, rec.Kind.String())
				}
				if n := len(d.Nodes) - 1; !handled && n > 0 && !d.FailFast && strings.Count(strings.Join(done, " "), "task") != n {
					t.Errorf("%s: the siblings were not all run: %v", name, done)
				}
			})
		}
	}
	r := kept(parallel(t, a, say("b")))
	gone := make(chan bool)
	go func() { // whose goroutine it may be
		defer close(gone)
		_, err := start(t, r)
		if err == nil {
			t.Error("Goexit is no failure")
		}
	}()
	<-gone
	if s, err := history.Inspect(t.Context(), r.Store, thread, 0); err != nil || s.Status != graph.Failed || !strings.Contains(s.Reason, "Goexit") {
		t.Errorf("%+v, %v", s, err)
	}
}

// A step whose time has passed fails its tasks as a node's timeout does: OnError
// takes over, also for a task that had not started. A timeout further up does not.
func TestOnErrorTakesAStepTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, _ graph.State) (graph.Update, error) {
			<-ctx.Done()
			return graph.Update{}, ctx.Err()
		}
		var causes []string
		late := func(ctx context.Context, _ graph.State) (graph.Update, error) {
			causes = append(causes, graph.Cause(ctx))
			return graph.Put(newReducerKey.Set(1)), nil
		}
		d := graph.Def{Name: "late", Keys: all, StepTimeout: time.Second, Concurrency: 1, Start: []string{"a", "b"},
			Nodes: []graph.Node{{Name: "a", Run: slow, OnError: "h"}, {Name: "b", Run: slow, OnError: "h"}, {Name: "h", Run: late}},
			Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End), edge("h", graph.End)}}
		r := &graph.Runner{Graph: compile(t, d), Store: journal.NewMemory()}
		res, err := r.Invoke(t.Context(), graph.Input{})
		if is(t, graph.Done, res, err); newReducerKey.Get(res.State) != 1 || len(causes) != 1 || causes[0] == "" {
			t.Errorf("%d, causes %q", newReducerKey.Get(res.State), causes)
		}
		d.StepTimeout = time.Hour
		above := graph.Def{Name: "above", Keys: all, StepTimeout: time.Second, Start: []string{"c"},
			Nodes: []graph.Node{{Name: "c", Graph: compile(t, d)}}, Edges: []graph.Edge{edge("c", graph.End)}}
		causes = nil
		res, err = (&graph.Runner{Graph: compile(t, above)}).Invoke(t.Context(), graph.Input{})
		if is(t, graph.Failed, res, err); !errors.Is(err, graph.ErrTimeout) || causes != nil {
			t.Errorf("%v, causes %q", err, causes)
		}
	})
}

// What ended a path by OnError: End can be read in the result, at the root and in
// a child, also when an earlier drive ran the task.
func TestFailuresThatEndAPathAreInTheResult(t *testing.T) {
	cause := errors.New("no paper")
	fails := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, cause }
	child := compile(t, graph.Def{Name: "child", Keys: all, Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: fails, OnError: graph.End}}, Edges: []graph.Edge{edge("x", graph.End)}})
	asking := asks(nil)
	r := kept(compile(t, graph.Def{Name: "ends", Keys: all, Start: []string{"a", "c", "q", "h"},
		Nodes: []graph.Node{{Name: "a", Run: fails, OnError: graph.End}, {Name: "c", Graph: child}, {Name: "q", Run: asking}, {Name: "h", Run: fails, OnError: "on"}, {Name: "on", Run: idle}},
		Edges: []graph.Edge{edge("a", graph.End), edge("c", graph.End), edge("q", graph.End), edge("h", graph.End), edge("on", graph.End)}}))
	res, err := start(t, r)
	if is(t, graph.Waiting, res, err); len(res.Failures) != 1 || res.Failures[0].Node != "x" {
		t.Errorf("of the steps that are done: %v", res.Failures)
	}
	res, err = resume(t, r, says(res.Questions[0].ID, "x"))
	if is(t, graph.Done, res, err); len(res.Failures) != 1 || res.Failures[0].Node != "a" {
		t.Errorf("%v", res.Failures)
	}
	for _, g := range []*graph.Graph{child, compile(t, graph.Def{Name: "one", Keys: all, Start: []string{"c"}, Nodes: []graph.Node{{Name: "c", Graph: child}}, Edges: []graph.Edge{edge("c", graph.End)}})} {
		res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
		is(t, graph.Done, res, err)
		if len(res.Failures) != 1 || !errors.Is(res.Failures[0], cause) || res.Failures[0].Node != "x" {
			t.Errorf("%v", res.Failures)
		}
	}
}

// cracked is a clock that panics at one of its calls.
type cracked struct{ left atomic.Int64 }

func (b *cracked) tick() {
	if b.left.Add(-1) == 0 {
		panic("the clock has stopped")
	}
}

func (b *cracked) Now() time.Time {
	b.tick()
	return time.Now()
}

func (b *cracked) Wait(ctx context.Context, _ time.Duration) error {
	b.tick()
	return ctx.Err()
}

// A panic in the clock, at whatever call and on whatever goroutine, is an error of
// the run, and of no node: the process lives, and the run continues with a better one.
func TestAClockThatPanicsFailsTheRun(t *testing.T) {
	failed := 0
	for _, store := range []bool{true, false} {
		for n := int64(1); ; n++ {
			var c tally
			flaky := func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := graph.Do(ctx, "e", func(context.Context) (int, error) { return 1, nil })
				if c.add("ran") == 1 {
					return graph.Update{}, errors.New("once")
				}
				return graph.Update{}, err
			}
			g := compile(t, graph.Def{Name: "g", Keys: all, Timeout: time.Hour, Start: []string{"a", "b"}, Nodes: []graph.Node{
				{Name: "a", Run: flaky, OnError: "h", Retry: graph.Retry{Attempts: 3, Delay: time.Millisecond, Within: time.Hour}}, {Name: "b", Run: idle, OnError: "h"}, say("h"), say("z")},
				Edges: []graph.Edge{edge("a", "z"), edge("b", "z"), edge("h", "z"), edge("z", graph.End)}})
			clock := &cracked{}
			clock.left.Store(n)
			r := &graph.Runner{Graph: g, Clock: clock}
			if store {
				r.Store = journal.NewMemory()
			}
			_, res, err := collect(r.Run(t.Context(), graph.Input{Thread: thread, Topics: graph.AllTopics}))
			if clock.left.Load() > 0 {
				break // the run is over before
			}
			if err == nil && res.Status == graph.Done {
				continue // it was the time of the end
			}
			failed++
			if err == nil || !strings.Contains(err.Error(), "panic in Runner.Clock: the clock has stopped") || res.Status != 0 && res.Status != graph.Failed {
				t.Errorf("call %d: %v, %v", n, res.Status, err)
			}
			var node *graph.NodeError
			if errors.As(err, &node) {
				t.Errorf("call %d: it is node %s's failure: %v", n, node.Node, err)
			}
			if !store {
				continue
			}
			r.Clock = nil
			res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread})
			if errors.Is(err, journal.ErrNoThread) {
				res, err = start(t, r)
			}
			if is(t, graph.Done, res, err); strings.Join(list.Get(res.State), " ") != "z" {
				t.Errorf("call %d: %v", n, list.Get(res.State))
			}
		}
	}
	if failed < 20 {
		t.Errorf("only %d calls of the clock could fail", failed)
	}
}

// So is one in IDs, and an id that is none.
func TestIDsThatPanicAreErrors(t *testing.T) {
	g := said(t, "a")
	for want, ids := range map[string]func() string{
		"panic in Runner.IDs: no more ids": func() string { panic("no more ids") },
		"has returned an empty id":         func() string { return "" },
	} {
		r := &graph.Runner{Graph: g, Store: journal.NewMemory(), IDs: ids}
		if _, err := r.Invoke(t.Context(), graph.Input{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("start: %v, not %s", err, want)
		}
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Run: "r"}); err != nil {
			t.Error(err)
		}
		if _, err := r.Edit(t.Context(), "t", lines.Set(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("edit: %v, not %s", err, want)
		}
	}
}
