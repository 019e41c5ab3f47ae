package graph_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// An outage is a store that fails for a time, from one of its calls on.
type outage struct {
	*journal.Memory
	from int           // the number of the call, from 1, with which it begins; 0: never
	took time.Duration // how long it lasts
	err  error
	lost bool // what fails is carried out nevertheless

	mu    sync.Mutex
	calls []string // their names
	begin time.Time
}

// fails notes a call, and reports whether it fails.
func (o *outage) fails(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls = append(o.calls, name); len(o.calls) == o.from {
		o.begin = time.Now()
	}
	return !o.begin.IsZero() && time.Since(o.begin) < o.took
}

// isAway reports whether the outage has started, before this moment, and lasts.
func (o *outage) isAway() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	took := time.Since(o.begin)
	return !o.begin.IsZero() && took > 0 && took < o.took
}

func (o *outage) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	fails := o.fails("Append")
	if !fails {
		return o.Memory.Append(ctx, thread, after, recs)
	}
	if o.lost {
		if err := o.Memory.Append(ctx, thread, after, recs); err != nil {
			return err
		}
	}
	return o.err
}

func (o *outage) Read(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
	fails := o.fails("Read")
	return func(yield func(journal.Record, error) bool) {
		for rec, err := range o.Memory.Read(ctx, thread, r) {
			if fails { // after the first record, if there is one
				break
			}
			if !yield(rec, err) {
				return
			}
		}
		if fails {
			yield(journal.Record{}, o.err)
		}
	}
}

func (o *outage) AcquireLease(ctx context.Context, thread, owner, over string, ttl time.Duration) (l journal.Lease, err error) {
	return o.lease("Acquire", func() (journal.Lease, error) { return o.Memory.AcquireLease(ctx, thread, owner, over, ttl) })
}

func (o *outage) RenewLease(ctx context.Context, thread, owner string, ttl time.Duration) (journal.Lease, error) {
	return o.lease("Renew", func() (journal.Lease, error) { return o.Memory.RenewLease(ctx, thread, owner, ttl) })
}

func (o *outage) ReadLease(ctx context.Context, thread string) (journal.Lease, error) {
	return o.lease("ReadLease", func() (journal.Lease, error) { return o.Memory.ReadLease(ctx, thread) })
}

func (o *outage) ReleaseLease(ctx context.Context, thread, owner string) error {
	_, err := o.lease("Release", func() (journal.Lease, error) {
		return journal.Lease{}, o.Memory.ReleaseLease(ctx, thread, owner)
	})
	return err
}

func (o *outage) lease(name string, do func() (journal.Lease, error)) (journal.Lease, error) {
	fails := o.fails(name)
	if fails && !o.lost {
		return journal.Lease{}, o.err
	}
	l, err := do()
	if fails {
		err = o.err
	}
	return l, err
}

// trips counts the effects of a graph that works for some seconds: alone, next to another node, in a
// child, and after a question. It notes the effects that began while a store was away.
type trips struct {
	store *outage
	doubt graph.InDoubt // of the effects of one node
	mu    sync.Mutex
	done  map[string]int
	late  []string
}

func (w *trips) effect(ctx context.Context, name string, doubt graph.InDoubt) error {
	_, err := graph.DoEffect(ctx, graph.Effect{Name: name, InDoubt: doubt}, func(context.Context) (string, error) {
		w.mu.Lock()
		w.done[name]++
		if w.store.isAway() {
			w.late = append(w.late, name)
		}
		w.mu.Unlock()
		time.Sleep(2 * time.Second) // of the bubble
		return name, nil
	})
	return err
}

func (w *trips) node(name string, doubt graph.InDoubt, next ...string) graph.Node {
	return graph.Node{Name: name, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		for i := range 2 {
			if err := w.effect(ctx, fmt.Sprint(name, i), doubt); err != nil {
				return graph.Update{}, err
			}
		}
		return graph.Update{Goto: next}, nil
	}}
}

