package graph_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/testneed"
)

// An effectLog lists the effects that drives have started, in order.
type effectLog struct {
	mu   sync.Mutex
	made []string // the drive, a space, and the effect
}

func (l *effectLog) add(drive, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made = append(l.made, drive+" "+what)
}

// count returns the number of effects so far.
func (l *effectLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.made)
}

// by returns the effects of a drive after the first n effects of all.
func (l *effectLog) by(drive string, n int) (made []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.made[n:] {
		if strings.HasPrefix(m, drive+" ") {
			made = append(made, m)
		}
	}
	return made
}

// lateAfter returns the effects that a drive started after the first of another.
func (l *effectLog) lateAfter(drive, other string) []string {
	l.mu.Lock()
	n := len(l.made)
	for i, m := range l.made {
		if strings.HasPrefix(m, other+" ") {
			n = i
			break
		}
	}
	l.mu.Unlock()
	return l.by(drive, n)
}

// effectEvery is the time between two effects of busy nodes, and busyEffects how many they make.
const (
	effectEvery = 100 * time.Millisecond
	busyEffects = 60
)

// A busyNode makes effects, in one of the ways in which a node can.
type busyNode struct {
	name string
	run  func(ctx context.Context, effect func(what string)) error
	wrap func(t testing.TB, n graph.Node) *graph.Graph // nil: a graph of that node
	node graph.Node                                    // its Run is set
}

// makesEach makes effects with a policy, one after the other.
func makesEach(e graph.Effect, sleep func(context.Context)) func(context.Context, func(string)) error {
	return func(ctx context.Context, effect func(string)) error {
		for i := range busyEffects {
			e := e
			if e.Name = fmt.Sprint("effect ", i); e.Key != "" {
				e.Name, e.Key = "effect", fmt.Sprint(i)
			}
			if _, err := graph.DoEffect(ctx, e, func(context.Context) (int, error) { effect(e.Name); return i, nil }); err != nil {
				return err
			}
			sleep(ctx)
		}
		return nil
	}
}

// sleepEvery waits for the time between effects, and obeys the context.
func sleepEvery(ctx context.Context) {
	select {
	case <-time.After(effectEvery):
	case <-ctx.Done():
	}
}

// retriesEffect makes one effect that fails until it was made many times.
func retriesEffect(ctx context.Context, effect func(string)) error {
	_, err := graph.Do(ctx, "retried", func(context.Context) (int, error) {
		if effect("retried"); graph.Attempt(ctx) < busyEffects {
			return 0, errors.New("not yet")
		}
		return 1, nil
	})
	return err
}

