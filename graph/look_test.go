package graph_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// Without leases a drive reads the head of the thread before each effect: so of two drives only one pays.
func TestTakeoverWithoutLeases(t *testing.T) {
	for _, by := range displacements {
		by.says = strings.TrimSuffix(by.says, "process ") // no lease says which
		for _, b := range busyNodes {
			t.Run(by.name+"/"+b.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					displace(t, &b, &by, struct{ journal.Store }{journal.NewMemory()}, 1250*time.Millisecond)
				})
			})
		}
	}
}

// A run that was abandoned by a program that does not mark the lease is noticed at the next renewal.
func TestLeaseOfADriveThatWasEndedWithoutAMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, mem := &effectLog{}, journal.NewMemory()
		b := busyNode{name: "retries", run: retriesEffect, node: graph.Node{Retry: graph.Retry{Attempts: 1000, Delay: effectEvery, Factor: 1}}}
		ended := make(chan error)
		go func() {
			res, err := b.runner(t, mem, l, "old").Invoke(t.Context(), graph.Input{Thread: thread})
			if res.Status != graph.Abandoned {
				t.Errorf("it ended as %v", res.Status)
			}
			ended <- err
		}()
		time.Sleep(1250 * time.Millisecond)
		at := time.Now()
		if _, err := history.Abandon(t.Context(), struct{ journal.Store }{mem}, thread, ""); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !strings.Contains(fmt.Sprint(err), "was abandoned") || time.Since(at) > 6*time.Second {
			t.Errorf("after %v: %v", time.Since(at), err)
		}
	})
}

// A remote store can be cut off: then every call fails.
type remote struct {
	*journal.Memory
	cut   atomic.Bool
	err   error        // of calls then; nil: errCut
	only  string       // the one call that fails then; "": all
	looks atomic.Int32 // calls that read a lease or the head of a thread
}

func (r *remote) reach(call string) error {
	switch {
	case !r.cut.Load() || r.only != "" && r.only != call:
		return nil
	case r.err == nil:
		return errCut
	case errors.Is(r.err, errPanic):
		panic(errPanic)
	}
	return r.err
}

var errPanic = errors.New("the store panics")

func (r *remote) Read(ctx context.Context, thread string, which journal.Range) iter.Seq2[journal.Record, error] {
	if err := r.reach("Read"); err != nil {
		return func(yield func(journal.Record, error) bool) { yield(journal.Record{}, err) }
	}
	return r.Memory.Read(ctx, thread, which)
}

func (r *remote) RenewLease(ctx context.Context, thread, owner string, ttl time.Duration) (journal.Lease, error) {
	if err := r.reach("RenewLease"); err != nil {
		return journal.Lease{}, err
	}
	return r.Memory.RenewLease(ctx, thread, owner, ttl)
}

func (r *remote) ReadLease(ctx context.Context, thread string) (journal.Lease, error) {
	r.looks.Add(1)
	if err := r.reach("ReadLease"); err != nil {
		return journal.Lease{}, err
	}
	return r.Memory.ReadLease(ctx, thread)
}

