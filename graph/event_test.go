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
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
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
	r := &graph.Runner{Graph: e.g, Store: journal.NewMemory(), Executor: sequential{}}
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
		for ev := range (&graph.Runner{Graph: e.g, Store: journal.NewMemory()}).Run(t.Context(), graph.Input{Topics: graph.AllTopics}) {
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
	mem := journal.NewMemory()
	settled(t, func(t *testing.T) {
		started = make(chan struct{})
		for e := range (&graph.Runner{Graph: g, Store: mem}).Run(t.Context(), graph.Input{Thread: "t", Topics: graph.AllTopics}) {
			if _, ok := e.Body.(graph.ValueEmitted); ok {
				break
			}
		}
	})
	s, err := history.Inspect(t.Context(), mem, "t", 0)
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
		res, err := (&graph.Runner{Graph: compile(t, def), Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{})
		var ne *graph.NodeError
		if res.Status != graph.Failed || !errors.As(err, &ne) || ne.Stack == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: status %v, error %v", name, res.Status, err)
		}
	}
}

func TestAStoreThatFailsStopsTheRun(t *testing.T) {
	e := newEverything(t)
	for left := range 12 {
		res, err := (&graph.Runner{Graph: e.g, Store: &dying{Store: journal.NewMemory(), left: left}}).Invoke(t.Context(), graph.Input{})
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
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
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

func TestSnapshotsBoundReadingAndKeepTheState(t *testing.T) {
	mem := journal.NewMemory()
	g := windowOf(t, 1500)
	pause := make(chan struct{})
	close(pause)
	r := &graph.Runner{Graph: g, Store: mem}
	want, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
	if err != nil {
		t.Fatal(err)
	}
	var recs []journal.Record
	snapshots := 0
	for rec, err := range mem.Read(t.Context(), "t", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kind == journal.KindSnapshot {
			snapshots++
		}
		recs = append(recs, rec)
	}
	if snapshots < 2 {
		t.Fatalf("%d snapshots in %d records", snapshots, len(recs))
	}
	for n := 1; n < len(recs); n += 211 {
		part := journal.NewMemory()
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
	for range mem.Read(t.Context(), "t", journal.Range{FromSnapshot: true}) {
		tail++
	}
	if tail > len(recs)/2 {
		t.Errorf("%d of %d records are read to open the thread", tail, len(recs))
	}
}

func TestAThreadThatEndedIsUsedAgain(t *testing.T) {
	r := &graph.Runner{Graph: chainOf(t, 3), Store: journal.NewMemory()}
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

func TestHooksWrapTheNodeInOrder(t *testing.T) {
	var log []string
	named := func(name string) graph.Hooks {
		return graph.Hooks{
			Before: func(_ context.Context, i graph.Info, _ graph.State) (graph.Setup, error) {
				log = append(log, name+" before "+i.Node)
				return graph.Setup{}, nil
			},
			After: func(_ context.Context, _ graph.Info, _ graph.State, u graph.Update, err error) (graph.Update, error) {
				log = append(log, name+" after")
				return u, err
			},
			Error: func(_ context.Context, i graph.Info, err error) { log = append(log, name+" error") },
		}
	}
	n := graph.Sum[int]("n")
	g := compile(t, graph.Def{Name: "hooks", Keys: []graph.AnyKey{n}, Start: []string{"a"}, Hooks: []graph.Hooks{named("graph")},
		Nodes: []graph.Node{{Name: "a", Hooks: []graph.Hooks{named("node")}, Retry: graph.Retry{Attempts: 2}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			log = append(log, "run")
			if graph.Attempt(ctx) == 1 {
				return graph.Update{}, errors.New("first")
			}
			return graph.Put(n.Set(1)), nil
		}}}, Edges: []graph.Edge{edge("a", graph.End)}})
	if _, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{}); err != nil {
		t.Fatal(err)
	}
	attempt := []string{"graph before a", "node before a", "run", "node after", "graph after"}
	want := append(append(append([]string{}, attempt...), "graph error", "node error"), attempt...)
	if diff := cmp.Diff(want, log); diff != "" {
		t.Error(diff)
	}
}

func TestANodeIsToldWhatItsHooksAre(t *testing.T) {
	var hook, node, outer graph.Info
	child := compile(t, graph.Def{Name: "child", Start: []string{"in"}, Nodes: []graph.Node{{Name: "in", Kind: "work",
		Hooks: []graph.Hooks{{Before: func(_ context.Context, i graph.Info, _ graph.State) (graph.Setup, error) {
			hook = i
			return graph.Setup{}, nil
		}}},
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			node = graph.TaskInfo(ctx)
			return graph.Update{}, nil
		}}}, Edges: []graph.Edge{edge("in", graph.End)}})
	g := compile(t, graph.Def{Name: "parent", Start: []string{"out"}, Nodes: []graph.Node{{Name: "out", Graph: child, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		outer = graph.TaskInfo(ctx)
		_, err := graph.Call(ctx)
		return graph.Update{}, err
	}}}, Edges: []graph.Edge{edge("out", graph.End)}})
	if _, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{Run: "r1"}); err != nil {
		t.Fatal(err)
	}
	want := graph.Info{Run: "r1", Graph: "child", Path: "out/", Node: "in", Kind: "work", Step: node.Step, Attempt: 1}
	if node != want || hook != node || outer.Path != "" || outer.Node != "out" || outer.Run != "r1" {
		t.Errorf("the node is told %+v, its hook %+v, the node above %+v; want %+v", node, hook, outer, want)
	}
	if none := graph.TaskInfo(t.Context()); none != (graph.Info{}) {
		t.Errorf("outside a node: %+v", none)
	}
}