var busyNodes = []busyNode{
	{name: "Do", run: makesEach(graph.Effect{}, sleepEvery)},
	{name: "a key", run: makesEach(graph.Effect{Key: "k"}, sleepEvery)},
	{name: "DoubtAsk", run: makesEach(graph.Effect{InDoubt: graph.DoubtAsk}, sleepEvery)},
	{name: "DoubtSkip", run: makesEach(graph.Effect{InDoubt: graph.DoubtSkip}, sleepEvery)},
	{name: "DoubtFail", run: makesEach(graph.Effect{InDoubt: graph.DoubtFail}, sleepEvery)},
	{name: "a node that ignores its context", run: makesEach(graph.Effect{}, func(context.Context) { time.Sleep(effectEvery) })},
	{name: "a context without an end", run: func(ctx context.Context, effect func(string)) error {
		return makesEach(graph.Effect{}, sleepEvery)(context.WithoutCancel(ctx), effect)
	}},
	{name: "a node that ignores errors", run: func(ctx context.Context, effect func(string)) error {
		for i := range busyEffects {
			_, _ = graph.Do(ctx, fmt.Sprint(i), func(context.Context) (int, error) { effect(fmt.Sprint(i)); return i, nil })
			time.Sleep(effectEvery)
		}
		return nil
	}},
	{name: "retries", run: retriesEffect, node: graph.Node{Retry: graph.Retry{Attempts: busyEffects, Delay: effectEvery, Factor: 1}}},
	{name: "retries without effects", run: func(ctx context.Context, effect func(string)) error {
		if effect("attempt"); graph.Attempt(ctx) < busyEffects {
			return errors.New("not yet")
		}
		return nil
	}, node: graph.Node{Retry: graph.Retry{Attempts: busyEffects, Delay: effectEvery, Factor: 1}}},
	{name: "a long pause between attempts", run: func(ctx context.Context, effect func(string)) error {
		if effect("attempt"); graph.Attempt(ctx) < 3 {
			return errors.New("not yet")
		}
		return nil
	}, node: graph.Node{Retry: graph.Retry{Attempts: 3, Delay: 30 * time.Second, Factor: 1, MaxDelay: time.Minute}}},
	{name: "a long pause between effects", run: func(ctx context.Context, effect func(string)) error {
		for _, what := range []string{"one", "pay", "three"} {
			if _, err := graph.Do(ctx, what, func(context.Context) (int, error) { effect(what); return 0, nil }); err != nil {
				return err
			}
			time.Sleep(1700 * time.Millisecond)
		}
		return nil
	}},
	{name: "questions that are answered at once", run: func(ctx context.Context, effect func(string)) error {
		for i := range busyEffects {
			if _, err := graph.Interrupt[string](ctx, graph.Ask{Name: fmt.Sprint(i), Prompt: "well?"}); err != nil {
				return err
			}
			effect("after the answer") // without Do
			time.Sleep(effectEvery)
		}
		return nil
	}},
	{name: "a child graph", run: makesEach(graph.Effect{}, sleepEvery), wrap: func(t testing.TB, n graph.Node) *graph.Graph {
		return parallel(t, graph.Node{Name: "outer", Graph: parallel(t, n)})
	}},
	{name: "retries in a child graph", run: retriesEffect, node: graph.Node{Retry: graph.Retry{Attempts: busyEffects, Delay: effectEvery, Factor: 1}},
		wrap: func(t testing.TB, n graph.Node) *graph.Graph {
			return parallel(t, graph.Node{Name: "outer", Graph: parallel(t, n)})
		}},
	{name: "named children", run: makesEach(graph.Effect{}, sleepEvery), wrap: func(t testing.TB, n graph.Node) *graph.Graph {
		return parallel(t, graph.Node{Name: "team", Children: map[string]graph.ChildGraph{"k": {Graph: parallel(t, n)}}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			var all sync.WaitGroup
			var errs [2]error
			for i := range errs {
				all.Go(func() { _, errs[i] = graph.CallChild(ctx, fmt.Sprint(i), "k") })
			}
			all.Wait()
			return graph.Update{}, errors.Join(errs[:]...)
		}})
	}},
	{name: "parallel tasks", run: makesEach(graph.Effect{}, sleepEvery), wrap: func(t testing.TB, n graph.Node) *graph.Graph {
		fan := graph.Node{Name: "fan", Routes: []string{n.Name}, Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Send: []graph.Send{{To: n.Name}, {To: n.Name}, {To: n.Name}}}, nil
		}}
		return compile(t, graph.Def{Name: "fan", Keys: all, Nodes: []graph.Node{fan, n}, Start: []string{"fan"}, Edges: []graph.Edge{edge("fan", graph.End), edge(n.Name, graph.End)}})
	}},
	{name: "steps", run: func(ctx context.Context, effect func(string)) error {
		effect("step")
		sleepEvery(ctx)
		return nil
	}, wrap: func(t testing.TB, n graph.Node) *graph.Graph {
		var d = graph.Def{Name: "steps", Keys: all, Start: []string{"0"}}
		for i := range busyEffects {
			n.Name = fmt.Sprint(i)
			d.Nodes = append(d.Nodes, n)
			if i > 0 {
				d.Edges = append(d.Edges, edge(fmt.Sprint(i-1), n.Name))
			}
		}
		d.Edges = append(d.Edges, edge(n.Name, graph.End))
		return compile(t, d)
	}},
}