// While its store is away a drive starts nothing, waits, and continues when it can see that the run is still its
// own. It gives up some minutes after the end of its lease.
func TestLeaseOfAStoreThatIsAway(t *testing.T) {
	second := func(ctx context.Context, r *graph.Runner, resume graph.Resume) error {
		_, err := r.InvokeResume(ctx, resume)
		return err
	}
	for _, test := range []struct {
		name string
		away time.Duration
		then func(t *testing.T, r *graph.Runner) // in another process, which still reaches the store, after 20 s
		want graph.Status
		says string
	}{
		{"6 s", 6 * time.Second, nil, graph.Done, ""},
		{"2 minutes", 2 * time.Minute, nil, graph.Done, ""},
		{"5 minutes", 5 * time.Minute, nil, graph.Done, ""},
		{"10 minutes", 10 * time.Minute, nil, graph.Failed, "could not be renewed for 5m15s"},
		{"another asked for it and changed nothing", time.Minute, func(t *testing.T, r *graph.Runner) {
			if err := second(t.Context(), r, graph.Resume{Thread: thread, Answers: []graph.Answer{says("nothing", "")}}); err == nil {
				t.Error("an answer to nothing is accepted")
			}
		}, graph.Done, ""},
		{"another has taken it", time.Minute, func(t *testing.T, r *graph.Runner) {
			if err := second(t.Context(), r, graph.Resume{Thread: thread}); err != nil {
				t.Error(err)
			}
		}, graph.Canceled, "was taken over by another process"},
		{"another has abandoned it", time.Minute, func(t *testing.T, r *graph.Runner) {
			if _, err := history.Abandon(t.Context(), r.Store, thread, "gone"); err != nil {
				t.Error(err)
			}
		}, graph.Abandoned, "was abandoned (gone)"},
		{"it was deleted", time.Minute, func(t *testing.T, r *graph.Runner) {
			if err := history.Delete(t.Context(), r.Store, thread); err != nil {
				t.Error(err)
			}
		}, graph.Canceled, "another process"},
	} {
		for _, retry := range []bool{false, true} {
			t.Run(fmt.Sprint(test.name, ", with retries ", retry), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, l := &remote{Memory: journal.NewMemory()}, &effectLog{}
					b := busyNode{name: "retries", run: retriesEffect, node: graph.Node{Retry: graph.Retry{Attempts: busyEffects, Delay: effectEvery, Factor: 1}}}
					if !retry {
						b = busyNode{name: "one after the other", run: func(ctx context.Context, effect func(string)) error {
							for i := range 3 { // nothing is recorded while the store is away
								if _, err := graph.Do(ctx, fmt.Sprint(i), func(context.Context) (int, error) { effect("made"); return i, nil }); err != nil {
									return err
								}
								time.Sleep(1200 * time.Millisecond)
							}
							return nil
						}}
					}
					cut, back := 1100*time.Millisecond, 1100*time.Millisecond+test.away
					time.AfterFunc(cut, func() { s.cut.Store(true) })
					time.AfterFunc(back, func() { s.cut.Store(false) })
					at := time.Now()
					var made atomic.Int64
					time.AfterFunc(cut+time.Second, func() { made.Store(int64(l.count())) })
					time.AfterFunc(back-time.Millisecond, func() {
						if late := l.by("old", int(made.Load())); late != nil {
							t.Errorf("it started %d effects although it could not look", len(late))
						}
					})
					if test.then != nil {
						time.AfterFunc(cut+20*time.Second, func() { test.then(t, b.runner(t, s.Memory, l, "new")) })
					}
					res, err := b.runner(t, s, l, "old").Invoke(t.Context(), graph.Input{Thread: thread})
					if is(t, test.want, res, err); err != nil && !strings.Contains(err.Error(), test.says) {
						t.Error(err)
					}
					if late := l.lateAfter("old", "new"); late != nil {
						t.Errorf("it started %d effects after the first of another", len(late))
					}
					if test.want == graph.Failed && (!errors.Is(err, errCut) || !errors.Is(err, graph.ErrLeaseLost) || errors.Is(err, journal.ErrConflict)) {
						t.Error(err)
					}
					if time.Sleep(time.Until(at.Add(back))); test.want == graph.Failed {
						return
					}
					if l, err := s.ReadLease(t.Context(), thread); err != nil || l.Owner != "" {
						t.Errorf("the lease is left: %+v, %v", l, err)
					}
				})
			})
		}
	}
}