func TestHooksReplaceInputResultAndError(t *testing.T) {
	in, out := graph.Last[string]("in"), graph.Last[string]("out")
	ran := 0
	node := graph.Node{Name: "a", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
		ran++
		if in.Get(s) == "fail" {
			return graph.Update{}, errors.New("broken")
		}
		return graph.Put(out.Set("ran on " + in.Get(s))), nil
	}}
	for _, c := range []struct {
		name  string
		hooks graph.Hooks
		in    string
		want  string
		runs  int
	}{
		{"input", graph.Hooks{Before: func(context.Context, graph.Info, graph.State) (graph.Setup, error) {
			return graph.Setup{See: []graph.Write{in.Set("other")}}, nil
		}}, "x", "ran on other", 1},
		{"result", graph.Hooks{Before: func(context.Context, graph.Info, graph.State) (graph.Setup, error) {
			u := graph.Put(out.Set("not run"))
			return graph.Setup{Result: &u}, nil
		}}, "x", "not run", 0},
		{"error", graph.Hooks{After: func(_ context.Context, _ graph.Info, _ graph.State, u graph.Update, err error) (graph.Update, error) {
			if err != nil {
				return graph.Put(out.Set("recovered from " + err.Error())), nil
			}
			return u, nil
		}}, "fail", "recovered from broken", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran = 0
			n := node
			n.Hooks = []graph.Hooks{c.hooks}
			g := compile(t, graph.Def{Name: "h", Keys: []graph.AnyKey{in, out}, Start: []string{"a"}, Nodes: []graph.Node{n}, Edges: []graph.Edge{edge("a", graph.End)}})
			res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{Set: []graph.Write{in.Set(c.in)}})
			if err != nil || out.Get(res.State) != c.want || ran != c.runs {
				t.Errorf("out %q, %d runs, %v", out.Get(res.State), ran, err)
			}
			if c.name == "input" && in.Get(res.State) != "x" {
				t.Errorf("what a hook showed one attempt got into the state: %q", in.Get(res.State))
			}
		})
	}
}

func TestHooksAreNotToldOfAQuestion(t *testing.T) {
	told := 0
	g := compile(t, graph.Def{Name: "q", Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Retry: graph.Retry{Attempts: 3}, Hooks: []graph.Hooks{{
		After: func(_ context.Context, _ graph.Info, _ graph.State, u graph.Update, err error) (graph.Update, error) {
			told++
			return u, err
		},
		Error: func(context.Context, graph.Info, error) { told++ },
	}}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "?"})
		return graph.Update{}, err
	}}}, Edges: []graph.Edge{edge("a", graph.End)}})
	res, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{})
	if err != nil || res.Status != graph.Waiting || told != 0 {
		t.Errorf("%v, %v, told %d times", res.Status, err, told)
	}
}

