package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
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

// doubtful is a graph whose effect dies with its process: calls counts the calls,
// and the first ends the drive as a kill would, with the journal as it was then.
func doubtful(t testing.TB, policy graph.InDoubt, calls *int, recorded func()) *graph.Graph {
	return parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		v, err := graph.DoEffect(ctx, graph.Effect{Name: "pay", InDoubt: policy}, func(ctx context.Context) (string, error) {
			if *calls++; *calls == 1 {
				if err := graph.Note(ctx, []byte("pid 7")); err != nil {
					return "", err
				}
				recorded()
			}
			return fmt.Sprint("paid ", *calls), nil
		})
		return graph.Put(only.Set(v)), err
	}})
}

func TestAnEffectInDoubt(t *testing.T) {
	for _, c := range []struct {
		policy graph.InDoubt
		answer string
		want   graph.Status
		calls  int
		only   string
	}{
		{graph.DoubtRetry, "", graph.Done, 2, "paid 2"},
		{graph.DoubtSkip, "", graph.Done, 1, ""},
		{graph.DoubtFail, "", graph.Failed, 1, ""},
		{graph.DoubtAsk, "retry", graph.Done, 2, "paid 2"},
		{graph.DoubtAsk, "skip", graph.Done, 1, ""},
		{graph.DoubtAsk, "fail", graph.Failed, 1, ""},
	} {
		calls := 0
		r := kept(nil)
		var killed *journal.Memory
		r.Graph = doubtful(t, c.policy, &calls, func() { killed = copyBefore(t, r.Store, func(journal.Record) bool { return false }) })
		_, err := start(t, r)
		if err != nil {
			t.Fatal(err)
		}
		calls, r.Store = 1, killed
		s, err := history.Inspect(t.Context(), killed, thread, 0)
		if err != nil || len(s.InDoubt) != 1 || string(s.InDoubt[0].Note) != "pid 7" || s.InDoubt[0].ID != "0.a.0\x00pay\x000" || s.Status != graph.Crashed {
			t.Fatalf("%+v, %v", s, err)
		}
		res, err := resume(t, r)
		if c.answer != "" {
			is(t, graph.Waiting, res, err)
			if diff := cmp.Diff([]string{"retry", "skip", "fail"}, res.Questions[0].Options); diff != "" {
				t.Error(diff)
			}
			res, err = resume(t, r, says(res.Questions[0].ID, c.answer))
		}
		if is(t, c.want, res, err); calls != c.calls || only.Get(res.State) != c.only {
			t.Errorf("policy %v %s: %d calls, %q", c.policy, c.answer, calls, only.Get(res.State))
		}
	}
}

// An effect whose function said that it failed is made again whatever the policy,
// in the same drive and in the next.
func TestAnEffectThatFailedIsNotInDoubt(t *testing.T) {
	for _, policy := range []graph.InDoubt{graph.DoubtRetry, graph.DoubtAsk, graph.DoubtSkip, graph.DoubtFail} {
		for attempts := range 2 {
			calls := 0
			r := kept(parallel(t, graph.Node{Name: "a", Retry: graph.Retry{Attempts: attempts + 1}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				v, err := graph.DoEffect(ctx, graph.Effect{Name: "pay", InDoubt: policy}, func(ctx context.Context) (string, error) {
					if calls++; calls < 4 {
						return "", errors.Join(graph.Note(ctx, []byte("pid 7")), errors.New("declined"))
					}
					return fmt.Sprint("paid ", calls), nil
				})
				return graph.Put(only.Set(v)), err
			}}))
			res, err := start(t, r)
			for calls < 3 {
				is(t, graph.Failed, res, err)
				res, err = resume(t, r)
			}
			if s, err := history.Inspect(t.Context(), r.Store, thread, 0); err != nil || len(s.InDoubt) != 0 {
				t.Errorf("policy %v: in doubt %v, %v", policy, s.InDoubt, err)
			}
			if res.Status == graph.Failed {
				res, err = resume(t, r)
			}
			if is(t, graph.Done, res, err); only.Get(res.State) != "paid 4" {
				t.Errorf("policy %v: %q", policy, only.Get(res.State))
			}
		}
	}
}