func (w *trips) compile(t *testing.T) *graph.Graph {
	t.Helper()
	edge := func(from, to string) graph.Edge { return graph.Edge{From: []string{from}, To: []string{to}} }
	child, err := graph.Compile(graph.Def{Name: "child", Start: []string{"x"}, Nodes: []graph.Node{w.node("x", graph.DoubtRetry)}, Edges: []graph.Edge{edge("x", graph.End)}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.Compile(graph.Def{Name: "trips", Start: []string{"a"},
		Nodes: []graph.Node{w.node("a", graph.DoubtRetry), w.node("b", w.doubt), w.node("c", graph.DoubtRetry), {Name: "sub", Graph: child},
			{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := graph.Interrupt[string](ctx, graph.Ask{Name: "q", Prompt: "go on?"})
				return graph.Update{}, err
			}}, w.node("z", graph.DoubtRetry)},
		Edges: []graph.Edge{{From: []string{"a"}, To: []string{"b", "c", "sub"}}, {From: []string{"b", "c", "sub"}, To: []string{"ask"}}, edge("ask", "z"), edge("z", graph.End)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// drive drives the run to its end, and answers its question.
func (w *trips) drive(t *testing.T, g *graph.Graph, away func(string, error)) (graph.Result, error) {
	t.Helper()
	r := &graph.Runner{Graph: g, Store: w.store, StoreAway: away}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Run: "r"})
	for err == nil && res.Status == graph.Waiting {
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "yes"}}})
	}
	return res, err
}

func (w *trips) expectEach(t *testing.T, want int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.done) != 10 {
		t.Errorf("%d effects, want 10: %v", len(w.done), w.done)
	}
	for name, n := range w.done {
		if n != want {
			t.Errorf("effect %s was made %d times, want %d", name, n, want)
		}
	}
}

var (
	errServerAway = journal.MarkUnavailable(errors.New("the server is starting"))
	errDiskFull   = journal.MarkUnavailable(fmt.Errorf("the disk is full: %w", syscall.ENOSPC))
	errReset      = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

// An outage that is shorter than the patience does not end a run, whichever call of the store it
// begins with, whatever its error is, and whether or not what failed was carried out: every effect is made once.
func TestOutageCrash(t *testing.T) {
	var calls []string
	synctest.Test(t, func(t *testing.T) {
		w := &trips{store: &outage{Memory: journal.NewMemory()}, doubt: graph.DoubtFail, done: map[string]int{}}
		if res, err := w.drive(t, w.compile(t), nil); err != nil || res.Status != graph.Done {
			t.Fatal(res.Status, err)
		}
		w.expectEach(t, 1)
		calls = w.store.calls
	})
	for _, name := range []string{"Append", "Read", "Acquire", "Renew", "Release"} {
		if !strings.Contains(strings.Join(calls, " ")+" ", name+" ") {
			t.Errorf("the run does not call %s: %v", name, calls)
		}
	}
	kinds := []error{errServerAway, errDiskFull, errReset, context.DeadlineExceeded}
	for at, name := range calls {
		for i, took := range []time.Duration{time.Nanosecond, 6 * time.Second, 40 * time.Second, 2 * time.Minute} {
			for _, lost := range []bool{false, true} {
				fault := kinds[(at+i)%len(kinds)]
				t.Run(fmt.Sprintf("%d %s %v %v", at+1, name, took, lost), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { testOutage(t, at+1, name, took, fault, lost) })
				})
			}
		}
	}
}

// testOutage drives a run through an outage that begins with one call.
func testOutage(t *testing.T, from int, name string, took time.Duration, fault error, lost bool) {
	w := &trips{store: &outage{Memory: journal.NewMemory(), from: from, took: took, err: fault, lost: lost}, doubt: graph.DoubtFail, done: map[string]int{}}
	g := w.compile(t)
	var mu sync.Mutex
	begun, ended := 0, 0
	res, err := w.drive(t, g, func(thread string, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			begun++
		} else {
			ended++
		}
		if thread != "t" || err != nil && !errors.Is(err, fault) {
			t.Errorf("StoreAway got %q, %v", thread, err)
		}
	})
	if err != nil && took > journal.ShortPatience && (res.Status == graph.NotStarted || len(w.done) == 0 || len(w.done) == 8) {
		// The outage began before the drive did: the caller tries again when it is over.
		if !errors.Is(err, fault) {
			t.Errorf("the error does not say why: %v", err)
		}
		time.Sleep(took + 20*time.Second)
		r := &graph.Runner{Graph: g, Store: w.store}
		if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: openAnswers(t, w.store.Memory)}); errors.Is(err, journal.ErrNoThread) {
			res, err = w.drive(t, g, nil)
		} else if err == nil && res.Status == graph.Waiting {
			res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: openAnswers(t, w.store.Memory)})
		}
	}
	if err != nil || res.Status != graph.Done {
		t.Fatalf("%v: %v", res.Status, err)
	}
	w.expectEach(t, 1)
	if len(w.late) > 0 && name != "Renew" { // a renewal that fails is tried again in the background
		t.Errorf("effects began during the outage: %v", w.late)
	}
	if begun != ended && took < journal.ShortPatience {
		t.Errorf("%d begins and %d ends of waiting were reported", begun, ended)
	}
}