// runner returns a Runner whose drives log their effects under a name.
func (b *busyNode) runner(t testing.TB, st journal.Store, l *effectLog, drive string) *graph.Runner {
	n := b.node
	n.Name = "busy"
	n.Run = func(ctx context.Context, _ graph.State) (graph.Update, error) {
		return graph.Update{}, b.run(ctx, func(what string) { l.add(drive, what) })
	}
	g := (*graph.Graph)(nil)
	if b.wrap != nil {
		g = b.wrap(t, n)
	} else {
		g = parallel(t, n)
	}
	return &graph.Runner{Graph: g, Store: st}
}

// yes answers every question at once.
func yes(graph.Question) (any, bool) { return "yes", true }

// A displacement ends a drive from outside, and another may drive after that.
type displacement struct {
	name   string
	do     func(t testing.TB, r *graph.Runner) error // r is of another process
	next   func(t testing.TB, r *graph.Runner) (graph.Result, error)
	status graph.Status // of the old drive
	says   string
}

var displacements = []displacement{
	{"Abandon", func(t testing.TB, r *graph.Runner) error {
		_, err := history.Abandon(journal.WithAuthor(t.Context(), "Ada"), r.Store, thread, "too dear")
		return err
	}, func(t testing.TB, r *graph.Runner) (graph.Result, error) {
		return r.Invoke(t.Context(), graph.Input{Thread: thread, Reply: yes})
	}, graph.Abandoned, "was abandoned by Ada (too dear)"},
	{"Edit", func(t testing.TB, r *graph.Runner) error {
		_, err := r.Edit(journal.WithAuthor(t.Context(), "Ada"), thread, only.Set("edited"))
		return err
	}, func(t testing.TB, r *graph.Runner) (graph.Result, error) {
		return r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Reply: yes})
	}, graph.Canceled, "was edited by Ada"},
	{"EditNext", func(t testing.TB, r *graph.Runner) error {
		_, err := r.EditNext(t.Context(), thread, []string{graph.End})
		return err
	}, func(t testing.TB, r *graph.Runner) (graph.Result, error) {
		return r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Reply: yes})
	}, graph.Canceled, "was edited"},
	{"EditAll", func(t testing.TB, r *graph.Runner) error {
		_, err := r.EditAll(journal.WithAuthor(t.Context(), "Ada"), thread, only.Reset("edited"))
		return err
	}, func(t testing.TB, r *graph.Runner) (graph.Result, error) {
		return r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Reply: yes})
	}, graph.Canceled, "was edited by Ada"},
	{"Takeover", func(testing.TB, *graph.Runner) error { return nil }, func(t testing.TB, r *graph.Runner) (graph.Result, error) {
		return r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Reply: yes, Takeover: true})
	}, graph.Canceled, "was taken over by process "},
}

// displace starts a drive, ends it at a moment from outside, and drives on. It checks that the old drive starts nothing after
// the displacement has returned, and nothing after the first effect of the new one.
func displace(t *testing.T, b *busyNode, by *displacement, st journal.Store, at time.Duration) {
	t.Helper()
	l := &effectLog{}
	old, other := b.runner(t, st, l, "old"), b.runner(t, st, l, "new")
	type end struct {
		graph.Result
		err error
	}
	ended := make(chan end, 1)
	go func() {
		res, err := old.Invoke(t.Context(), graph.Input{Thread: thread, Reply: yes})
		ended <- end{res, err}
	}()
	time.Sleep(at)
	if err := by.do(t, other); err != nil {
		t.Fatal(err)
	}
	before := l.count()
	time.Sleep(10 * time.Millisecond)
	res, err := by.next(t, other)
	if err != nil || res.Status != graph.Done {
		t.Fatalf("the new drive: %v, %v", res.Status, err)
	}
	if late := l.lateAfter("old", "new"); late != nil {
		t.Errorf("the old drive started %d effects after the first of the new one: %v", len(late), late)
	}
	if late := l.by("old", before); late != nil && by.name != "Takeover" {
		t.Errorf("the old drive started %d effects after %s had returned: %v", len(late), by.name, late)
	}
	e := <-ended
	if e.err == nil && e.Status == graph.Done { // it was over before
		return
	}
	x, ok := errors.AsType[*graph.DisplacedError](e.err)
	if !ok || e.Status != by.status || !strings.Contains(e.err.Error(), by.says) || strings.Contains(e.err.Error(), "another process drives it") {
		t.Errorf("the old drive: %v, %v; want %v and %q", e.Status, e.err, by.status, by.says)
	}
	if ok && (!errors.Is(x, graph.ErrLeaseLost) || !errors.Is(x, journal.ErrConflict)) {
		t.Errorf("%v is not ErrLeaseLost and ErrConflict", x)
	}
}

