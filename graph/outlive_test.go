package graph_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

func TestGoroutinesThatOutliveTheirNodeAreRefused(t *testing.T) {
	child := compile(t, graph.Def{Name: "c", Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: idle}}, Edges: []graph.Edge{edge("x", graph.End)}})
	release, errs := make(chan struct{}), make(chan error, 10)
	g := compile(t, graph.Def{Name: "g", Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Graph: child, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			go func() {
				<-release
				graph.Emit(ctx, "late")
				_, err := graph.Do(ctx, "late", func(context.Context) (int, error) { return 1, nil })
				errs <- err
				_, err = graph.Interrupt[string](ctx, graph.Ask{})
				errs <- err
				_, err = graph.Call(ctx)
				errs <- err
				close(errs)
			}()
			return graph.Update{}, nil
		}},
		{Name: "b", Run: func(context.Context, graph.State) (graph.Update, error) {
			close(release)
			for err := range errs {
				if err == nil || !strings.Contains(err.Error(), "node a has returned") {
					t.Errorf("%v", err)
				}
			}
			return graph.Update{}, nil
		}},
	}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)}})
	settled(t, func(t *testing.T) {
		release, errs = make(chan struct{}), make(chan error, 10)
		for e, err := range kept(g).Run(t.Context(), graph.Input{Topics: graph.AllTopics}) {
			if b, ok := e.Body.(graph.ValueEmitted); ok || err != nil {
				t.Errorf("%v, %v", b, err)
			}
		}
	})
}

func TestAnEffectThatOutlivesItsNodeDoesNoHarm(t *testing.T) {
	settled(t, func(t *testing.T) {
		under, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a"}, Nodes: []graph.Node{
			{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				go func() {
					defer close(done)
					_, _ = graph.Do(ctx, "slow", func(context.Context) (int, error) { close(under); <-release; return 1, nil })
				}()
				<-under
				return graph.Put(newReducerKey.Set(1)), nil
			}},
			{Name: "b", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				close(release)
				<-done
				_, err := graph.Interrupt[string](ctx, graph.Ask{})
				return graph.Put(newReducerKey.Set(10)), err
			}},
		}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)}})
		r := kept(g)
		res, err := start(t, r)
		if is(t, graph.Waiting, res, err); len(res.Questions) != 1 {
			t.Error(res.Questions)
		}
		release, done = make(chan struct{}), make(chan struct{})
		close(done)
		if res, err = resume(t, r, says("b", "")); res.Status != graph.Done || newReducerKey.Get(res.State) != 11 {
			t.Errorf("%v, %v", res.Status, err)
		}
	})
}

func TestLeavingAtEachEventLeavesNothingBehind(t *testing.T) {
	for at, more := int64(1), true; more; at++ {
		settled(t, func(t *testing.T) {
			e := newEverything(t)
			r := kept(e.g)
			more = false
			for ev := range r.Run(t.Context(), graph.Input{Thread: thread, Run: "r", Topics: graph.AllTopics}) {
				if more = ev.Seq == at; more {
					break
				}
			}
			if got := e.finish(t, r, false); repeated(e.hits) != 0 || got.Value == nil {
				t.Errorf("left at event %d: %v, effects %v", at, got.Value, e.hits)
			}
		})
	}
}

func TestAContextOutlivesItsNode(t *testing.T) {
	for _, early := range []bool{false, true} {
		var left context.Context
		leave := func(ctx context.Context, s graph.State) (graph.Update, error) {
			if counter.Get(s) == 0 {
				if left = ctx; early {
					graph.TaskPath(ctx)
				}
			} else if path := graph.TaskPath(left); path != "0.a.0" {
				t.Errorf("looked early: %v: the task is %q, not 0.a.0", early, path)
			} else if _, err := graph.Do(left, "late", func(context.Context) (int, error) { return 1, nil }); err == nil || !strings.Contains(err.Error(), "node a has returned") {
				t.Errorf("looked early: %v: a late effect gives %v", early, err)
			} else if graph.Attempt(left) != 1 || graph.TaskPath(ctx) == "0.a.0" {
				t.Errorf("looked early: %v: attempt %d, task %s", early, graph.Attempt(left), graph.TaskPath(ctx))
			}
			return inc(ctx, s)
		}
		g := compile(t, graph.Def{Name: "left", Keys: []graph.AnyKey{counter}, Start: []string{"a"},
			Nodes: []graph.Node{{Name: "a", Run: leave}, {Name: "b", Run: inc}, {Name: "c", Run: leave}},
			Edges: []graph.Edge{edge("a", "b"), edge("b", "c"), edge("c", graph.End)}})
		res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
		if err != nil || counter.Get(res.State) != 3 {
			t.Fatalf("%d steps, %v", counter.Get(res.State), err)
		}
	}
}

