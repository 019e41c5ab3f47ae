package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
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

// The events of what a task calls have the path that ChildPath returns for the events of the task, whatever its index.
func TestChildPath(t *testing.T) {
	nothing := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	split := func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{Send: []graph.Send{{To: "work"}, {To: "work"}}}, nil
	}
	inner := compile(t, graph.Def{
		Name:  "inner",
		Start: []string{"look"},
		Nodes: []graph.Node{{Name: "look", Run: nothing}},
		Edges: []graph.Edge{edge("look", graph.End)},
	})
	g := compile(t, graph.Def{
		Name:  "outer",
		Start: []string{"split"},
		Nodes: []graph.Node{
			{Name: "split", Run: split, Routes: []string{"work"}},
			{Name: "work", Graph: inner},
		},
		Edges: []graph.Edge{edge("work", graph.End)},
	})
	r := &graph.Runner{Graph: g, Store: journal.NewMemory(), Executor: sequential{}}
	var tasks, below []string
	for e, err := range r.Run(t.Context(), graph.Input{Thread: "t", Topics: graph.AllTopics}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Body.(graph.TaskStarted); ok && e.Node == "work" {
			tasks = append(tasks, e.ChildPath())
		}
		if _, ok := e.Body.(graph.TaskStarted); ok && e.Node == "look" {
			below = append(below, e.Path)
		}
	}
	if diff := cmp.Diff([]string{"work[1]/", "work[2]/"}, tasks); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(tasks, below); diff != "" {
		t.Error(diff)
	}
	if got := (graph.Event{Path: "a/", Node: "b"}).ChildPath(); got != "a/b/" {
		t.Errorf("an event of a journal has %q", got)
	}
}

// A reader that panics at any event gets no further one, and its own panic.
func TestAReaderThatPanicsAtAnyEvent(t *testing.T) {
	for at := 1; ; at++ {
		seen := 0
		settled(t, func(t *testing.T) {
			emits := func(ctx context.Context, _ graph.State) (graph.Update, error) {
				for i := range 3 {
					graph.Emit(ctx, i)
				}
				return graph.Update{}, nil
			}
			r := kept(parallel(t, graph.Node{Name: "a", Run: emits}, graph.Node{Name: "b", Run: emits}))
			defer func() {
				if p := recover(); p != nil && p != "the reader" {
					t.Errorf("at event %d: %v", at, p)
				}
			}()
			for range r.Run(t.Context(), graph.Input{Thread: thread, Topics: graph.AllTopics}) {
				if seen++; seen == at {
					panic("the reader")
				}
			}
		})
		if seen < at {
			if at < 10 {
				t.Errorf("only %d events", seen)
			}
			return
		}
		if seen > at {
			t.Errorf("%d events after the panic at %d", seen-at, at)
		}
	}
}
