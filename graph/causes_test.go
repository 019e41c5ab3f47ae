package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
)

// causesGraph sends n items to a node that fails for those that bad holds for. lost handles each, and joined runs after both.
func causesGraph(t *testing.T, n int, bad func(int) bool, lost graph.Node) *graph.Graph {
	t.Helper()
	item := graph.Last[int]("item")
	lost.Name = "lost"
	return compile(t, graph.Def{
		Name:  "g",
		Keys:  []graph.AnyKey{item, graph.Append[string]("log")},
		Start: []string{"split"},
		Nodes: []graph.Node{
			{Name: "split", Routes: []string{"work"}, Run: func(context.Context, graph.State) (graph.Update, error) {
				var sends []graph.Send
				for i := range n {
					sends = append(sends, graph.Send{To: "work", Overlay: []graph.Write{item.Set(i)}})
				}
				return graph.Update{Send: sends}, nil
			}},
			{Name: "work", OnError: "lost", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				if i := item.Get(s); bad(i) {
					return graph.Update{}, fmt.Errorf("item %d is bad", i)
				}
				return graph.Update{}, nil
			}},
			lost,
			{Name: "joined", Run: idle},
		},
		Edges: []graph.Edge{edge("work", "joined"), edge("lost", "joined"), edge("joined", graph.End)},
	})
}

// Each failed task of a Send has a handler of its own, which sees what it saw and why it failed, also after a resume and behind a snapshot.
func TestEachFailedItemIsHandled(t *testing.T) {
	item := graph.Last[int]("item")
	logged := graph.Append[string]("log")
	stop := false
	lost := graph.Node{BreakBefore: true, Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
		causes := graph.Causes(ctx)
		if len(causes) != 1 || causes[0].Node != "work" || causes[0].Index != item.Get(s)+1 || causes[0].Err.Error() != fmt.Sprintf("item %d is bad", item.Get(s)) {
			t.Errorf("item %d: causes %v", item.Get(s), causes)
		}
		if stop {
			return graph.Update{}, errors.New("the handler fails, too")
		}
		return graph.Put(logged.Set([]string{fmt.Sprintf("%d: %s", item.Get(s), causes[0].Err)})), nil
	}}
	for _, copies := range []bool{false, true} {
		r := kept(causesGraph(t, 30, func(i int) bool { return i%10 == 3 }, lost))
		res, err := start(t, r)
		is(t, graph.Paused, res, err)
		p := &place{r: r, thread: thread, copies: copies}
		stop = true
		if _, err = p.resume(t); err == nil || !strings.Contains(err.Error(), "the handler fails, too") {
			t.Fatal(err)
		}
		stop = false
		res, err = p.resume(t)
		is(t, graph.Done, res, err)
		want := []string{"3: item 3 is bad", "13: item 13 is bad", "23: item 23 is bad"}
		if got := logged.Get(res.State); !slices.Equal(got, want) {
			t.Errorf("copies %v: handled %q", copies, got)
		}
	}
}

// The failures of nodes that have one handler are all in its causes, in task order.
func TestCausesOfSeveralNodes(t *testing.T) {
	for _, copies := range []bool{false, true} {
		var got []string
		r := kept(compile(t, graph.Def{
			Name:  "g",
			Start: []string{"a", "b", "c"},
			Nodes: []graph.Node{
				{Name: "a", OnError: "h", Run: fails("first")},
				{Name: "b", OnError: "h", Run: idle},
				{Name: "c", OnError: "h", Run: fails("last")},
				{Name: "h", BreakBefore: true, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
					for _, e := range graph.Causes(ctx) {
						got = append(got, e.Node+" "+e.Err.Error())
					}
					if graph.Cause(ctx) != "node a (step 0, attempt 1): first" {
						t.Errorf("the cause is %q", graph.Cause(ctx))
					}
					return graph.Update{}, nil
				}},
			},
			Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End), edge("c", graph.End), edge("h", graph.End)},
		}))
		p := &place{r: r, thread: thread, copies: copies}
		_, _ = start(t, r)
		res, err := p.resume(t)
		is(t, graph.Done, res, err)
		if want := []string{"a first", "c last"}; !slices.Equal(got, want) {
			t.Errorf("causes %q", got)
		}
	}
	if graph.Causes(t.Context()) != nil {
		t.Error("there are causes outside of a node")
	}
}