// openAnswers returns an answer to each open question.
func openAnswers(t *testing.T, st journal.Store) (answers []graph.Answer) {
	t.Helper()
	s, err := history.Inspect(t.Context(), st, "t", 0)
	if errors.Is(err, journal.ErrNoThread) || errors.Is(err, journal.ErrNoPoint) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range s.Questions {
		answers = append(answers, graph.Answer{ID: q.ID, Value: "yes"})
	}
	return answers
}

// An outage that is longer than the patience ends the drive with the error, and the run is
// continued later. What is refused permanently ends it at once.
func TestOutageLongerThanPatience(t *testing.T) {
	refused := errors.New("the user may not do this")
	for _, c := range []struct {
		err   error
		after time.Duration // at which the drive ends
	}{{errServerAway, 5 * time.Minute}, {errDiskFull, 5 * time.Minute}, {refused, 0}} {
		synctest.Test(t, func(t *testing.T) {
			w := &trips{store: &outage{Memory: journal.NewMemory(), from: 12, took: time.Hour, err: c.err}, done: map[string]int{}}
			g := w.compile(t)
			res, err := w.drive(t, g, nil)
			took := time.Since(w.store.begin)
			if !errors.Is(err, c.err) || res.Status != graph.Failed || took < c.after || took > c.after+time.Minute {
				t.Fatalf("%v after %v: %v", res.Status, took, err)
			}
			if len(w.late) > 0 {
				t.Errorf("effects began during the outage: %v", w.late)
			}
			time.Sleep(2 * time.Hour)
			r := &graph.Runner{Graph: g, Store: w.store}
			for range 2 {
				if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: openAnswers(t, w.store.Memory)}); err != nil {
					break
				}
			}
			if err != nil || res.Status != graph.Done {
				t.Errorf("%v: %v", res.Status, err)
			}
			for name, n := range w.done {
				if n > 2 {
					t.Errorf("effect %s was made %d times", name, n)
				}
			}
		})
	}
}

// The end of the context ends the waiting at once, and what was recorded stays.
func TestOutageIsCancelled(t *testing.T) {
	for _, graceful := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := &trips{store: &outage{Memory: journal.NewMemory(), from: 6, took: time.Hour, err: errServerAway}, done: map[string]int{}}
			g := w.compile(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			pause, stopped := make(chan struct{}), time.Time{}
			r := &graph.Runner{Graph: g, Store: w.store, StoreAway: func(_ string, err error) {
				if err == nil {
					return
				}
				time.AfterFunc(47*time.Second, func() {
					if stopped = time.Now(); graceful {
						close(pause)
					} else {
						cancel()
					}
				})
			}}
			_, err := r.Invoke(ctx, graph.Input{Thread: "t", Run: "r", Pause: pause, Grace: 3 * time.Second})
			took, limit := time.Since(stopped), time.Duration(0)
			if graceful {
				limit = 3 * time.Second
			}
			if !errors.Is(err, errServerAway) || took != limit {
				t.Errorf("graceful %v: it ends %v after the request, want %v: %v", graceful, took, limit, err)
			}
		})
	}
}

// While the store was away longer than the lease, another machine took the run over: this drive finds that when the
// store is back, and makes no effect.
func TestOutageTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := journal.NewMemory()
		w := &trips{store: &outage{Memory: mem, from: 6, took: time.Minute, err: errServerAway}, done: map[string]int{}}
		g := w.compile(t)
		other := make(chan error)
		time.AfterFunc(30*time.Second, func() { // it reaches the store on another way
			w2 := &trips{store: &outage{Memory: mem}, done: map[string]int{}}
			r := &graph.Runner{Graph: w2.compile(t), Store: w2.store}
			res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Takeover: true})
			if err == nil && res.Status != graph.Waiting {
				err = fmt.Errorf("the other drive ends %v", res.Status)
			}
			other <- err
		})
		res, err := w.drive(t, g, nil)
		if !errors.Is(err, graph.ErrLeaseLost) && !errors.Is(err, journal.ErrConflict) {
			t.Errorf("%v: %v", res.Status, err)
		}
		if len(w.late) > 0 {
			t.Errorf("effects began during the outage: %v", w.late)
		}
		for name, n := range w.done {
			if n > 1 || !strings.HasPrefix(name, "a") {
				t.Errorf("effect %s was made %d times by the drive that was displaced", name, n)
			}
		}
		if err := <-other; err != nil {
			t.Error(err)
		}
	})
}

