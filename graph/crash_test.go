package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// The graph of this file has everything a crash can hit: parallel starts, effects,
// Sends with overlays, questions in parallel tasks, a join, a child graph run
// twice side by side with a loop and questions of its own, and a halt.
type everything struct {
	g    *graph.Graph
	mu   sync.Mutex
	hits map[string]int // side effects, by name
}

var (
	topic = graph.Last[string]("topic")
	item  = graph.Last[int]("item")
	notes = graph.Append[string]("notes")
	hits  = graph.Sum[int64]("hits")
	tags  = graph.Merge[string, int]("tags")
	bag   = graph.Dyn("bag")

	childIn  = graph.Last[string]("in")
	childLog = graph.Append[string]("log")
	childN   = graph.Sum[int]("n")
)

func (e *everything) effect(ctx context.Context, name, what string) (string, error) {
	return graph.Do(ctx, name, func(context.Context) (string, error) {
		e.mu.Lock()
		e.hits[what]++
		e.mu.Unlock()
		return "<" + what + ">", nil
	})
}

func newEverything(t testing.TB) *everything {
	e := &everything{hits: map[string]int{}}
	e.g = compile(t, graph.Def{
		Name: "everything", Keys: []graph.AnyKey{topic, item, notes, hits, tags, bag}, Start: []string{"plan", "audit"},
		Nodes: []graph.Node{
			{Name: "plan", Run: e.plan, Routes: []string{"work"}},
			{Name: "work", Run: e.work},
			{Name: "gather", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				return graph.Put(notes.Set([]string{fmt.Sprint("gathered ", len(notes.Get(s)))})), nil
			}},
			{Name: "audit", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := e.effect(ctx, "audit", "audit")
				return graph.Put(hits.Set(10)), err
			}},
			{Name: "split", Routes: []string{"sub"}, Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Update{Send: []graph.Send{{To: "sub", Overlay: []graph.Write{topic.Set("A")}}, {To: "sub", Overlay: []graph.Write{topic.Set("B")}}}}, nil
			}},
			{Name: "sub", Graph: e.child(t),
				In: func(s graph.State) ([]graph.Write, error) { return []graph.Write{childIn.Set(topic.Get(s))}, nil },
				Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
					return graph.Put(notes.Set(childLog.Get(c.State))), nil
				}},
			{Name: "fin", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
				graph.Emit(ctx, "bye")
				return graph.Update{Writes: []graph.Write{topic.Set("end")}, Halt: &graph.Halt{Value: len(notes.Get(s))}}, nil
			}},
		},
		Edges: []graph.Edge{edge("work", "gather"), {From: []string{"gather", "audit"}, To: []string{"split"}}, edge("sub", "fin"), edge("fin", graph.End)},
	})
	return e
}

func (e *everything) plan(ctx context.Context, _ graph.State) (u graph.Update, err error) {
	for i := range 4 {
		if _, err := e.effect(ctx, "step", fmt.Sprint("plan", i)); err != nil {
			return u, err
		}
		u.Send = append(u.Send, graph.Send{To: "work", Overlay: []graph.Write{item.Set(i), notes.Set([]string{"private"})}})
	}
	u.Writes = []graph.Write{notes.Set([]string{"planned"}), bag.Set(map[string]any{"big": int64(1) << 60, "raw": []byte{0, 255}, "list": []any{1, 2.5, "x", nil}})}
	return u, nil
}

func (e *everything) work(ctx context.Context, s graph.State) (graph.Update, error) {
	i := item.Get(s)
	if n := notes.Get(s); n[len(n)-1] != "private" {
		return graph.Update{}, errors.New("the overlay is lost")
	}
	_ = append(notes.Get(s), "clobber?") // must not be visible elsewhere
	v, err := e.effect(ctx, "fetch", fmt.Sprint("work", i))
	if err != nil {
		return graph.Update{}, err
	}
	if i%2 == 1 {
		a, err := graph.Interrupt[int](ctx, graph.Ask{Prompt: fmt.Sprint("how many for ", i, "?"), Data: i})
		if err != nil {
			return graph.Update{}, errors.New("a careless node swallows the error")
		}
		v += fmt.Sprint(a)
	}
	return graph.Put(notes.Set([]string{v}), hits.Set(1), tags.Set(map[string]int{v: i})), nil
}

func (e *everything) child(t testing.TB) *graph.Graph {
	return compile(t, graph.Def{
		Name: "child", Keys: []graph.AnyKey{childIn, childLog, childN}, Start: []string{"one"},
		Nodes: []graph.Node{
			{Name: "one", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
				v, err := e.effect(ctx, "call", "one"+childIn.Get(s))
				return graph.Put(childLog.Set([]string{v})), err
			}},
			{Name: "two", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
				if _, err := e.effect(ctx, "pre", fmt.Sprint("two", childIn.Get(s), childN.Get(s))); err != nil {
					return graph.Update{}, err
				}
				a, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "child?"})
				if err != nil {
					return graph.Update{}, err
				}
				return graph.Put(childLog.Set([]string{a}), childN.Set(1)), nil
			}},
		},
		Edges: []graph.Edge{edge("one", "two"), {From: []string{"two"}, Cases: map[string]string{"again": "two", "stop": graph.End}, Pick: func(s graph.State) ([]string, error) {
			if childN.Get(s) < 2 {
				return []string{"again"}, nil
			}
			return []string{"stop"}, nil
		}}},
	})
}

