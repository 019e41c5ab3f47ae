package graph

import (
	"context"
	"fmt"
	"math"
)

// Delete deletes a thread with all its records. Threads that were forked from it are
// copies and stay. An unknown thread is ErrNoThread.
//
// If another drive holds the thread, the error is a *BusyError, provided the store
// implements Leaser; without leases that drive gets ErrConflict at its next record.
// Processes that a killed drive has left behind keep running.
func Delete(ctx context.Context, st Store, thread string) error {
	fail := func(err error) error { return fmt.Errorf("delete thread %s: %w", thread, err) }
	if st == nil {
		return fail(errNoStore)
	}
	known := false
	for _, err := range st.Read(ctx, thread, Range{Heads: true, Newest: true, Limit: 1}) {
		if err != nil {
			return fail(err)
		}
		known = true
	}
	if !known {
		return fail(ErrNoThread)
	}
	if l, ok := st.(Leaser); ok {
		lease, err := l.ReadLease(ctx, thread)
		if err != nil {
			return fail(err)
		}
		if lease.IsLive() {
			return fail(&BusyError{Thread: thread, Status: Running, Lease: lease})
		}
	}
	if err := st.Prune(ctx, thread, math.MaxInt64); err != nil {
		return fail(err)
	}
	return nil
}
