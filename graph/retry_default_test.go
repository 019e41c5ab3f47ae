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
)

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
		r := &graph.Runner{Graph: g, Store: graph.NewMemory(), Retry: graph.Retry{Attempts: 3, Delay: time.Second}}
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
