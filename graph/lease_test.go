package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

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
func TestDescribeDistinguishesRunningFromCrashed(t *testing.T) {
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

var errCut = journal.MarkUnavailable(errors.New("the line is cut"))

func (g *gate) RenewLease(ctx context.Context, thread, owner string, ttl time.Duration) (journal.Lease, error) {
	if g.cut.Load() {
		return journal.Lease{}, errCut
	}
	return g.Memory.RenewLease(ctx, thread, owner, ttl)
}

// A drive that cannot renew its lease starts no other effect after the end of the lease, and continues when
// the store answers again, but gives up some minutes later.
func TestALeaseThatCannotBeRenewed(t *testing.T) {
	for _, test := range []struct {
		out  time.Duration
		want graph.Status
	}{{9 * time.Second, graph.Done}, {time.Minute, graph.Done}, {10 * time.Minute, graph.Failed}} {
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
				if made.Load() != 3 {
					t.Errorf("%d effects were made", made.Load())
				}
				return
			}
			if !errors.Is(err, graph.ErrLeaseLost) || !errors.Is(err, errCut) || errors.Is(err, journal.ErrConflict) || !strings.Contains(err.Error(), "5m15s") {
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

// stolen is a store in which the lease of a thread is another's as soon as a drive has it.
type stolen struct {
	*journal.Memory
	by journal.Lease
}

func (s *stolen) ReadLease(context.Context, string) (journal.Lease, error) { return s.by, nil }

// A drive that finds a crashed run, and whose lease another has taken before it could write, writes nothing.
func TestALeaseThatIsTakenBeforeTheClaim(t *testing.T) {
	r := kept(parallel(t, graph.Node{Name: "n", Run: asker("a")}))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	crashed := copyBefore(t, r.Store, nth(journal.KindEnd, 1))
	before := len(journalOf(t, crashed, thread))
	for name, by := range map[string]journal.Lease{
		"taken":               {Owner: "another", Until: time.Now().Add(time.Hour)},
		"taken, and released": {},
	} {
		r.Store = &stolen{crashed, by}
		_, err := resume(t, r)
		var busy *graph.BusyError
		if !errors.As(err, &busy) || busy.Status != graph.Running {
			t.Errorf("%s: %v", name, err)
		}
		if after := len(journalOf(t, crashed, thread)); after != before {
			t.Fatalf("%s: %d records were added", name, after-before)
		}
	}
}

// unsure is a store whose leases cannot be read, once.
type unsure struct {
	*journal.Memory
	left   int // readings until it fails
	failed bool
}

func (s *unsure) ReadLease(ctx context.Context, thread string) (journal.Lease, error) {
	if s.left--; s.left == 0 {
		s.failed = true
		return journal.Lease{}, errAway
	}
	return s.Memory.ReadLease(ctx, thread)
}

// A drive that cannot find out whether a crashed run is its own writes nothing.
func TestALeaseThatCannotBeReadBeforeTheClaim(t *testing.T) {
	r := kept(parallel(t, graph.Node{Name: "n", Run: asker("a")}))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	for at := 1; ; at++ {
		crashed := copyBefore(t, r.Store, nth(journal.KindEnd, 1))
		before := len(journalOf(t, crashed, thread))
		st := &unsure{Memory: crashed, left: at}
		r.Store = st
		_, err := resume(t, r)
		if !st.failed {
			if err != nil || at == 1 {
				t.Errorf("after %d readings: %v", at-1, err)
			}
			return
		}
		if after := len(journalOf(t, crashed, thread)); !errors.Is(err, errAway) || after != before {
			t.Errorf("reading %d has failed: %d records were added, %v", at, after-before, err)
		}
	}
}
