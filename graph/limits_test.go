package graph_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

func TestWaitingCountsAgainstNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := compile(t, graph.Def{Name: "slow", Timeout: 3 * time.Second, Start: []string{"a"}, Nodes: []graph.Node{
			{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if _, err := graph.Do(ctx, "work", func(context.Context) (int, error) { time.Sleep(2 * time.Second); return 1, nil }); err != nil {
					return graph.Update{}, err
				}
				_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "well?"})
				return graph.Update{}, err
			}},
			{Name: "b", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				select {
				case <-time.After(1500 * time.Millisecond):
					return graph.Update{}, nil
				case <-ctx.Done():
					return graph.Update{}, ctx.Err()
				}
			}},
		}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)}})
		r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
		res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
		if err != nil || res.Status != graph.Waiting {
			t.Fatalf("%v, %v", res.Status, err)
		}
		time.Sleep(time.Hour) // the person thinks
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: "a", Value: "yes"}}})
		var limit *graph.LimitError
		if res.Status != graph.TimedOut || !errors.As(err, &limit) {
			t.Fatalf("2 s of work before the question and 1.5 s after it exceed 3 s; got %v, %v", res.Status, err)
		}
	})
}

func TestConcurrencyIsCapped(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	work := func(context.Context, graph.State) (graph.Update, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		runtime.Gosched()
		mu.Lock()
		now--
		mu.Unlock()
		return graph.Update{}, nil
	}
	def := graph.Def{Name: "cap", Concurrency: 2}
	for i := range 40 {
		id := fmt.Sprint("n", i)
		def.Start = append(def.Start, id)
		def.Nodes = append(def.Nodes, graph.Node{Name: id, Run: work})
		def.Edges = append(def.Edges, edge(id, graph.End))
	}
	if _, err := (&graph.Runner{Graph: compile(t, def)}).Invoke(t.Context(), graph.Input{}); err != nil || most > 2 {
		t.Errorf("%d tasks at once, %v", most, err)
	}
}

func TestAStepTimeoutFailsItsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := graph.Last[int]("k")
		slow := func(ctx context.Context, _ graph.State) (graph.Update, error) {
			<-ctx.Done()
			return graph.Update{}, ctx.Err()
		}
		quick := func(context.Context, graph.State) (graph.Update, error) { return graph.Put(k.Set(1)), nil }
		g := compile(t, graph.Def{Name: "slow", Keys: []graph.AnyKey{k}, StepTimeout: time.Second, Concurrency: 2, Start: []string{"a", "b"},
			Nodes: []graph.Node{{Name: "a", Run: slow, Retry: graph.Retry{Attempts: 5}}, {Name: "b", Run: quick}},
			Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)}})
		begun := time.Now()
		res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
		var step *graph.StepError
		if res.Status != graph.Failed || !errors.As(err, &step) || len(step.Tasks) != 1 || step.Tasks[0].Attempt != 1 || !errors.Is(err, graph.ErrTimeout) {
			t.Errorf("%v, %v", res.Status, err)
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestRetriesStopWithinTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		g := compile(t, graph.Def{Name: "r", Start: []string{"a"}, Nodes: []graph.Node{{Name: "a",
			Retry: graph.Retry{Attempts: 100, Delay: time.Second, Factor: 1, Within: 3500 * time.Millisecond},
			Run: func(context.Context, graph.State) (graph.Update, error) {
				attempts++
				return graph.Update{}, errors.New("again")
			}}}, Edges: []graph.Edge{edge("a", graph.End)}})
		_, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
		if attempts != 4 || err == nil || !strings.Contains(err.Error(), "no attempt is left within 3.5s: ") {
			t.Errorf("%d attempts, %v", attempts, err)
		}
	})
}

// Each run of a thread has its own number of steps.
func TestTheStepsOfAFurtherRun(t *testing.T) {
	g := compile(t, graph.Def{
		Name:     "steps",
		Keys:     all,
		MaxSteps: 3,
		Nodes:    []graph.Node{say("a"), say("b"), say("c")},
		Start:    []string{"a"},
		Edges:    []graph.Edge{edge("a", "b"), edge("b", "c"), edge("c", graph.End)},
	})
	r := kept(g)
	for range 3 {
		res, err := start(t, r)
		is(t, graph.Done, res, err)
	}
}