// An effect whose context ended while it ran cannot know: it is in doubt.
func TestAnEffectThatWasCutShortIsInDoubt(t *testing.T) {
	for _, timeout := range []bool{false, true} {
		settled(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			n := graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := graph.DoEffect(ctx, graph.Effect{Name: "pay", InDoubt: graph.DoubtAsk}, func(ctx context.Context) (string, error) {
					if !timeout {
						cancel()
					}
					<-ctx.Done()
					return "", ctx.Err()
				})
				return graph.Update{}, err
			}}
			want := graph.Canceled
			if timeout {
				n.Timeout, n.Retry.Attempts, want = time.Second, 2, graph.Waiting // the second attempt asks
			}
			r := kept(parallel(t, n))
			res, err := r.Invoke(ctx, graph.Input{Thread: thread})
			if is(t, want, res, err); !timeout {
				res, err = resume(t, r)
			}
			if is(t, graph.Waiting, res, err); len(res.Questions) != 1 || !strings.Contains(res.Questions[0].Prompt, "pay") {
				t.Errorf("timeout %v: %v", timeout, res.Questions)
			}
			res, err = resume(t, r, says("a", "skip"))
			is(t, graph.Done, res, err)
			cancel()
		})
	}
}

// What a person said of a doubt does not decide the next one, and a run that was
// failed by the answer can be resumed. What was skipped stays skipped.
func TestAnAnswerToADoubtHoldsForOneDrive(t *testing.T) {
	var r *graph.Runner
	calls, crashed := 0, journal.Store(nil)
	failing := errors.New("later")
	r = kept(parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.DoEffect(ctx, graph.Effect{Name: "pay", InDoubt: graph.DoubtAsk}, func(ctx context.Context) (string, error) {
			calls++
			crashed = copyBefore(t, r.Store, func(journal.Record) bool { return false })
			return "", nil
		})
		return graph.Update{}, errors.Join(err, failing)
	}}))
	_, _ = start(t, r)
	for i, said := range []string{"retry", "fail", "retry", "skip"} {
		if said != "fail" && crashed != nil {
			r.Store, crashed = crashed, nil // the process died in the effect
		}
		res, err := resume(t, r)
		if is(t, graph.Waiting, res, err); len(res.Questions) != 1 {
			t.Fatalf("%d: %v", i, res.Questions)
		}
		if said == "retry" {
			crashed = nil
		}
		res, err = resume(t, r, says(res.Questions[0].ID, said))
		is(t, graph.Failed, res, err)
		if said == "retry" {
			r.Store, crashed = crashed, nil
		}
	}
	failing = nil
	res, err := resume(t, r)
	if is(t, graph.Done, res, err); calls != 3 {
		t.Errorf("%d calls", calls)
	}
}

// slowly is a graph of one node whose effect takes a time, and counts.
func slowly(t testing.TB, made *atomic.Int32, took time.Duration) *graph.Graph {
	return parallel(t, graph.Node{Name: "pay", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Do(ctx, "effect", func(ctx context.Context) (int32, error) {
			time.Sleep(took)
			return made.Add(1), nil
		})
		return graph.Update{}, err
	}})
}

