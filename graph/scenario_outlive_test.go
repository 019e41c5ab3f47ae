package graph_test

import (
	"context"
	"strings"
	"testing"

	"raddle.dev/graph"
)

// What the goroutines of a node do after it has returned is refused.
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

// An effect that is in progress when its node returns does no harm to what follows.
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

// Leaving the loop at any event leaves no goroutine behind, and the run continues
// from there.
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
