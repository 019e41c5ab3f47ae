package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
)

// collect gives one line for each event, and the error that comes last.
func collect(events iter.Seq2[graph.Event, error]) (lines []string, last graph.Result, err error) {
	for e, failure := range events {
		if failure != nil {
			return lines, last, failure
		}
		line := fmt.Sprintf("%d %T %s%s", e.Step, e.Body, e.Path, e.Node)
		if b, ok := e.Body.(graph.RunEnded); ok {
			last = b.Result
			line += b.Result.Status.String()
		}
		lines = append(lines, strings.ReplaceAll(line, "graph.", ""))
	}
	return lines, last, nil
}

func TestEventsOfARunAreOneSequence(t *testing.T) {
	e := newEverything(t)
	r := &graph.Runner{Graph: e.g, Store: graph.NewMemory(), Executor: sequential{}}
	got, _, err := collect(r.Run(t.Context(), graph.Input{Thread: "t", Topics: graph.AllTopics}))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0 RunStarted ",
		"0 TaskStarted plan", "0 TaskDone plan", "0 TaskStarted audit", "0 TaskDone audit", "0 StepCommitted ",
		"1 TaskStarted work", "1 TaskDone work", "1 TaskStarted work", "1 TaskDone work",
		"1 TaskStarted work", "1 TaskDone work", "1 TaskStarted work", "1 TaskDone work",
		"1 QuestionAsked work", "1 QuestionAsked work",
		"1 RunEnded waiting",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStepsHaveTheirState(t *testing.T) {
	var kept []graph.State
	for ev, err := range (&graph.Runner{Graph: chainOf(t, 2)}).Run(t.Context(), graph.Input{Topics: graph.TopicStep}) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := ev.Body.(graph.StepCommitted); ok {
			kept = append(kept, b.State)
			if text, err := json.Marshal(ev); err != nil || strings.Contains(strings.ToLower(string(text)), "state") {
				t.Errorf("the JSON of the event has the state: %s %v", text, err)
			}
		}
	}
	if len(kept) != 2 || counter.Get(kept[0]) != 1 || counter.Get(kept[1]) != 2 {
		t.Errorf("%d states: %v", len(kept), kept)
	}
}

func TestOnlyWhatIsAskedForIsDelivered(t *testing.T) {
	got, _, err := collect((&graph.Runner{Graph: chainOf(t, 3)}).Run(t.Context(), graph.Input{Topics: graph.TopicStep}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0 StepCommitted ", "1 StepCommitted ", "2 StepCommitted ", "3 RunEnded done"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEmittedValuesKeepTheirOrder(t *testing.T) {
	say := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		for i := range 200 {
			graph.Emit(ctx, i)
		}
		return graph.Update{}, nil
	}
	g := compile(t, graph.Def{Name: "two", Start: []string{"a", "b"}, Nodes: []graph.Node{{Name: "a", Run: say}, {Name: "b", Run: say}},
		Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)}})
	next := map[string]int{}
	var seq int64
	for e, err := range (&graph.Runner{Graph: g}).Run(t.Context(), graph.Input{Topics: graph.TopicEmit}) {
		if err != nil {
			t.Fatal(err)
		}
		if seq++; e.Seq != seq {
			t.Fatalf("event %d is numbered %d", seq, e.Seq)
		}
		if b, ok := e.Body.(graph.ValueEmitted); ok {
			if b.Value != next[e.Node] {
				t.Fatalf("node %s: got %v, want %d", e.Node, b.Value, next[e.Node])
			}
			next[e.Node]++
		}
	}
	if next["a"] != 200 || next["b"] != 200 {
		t.Error(next)
	}
}

// settled runs f in a bubble, which fails when f leaves a goroutine behind.
func settled(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func TestAReaderThatPanicsLeavesNothingBehind(t *testing.T) {
	e := newEverything(t)
	settled(t, func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		for ev := range (&graph.Runner{Graph: e.g, Store: graph.NewMemory()}).Run(t.Context(), graph.Input{Topics: graph.AllTopics}) {
			if ev.Seq == 6 {
				panic("reader")
			}
		}
	})
}