// The one who ends a drive from outside, and whatever it does: it starts nothing more, and says who ended it.
func TestLeaseOfAnEndedDrive(t *testing.T) {
	for _, by := range displacements {
		for _, b := range busyNodes {
			t.Run(by.name+"/"+b.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					displace(t, &b, &by, journal.NewMemory(), 1250*time.Millisecond)
				})
			})
		}
	}
}

// A drive that is displaced at any moment makes no effect after the first of the new drive.
func TestTakeoverAtRandomMoments(t *testing.T) {
	seeds := uint64(100)
	if testneed.Soaks() {
		seeds = 1000
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		b, by := busyNodes[r.IntN(len(busyNodes))], displacements[r.IntN(len(displacements))]
		at := 1 + time.Duration(r.Int64N(int64(4*time.Second)))
		synctest.Test(t, func(t *testing.T) { displace(t, &b, &by, journal.NewMemory(), at) })
		if t.Failed() {
			t.Fatalf("seed %d: %s of %s after %v", seed, by.name, b.name, at)
		}
	}
}

// overtaken is a store to which another appends immediately before each of the next appends, and before each append while a drive has
// the lease.
type overtaken struct {
	*journal.Memory
	next  int
	drive string // its lease; "": there is none
}

func (o *overtaken) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	if o.next > 0 {
		o.next--
		if err := history.WriteSnapshot(ctx, o.Memory, thread); err != nil {
			return err
		}
	}
	if l, err := o.Memory.ReadLease(ctx, thread); err != nil || l.Owner != "" && l.Owner == o.drive {
		claim := journal.Record{Kind: journal.KindClaim, Time: 1, Head: []byte{1, 'r'}}
		if err = errors.Join(err, journal.Append(ctx, o.Memory, thread, after, claim)); err != nil {
			return err
		}
	}
	return o.Memory.Append(ctx, thread, after, recs)
}

// A drive that appends without a pause is displaced first: otherwise no one could end it.
func TestChangesOfARunWhoseDriveAppendsWithoutAPause(t *testing.T) {
	for _, by := range displacements {
		if by.name == "Takeover" {
			continue
		}
		t.Run(by.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &overtaken{Memory: journal.NewMemory()}
				r := &graph.Runner{Graph: parallel(t, say("a")), Store: st}
				res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Run: "r", Break: []graph.Break{{Node: "a"}}})
				is(t, graph.Paused, res, err)
				st.drive = "1/ffff/far/78/123/123.1"
				if _, err := st.Memory.AcquireLease(t.Context(), thread, st.drive, "", time.Hour); err != nil {
					t.Fatal(err)
				}
				if err := by.do(t, r); err != nil {
					t.Fatal(err)
				}
				recs := records(t, st, thread)
				if last := recs[len(recs)-1]; last.Kind != journal.KindEnd && last.Kind != journal.KindEdit {
					t.Errorf("the last record is a %s", last.Kind)
				}
			})
		})
	}
}

// What ends or changes a run names no place in its journal, so it is made again if a drive appends first.
func TestChangesOfARunWhoseDriveAppendsFirst(t *testing.T) {
	for _, by := range displacements {
		if by.name == "Takeover" { // it appends as a drive
			continue
		}
		for _, times := range []int{0, 1, 9, 10} {
			t.Run(fmt.Sprint(by.name, "/", times), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := &overtaken{Memory: journal.NewMemory()}
					r := &graph.Runner{Graph: parallel(t, say("a")), Store: st}
					res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Break: []graph.Break{{Node: "a"}}})
					is(t, graph.Paused, res, err)
					st.next = times
					err = by.do(t, r)
					if times == 10 {
						if !errors.Is(err, journal.ErrConflict) || !strings.Contains(err.Error(), "try again") {
							t.Errorf("it lost each time: %v", err)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					last := journal.Record{}
					for _, rec := range records(t, st, thread) {
						last = rec
					}
					if want := map[bool]journal.Kind{true: journal.KindEnd, false: journal.KindEdit}[by.name == "Abandon"]; last.Kind != want || last.Seq != res.Head+int64(times)+1 {
						t.Errorf("the last record is %d (%s), want a %s after %d others", last.Seq, last.Kind, want, times)
					}
				})
			})
		}
	}
}