func TestAPanicInAHookIsAnErrorOfItsNode(t *testing.T) {
	nop := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, errors.New("x") }
	for name, h := range map[string]graph.Hooks{
		"before": {Before: func(context.Context, graph.Info, graph.State) (graph.Setup, error) { panic("hook") }},
		"after": {After: func(context.Context, graph.Info, graph.State, graph.Update, error) (graph.Update, error) {
			panic("hook")
		}},
		"error": {Error: func(context.Context, graph.Info, error) { panic("hook") }},
	} {
		g := compile(t, graph.Def{Name: "p", Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Hooks: []graph.Hooks{h}, Run: nop}}, Edges: []graph.Edge{edge("a", graph.End)}})
		_, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
		var ne *graph.NodeError
		if !errors.As(err, &ne) || !strings.Contains(err.Error(), "hook") || ne.Stack == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestACachedNodeIsSkipped(t *testing.T) {
	x, other, y := graph.Last[int]("x"), graph.Last[int]("other"), graph.Last[int]("y")
	runs := 0
	def := func(version string) graph.Def {
		return graph.Def{Name: "cache", Keys: []graph.AnyKey{x, other, y}, Start: []string{"a"}, Nodes: []graph.Node{
			{Name: "a", Ends: map[string]string{"small": "s", "large": "l"}, Cache: &graph.CachePolicy{Keys: []graph.AnyKey{x}, Version: version, TTL: time.Minute}, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				runs++
				if x.Get(s) < 0 {
					return graph.Update{}, errors.New("negative")
				}
				u := graph.Put(y.Set(x.Get(s) * 2))
				u.Goto = []string{"small"}
				return u, nil
			}},
			{Name: "s", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }},
			{Name: "l", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }},
		}, Edges: []graph.Edge{edge("s", graph.End), edge("l", graph.End)}}
	}
	clock := &graphtest.Clock{}
	cache := &graph.MemoryCache{Clock: clock}
	run := func(version string, xv, ov int) (hit bool) {
		t.Helper()
		for e, err := range (&graph.Runner{Graph: compile(t, def(version)), Cache: cache}).Run(t.Context(), graph.Input{Topics: graph.TopicTask, Set: []graph.Write{x.Set(xv), other.Set(ov)}}) {
			if err != nil && xv >= 0 {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case graph.TaskDone:
				hit = hit || b.Cached
			case graph.RunEnded:
				if xv >= 0 && y.Get(b.Result.State) != 2*xv {
					t.Errorf("y = %d", y.Get(b.Result.State))
				}
			}
		}
		return hit
	}
	for i, c := range []struct {
		version   string
		x, other  int
		hit       bool
		totalRuns int
	}{
		{"1", 3, 0, false, 1}, {"1", 3, 9, true, 1}, {"1", 4, 0, false, 2}, {"2", 3, 0, false, 3}, {"2", 3, 0, true, 3},
		{"1", -1, 0, false, 4}, {"1", -1, 0, false, 5},
	} {
		if hit := run(c.version, c.x, c.other); hit != c.hit || runs != c.totalRuns {
			t.Errorf("case %d: hit %v, %d runs", i, hit, runs)
		}
	}
	if err := clock.Wait(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	if run("1", 3, 0) {
		t.Error("an expired entry was used")
	}
	if err := cache.Clear(t.Context(), graph.CacheKey("cache", "a")); err != nil {
		t.Fatal(err)
	}
	if run("1", 3, 0) {
		t.Error("a cleared entry was used")
	}
}

func TestACacheThatFailsFailsTheNode(t *testing.T) {
	x := graph.Last[int]("x")
	g := compile(t, graph.Def{Name: "c", Keys: []graph.AnyKey{x}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Cache: &graph.CachePolicy{Keys: []graph.AnyKey{x}},
		Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }}}, Edges: []graph.Edge{edge("a", graph.End)}})
	_, err := (&graph.Runner{Graph: g, Cache: brokenCache{}}).Invoke(t.Context(), graph.Input{})
	if !errors.Is(err, errBrokenCache) {
		t.Error(err)
	}
}