// Of racing resumes one drives, and the others learn who.
func TestRacingResumesMakeAnEffectOnce(t *testing.T) {
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			var made atomic.Int32
			r := kept(slowly(t, &made, time.Minute))
			res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Break: []graph.Break{{Node: "pay"}}})
			is(t, graph.Paused, res, err)
			var done, busy atomic.Int32
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					res, err := resume(t, r)
					var b *graph.BusyError
					switch {
					case err == nil && res.Status == graph.Done:
						done.Add(1)
					case errors.As(err, &b) && b.Thread == thread && b.Run == res.Run && b.Status == graph.Running && b.Lease.Owner != "" && time.Until(b.Lease.Until) > 0:
						busy.Add(1)
					default:
						t.Errorf("%v, %v", res.Status, err)
					}
				})
			}
			wg.Wait()
			if done.Load() != 1 || busy.Load() != 7 || made.Load() != 1 {
				t.Errorf("%d done, %d busy, the effect made %d times; want 1, 7, 1", done.Load(), busy.Load(), made.Load())
			}
		})
	}
}

// Workers that resume every run that no process drives make each effect once.
func TestWorkersThatResumeWhatHasCrashed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs = 25
		var made atomic.Int32
		mem := journal.NewMemory()
		dead := &graph.Runner{Graph: slowly(t, &made, time.Second), Store: &mute{Store: mem, limit: runs}}
		for i := range runs {
			_, _ = dead.Invoke(t.Context(), graph.Input{Thread: fmt.Sprint("t", i)})
		}
		made.Store(0) // these effects were made by a process that died before it could record them
		r := &graph.Runner{Graph: slowly(t, &made, 40*time.Second), Store: mem}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for left := true; left; time.Sleep(time.Second) {
					left = false
					for info, err := range mem.Threads(t.Context(), "") {
						if err != nil {
							t.Error(err)
							return
						}
						i, err := history.Describe(info)
						if err != nil {
							t.Error(err)
							return
						}
						left = left || !i.Status.Final()
						if i.Status == graph.Crashed {
							wg.Go(func() { _, _ = r.InvokeResume(t.Context(), graph.Resume{Thread: i.Thread}) })
						}
					}
				}
			})
		}
		wg.Wait()
		if made.Load() != runs {
			t.Errorf("%d effects made %d times", runs, made.Load())
		}
	})
}

// mute stores a number of records and loses the others: what a drive that was killed
// behind each first record leaves.
type mute struct {
	journal.Store
	limit int
}

func (m *mute) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	if after > 0 || m.limit == 0 {
		return errors.New("killed")
	}
	m.limit--
	return m.Store.Append(ctx, thread, after, recs)
}

// A run that is driven is listed as running, for as long as it takes, and as crashed
// when its drive is gone.
func TestDescribeTellsRunningFromCrashed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int32
		r := kept(slowly(t, &made, time.Hour))
		go func() { _, _ = start(t, r) }()
		for range 30 {
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			i := described(t, r.Store, thread)
			if left := time.Until(i.Lease.Until); i.Status != graph.Running && i.Status != graph.Done || i.Status == graph.Running && (left < 9*time.Second || left > 15*time.Second) {
				t.Fatalf("%v, its lease ends in %v", i.Status, left)
			}
			if host, pid, ok := i.Lease.Holder(); i.Status == graph.Running && (!ok || pid == 0 || host == "") {
				t.Errorf("held by %q %d", host, pid)
			}
			if s, err := history.Inspect(t.Context(), r.Store, thread, 0); err != nil || s.Status != i.Status || s.Lease != i.Lease {
				t.Errorf("Inspect says %v %+v, %v; Describe says %v %+v", s.Status, s.Lease, err, i.Status, i.Lease)
			}
			if s, err := history.Inspect(t.Context(), r.Store, thread, 1); err != nil || s.Status != graph.Crashed {
				t.Errorf("of a record of the past Inspect says %v, %v", s.Status, err)
			}
		}
		if i := described(t, r.Store, thread); i.Status != graph.Done || i.Lease.Owner != "" {
			t.Errorf("in the end: %+v", i)
		}
		crashed := copyBefore(t, r.Store, func(rec journal.Record) bool { return rec.Kind == journal.KindEffect })
		if _, err := crashed.AcquireLease(t.Context(), thread, "an owner of another package", "", time.Minute); err != nil {
			t.Fatal(err)
		}
		if i := described(t, crashed, thread); i.Status != graph.Running {
			t.Errorf("with a lease: %v", i.Status)
		}
		time.Sleep(time.Minute)
		if i := described(t, crashed, thread); i.Status != graph.Crashed || i.Lease.Owner != "" {
			t.Errorf("with a lease that has expired: %+v", i)
		}
		r.Store = crashed
		res, err := resume(t, r)
		is(t, graph.Done, res, err)
	})
}

