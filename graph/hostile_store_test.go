package graph_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
)

var errAway = errors.New("the store is away")

// A shaky store fails at one call, counted over all that a drive makes: each
// append, each beginning of a read, each record read.
type shaky struct {
	graph.Store
	panics bool
	mu     sync.Mutex
	left   int // calls until it fails; negative: never again
	failed bool
}

func (s *shaky) call() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left--
	if s.left != 0 {
		return nil
	}
	s.failed = true
	if s.panics {
		panic(errAway)
	}
	return errAway
}

func (s *shaky) Append(ctx context.Context, thread string, after int64, recs []graph.Record) error {
	if err := s.call(); err != nil {
		return err
	}
	return s.Store.Append(ctx, thread, after, recs)
}

func (s *shaky) Read(ctx context.Context, thread string, r graph.Range) iter.Seq2[graph.Record, error] {
	return func(yield func(graph.Record, error) bool) {
		if err := s.call(); err != nil {
			yield(graph.Record{}, err)
			return
		}
		for rec, err := range s.Store.Read(ctx, thread, r) {
			if fault := s.call(); fault != nil {
				yield(graph.Record{}, fault)
				return
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// A store that fails, or panics, at any one call of a run and its resumes ends
// that drive with an error that says so. Nothing is left running, what was
// journaled loads, and another drive ends like one that nothing happened to.
func TestAStoreMayFailAtAnyCall(t *testing.T) {
	e := newEverything(t)
	want := outcome(*e.finish(t, &graph.Runner{Graph: e.g, Store: graph.NewMemory()}, true))
	for _, panics := range []bool{false, true} {
		for at := 1; ; at++ {
			failed := false
			settled(t, func(t *testing.T) {
				e := newEverything(t)
				s := &shaky{Store: graph.NewMemory(), panics: panics, left: at}
				r := &graph.Runner{Graph: e.g, Store: s, Executor: sequential{}}
				err := untilItFails(t, r)
				if failed = s.failed; !failed {
					return
				}
				if err == nil || !strings.Contains(err.Error(), errAway.Error()) || !errors.Is(err, errAway) {
					t.Fatalf("call %d, panics %v: %v", at, panics, err)
				}
				if info, err := graph.Inspect(t.Context(), s.Store, thread, 0); err != nil && !errors.Is(err, graph.ErrNoThread) {
					t.Fatalf("call %d, panics %v: %+v, %v", at, panics, info, err)
				}
				r.Store = s.Store
				if d := cmp.Diff(want, outcome(*e.finish(t, r, false))); d != "" || repeated(e.hits) > 1 {
					t.Errorf("call %d, panics %v: effects %v\n%s", at, panics, e.hits, d)
				}
			})
			if !failed {
				if at < 40 {
					t.Errorf("only %d calls", at)
				}
				break
			}
		}
	}
}

// untilItFails drives the thread to its end, with all events, or to its first
// error.
func untilItFails(t *testing.T, r *graph.Runner) error {
	_, res, err := collect(r.Run(t.Context(), graph.Input{Thread: thread, Run: "r", Topics: graph.AllTopics}))
	for err == nil && res.Status != graph.Done {
		in := graph.Resume{Thread: thread, Topics: graph.AllTopics}
		for _, q := range res.Questions {
			in.Answers = append(in.Answers, answer(q))
		}
		_, res, err = collect(r.Resume(t.Context(), in))
	}
	return err
}

// What reads a thread without driving it passes a store's error on, wherever in
// the reading it is.
func TestReadersPassAStoresErrorOn(t *testing.T) {
	e := newEverything(t)
	mem := graph.NewMemory()
	e.finish(t, &graph.Runner{Graph: e.g, Store: mem}, true)
	ctx := t.Context()
	for what, read := range map[string]func(st graph.Store) error{
		"History":     func(st graph.Store) error { return drained(graph.History(ctx, st, thread)) },
		"Checkpoints": func(st graph.Store) error { return drained(graph.Checkpoints(ctx, st, thread)) },
		"Inspect":     func(st graph.Store) error { _, err := graph.Inspect(ctx, st, thread, 0); return err },
		"State": func(st graph.Store) error {
			_, err := (&graph.Runner{Graph: e.g, Store: st}).State(ctx, thread, 0)
			return err
		},
		"Diff": func(st graph.Store) error {
			_, err := graph.Diff(ctx, st, graph.Point{Thread: thread, Seq: 1}, graph.Point{Thread: thread})
			return err
		},
		"Blame": func(st graph.Store) error { _, err := graph.Blame(ctx, st, thread, "notes"); return err },
		"Fork": func(st graph.Store) error {
			return graph.Fork(ctx, st, thread, 0, fmt.Sprint("copy of ", st.(*shaky).left))
		},
		"Prune": func(st graph.Store) error {
			_, err := graph.Prune(ctx, st, thread, graph.Keep{Records: 1 << 30})
			return err
		},
	} {
		calls := 0
		for at := 1; ; at++ {
			s := &shaky{Store: mem, left: at}
			err := read(s)
			if !s.failed {
				if err != nil || calls == 0 {
					t.Errorf("%s with a store that works, after %d that did not: %v", what, calls, err)
				}
				break
			}
			if calls++; !errors.Is(err, errAway) {
				t.Fatalf("%s, call %d: %v", what, at, err)
			}
		}
	}
}

func drained[T any](seq iter.Seq2[T, error]) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}