// A panic in Runner.StoreAway fails the drive.
func TestStoreAwayPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &trips{store: &outage{Memory: journal.NewMemory(), from: 6, took: time.Second, err: errServerAway}, done: map[string]int{}}
		_, err := w.drive(t, w.compile(t), func(string, error) { panic("oops") })
		if err == nil || !strings.Contains(err.Error(), "Runner.StoreAway") {
			t.Errorf("%v", err)
		}
	})
}

// A takeover survives a short outage at each of its calls, also while it waits for the drive that it displaces.
func TestOutageOfATakeover(t *testing.T) {
	drive := func(t *testing.T, from int, lost bool) (calls []string) {
		synctest.Test(t, func(t *testing.T) {
			w := &trips{store: &outage{Memory: journal.NewMemory()}, doubt: graph.DoubtFail, done: map[string]int{}}
			if res, err := (&graph.Runner{Graph: w.compile(t), Store: w.store}).Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil || res.Status != graph.Waiting {
				t.Fatal(res.Status, err)
			}
			if _, err := w.store.Memory.AcquireLease(t.Context(), "t", "1/ffff/far/78/123/123.1", "", time.Hour); err != nil {
				t.Fatal(err)
			}
			w.store = &outage{Memory: w.store.Memory, from: from, took: 6 * time.Second, err: errServerAway, lost: lost}
			res, err := (&graph.Runner{Graph: w.compile(t), Store: w.store}).InvokeResume(t.Context(), graph.Resume{Thread: "t", Takeover: true})
			if err != nil || res.Status != graph.Waiting {
				t.Errorf("%v, %v", res.Status, err)
			}
			if l, err := w.store.Memory.ReadLease(t.Context(), "t"); err != nil || l.Owner != "" {
				t.Errorf("the lease is left: %+v, %v", l, err)
			}
			calls = w.store.calls
		})
		return calls
	}
	for i, name := range drive(t, 0, false) {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprint(i+1, " ", name, " ", lost), func(t *testing.T) { drive(t, i+1, lost) })
		}
	}
}

// unreadable is a store that cannot be read.
type unreadable struct{ journal.Store }

func (unreadable) Read(context.Context, string, journal.Range) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) { yield(journal.Record{}, errAway) }
}

func TestAThreadThatCannotBeRead(t *testing.T) {
	r := kept(parallel(t, graph.Node{Name: "n", Run: asker("a")}))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	r.Store = unreadable{r.Store}
	_, started := r.Invoke(t.Context(), graph.Input{Thread: thread})
	_, resumed := resume(t, r)
	for what, err := range map[string]error{"start": started, "resume": resumed} {
		if err == nil || !errors.Is(err, errAway) || strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A store that fails while a retried node looks for its children ends the drive with the store's error.
func TestAStoreThatFailsBetweenAttempts(t *testing.T) {
	for at := 1; ; at++ {
		var c tally
		step := parallel(t, graph.Node{Name: "one", Run: c.counts("one")})
		names := 0
		g := parallel(t, graph.Node{
			Name:     "n",
			Retry:    graph.Retry{Attempts: 2},
			Children: map[string]graph.ChildGraph{"k": {Graph: step}},
			Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				list, err := graph.ChildNames(ctx)
				if err != nil {
					return graph.Update{}, err
				}
				names = len(list)
				if _, err := graph.CallChild(ctx, "x", "k"); err != nil {
					return graph.Update{}, err
				}
				if c.add("attempt") == 1 {
					return graph.Update{}, errors.New("once more")
				}
				return graph.Update{}, nil
			},
		})
		failing := &shaky{Store: journal.NewMemory(), left: at}
		res, err := (&graph.Runner{Graph: g, Store: failing, Executor: sequential{}}).Invoke(t.Context(), graph.Input{Thread: thread})
		switch {
		case !failing.failed:
			if is(t, graph.Done, res, err); c.of("one") != 1 || names != 1 || at < 6 {
				t.Errorf("%d runs of the child, %d names, %d calls", c.of("one"), names, at)
			}
			return
		case failing.looks && err == nil: // the drive has looked again
		case !errors.Is(err, errAway):
			t.Errorf("call %d has failed: %s, %v; the child has run %d times", at, res.Status, err, c.of("one"))
		}
	}
}
