package graph_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"raddle.dev/graph"
)

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
				r.Store = graph.NewMemory()
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
			if errors.Is(err, graph.ErrNoThread) {
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
		r := &graph.Runner{Graph: g, Store: graph.NewMemory(), IDs: ids}
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