var errBrokenCache = errors.New("the cache is away")

type brokenCache struct{ graph.Cache }

func (brokenCache) Get(context.Context, string) ([]byte, bool, error) {
	return nil, false, errBrokenCache
}

func TestEndsAndCachesAreChecked(t *testing.T) {
	nop := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	k := graph.Last[int]("k")
	_, err := graph.Compile(graph.Def{Name: "bad", Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Run: nop, Routes: []string{"b"}, Ends: map[string]string{"b": "a", "away": "ghost"}, Cache: &graph.CachePolicy{}},
		{Name: "b", Run: nop, Cache: &graph.CachePolicy{Keys: []graph.AnyKey{k}}},
	}, Edges: []graph.Edge{edge("b", graph.End)}})
	if err == nil {
		t.Fatal("compiled")
	}
	for _, want := range []string{`end "b" of node "a" leads to "a"`, `end "away" of node "a" names node "ghost"`, `cache of node "a" names no Keys`, `cache of node "b" names a key`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %s:\n%v", want, err)
		}
	}
}

type spanKey struct{}

// A context that Before passes on reaches the node, the After hooks and the nodes
// of a child; End is called however the attempt ends.
func TestBeforePassesAContextOn(t *testing.T) {
	k := graph.Last[string]("k")
	var log []string
	span := func(name string) graph.Hooks {
		return graph.Hooks{Before: func(ctx context.Context, i graph.Info, _ graph.State) (graph.Setup, error) {
			above, _ := ctx.Value(spanKey{}).(string)
			at := above + "/" + name + ":" + i.Node
			return graph.Setup{Context: context.WithValue(ctx, spanKey{}, at), End: func(err error) {
				log = append(log, fmt.Sprintf("%s %v", at, err))
			}}, nil
		}, After: func(ctx context.Context, _ graph.Info, _ graph.State, u graph.Update, err error) (graph.Update, error) {
			for _, w := range u.Writes {
				v, ok := k.WrittenValue(w)
				log = append(log, fmt.Sprintf("%s wrote %q %v %v", ctx.Value(spanKey{}), v, ok, w.Value()))
			}
			return u, err
		}}
	}
	child := compile(t, graph.Def{Name: "child", Keys: []graph.AnyKey{k}, Hooks: []graph.Hooks{span("child")}, Start: []string{"in"}, Edges: []graph.Edge{edge("in", graph.End)},
		Nodes: []graph.Node{{Name: "in", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			v, err := graph.Do(ctx, "d", func(ctx context.Context) (string, error) { return ctx.Value(spanKey{}).(string), nil })
			return graph.Put(k.Set(v)), err
		}}}})
	g := compile(t, graph.Def{Name: "g", Keys: []graph.AnyKey{k}, Hooks: []graph.Hooks{span("graph"), span("second")}, Start: []string{"sub"}, Edges: []graph.Edge{edge("sub", "ask"), edge("ask", "bang"), edge("bang", graph.End)},
		Nodes: []graph.Node{{Name: "sub", Graph: child}, {Name: "ask", Run: asks(nil)}, {Name: "bang", OnError: graph.End, Run: func(context.Context, graph.State) (graph.Update, error) { panic("oops") }}}})
	r := kept(g)
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, r, graph.Answer{Value: "x"}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`/graph:sub/second:sub/child:in wrote "/graph:sub/second:sub/child:in" true /graph:sub/second:sub/child:in`,
		"/graph:sub/second:sub/child:in <nil>", "/graph:sub/second:sub <nil>", "/graph:sub <nil>",
		"/graph:ask/second:ask " + graph.ErrWaiting.Error(), "/graph:ask " + graph.ErrWaiting.Error(),
		"/graph:ask/second:ask <nil>", "/graph:ask <nil>",
		"/graph:bang/second:bang graph: the node panicked", "/graph:bang graph: the node panicked",
	}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Error(diff)
	}
}