func TestAReaderThatLeavesEndsTheRun(t *testing.T) {
	var started chan struct{}
	slow := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		close(started)
		<-ctx.Done()
		return graph.Update{}, ctx.Err()
	}
	quick := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		<-started
		graph.Emit(ctx, "x")
		return graph.Update{}, nil
	}
	g := compile(t, graph.Def{Name: "leave", Start: []string{"slow", "quick"}, Nodes: []graph.Node{{Name: "slow", Run: slow}, {Name: "quick", Run: quick}},
		Edges: []graph.Edge{edge("slow", graph.End), edge("quick", graph.End)}})
	mem := graph.NewMemory()
	settled(t, func(t *testing.T) {
		started = make(chan struct{})
		for e := range (&graph.Runner{Graph: g, Store: mem}).Run(t.Context(), graph.Input{Thread: "t", Topics: graph.AllTopics}) {
			if _, ok := e.Body.(graph.ValueEmitted); ok {
				break
			}
		}
	})
	s, err := graph.Inspect(t.Context(), mem, "t", 0)
	if err != nil || s.Status != graph.Canceled {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestPanicsEndTheRunWithAnErrorThatNamesThem(t *testing.T) {
	k := graph.Fold("k", func(int, bool, int) (int, error) { panic("in the reducer") })
	nop := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	for name, def := range map[string]graph.Def{
		"node a": {Nodes: []graph.Node{{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) { panic("in the node") }}}, Edges: []graph.Edge{edge("a", graph.End)}},
		`the reducer of key "k"`: {Keys: []graph.AnyKey{k}, Nodes: []graph.Node{{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(k.Set(1)), nil
		}}}, Edges: []graph.Edge{edge("a", graph.End)}},
		"the branch function of node a": {Nodes: []graph.Node{{Name: "a", Run: nop}}, Edges: []graph.Edge{{From: []string{"a"}, Cases: map[string]string{"x": graph.End}, Pick: func(graph.State) ([]string, error) { panic("in the branch") }}}},
	} {
		def.Name, def.Start = "panic", []string{"a"}
		res, err := (&graph.Runner{Graph: compile(t, def), Store: graph.NewMemory()}).Invoke(t.Context(), graph.Input{})
		var ne *graph.NodeError
		if res.Status != graph.Failed || !errors.As(err, &ne) || ne.Stack == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: status %v, error %v", name, res.Status, err)
		}
	}
}

func TestAStoreThatFailsStopsTheRun(t *testing.T) {
	e := newEverything(t)
	for left := range 12 {
		res, err := (&graph.Runner{Graph: e.g, Store: &dying{Store: graph.NewMemory(), left: left}}).Invoke(t.Context(), graph.Input{})
		if !errors.Is(err, errDied) || left > 0 && res.Status != graph.Failed {
			t.Errorf("after %d records: %v, %v", left, res.Status, err)
		}
	}
}

func TestPauseDrainsToTheStepBoundary(t *testing.T) {
	pause := make(chan struct{})
	n := graph.Sum[int]("n")
	g := compile(t, graph.Def{Name: "pause", Keys: []graph.AnyKey{n}, Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
			close(pause)
			return graph.Put(n.Set(1)), nil
		}},
		{Name: "b", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Put(n.Set(10)), nil }},
	}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)}})
	r := &graph.Runner{Graph: g, Store: graph.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Pause: pause})
	if err != nil || res.Status != graph.Paused || n.Get(res.State) != 1 {
		t.Fatalf("%v, %v, n = %d", res.Status, err, n.Get(res.State))
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
	if err != nil || res.Status != graph.Done || n.Get(res.State) != 11 {
		t.Fatalf("%v, %v, n = %d", res.Status, err, n.Get(res.State))
	}
}

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
		r := &graph.Runner{Graph: g, Store: graph.NewMemory()}
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

func TestSnapshotsBoundReadingAndKeepTheState(t *testing.T) {
	mem := graph.NewMemory()
	g := windowOf(t, 1500)
	pause := make(chan struct{})
	close(pause)
	r := &graph.Runner{Graph: g, Store: mem}
	want, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
	if err != nil {
		t.Fatal(err)
	}
	var recs []graph.Record
	snapshots := 0
	for rec, err := range mem.Read(t.Context(), "t", graph.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kind == graph.KindSnapshot {
			snapshots++
		}
		recs = append(recs, rec)
	}
	if snapshots < 2 {
		t.Fatalf("%d snapshots in %d records", snapshots, len(recs))
	}
	for n := 1; n < len(recs); n += 211 {
		part := graph.NewMemory()
		if err := part.Append(t.Context(), "t", 0, recs[:n]); err != nil {
			t.Fatal(err)
		}
		got, err := (&graph.Runner{Graph: g, Store: part}).InvokeResume(t.Context(), graph.Resume{Thread: "t"})
		if err != nil || got.Status != graph.Done {
			t.Fatalf("after %d records: %v, %v", n, got.Status, err)
		}
		a, _ := want.State.Value("messages")
		b, _ := got.State.Value("messages")
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("after %d records:\n%s", n, diff)
		}
	}
	tail := 0
	for range mem.Read(t.Context(), "t", graph.Range{FromSnapshot: true}) {
		tail++
	}
	if tail > len(recs)/2 {
		t.Errorf("%d of %d records are read to open the thread", tail, len(recs))
	}
}

func TestAThreadThatEndedIsUsedAgain(t *testing.T) {
	r := &graph.Runner{Graph: chainOf(t, 3), Store: graph.NewMemory()}
	for turn := range 3 {
		res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
		if err != nil || counter.Get(res.State) != 3*(turn+1) {
			t.Fatalf("turn %d: count %d, %v", turn, counter.Get(res.State), err)
		}
		again, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Run: res.Run})
		if err != nil || again.Steps != 0 || counter.Get(again.State) != 3*(turn+1) {
			t.Fatalf("starting a run again that has ended: %+v, %v", again, err)
		}
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