// A look that fails in a way that cannot pass ends the drive at once, whatever the look calls; one that may pass does not.
func TestLookThatFails(t *testing.T) {
	type refusal struct {
		name  string
		err   error
		final bool
	}
	refusals := []refusal{
		{"marked", errCut, false},
		{"a deadline", fmt.Errorf("read: %w", context.DeadlineExceeded), false},
		{"the network", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, false},
		{"permission", fmt.Errorf("open runs.db: %w", fs.ErrPermission), true},
		{"damage", &journal.DamagedError{Thread: thread, Seq: 1}, true},
		{"closed", errors.New("the store is closed"), true},
		{"panic", errPanic, true},
	}
	for _, call := range []string{"ReadLease", "RenewLease", "Read", "Read without leases"} {
		for _, refused := range refusals {
			t.Run(call+"/"+refused.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, l := &remote{Memory: journal.NewMemory(), err: refused.err, only: strings.Fields(call)[0]}, &effectLog{}
					b := busyNode{run: makesEach(graph.Effect{InDoubt: graph.DoubtFail}, func(ctx context.Context) { time.Sleep(2 * effectEvery) })}
					st := journal.Store(s)
					if call != s.only {
						st = struct{ journal.Store }{s}
					}
					at := time.Now()
					time.AfterFunc(1100*time.Millisecond, func() { s.cut.Store(true) })
					time.AfterFunc(8*time.Second, func() { s.cut.Store(false) })
					res, err := b.runner(t, st, l, "old").Invoke(t.Context(), graph.Input{Thread: thread})
					if !refused.final {
						is(t, graph.Done, res, err)
						return
					}
					if took := time.Since(at); took > 7*time.Second {
						t.Errorf("it ended after %v", took)
					}
					if is(t, graph.Failed, res, err); !strings.Contains(fmt.Sprint(err), refused.err.Error()) || errors.Is(err, journal.ErrConflict) {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A drive looks at most once a second, and not for effects that follow each other quickly.
func TestLeaseIsLookedAtOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := &remote{Memory: journal.NewMemory()}, &effectLog{}
		b := busyNodes[0]
		at := time.Now()
		res, err := b.runner(t, s, l, "old").Invoke(t.Context(), graph.Input{Thread: thread})
		is(t, graph.Done, res, err)
		if most := int32(time.Since(at)/time.Second) + 1; s.looks.Load() > most {
			t.Errorf("%d looks in %v", s.looks.Load(), time.Since(at))
		}
	})
}

// A drive starts at once if the drive before it has ended, and else when that can start nothing more.
func TestLeaseThatIsTakenFromTheDriveBefore(t *testing.T) {
	const far = "1/ffff/far/78/123/123.1"
	for _, test := range []struct {
		name string
		make func(t *testing.T, m *journal.Memory)
		wait time.Duration
	}{
		{"it was released", func(*testing.T, *journal.Memory) {}, 0},
		{"it has just expired", func(t *testing.T, m *journal.Memory) {
			_, _ = m.AcquireLease(t.Context(), thread, far, "", time.Second)
			time.Sleep(time.Second)
		}, 2 * time.Second},
		{"it has expired long ago", func(t *testing.T, m *journal.Memory) {
			_, _ = m.AcquireLease(t.Context(), thread, far, "", time.Second)
			time.Sleep(2 * time.Minute)
		}, 0},
		{"its drive never answers", func(t *testing.T, m *journal.Memory) {
			_, _ = m.AcquireLease(t.Context(), thread, far, "", time.Hour)
		}, 2 * time.Second},
		{"its drive answers", func(t *testing.T, m *journal.Memory) {
			_, _ = m.AcquireLease(t.Context(), thread, far, "", time.Hour)
			time.AfterFunc(490*time.Millisecond, func() {
				l, _ := m.ReadLease(t.Context(), thread)
				name, _, waits := strings.Cut(l.Owner, "~")
				if !waits {
					t.Errorf("nobody waits: %+v", l)
				}
				_, _ = m.AcquireLease(t.Context(), thread, name, l.Owner, time.Hour)
			})
		}, 500 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var made atomic.Int32
				r := kept(slowly(t, &made, 0))
				res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Break: []graph.Break{{Node: "pay"}}})
				is(t, graph.Paused, res, err)
				test.make(t, r.Store.(*journal.Memory))
				at := time.Now()
				res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Takeover: true})
				is(t, graph.Done, res, err)
				if took := time.Since(at); took != test.wait {
					t.Errorf("it began after %v, want %v", took, test.wait)
				}
				if l, err := r.Store.(journal.Leaser).ReadLease(t.Context(), thread); err != nil || l.Owner != "" {
					t.Errorf("the lease is left: %+v, %v", l, err)
				}
			})
		})
	}
}

// A drive that waits for the one before it can itself be displaced, and its caller may leave.
func TestTakeoverOfATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int32
		r := kept(slowly(t, &made, 0))
		res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Break: []graph.Break{{Node: "pay"}}})
		is(t, graph.Paused, res, err)
		_, _ = r.Store.(journal.Leaser).AcquireLease(t.Context(), thread, "1/ffff/far/78/123/123.1", "", time.Hour)
		first := make(chan error, 1)
		go func() {
			_, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Takeover: true})
			first <- err
		}()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if res, err := r.InvokeResume(ctx, graph.Resume{Thread: thread, Takeover: true}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, %v", res.Status, err)
		}
		if err := <-first; !errors.As(err, new(*graph.BusyError)) {
			t.Error(err)
		}
		res, err = resume(t, r)
		if is(t, graph.Done, res, err); made.Load() != 1 {
			t.Errorf("the effect was made %d times", made.Load())
		}
	})
}