func TestBeforeMustPassOnItsOwnContext(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Start: []string{"a"}, Edges: []graph.Edge{edge("a", graph.End)}, Nodes: []graph.Node{{Name: "a", Run: idle}},
		Hooks: []graph.Hooks{{Before: func(context.Context, graph.Info, graph.State) (graph.Setup, error) {
			return graph.Setup{Context: context.Background()}, nil
		}}}})
	_, err := start(t, kept(g))
	wantError(t, "another context", err, "hook before node a", "was not made from the context")
}

// heard collects what hooks of several nodes hear.
type heard struct {
	mu    sync.Mutex
	lines []string
}

// by returns a hook that notes what it hears under a name.
func (h *heard) by(name string) graph.Hooks {
	return graph.Hooks{Emit: func(_ context.Context, i graph.Info, v any) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lines = append(h.lines, fmt.Sprintf("%s: %s%s says %v", name, i.Path, i.Node, v))
	}}
}

// emits is a node that emits values.
func emits(name string, values ...any) graph.Node {
	return graph.Node{Name: name, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		if !graph.IsEmitEnabled(ctx) {
			return graph.Update{}, nil
		}
		for _, v := range values {
			graph.Emit(ctx, v)
		}
		return graph.Update{}, nil
	}}
}

func TestHooksHearWhatIsEmittedAtAndBelowTheirNode(t *testing.T) {
	for _, topics := range []graph.Topic{0, graph.TopicEmit, graph.AllTopics | graph.TopicPhase} {
		var h heard
		deep := compile(t, graph.Def{Name: "deep", Start: []string{"c"}, Nodes: []graph.Node{emits("c", 3)}, Edges: []graph.Edge{edge("c", graph.End)}})
		b := emits("b", 1, 2)
		b.Hooks = []graph.Hooks{h.by("b")}
		child := compile(t, graph.Def{Name: "child", Start: []string{"b"}, Nodes: []graph.Node{b, {Name: "d", Graph: deep}}, Edges: []graph.Edge{edge("b", "d"), edge("d", graph.End)}})
		g := compile(t, graph.Def{Name: "g", Start: []string{"before"}, Hooks: []graph.Hooks{h.by("graph")}, Nodes: []graph.Node{
			emits("before", 0), {Name: "a", Graph: child, Hooks: []graph.Hooks{h.by("a")}},
		}, Edges: []graph.Edge{edge("before", "a"), edge("a", graph.End)}})
		emitted := 0
		for e, err := range (&graph.Runner{Graph: g}).Run(t.Context(), graph.Input{Topics: topics}) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := e.Body.(graph.ValueEmitted); ok {
				emitted++
			}
		}
		want := []string{
			"graph: before says 0",
			"b: a/b says 1", "a: a/b says 1", "graph: a/b says 1",
			"b: a/b says 2", "a: a/b says 2", "graph: a/b says 2",
			"a: a/d/c says 3", "graph: a/d/c says 3",
		}
		if diff := cmp.Diff(want, h.lines); diff != "" {
			t.Errorf("topics %d:\n%s", topics, diff)
		}
		if read := map[bool]int{true: 4}[topics&graph.TopicEmit != 0]; emitted != read {
			t.Errorf("topics %d: %d values were read", topics, emitted)
		}
	}
}

func TestHooksOfANodeHearItsNamedChildren(t *testing.T) {
	var h heard
	child := compile(t, graph.Def{Name: "child", Start: []string{"b"}, Nodes: []graph.Node{emits("b", "x")}, Edges: []graph.Edge{edge("b", graph.End)}})
	g := parallel(t, graph.Node{Name: "a", Hooks: []graph.Hooks{h.by("a")}, Children: map[string]graph.ChildGraph{"kind": {Graph: child}},
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.CallChild(ctx, "one", "kind")
			return graph.Update{}, err
		}})
	if _, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{}); err != nil {
		t.Fatal(err)
	}
	if len(h.lines) != 1 || !strings.HasSuffix(h.lines[0], "b says x") {
		t.Error(h.lines)
	}
}