// What ended a path is in the result of each later drive, also what ended one in a child that has returned, and behind snapshots. A new run on the
// thread starts without.
func TestFailuresStayInTheResult(t *testing.T) {
	child := compile(t, graph.Def{
		Name:  "child",
		Start: []string{"x", "y"},
		Nodes: []graph.Node{
			{Name: "x", OnError: graph.End, Run: fails("below")},
			{Name: "y", Run: idle},
		},
		Edges: []graph.Edge{edge("x", graph.End), edge("y", graph.End)},
	})
	for _, copies := range []bool{false, true} {
		r := kept(compile(t, graph.Def{
			Name:  "g",
			Start: []string{"sub", "end"},
			Nodes: []graph.Node{
				{Name: "sub", Graph: child},
				{Name: "end", OnError: graph.End, Run: fails("above")},
				{Name: "later", BreakBefore: true, BreakAfter: true, Run: idle},
				{Name: "last", Run: idle},
			},
			Edges: []graph.Edge{edge("sub", "later"), edge("end", graph.End), edge("later", "last"), edge("last", graph.End)},
		}))
		p := &place{r: r, thread: thread, copies: copies}
		texts := func(res graph.Result) (all []string) {
			for _, e := range res.Failures {
				all = append(all, e.Path+e.Node+" "+e.Err.Error())
			}
			return all
		}
		res, err := start(t, r)
		for range 3 {
			if want := []string{"sub/x below", "end above"}; !slices.Equal(texts(res), want) {
				t.Errorf("copies %v: %s: failures %q, want %q", copies, res.Status, texts(res), want)
			}
			if res.Status == graph.Done {
				break
			}
			res, err = p.resume(t)
		}
		is(t, graph.Done, res, err)
		again, err := r.Invoke(t.Context(), graph.Input{Thread: p.thread})
		is(t, graph.Paused, again, err)
		if want := []string{"sub/x below", "end above"}; !slices.Equal(texts(again), want) {
			t.Errorf("the next run: failures %q", texts(again))
		}
	}
}

// A place is where a run continues: its thread, or a copy, which starts with what a snapshot holds.
type place struct {
	r      *graph.Runner
	thread string
	copies bool
	n      int
}

// resume continues the run.
func (p *place) resume(t *testing.T) (graph.Result, error) {
	t.Helper()
	if p.copies {
		p.n++
		into := fmt.Sprint("copy", p.n)
		if err := history.Fork(t.Context(), p.r.Store, p.thread, 0, into); err != nil {
			t.Fatal(err)
		}
		p.thread = into
	}
	return p.r.InvokeResume(t.Context(), graph.Resume{Thread: p.thread})
}

// What was handled is not carried along: a loop that handles a failure each time has a snapshot of the same size after each.
func TestHandledFailuresAreNotKept(t *testing.T) {
	count := graph.Last[int]("count")
	size := func(times int) int {
		r := kept(compile(t, graph.Def{
			Name:  "g",
			Keys:  []graph.AnyKey{count},
			Start: []string{"try"},
			Nodes: []graph.Node{
				{Name: "try", OnError: "again", Run: fails("no")},
				{Name: "again", Routes: []string{"try"}, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
					n := count.Get(s) + 1
					if n == times {
						return graph.Update{Goto: []string{graph.End}, Writes: []graph.Write{count.Set(n)}}, nil
					}
					return graph.Update{Goto: []string{"try"}, Writes: []graph.Write{count.Set(n)}}, nil
				}},
			},
			Edges: []graph.Edge{edge("try", graph.End)},
		}))
		res, err := start(t, r)
		is(t, graph.Done, res, err)
		if err := history.Fork(t.Context(), r.Store, thread, 0, "copy"); err != nil {
			t.Fatal(err)
		}
		return len(journalOf(t, r.Store, "copy")[0].Data)
	}
	if few, many := size(3), size(200); many > few+16 {
		t.Errorf("a copy has %d bytes after 3 failures and %d after 200", few, many)
	}
}