func outcome(r graph.Result) []any {
	s := r.State
	return []any{r.Value, topic.Get(s), item.Get(s), notes.Get(s), hits.Get(s), tags.Get(s), bag.Get(s)}
}

// answers are what the questions of everything get, whichever node asks, and when.
func answer(q graph.Question) graph.Answer {
	if q.Type == "number" {
		return graph.Answer{ID: q.ID, Value: len(q.ID)}
	}
	return graph.Answer{ID: q.ID, Value: "re " + q.ID}
}

// finish resumes a thread, answering what is asked, until it is over. It returns
// nil when the store died on the way.
func (e *everything) finish(t testing.TB, r *graph.Runner, start bool) *graph.Result {
	t.Helper()
	var res graph.Result
	var err error
	if start {
		res, err = r.Invoke(t.Context(), graph.Input{Thread: "t", Run: "r"})
	} else if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"}); errors.Is(err, journal.ErrNoThread) {
		res, err = r.Invoke(t.Context(), graph.Input{Thread: "t", Run: "r"})
	}
	for range 20 {
		switch {
		case errors.Is(err, errDied):
			return nil
		case err != nil:
			t.Fatal(err)
		case res.Status == graph.Done:
			return &res
		}
		in := graph.Resume{Thread: "t"}
		for _, q := range res.Questions {
			in.Answers = append(in.Answers, answer(q))
		}
		res, err = r.InvokeResume(t.Context(), in)
	}
	t.Fatalf("never ends; last status %v", res.Status)
	return nil
}

var errDied = errors.New("the store died")

// dying is a store that takes a number of records and then fails for ever.
type dying struct {
	journal.Store
	left  int // negative: immortal
	taken int
}

func (d *dying) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	if d.left >= 0 && d.taken+len(recs) > d.left {
		d.left = 0
		return errDied
	}
	d.taken += len(recs)
	return d.Store.Append(ctx, thread, after, recs)
}

// sequential runs one task at a time, so that a crash leaves at most one effect
// in the gap before its record.
type sequential struct{}

func (sequential) Execute(n, _ int, task func(int)) {
	for i := range n {
		task(i)
	}
}

// Stop after every record in turn, continue in a new process: the outcome is the
// same, and no recorded effect happens again.
func TestCrashAtEveryRecord(t *testing.T) {
	whole := newEverything(t)
	count := &dying{Store: journal.NewMemory(), left: -1}
	want := whole.finish(t, &graph.Runner{Graph: whole.g, Store: count}, true)
	for left := range count.taken {
		e := newEverything(t)
		mem := journal.NewMemory()
		first := &graph.Runner{Graph: e.g, Store: &dying{Store: mem, left: left}, Executor: sequential{}}
		if e.finish(t, first, true) != nil {
			t.Fatalf("crash after %d records: the run ended", left)
		}
		e.mu.Lock()
		before := map[string]int{}
		for k, v := range e.hits {
			before[k] = v
		}
		e.mu.Unlock()
		got := e.finish(t, &graph.Runner{Graph: e.g, Store: mem, Executor: sequential{}}, false)
		if diff := cmp.Diff(outcome(*want), outcome(*got)); diff != "" {
			t.Fatalf("crash after %d records:\n%s", left, diff)
		}
		for what, n := range e.hits {
			lost := before[what] == 1 && n == 2 // in the gap before its record
			if n != 1 && !lost {
				t.Errorf("crash after %d records: effect %s happened %d times", left, what, n)
			}
		}
		if n := repeated(e.hits); n > 1 {
			t.Errorf("crash after %d records: %d effects were repeated; one at most had no record", left, n)
		}
	}
}

func repeated(hits map[string]int) (n int) {
	for _, v := range hits {
		if v > 1 {
			n++
		}
	}
	return n
}

// Every prefix of the journal, opened as if the process had died there, leads to
// the same outcome, with real concurrency.
func TestEveryPrefixLeadsToTheSameEnd(t *testing.T) {
	whole := newEverything(t)
	mem := journal.NewMemory()
	want := whole.finish(t, &graph.Runner{Graph: whole.g, Store: mem}, true)
	var recs []journal.Record
	for r, err := range mem.Read(t.Context(), "t", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, r)
	}
	for n := range recs {
		e := newEverything(t)
		part := journal.NewMemory()
		if err := part.Append(t.Context(), "t", 0, recs[:n]); err != nil {
			t.Fatal(err)
		}
		got := e.finish(t, &graph.Runner{Graph: e.g, Store: part}, false)
		if diff := cmp.Diff(outcome(*want), outcome(*got)); diff != "" {
			t.Fatalf("after %d of %d records:\n%s", n, len(recs), diff)
		}
	}
}