func TestAPanicOfAHookThatListensFailsItsNode(t *testing.T) {
	for _, beside := range []bool{false, true} {
		n := graph.Node{Name: "a", Hooks: []graph.Hooks{{Emit: func(context.Context, graph.Info, any) { panic("in the hook") }}},
			Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if !beside {
					graph.Emit(ctx, 1)
					return graph.Update{}, nil
				}
				done := make(chan struct{})
				go func() { defer close(done); graph.Emit(ctx, 1) }()
				<-done
				return graph.Update{}, nil
			}}
		_, err := (&graph.Runner{Graph: parallel(t, n)}).Invoke(t.Context(), graph.Input{})
		var ne *graph.NodeError
		if !errors.As(err, &ne) || ne.Stack == nil || !strings.Contains(err.Error(), "Hooks.Emit of node a") {
			t.Errorf("beside %v: %v", beside, err)
		}
	}
}

func TestAHookThatListensMayEmit(t *testing.T) {
	n := emits("a", "value")
	n.Hooks = []graph.Hooks{{Emit: func(ctx context.Context, _ graph.Info, v any) { graph.Emit(ctx, fmt.Sprint("heard ", v)) }}}
	var got []any
	for e, err := range (&graph.Runner{Graph: parallel(t, n)}).Run(t.Context(), graph.Input{Topics: graph.TopicEmit}) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(graph.ValueEmitted); ok {
			got = append(got, b.Value)
		}
	}
	if diff := cmp.Diff([]any{"heard value", "value"}, got); diff != "" {
		t.Error(diff)
	}
}

// phasesOf drives a run and lists its phases and committed steps.
func phasesOf(t *testing.T, r *graph.Runner, topics graph.Topic) (got []string, last error) {
	t.Helper()
	for e, err := range r.Run(t.Context(), graph.Input{Thread: "t", Topics: topics}) {
		switch b := e.Body.(type) {
		case graph.PhaseStarted:
			got = append(got, fmt.Sprintf("%d %s%s %s", e.Step, e.Path, b.Phase, strings.Join(b.Nodes, "+")))
		case graph.StepCommitted:
			got = append(got, fmt.Sprintf("%d %scommitted", e.Step, e.Path))
		}
		last = err
	}
	return got, last
}