// unmarked is a store that refuses marks for a number of calls, and calls appended after each append.
type unmarked struct {
	*journal.Memory
	mu       sync.Mutex
	refused  int // further calls that fail
	appended func()
}

func (u *unmarked) AcquireLease(ctx context.Context, thread, owner, over string, ttl time.Duration) (journal.Lease, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.refused > 0 {
		u.refused--
		return journal.Lease{}, errCut
	}
	if err := context.Cause(ctx); err != nil {
		return journal.Lease{}, err
	}
	return u.Memory.AcquireLease(ctx, thread, owner, over, ttl)
}

func (u *unmarked) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	err := u.Memory.Append(ctx, thread, after, recs)
	if u.appended != nil {
		u.appended()
	}
	return err
}

// failMarks lets marks fail for a number of calls.
func (u *unmarked) failMarks(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refused = n
}

// What ends a drive takes its lease also if its caller leaves, if the store is away for a moment, and if another who
// ended it before has not done so or still waits.
func TestLeaseIsTakenWhateverHappensAfterTheRecord(t *testing.T) {
	type ways struct {
		t   testing.TB
		by  *displacement
		st  *unmarked
		far *graph.Runner // of another process
	}
	for name, change := range map[string]func(w ways) (late bool){
		"its caller leaves": func(w ways) bool {
			ctx, cancel := context.WithCancel(w.t.Context())
			w.far.Store = &unmarked{Memory: w.st.Memory, appended: cancel}
			if err := w.by.do(within{w.t, ctx}, w.far); err != nil {
				w.t.Error(err)
			}
			return true
		},
		"the store is away for a moment": func(w ways) bool {
			w.st.failMarks(3)
			w.far.Store = w.st
			if err := w.by.do(w.t, w.far); err != nil {
				w.t.Error(err)
			}
			return false
		},
		"another waits": func(w ways) bool {
			go func() { _ = w.by.do(w.t, w.far) }()
			synctest.Wait()
			if err := w.by.do(w.t, w.far); err != nil {
				w.t.Error(err)
			}
			return false
		},
		"another could not": func(w ways) bool {
			w.st.failMarks(1000)
			w.far.Store = w.st
			if err := w.by.do(w.t, w.far); err != nil {
				w.t.Error(err)
			}
			w.st.failMarks(0)
			if err := w.by.do(w.t, w.far); err != nil {
				w.t.Error(err)
			}
			return false
		},
	} {
		for _, by := range displacements {
			if by.name == "Takeover" {
				continue
			}
			t.Run(name+"/"+by.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l, st := &effectLog{}, &unmarked{Memory: journal.NewMemory()}
					b := busyNode{run: retriesEffect, node: graph.Node{Retry: graph.Retry{Attempts: 1000, Delay: effectEvery, Factor: 1}}}
					ended := make(chan error)
					go func() {
						_, err := b.runner(t, st.Memory, l, "old").Invoke(t.Context(), graph.Input{Thread: thread})
						ended <- err
					}()
					time.Sleep(1250 * time.Millisecond)
					late := change(ways{t, &by, st, b.runner(t, st.Memory, l, "new")})
					before, at := l.count(), time.Now()
					if err := <-ended; !errors.As(err, new(*graph.DisplacedError)) || time.Since(at) > time.Second {
						t.Errorf("after %v: %v", time.Since(at), err)
					}
					if made := l.by("old", before); made != nil && !late {
						t.Errorf("the old drive started %d effects after %s had returned", len(made), by.name)
					}
				})
			})
		}
	}
}

// within is a test with another context.
type within struct {
	testing.TB
	ctx context.Context
}

func (w within) Context() context.Context { return w.ctx }
