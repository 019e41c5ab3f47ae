package graph_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// A retried child continues where it failed, with all that is below it: what was
// recorded there is not done again, in this drive or the next.
func TestARetriedChildContinuesWhereItFailed(t *testing.T) {
	for _, drives := range []int{1, 2} {
		var c tally
		low := compile(t, graph.Def{Name: "low", Keys: all, Start: []string{"pay", "ask"}, Nodes: []graph.Node{
			{Name: "pay", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := graph.Do(ctx, "pay", func(context.Context) (int, error) { return c.add("paid"), nil })
				return graph.Put(newReducerKey.Set(1)), err
			}},
			{Name: "ask", Run: asks(nil)},
			{Name: "flaky", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				if c.add("flaky") < 4 {
					return graph.Update{}, errors.New("flaky")
				}
				return graph.Put(newReducerKey.Set(10)), nil
			}},
		}, Edges: []graph.Edge{edge("pay", "flaky"), edge("ask", graph.End), edge("flaky", graph.End)}})
		mid := compile(t, graph.Def{Name: "mid", Keys: all, Start: []string{"low"}, Nodes: []graph.Node{{Name: "low", Graph: low, Out: func(_ graph.State, ch graph.Child) (graph.Update, error) {
			return graph.Put(newReducerKey.Set(newReducerKey.Get(ch.State))), nil
		}}}, Edges: []graph.Edge{edge("low", graph.End)}})
		d := graph.Def{Name: "top", Keys: all, Start: []string{"first"}, Nodes: []graph.Node{{Name: "first", Run: asks(nil)}, {Name: "mid", Graph: mid, Retry: graph.Retry{Attempts: 3 - drives}, Out: func(_ graph.State, ch graph.Child) (graph.Update, error) {
			return graph.Put(newReducerKey.Set(newReducerKey.Get(ch.State))), nil
		}}}, Edges: []graph.Edge{edge("first", "mid"), edge("mid", graph.End)}}
		r := kept(compile(t, d))
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		for i := 0; res.Status != graph.Done && i < 10; i++ {
			var as []graph.Answer
			for _, q := range res.Questions {
				as = append(as, says(q.ID, "x"))
			}
			if res.Status == graph.Failed { // the question is still open, but this time only the failure is looked at
				as = nil
			}
			res, err = resume(t, r, as...)
		}
		if is(t, graph.Done, res, err); c.of("paid") != 1 || newReducerKey.Get(res.State) != 11 {
			t.Errorf("%d drives: paid %d times, total %d", drives, c.of("paid"), newReducerKey.Get(res.State))
		}
	}
}

// failsUntil returns a node that fails until the attempt of that number.
func failsUntil(name string, until int, retry graph.Retry) graph.Node {
	return graph.Node{Name: name, Retry: retry, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		if graph.Attempt(ctx) < until {
			return graph.Update{}, errors.New("down")
		}
		return graph.Update{}, nil
	}}
}

// retriesOf drives a run and lists its retries, and how often each node was tried.
func retriesOf(t *testing.T, r *graph.Runner) (got []string, last error) {
	t.Helper()
	for e, err := range r.Run(t.Context(), graph.Input{Thread: "t", Topics: graph.TopicTask}) {
		switch b := e.Body.(type) {
		case graph.TaskRetry:
			got = append(got, fmt.Sprintf("%s%s: %d of %d failed, %v", e.Path, e.Node, b.Attempt, b.MaxAttempts, b.After))
		case graph.TaskDone:
			got = append(got, fmt.Sprintf("%s%s: %d attempts, failed %v", e.Path, e.Node, b.Attempts, b.Err != nil))
		}
		last = err
	}
	return got, last
}