func TestThePhasesOfAStepAreEventsOfTheirOwn(t *testing.T) {
	child := compile(t, graph.Def{Name: "child", Start: []string{"in"}, Nodes: []graph.Node{emits("in")}, Edges: []graph.Edge{edge("in", graph.End)}})
	g := compile(t, graph.Def{Name: "g", Start: []string{"a", "b"}, Nodes: []graph.Node{emits("a"), emits("b"), {Name: "c", Graph: child}},
		Edges: []graph.Edge{edge("a", "c"), edge("b", "c"), edge("c", graph.End)}})
	got, err := phasesOf(t, &graph.Runner{Graph: g, Store: journal.NewMemory()}, graph.TopicPhase|graph.TopicStep)
	want := []string{
		"0 planning a+b", "0 execution a+b", "0 update a+b", "0 committed",
		"1 planning c", "1 execution c",
		"0 c/planning in", "0 c/execution in", "0 c/update in", "0 c/committed",
		"1 update c", "1 committed",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, _ := phasesOf(t, &graph.Runner{Graph: g}, graph.AllTopics); strings.Contains(strings.Join(got, "\n"), "planning") {
		t.Error("AllTopics has phases:", got)
	}
}

func TestAStepThatFailsHasNoUpdate(t *testing.T) {
	g := parallel(t, failsUntil("a", 99, graph.Retry{}))
	got, err := phasesOf(t, &graph.Runner{Graph: g}, graph.TopicPhase)
	if diff := cmp.Diff([]string{"0 planning a", "0 execution a"}, got); diff != "" || err == nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestAReaderThatLeavesAtAPhaseCancelsTheRun(t *testing.T) {
	for _, at := range []graph.Phase{graph.PhasePlanning, graph.PhaseExecution, graph.PhaseUpdate} {
		mem := journal.NewMemory()
		for e, err := range (&graph.Runner{Graph: chainOf(t, 3), Store: mem}).Run(t.Context(), graph.Input{Thread: "t", Topics: graph.TopicPhase}) {
			if b, ok := e.Body.(graph.PhaseStarted); ok && b.Phase == at && e.Step == 1 {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		res, err := (&graph.Runner{Graph: chainOf(t, 3), Store: mem}).InvokeResume(t.Context(), graph.Resume{Thread: "t"})
		if err != nil || res.Status != graph.Done || counter.Get(res.State) != 3 {
			t.Errorf("%s: %v, %v, count %d", at, res.Status, err, counter.Get(res.State))
		}
	}
}

func TestAPhaseOnTheWire(t *testing.T) {
	b, err := json.Marshal(graph.Event{Body: graph.PhaseStarted{Phase: graph.PhaseUpdate, Nodes: []string{"a"}}})
	if err != nil || !strings.Contains(string(b), `"kind":"phase.started","data":{"phase":"update","nodes":["a"]}`) {
		t.Error(string(b), err)
	}
	b, err = json.Marshal(graph.TaskRetry{Attempt: 1, MaxAttempts: 3, Err: errors.New("x")})
	if err != nil || !strings.Contains(string(b), `"attempt":1,"max_attempts":3`) {
		t.Error(string(b), err)
	}
}

// Resume yields the events of a drive that continues a run, like Run.
func ExampleRunner_Resume() {
	g := sound(graph.Def{
		Name: "ask",
		Nodes: []graph.Node{aNode("review", func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Interrupt[bool](ctx, graph.Ask{Prompt: "Send it?"})
			return graph.Update{}, err
		})},
		Edges: []graph.Edge{anEdge("review", graph.End)},
		Start: []string{"review"},
	})
	ctx, r := context.Background(), &graph.Runner{Graph: g, Store: journal.NewMemory()}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "t1"}); err != nil {
		fmt.Println(err)
		return
	}
	answer := graph.Answer{ID: "review", Value: true}
	for e, err := range r.Resume(ctx, graph.Resume{Thread: "t1", Answers: []graph.Answer{answer}, Topics: graph.AllTopics}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch b := e.Body.(type) {
		case graph.RunStarted:
			fmt.Println("resumed:", b.Resumed)
		case graph.QuestionAnswered:
			fmt.Println("answered:", b.ID)
		case graph.RunEnded:
			fmt.Println("ended:", b.Result.Status)
		}
	}
	// Output:
	// resumed: true
	// answered: review
	// ended: done
}

// TaskInfo names the task that a context belongs to, for logs and traces.
func ExampleTaskInfo() {
	g := sound(graph.Def{
		Name: "hello",
		Nodes: []graph.Node{{Name: "greet", Kind: "script", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			i := graph.TaskInfo(ctx)
			fmt.Println(i.Graph, i.Node, i.Kind, i.Step, i.Attempt, graph.TaskPath(ctx))
			return graph.Update{}, nil
		}}},
		Edges: []graph.Edge{anEdge("greet", graph.End)},
		Start: []string{"greet"},
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{})
	fmt.Println(res.Status, err)
	// Output:
	// hello greet script 0 1 0.greet.0
	// done <nil>
}

// typedValue is an emitted value that names its type.
type typedValue struct {
	Text string `json:"text,omitempty"`
}

func (typedValue) EventType() string { return `a "type"` }

// The JSON of an emitted value begins with its type, if it has one.
func TestEmittedValuesNameTheirType(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{typedValue{"x"}, `{"type":"a \"type\"","text":"x"}`},
		{typedValue{}, `{"type":"a \"type\""}`},
		{&typedValue{"x"}, `{"type":"a \"type\"","text":"x"}`},
		{(*typedValue)(nil), `null`},
		{"text", `"text"`},
		{struct{ A int }{1}, `{"A":1}`},
	} {
		if got, err := json.Marshal(graph.ValueEmitted{Value: c.value}); err != nil || string(got) != c.want {
			t.Errorf("%#v is %s, want %s (%v)", c.value, got, c.want, err)
		}
	}
}