// Nothing starts or resumes a thread that is driven; a run that it has seen
// before is still returned.
func TestAThreadThatIsDrivenIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int32
		r := kept(slowly(t, &made, time.Minute))
		res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Run: "first"})
		is(t, graph.Done, res, err)
		go func() { _, _ = r.Invoke(t.Context(), graph.Input{Thread: thread, Run: "second"}) }()
		synctest.Wait()
		_, resumed := resume(t, r)
		_, started := start(t, r)
		_, again := r.Invoke(t.Context(), graph.Input{Thread: thread, Run: "second"})
		for what, err := range map[string]error{"Resume": resumed, "Run": started, "Run of the same": again} {
			var busy *graph.BusyError
			if !errors.As(err, &busy) || busy.Run != "second" || !strings.Contains(err.Error(), "process ") || !strings.Contains(err.Error(), "Takeover") {
				t.Errorf("%s: %v", what, err)
			}
		}
		res, err = r.Invoke(t.Context(), graph.Input{Thread: thread, Run: "first"})
		is(t, graph.Done, res, err)
		time.Sleep(2 * time.Minute)
		res, err = start(t, r)
		if is(t, graph.Done, res, err); made.Load() != 3 {
			t.Errorf("the effect was made %d times", made.Load())
		}
	})
}

// A run can be taken over. The drive that had it appends nothing more, makes no other
// effect, and says why.
func TestATakeover(t *testing.T) {
	for _, durability := range []graph.Durability{graph.EveryEffect, graph.EveryStep} {
		synctest.Test(t, func(t *testing.T) {
			var made, second atomic.Int32
			g := parallel(t, graph.Node{Name: "pay", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				by, err := graph.Do(ctx, "effect", func(context.Context) (int32, error) {
					time.Sleep(time.Minute)
					return made.Add(1), nil
				})
				if err != nil {
					return graph.Update{}, err
				}
				_, err = graph.Do(ctx, "second", func(context.Context) (int32, error) { return second.Add(1), nil })
				return graph.Put(only.Set(fmt.Sprint("by ", by))), err
			}})
			r := kept(g)
			r.Durability = durability
			old := make(chan error)
			go func() {
				_, err := start(t, r)
				old <- err
			}()
			time.Sleep(30 * time.Second)
			res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Takeover: true})
			if is(t, graph.Done, res, err); only.Get(res.State) != "by 2" || second.Load() != 1 {
				t.Errorf("%s; the second effect was made %d times", only.Get(res.State), second.Load())
			}
			if err := <-old; !errors.Is(err, journal.ErrConflict) || !errors.Is(err, graph.ErrLeaseLost) {
				t.Errorf("the old drive: %v", err)
			}
			if i := described(t, r.Store, thread); i.Status != graph.Done {
				t.Errorf("listed as %v", i.Status)
			}
		})
	}
}

// Where takeovers race, the last one has the run, and the journal one end.
func TestRacingTakeovers(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			var made atomic.Int32
			r := kept(slowly(t, &made, time.Minute))
			go func() { _, _ = start(t, r) }()
			time.Sleep(time.Second)
			var done atomic.Int32
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Takeover: true})
					var busy *graph.BusyError
					switch {
					case err == nil && res.Status == graph.Done:
						done.Add(1)
					case !errors.Is(err, journal.ErrConflict) && !errors.Is(err, graph.ErrLeaseLost) && !errors.As(err, &busy):
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if done.Load() != 1 {
				t.Errorf("%d are done", done.Load())
			}
			if i := described(t, r.Store, thread); i.Status != graph.Done || i.Lease.Owner != "" {
				t.Errorf("%+v", i)
			}
		})
	}
}

