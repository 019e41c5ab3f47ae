package graph_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
)

// flaky is a graph whose node "pay" makes an effect and is done, while "work"
// next to it makes one and fails: twice, in the lowest of two graphs.
func flaky(t *testing.T, c *tally, retry graph.Retry) *graph.Graph {
	pay := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Do(ctx, "pay", func(context.Context) (int, error) { return c.add("paid"), nil })
		return graph.Put(newReducerKey.Set(1)), err
	}
	work := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		if _, err := graph.Do(ctx, "mail", func(context.Context) (int, error) { return c.add("mailed"), nil }); err != nil {
			return graph.Update{}, err
		}
		if c.add("worked") < 3 {
			return graph.Update{}, errors.New("not yet")
		}
		return graph.Put(newReducerKey.Set(10)), nil
	}
	out := func(_ graph.State, ch graph.Child) (graph.Update, error) {
		if c.add("out") == 1 {
			return graph.Update{}, errors.New("out fails once")
		}
		return graph.Put(newReducerKey.Set(newReducerKey.Get(ch.State))), nil
	}
	low := compile(t, graph.Def{Name: "low", Keys: all, Start: []string{"first"}, Nodes: []graph.Node{{Name: "first", Run: pay}, {Name: "pay", Run: pay}, {Name: "work", Run: work}},
		Edges: []graph.Edge{edge("first", "pay", "work"), edge("pay", graph.End), edge("work", graph.End)}})
	mid := compile(t, graph.Def{Name: "mid", Keys: all, Start: []string{"low"}, Nodes: []graph.Node{{Name: "low", Graph: low, Out: out}}, Edges: []graph.Edge{edge("low", graph.End)}})
	return compile(t, graph.Def{Name: "top", Keys: all, Start: []string{"mid"}, Nodes: []graph.Node{{Name: "mid", Graph: mid, Retry: retry, Out: func(_ graph.State, ch graph.Child) (graph.Update, error) {
		return graph.Put(newReducerKey.Set(newReducerKey.Get(ch.State))), nil
	}}}, Edges: []graph.Edge{edge("mid", graph.End)}})
}

// A retried child repeats no effect and no task that is done, with a store and
// without.
func TestARetriedChildRepeatsNoEffect(t *testing.T) {
	for _, store := range []graph.Store{nil, graph.NewMemory()} {
		var c tally
		r := &graph.Runner{Graph: flaky(t, &c, graph.Retry{Attempts: 4}), Store: store}
		res, err := r.Invoke(t.Context(), graph.Input{})
		is(t, graph.Done, res, err)
		got := fmt.Sprint(newReducerKey.Get(res.State), c.of("paid"), c.of("mailed"), c.of("worked"), c.of("out"))
		if got != "12 2 1 3 2" {
			t.Errorf("store %T: total, paid, mailed, worked, out: %s", store, got)
		}
	}
}

// The time of a child starts again when its node is tried again, and when a run
// that failed is resumed; else neither could help.
func TestARetryGivesAChildItsTimeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, store := range []graph.Store{nil, graph.NewMemory()} {
			for _, attempts := range []int{1, 2} {
				runs := 0
				slow := func(ctx context.Context, _ graph.State) (graph.Update, error) {
					if runs++; runs == 1 {
						<-ctx.Done()
						return graph.Update{}, ctx.Err()
					}
					time.Sleep(time.Second / 2)
					return graph.Put(newReducerKey.Set(1)), nil
				}
				child := compile(t, graph.Def{Name: "child", Keys: all, Timeout: time.Second, Start: []string{"s"}, Nodes: []graph.Node{{Name: "s", Run: slow}}, Edges: []graph.Edge{edge("s", graph.End)}})
				r := &graph.Runner{Store: store, Graph: compile(t, graph.Def{Name: "top", Keys: all, Start: []string{"c"},
					Nodes: []graph.Node{{Name: "c", Graph: child, Retry: graph.Retry{Attempts: attempts}}}, Edges: []graph.Edge{edge("c", graph.End)}})}
				res, err := r.Invoke(t.Context(), graph.Input{Thread: fmt.Sprint(attempts)})
				if attempts == 1 {
					if is(t, graph.Failed, res, err); store == nil {
						continue
					}
					res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: res.Thread})
				}
				if is(t, graph.Done, res, err); runs != 2 {
					t.Errorf("%d attempts: it ran %d times", attempts, runs)
				}
			}
		}
	})
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
		r := &graph.Runner{Graph: compile(t, d), Store: graph.NewMemory()}
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