func TestQuestionsAreListedTogetherAndAnsweredOneByOne(t *testing.T) {
	e := newEverything(t)
	r := &graph.Runner{Graph: e.g, Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
	if err != nil || res.Status != graph.Waiting {
		t.Fatalf("%v, %v", res.Status, err)
	}
	var ids []string
	for _, q := range res.Questions {
		ids = append(ids, q.ID)
	}
	if diff := cmp.Diff([]string{"work[2]", "work[4]"}, ids); diff != "" {
		t.Fatal(diff)
	}
	_, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: "work[9]", Value: 1}}})
	var ae *graph.AnswerError
	if !errors.As(err, &ae) || !slices.Equal(ae.Open, ids) {
		t.Fatalf("wrong id: %v", err)
	}
	if _, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: "work[2]", Value: "two"}}}); !errors.As(err, &ae) {
		t.Fatalf("wrong type: %v", err)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: "work[4]", Value: 4}}})
	if err != nil || len(res.Questions) != 1 || res.Questions[0].ID != "work[2]" {
		t.Fatalf("%+v, %v", res.Questions, err)
	}
	if e.hits["work0"] != 1 || e.hits["work3"] != 1 {
		t.Errorf("recorded effects were repeated: %v", e.hits)
	}
}

func TestAnswersGivenAheadSurviveACrash(t *testing.T) {
	want := newEverything(t)
	ahead := []graph.Answer{{Value: "x"}, {ID: "work[4]", Value: 4}, {ID: "work", Value: 2}, {Value: "y"}, {Value: "z"}, {Value: "w"}}
	count := &dying{Store: journal.NewMemory(), left: -1}
	res, err := (&graph.Runner{Graph: want.g, Store: count, Executor: sequential{}}).Invoke(t.Context(), graph.Input{Thread: "t", Ahead: ahead})
	if err != nil || res.Status != graph.Done {
		t.Fatalf("%v, %v, open %v", res.Status, err, res.Questions)
	}
	for left := 1; left < count.taken; left++ {
		e := newEverything(t)
		mem := journal.NewMemory()
		_, err := (&graph.Runner{Graph: e.g, Store: &dying{Store: mem, left: left}, Executor: sequential{}}).Invoke(t.Context(), graph.Input{Thread: "t", Ahead: ahead})
		if !errors.Is(err, errDied) {
			t.Fatalf("crash after %d records: %v", left, err)
		}
		got, err := (&graph.Runner{Graph: e.g, Store: mem, Executor: sequential{}}).InvokeResume(t.Context(), graph.Resume{Thread: "t"})
		if errors.Is(err, journal.ErrNoThread) {
			continue
		}
		if err != nil || got.Status != graph.Done {
			t.Fatalf("crash after %d records: %v, %v", left, got.Status, err)
		}
		if diff := cmp.Diff(outcome(res), outcome(got)); diff != "" {
			t.Fatalf("crash after %d records:\n%s", left, diff)
		}
	}
}

func TestOneOfManyResumesWins(t *testing.T) {
	e := newEverything(t)
	mem := journal.NewMemory()
	res, err := (&graph.Runner{Graph: e.g, Store: mem}).Invoke(t.Context(), graph.Input{Thread: "t"})
	if err != nil {
		t.Fatal(err)
	}
	in := graph.Resume{Thread: "t"}
	for _, q := range res.Questions {
		in.Answers = append(in.Answers, answer(q))
	}
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = (&graph.Runner{Graph: e.g, Store: mem}).InvokeResume(t.Context(), in) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		var ae *graph.AnswerError
		switch {
		case err == nil:
			won++
		case !errors.Is(err, journal.ErrConflict) && !errors.As(err, &ae):
			t.Errorf("a loser got %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d resumes won", won)
	}
}

func TestManyRunsOfOneGraph(t *testing.T) {
	n := graph.Last[int]("n")
	g := compile(t, graph.Def{Name: "inc", Keys: []graph.AnyKey{n}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
		return graph.Put(n.Set(n.Get(s) + 1)), nil
	}}}, Edges: []graph.Edge{edge("a", graph.End)}})
	var wg sync.WaitGroup
	for range 2048 {
		wg.Go(func() {
			res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
			if err != nil || n.Get(res.State) != 1 {
				t.Errorf("n = %d, %v", n.Get(res.State), err)
			}
		})
	}
	wg.Wait()
}

func TestLeavingTheLoopSavesAndEnds(t *testing.T) {
	e := newEverything(t)
	mem := journal.NewMemory()
	for ev := range (&graph.Runner{Graph: e.g, Store: mem}).Run(t.Context(), graph.Input{Thread: "t", Run: "r", Topics: graph.AllTopics}) {
		if ev.Seq == 4 {
			break
		}
	}
	got := e.finish(t, &graph.Runner{Graph: e.g, Store: mem}, false)
	if got.Value == nil {
		t.Error("no value")
	}
}