// gate is a store whose leases can be cut off.
type gate struct {
	*journal.Memory
	cut atomic.Bool
}

var errCut = errors.New("the line is cut")

func (g *gate) RenewLease(ctx context.Context, thread, owner string, ttl time.Duration) (journal.Lease, error) {
	if g.cut.Load() {
		return journal.Lease{}, errCut
	}
	return g.Memory.RenewLease(ctx, thread, owner, ttl)
}

// A drive that cannot renew its lease stops before its next effect, but not before
// the lease has expired.
func TestALeaseThatCannotBeRenewed(t *testing.T) {
	for _, test := range []struct {
		out  time.Duration
		want graph.Status
	}{{9 * time.Second, graph.Done}, {time.Minute, graph.Failed}} {
		synctest.Test(t, func(t *testing.T) {
			s := &gate{Memory: journal.NewMemory()}
			var made atomic.Int32
			g := parallel(t, graph.Node{Name: "pay", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				for i := range 3 {
					if _, err := graph.Do(ctx, fmt.Sprint(i), func(context.Context) (int32, error) {
						time.Sleep(20 * time.Second)
						return made.Add(1), nil
					}); err != nil {
						return graph.Update{}, err
					}
				}
				return graph.Update{}, nil
			}})
			time.AfterFunc(time.Second, func() { s.cut.Store(true) })
			time.AfterFunc(time.Second+test.out, func() { s.cut.Store(false) })
			res, err := (&graph.Runner{Graph: g, Store: s}).Invoke(t.Context(), graph.Input{Thread: thread})
			if is(t, test.want, res, err); test.want == graph.Done {
				return
			}
			if !errors.Is(err, graph.ErrLeaseLost) || !errors.Is(err, errCut) || errors.Is(err, journal.ErrConflict) || !strings.Contains(err.Error(), "15s") {
				t.Error(err)
			}
			if made.Load() != 1 {
				t.Errorf("%d effects were made", made.Load())
			}
		})
	}
}

// A drive gives its lease back however it ends.
func TestALeaseEndsWithItsDrive(t *testing.T) {
	for name, drive := range map[string]func(t *testing.T, r *graph.Runner){
		"a reader that leaves": func(t *testing.T, r *graph.Runner) {
			for range r.Run(t.Context(), graph.Input{Thread: thread, Topics: graph.AllTopics}) {
				break
			}
		},
		"a reader that panics": func(t *testing.T, r *graph.Runner) {
			defer func() { _ = recover() }()
			for range r.Run(t.Context(), graph.Input{Thread: thread, Topics: graph.AllTopics}) {
				panic("reader")
			}
		},
		"cancelled": func(t *testing.T, r *graph.Runner) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _ = r.Invoke(ctx, graph.Input{Thread: thread})
		},
		"an answer to nothing": func(t *testing.T, r *graph.Runner) {
			_, _ = r.Invoke(t.Context(), graph.Input{Thread: thread, Break: []graph.Break{{Node: "a"}}})
			_, _ = resume(t, r, says("nothing", ""))
		},
		"no thread": func(t *testing.T, r *graph.Runner) { _, _ = resume(t, r) },
		"failed":    func(t *testing.T, r *graph.Runner) { _, _ = start(t, r) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := kept(parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
					<-time.After(2 * time.Second)
					return graph.Update{}, errors.New("failed")
				}}))
				drive(t, r)
				if l, err := r.Store.(journal.Leaser).ReadLease(t.Context(), thread); err != nil || l.Owner != "" {
					t.Errorf("%+v, %v", l, err)
				}
			})
		})
	}
}