func TestTheRunnersRetryIsForNodesWithoutOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := compile(t, graph.Def{Name: "child", Start: []string{"inner"}, Nodes: []graph.Node{failsUntil("inner", 2, graph.Retry{})}, Edges: []graph.Edge{edge("inner", graph.End)}})
		g := compile(t, graph.Def{Name: "g", Start: []string{"plain"}, Nodes: []graph.Node{
			failsUntil("plain", 3, graph.Retry{}),
			failsUntil("own", 2, graph.Retry{Attempts: 2, Delay: 20 * time.Second}),
			{Name: "sub", Graph: child},
			failsUntil("once", 2, graph.Retry{Attempts: 1}),
		}, Edges: []graph.Edge{edge("plain", "own"), edge("own", "sub"), edge("sub", "once"), edge("once", graph.End)}})
		r := &graph.Runner{Graph: g, Store: journal.NewMemory(), Retry: graph.Retry{Attempts: 3, Delay: time.Second}}
		got, err := retriesOf(t, r)
		want := []string{
			"plain: 1 of 3 failed, 1s", "plain: 2 of 3 failed, 2s", "plain: 3 attempts, failed false",
			"own: 1 of 2 failed, 20s", "own: 2 attempts, failed false",
			"sub/inner: 1 of 3 failed, 1s", "sub/inner: 2 attempts, failed false", "sub: 1 attempts, failed false",
			"once: 1 attempts, failed true",
		}
		if diff := cmp.Diff(want, got); diff != "" || err == nil {
			t.Errorf("error %v\n%s", err, diff)
		}
	})
}

func TestANodeWithAChildIsNotTriedAgainByTheRunnersRetry(t *testing.T) {
	child := compile(t, graph.Def{Name: "child", Start: []string{"inner"}, Nodes: []graph.Node{failsUntil("inner", 99, graph.Retry{})}, Edges: []graph.Edge{edge("inner", graph.End)}})
	g := compile(t, graph.Def{Name: "g", Start: []string{"sub"}, Nodes: []graph.Node{{Name: "sub", Graph: child}}, Edges: []graph.Edge{edge("sub", graph.End)}})
	got, err := retriesOf(t, &graph.Runner{Graph: g, Retry: graph.Retry{Attempts: 2}})
	want := []string{"sub/inner: 1 of 2 failed, 0s", "sub/inner: 2 attempts, failed true", "sub: 1 attempts, failed true"}
	if diff := cmp.Diff(want, got); diff != "" || err == nil {
		t.Errorf("error %v\n%s", err, diff)
	}
}

func TestTheRunnersRetryKeepsItsConditionAndItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := parallel(t, failsUntil("a", 99, graph.Retry{}))
		got, err := retriesOf(t, &graph.Runner{Graph: g, Retry: graph.Retry{Attempts: 9, If: func(error) bool { return false }}})
		if len(got) != 1 || err == nil {
			t.Error(got, err)
		}
		begun := time.Now()
		_, err = retriesOf(t, &graph.Runner{Graph: g, Retry: graph.Retry{Attempts: 9, Delay: time.Second, Factor: 1, Within: 2500 * time.Millisecond}})
		if took := time.Since(begun); took != 2*time.Second || err == nil {
			t.Error(took, err)
		}
	})
}

func TestEffectsAreNotRepeatedByTheRunnersRetryWithoutAStore(t *testing.T) {
	made := 0
	g := parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Do(ctx, "buy", func(context.Context) (int, error) { made++; return made, nil })
		if err == nil && graph.Attempt(ctx) < 3 {
			err = errors.New("down")
		}
		return graph.Update{}, err
	}})
	res, err := (&graph.Runner{Graph: g, Retry: graph.Retry{Attempts: 3}}).Invoke(t.Context(), graph.Input{})
	if err != nil || res.Status != graph.Done || made != 1 {
		t.Errorf("%v, %v: the effect was made %d times", res.Status, err, made)
	}
}

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
	for _, store := range []journal.Store{nil, journal.NewMemory()} {
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
		for _, store := range []journal.Store{nil, journal.NewMemory()} {
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
