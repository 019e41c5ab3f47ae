package runs

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
)

// A guard is a store whose failures are of the kind [failure.Unavailable], whatever the store says, and which remembers
// how the last append went. What is no failure of the store stays as it is: a conflict, a thread that is not there,
// damage, and a context that has ended.
type guard struct {
	journal.Store
	lines *lineKeeper // nil: the store is no index

	mu       sync.Mutex // guards the fields below
	failed   error      // of the newest append that says whether the store can be written; nil: it went well
	failedAt time.Time
	meter    *Meter // nil: nothing is counted
}

// A leasingGuard is the guard of a store with leases.
type leasingGuard struct {
	*guard
	leaser journal.Leaser
}

// guardStore puts a guard before a store. A store has leases behind it if it has them by itself.
func guardStore(st journal.Store) (journal.Store, *guard) {
	g := &guard{Store: st}
	if index, ok := st.(journal.Index); ok {
		g.lines = &lineKeeper{store: st, index: index, lines: map[string]*runLine{}}
	}
	if l, ok := st.(journal.Leaser); ok {
		return leasingGuard{g, l}, g
	}
	return g, g
}

// notFailures are errors that say something about a thread, and nothing about the store.
var notFailures = []error{journal.ErrConflict, journal.ErrNoStore, journal.ErrNoThread, journal.ErrNoPoint, journal.ErrThreadExists}

// explainStoreError returns an error of a store as one of the kind [failure.Unavailable].
func explainStoreError(ctx context.Context, err error) error {
	if err == nil || failure.IsUnavailable(err) || errors.As(err, new(*journal.DamagedError)) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	for _, other := range notFailures {
		if errors.Is(err, other) {
			return err
		}
	}
	return &failure.Error{Kind: failure.Unavailable, Err: err, Next: "try again; raddle doctor says whether the store works"}
}

// Append implements journal.Store.
func (g *guard) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	var line *runLine
	with := ctx
	if g.lines != nil {
		with, line = g.lines.prepareLine(ctx, thread, after, recs)
	}
	began := time.Now()
	err := explainStoreError(ctx, g.Store.Append(with, thread, after, recs))
	took := time.Since(began)
	if g.lines != nil {
		if err != nil {
			line = nil
		}
		g.lines.noteLine(thread, line)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.meter != nil && err == nil {
		g.meter.Appends.AddTime(took)
		g.meter.addRecords(recs)
	}
	if err == nil || failure.IsUnavailable(err) { // a conflict, or a caller that has left, proves nothing
		g.failed = err
		g.failedAt = time.Now()
	}
	return err
}

// Read implements journal.Store.
func (g *guard) Read(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
	return explainSeq(ctx, g.Store.Read(ctx, thread, r))
}

// Threads implements journal.Store.
func (g *guard) Threads(ctx context.Context, prefix string) iter.Seq2[journal.ThreadInfo, error] {
	return explainSeq(ctx, g.Store.Threads(ctx, prefix))
}

// explainSeq returns a sequence whose errors are those of explainStoreError.
func explainSeq[T any](ctx context.Context, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			if !yield(v, explainStoreError(ctx, err)) {
				return
			}
		}
	}
}

// Prune implements journal.Store.
func (g *guard) Prune(ctx context.Context, thread string, before int64) error {
	return explainStoreError(ctx, g.Store.Prune(ctx, thread, before))
}

// AcquireLease implements journal.Leaser.
func (g leasingGuard) AcquireLease(ctx context.Context, thread, owner, over string, ttl time.Duration) (journal.Lease, error) {
	l, err := g.leaser.AcquireLease(ctx, thread, owner, over, ttl)
	return l, explainStoreError(ctx, err)
}

// RenewLease implements journal.Leaser.
func (g leasingGuard) RenewLease(ctx context.Context, thread, owner string, ttl time.Duration) (journal.Lease, error) {
	l, err := g.leaser.RenewLease(ctx, thread, owner, ttl)
	return l, explainStoreError(ctx, err)
}

// ReleaseLease implements journal.Leaser.
func (g leasingGuard) ReleaseLease(ctx context.Context, thread, owner string) error {
	return explainStoreError(ctx, g.leaser.ReleaseLease(ctx, thread, owner))
}

// ReadLease implements journal.Leaser.
func (g leasingGuard) ReadLease(ctx context.Context, thread string) (journal.Lease, error) {
	l, err := g.leaser.ReadLease(ctx, thread)
	return l, explainStoreError(ctx, err)
}

// The lease that CheckWrites takes and releases. Its thread never exists.
const (
	probeThread = "raddle/probe"
	probeOwner  = "probe"
	probeTTL    = time.Second
)

// failureCounts is how long the error of an append counts if no other append follows it.
const failureCounts = 10 * time.Second

// CheckWrites returns why the store cannot be written now, or nil. It takes a lease of its own and releases it, so that
// the store does not grow. The error of the newest append counts too, for ten seconds: a store may have room for a
// lease and none for a record.
func (s *Store) CheckWrites(ctx context.Context) error {
	s.guard.mu.Lock()
	err := s.guard.failed
	if time.Since(s.guard.failedAt) > failureCounts {
		err = nil
	}
	s.guard.mu.Unlock()
	st, ok := s.Store.(journal.Leaser)
	if err != nil || !ok {
		return err
	}
	if _, err := st.AcquireLease(ctx, probeThread, probeOwner, "", probeTTL); err != nil {
		return err
	}
	return st.ReleaseLease(ctx, probeThread, probeOwner)
}