// partialGraph runs a child for some items, and writes what failed in it. The items 1 fail alone, 2 ends the run, and for 3 OnErrorIf panics.
func partialGraph(items ...int) (*graph.Graph, error) {
	item := graph.Last[int]("item")
	done := graph.Append[int]("done")
	lost := graph.Last[[]string]("lost")
	child, err := graph.Compile(graph.Def{
		Name:  "child",
		Keys:  []graph.AnyKey{item, done},
		Start: []string{"split"},
		Nodes: []graph.Node{
			{Name: "split", Routes: []string{"work"}, Run: func(context.Context, graph.State) (graph.Update, error) {
				var u graph.Update
				for _, i := range items {
					u.Send = append(u.Send, graph.Send{To: "work", Overlay: []graph.Write{item.Set(i)}})
				}
				return u, nil
			}},
			{
				Name:    "work",
				OnError: graph.End,
				OnErrorIf: func(err error) bool {
					if strings.Contains(err.Error(), "odd") {
						panic("OnErrorIf is asked")
					}
					return !strings.Contains(err.Error(), "fatal")
				},
				Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
					n, err := graph.Do(ctx, "call", func(context.Context) (int, error) { return item.Get(s), nil })
					switch {
					case err != nil:
						return graph.Update{}, err
					case n == 1:
						return graph.Update{}, errors.New("no")
					case n == 2:
						return graph.Update{}, errors.New("fatal")
					case n == 3:
						return graph.Update{}, errors.New("odd")
					}
					return graph.Put(done.Set([]int{n})), nil
				},
			},
		},
		Edges: []graph.Edge{graph.NewEdge("work", graph.End)},
	})
	if err != nil {
		return nil, err
	}
	return graph.Compile(graph.Def{
		Name:  "g",
		Keys:  []graph.AnyKey{lost},
		Start: []string{"each"},
		Nodes: []graph.Node{
			{Name: "each", Graph: child, Retry: graph.Retry{Attempts: 2}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				c, err := graph.Call(ctx)
				if err != nil {
					return graph.Update{}, err
				}
				again, err := graph.Do(ctx, "after", func(context.Context) (int, error) { return len(c.Failures), nil })
				if err != nil {
					return graph.Update{}, err
				}
				texts := []string{fmt.Sprint(again)}
				for _, f := range c.Failures {
					texts = append(texts, fmt.Sprintf("%s%s[%d]: %v", f.Path, f.Node, f.Index, f.Err))
				}
				return graph.Put(lost.Set(texts)), nil
			}},
		},
		Edges: []graph.Edge{graph.NewEdge("each", graph.End)},
	})
}

// The failures of a child are known to the node that called it, whenever the run is killed, displaced or refused.
func TestChildFailures(t *testing.T) {
	lost := graph.Last[[]string]("lost")
	graphtest.Explore(t, func() graphtest.Subject {
		return graphtest.Subject{Runner: func() (*graph.Runner, error) {
			g, err := partialGraph(0, 1, 5, 1, 7)
			return &graph.Runner{Graph: g}, err
		}, Check: func(r graphtest.EndOfRun) error {
			want := []string{"2", "each/work[2]: no", "each/work[4]: no"}
			if got := lost.Get(r.State); !slices.Equal(got, want) {
				return fmt.Errorf("failures %q, want %q", got, want)
			}
			if len(r.Failures) != 2 && r.Failures != nil { // nil: the end was read from the journal
				return fmt.Errorf("the result has the failures %v", r.Failures)
			}
			return nil
		}}
	}, graphtest.ExploreOptions{Seed: 1, Runs: 200})
}

// A failure to which OnErrorIf does not apply ends the run, and its siblings are recorded.
func TestOnErrorIf(t *testing.T) {
	for _, c := range []struct {
		items []int
		want  string
	}{
		{[]int{0, 1, 2}, "fatal"},
		{[]int{0, 1, 3}, "OnErrorIf is asked"},
	} {
		g, err := partialGraph(c.items...)
		if err != nil {
			t.Fatal(err)
		}
		res, err := start(t, kept(g))
		is(t, graph.Failed, res, err)
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("items %v: %v", c.items, err)
		}
	}
}

// A node that is retried after the call of its child has the failures of the child once, with a store and without.
func TestChildFailuresAfterRetry(t *testing.T) {
	child := compile(t, graph.Def{
		Name:  "child",
		Start: []string{"x"},
		Nodes: []graph.Node{{Name: "x", OnError: graph.End, Run: fails("below")}},
		Edges: []graph.Edge{edge("x", graph.End)},
	})
	for _, stored := range []bool{true, false} {
		attempts := 0
		seen := 0
		r := &graph.Runner{Graph: compile(t, graph.Def{
			Name:  "g",
			Start: []string{"sub"},
			Nodes: []graph.Node{{Name: "sub", Graph: child, Retry: graph.Retry{Attempts: 2}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				c, err := graph.Call(ctx)
				if attempts++; attempts == 1 {
					err = errors.New("after the call")
				}
				seen = len(c.Failures)
				return graph.Update{}, err
			}}},
			Edges: []graph.Edge{edge("sub", graph.End)},
		})}
		if stored {
			r = kept(r.Graph)
		}
		res, err := start(t, r)
		is(t, graph.Done, res, err)
		if seen != 1 || len(res.Failures) != 1 {
			t.Errorf("stored %v: the node has seen %d failures, the result has %v", stored, seen, res.Failures)
		}
	}
}