func TestAnAttemptIsRefusedInTheNext(t *testing.T) {
	for _, early := range []bool{false, true} {
		var ctx1 context.Context
		refused := func(what string, err error) {
			if err == nil || !strings.Contains(err.Error(), "node a has returned") {
				t.Errorf("looked early: %v: a late %s gives %v", early, what, err)
			}
		}
		node := func(ctx context.Context, _ graph.State) (graph.Update, error) {
			if ctx1 == nil {
				if ctx1 = ctx; early {
					graph.TaskPath(ctx)
				}
				return graph.Update{}, errors.New("the first attempt fails")
			}
			called := 0
			done := make(chan struct{})
			go func() { // what the first attempt has left
				defer close(done)
				_, err := graph.Do(ctx1, "mail", func(context.Context) (int, error) { called++; return 1, nil })
				refused("effect", err)
				_, err = graph.DoEffect(ctx1, graph.Effect{Name: "mail", Key: "k"}, func(context.Context) (int, error) { called++; return 1, nil })
				refused("effect with a key", err)
				_, err = graph.Interrupt[string](ctx1, graph.Ask{Prompt: "?"})
				refused("question", err)
				_, err = graph.Call(ctx1)
				refused("child", err)
				graph.Emit(ctx1, "late")
				if graph.Attempt(ctx1) != 1 || graph.Visit(ctx1) != 1 || graph.TaskPath(ctx1) != "0.a.0" {
					t.Errorf("attempt %d, visit %d, task %s", graph.Attempt(ctx1), graph.Visit(ctx1), graph.TaskPath(ctx1))
				}
			}()
			<-done
			v, err := graph.Do(ctx, "mail", func(context.Context) (int, error) { return 2, nil })
			if called != 0 || v != 2 || graph.Attempt(ctx) != 2 {
				t.Errorf("%d late calls, the effect gives %d, attempt %d", called, v, graph.Attempt(ctx))
			}
			return graph.Put(counter.Set(v)), err
		}
		child := compile(t, graph.Def{Name: "child", Keys: []graph.AnyKey{counter}, Start: []string{"c"},
			Nodes: []graph.Node{{Name: "c", Run: inc}}, Edges: []graph.Edge{edge("c", graph.End)}})
		g := compile(t, graph.Def{Name: "again", Keys: []graph.AnyKey{counter}, Start: []string{"a"},
			Nodes: []graph.Node{{Name: "a", Run: node, Graph: child, Retry: graph.Retry{Attempts: 2}}}, Edges: []graph.Edge{edge("a", graph.End)}})
		r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
		for e, err := range r.Run(t.Context(), graph.Input{Topics: graph.TopicEmit}) {
			if _, ok := e.Body.(graph.ValueEmitted); ok || err != nil {
				t.Errorf("%v, %v", e.Body, err)
			}
		}
	}
}

func TestAChildLeftRunningHoldsUpTheNextAttempt(t *testing.T) {
	running, leave, left := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	child := compile(t, graph.Def{Name: "child", Keys: []graph.AnyKey{counter}, Start: []string{"c"},
		Nodes: []graph.Node{{Name: "c", Run: func(context.Context, graph.State) (graph.Update, error) {
			close(running)
			<-leave
			return graph.Update{}, nil
		}}}, Edges: []graph.Edge{edge("c", graph.End)}})
	node := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		if graph.Attempt(ctx) == 1 {
			go func() {
				_, err := graph.Call(ctx)
				left <- err
			}()
			<-running
			return graph.Update{}, errors.New("the first attempt does not wait")
		}
		defer func() { close(leave); <-left }()
		_, err := graph.Call(ctx)
		return graph.Update{}, err
	}
	g := compile(t, graph.Def{Name: "again", Keys: []graph.AnyKey{counter}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: node, Graph: child, Retry: graph.Retry{Attempts: 2}}}, Edges: []graph.Edge{edge("a", graph.End)}})
	_, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
	if err == nil || !strings.Contains(err.Error(), "still runs for an attempt that has failed") {
		t.Fatal(err)
	}
}
