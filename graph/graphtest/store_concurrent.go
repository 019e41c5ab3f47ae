package graphtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"raddle.dev/graph"
)

// concurrentCases are meant to run under the race detector too.
var concurrentCases = []storeCase{
	{"OneWinner", func(h *harness) { raceAppends(h, []graph.Store{h.s, h.s, h.s, h.s, h.s, h.s}) }},
	{"EachItsOwnThread", func(h *harness) {
		const rounds = 60
		h.runParallel(6, func(ctx context.Context, i int) error {
			thread, after := fmt.Sprint("t", i), int64(0)
			for k := range rounds {
				n := 1 + k%3
				if err := h.s.Append(ctx, thread, after, newRecords(thread, after, n)); err != nil {
					return err
				}
				after += int64(n)
			}
			return nil
		})
		for i := range 6 {
			thread := fmt.Sprint("t", i)
			h.expectRecords(thread, newRecords(thread, 0, 2*rounds))
		}
	}},
	{"ReadersSeeWholeBatches", func(h *harness) {
		const batch, looks = 70, 300 // a batch is larger than one statement of most stores
		var seen atomic.Int64
		done := make(chan struct{})
		h.runParallel(4, func(ctx context.Context, i int) error {
			if i > 0 {
				return h.watchBatches(ctx, batch, &seen, done)
			}
			defer close(done)
			for after := int64(0); seen.Load() < looks && ctx.Err() == nil; after += batch {
				if err := h.s.Append(ctx, "a", after, newRecords("a", after, batch)); err != nil {
					return err
				}
				runtime.Gosched()
			}
			return nil
		})
	}},
}

// watchBatches reads the last n records until done is closed: they must be a whole
// batch.
func (h *harness) watchBatches(ctx context.Context, n int, seen *atomic.Int64, done <-chan struct{}) error {
	for {
		select {
		case <-done:
			return nil
		default:
		}
		l, err := collectAll(h.s.Read(ctx, "a", graph.Range{Newest: true, Limit: n}))
		if err != nil {
			return err
		}
		if len(l) == 0 {
			continue
		}
		if seen.Add(1); len(l) != n || l[0].Seq%int64(n) != 0 {
			return fmt.Errorf("a reader saw %d records up to %d: part of a batch of %d", len(l), l[0].Seq, n)
		}
		infos, err := collectAll(h.s.Threads(ctx, "a"))
		if err != nil {
			return err
		}
		if infos[0].Head%int64(n) != 0 || infos[0].Last.Seq != infos[0].Head {
			return fmt.Errorf("a listing saw head %d: part of a batch of %d", infos[0].Head, n)
		}
	}
}

// runParallel calls f concurrently and reports what fails; the first failure cancels
// the context.
func (h *harness) runParallel(n int, f func(ctx context.Context, i int) error) {
	h.Helper()
	ctx, cancel := context.WithCancel(h.Context())
	defer cancel()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if errs[i] = f(ctx, i); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		h.Error(err)
	}
}

// raceAppends lets each of the stores, which share one content, append after the same record:
// exactly one may succeed each time.
func raceAppends(h *harness, stores []graph.Store) {
	const rounds = 40
	var want []graph.Record
	for round := range rounds {
		after, n := int64(len(want)), 1+round%3*20 // one record, and batches of one and of several statements
		start := make(chan struct{})
		won := make([]bool, len(stores))
		var wg sync.WaitGroup
		errs := make([]error, len(stores))
		for i, s := range stores {
			wg.Go(func() {
				<-start
				err := s.Append(h.Context(), "raced", after, newRecords(fmt.Sprint("writer ", i), after, n))
				if won[i] = err == nil; !won[i] && !errors.Is(err, graph.ErrConflict) {
					errs[i] = err
				}
			})
		}
		close(start)
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			h.Fatalf("the losers of round %d got %v, want graph.ErrConflict", round, err)
		}
		winner := slices.Index(won, true)
		if winner < 0 || slices.Contains(won[winner+1:], true) {
			h.Fatalf("round %d: not exactly one writer has won: %v", round, won)
		}
		want = append(want, newRecords(fmt.Sprint("writer ", winner), after, n)...)
	}
	h.expectRecords("raced", want)
}
