package graph_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// The record of a cancelled run's end says who has cancelled it; that of another end says no one.
func TestTheEndSaysWhoHasCancelled(t *testing.T) {
	ctx := journal.WithAuthor(t.Context(), "ann")
	for _, c := range []struct{ cancel, by string }{{"not needed", "ann"}, {"", ""}} {
		r := kept(parallel(t, graph.Node{Name: "n", Run: asker("a")}))
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		res, _ = r.InvokeResume(ctx, graph.Resume{Thread: thread, Cancel: c.cancel})
		if want := map[bool]graph.Status{true: graph.Abandoned, false: graph.Waiting}[c.cancel != ""]; res.Status != want {
			t.Fatalf("%q: %v", c.cancel, res.Status)
		}
		by := ""
		for e, err := range history.Entries(t.Context(), r.Store, thread) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == journal.KindEnd { // the newest comes first
				by = e.By
				break
			}
		}
		if by != c.by {
			t.Errorf("%q: the end is by %q, want %q", c.cancel, by, c.by)
		}
	}
}

// What a cancelled run would have done next is sorted by name.
func TestTheFrontierOfACancelledRunIsSorted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	g := compile(t, graph.Def{
		Name: "sorted",
		Nodes: []graph.Node{
			{Name: "z", Run: func(context.Context, graph.State) (graph.Update, error) { cancel(why); return graph.Update{}, nil }},
			{Name: "y", Run: idle},
			{Name: "x", Run: idle},
		},
		Start: []string{"z"},
		Edges: []graph.Edge{edge("z", "y", "x"), edge("y", graph.End), edge("x", graph.End)},
	})
	_, err := (&graph.Runner{Graph: g}).Invoke(ctx, graph.Input{})
	var canceled *graph.CanceledError
	if !errors.As(err, &canceled) || !slices.Equal(canceled.Frontier, []string{"x", "y"}) || !errors.Is(err, why) {
		t.Errorf("%+v, %v", canceled, err)
	}
}

// An attempt that fails because its context has ended is the last, and no event says that another one follows.
func TestNoRetryAfterTheEndOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var c tally
	g := parallel(t, graph.Node{Name: "n", Retry: graph.Retry{Attempts: 3}, Run: func(context.Context, graph.State) (graph.Update, error) {
		c.add("n")
		cancel()
		return graph.Update{}, errors.New("no luck")
	}})
	retries := 0
	for e := range (&graph.Runner{Graph: g}).Run(ctx, graph.Input{Topics: graph.AllTopics}) {
		if _, isRetry := e.Body.(graph.TaskRetry); isRetry {
			retries++
		}
	}
	if retries > 0 || c.of("n") != 1 {
		t.Errorf("%d retries, %d attempts", retries, c.of("n"))
	}
}

// A task that does not start because the context has ended has not run: a resume runs it.
func TestATaskThatDidNotStartRunsLater(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var c tally
	g := parallel(t,
		graph.Node{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
			cancel()
			return graph.Update{}, nil
		}},
		graph.Node{Name: "b", Run: c.counts("b")},
	)
	r := kept(g)
	r.Executor = sequential{}
	res, err := r.Invoke(ctx, graph.Input{Thread: thread})
	if is(t, graph.Canceled, res, err); c.of("b") != 0 {
		t.Fatal("it has run")
	}
	res, err = resume(t, r)
	if is(t, graph.Done, res, err); c.of("b") != 1 {
		t.Errorf("it has run %d times", c.of("b"))
	}
}

// The contexts of nodes end with their drive.
func TestContextsEndWithTheDrive(t *testing.T) {
	for _, st := range []journal.Store{nil, journal.NewMemory()} {
		var kept context.Context
		g := parallel(t, graph.Node{Name: "n", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			kept = ctx
			return graph.Update{}, ctx.Err()
		}})
		res, err := (&graph.Runner{Graph: g, Store: st}).Invoke(t.Context(), graph.Input{})
		if is(t, graph.Done, res, err); kept.Err() == nil {
			t.Errorf("with the store %v a context has not ended", st)
		}
	}
}
