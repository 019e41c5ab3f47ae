package graphtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"syscall"
	"time"

	"raddle.dev/graph/journal"
)

// A StoreFault is one way in which a write of a store fails.
type StoreFault struct {
	Name string
	Err  error // what the write returns; nil: another owner has the lease and appends first
	Done bool  // the write is carried out all the same, as if only its answer was lost
}

// The faults of stores. The errors of those that may pass are marked, as stores mark them.
var (
	DiskFull       = StoreFault{Name: "disk full", Err: journal.MarkUnavailable(fmt.Errorf("append: %w", syscall.ENOSPC))}
	IOError        = StoreFault{Name: "I/O error", Err: journal.MarkUnavailable(fmt.Errorf("append: %w", syscall.EIO))}
	Busy           = StoreFault{Name: "busy", Err: journal.MarkUnavailable(errors.New("database is locked"))}
	ConnectionGone = StoreFault{Name: "connection gone", Err: &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}}
	AnswerLost     = StoreFault{Name: "answer lost", Err: &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, Done: true}
	Refused        = StoreFault{Name: "refused", Err: fmt.Errorf("append: %w", fs.ErrPermission)} // it does not pass
	LeaseLost      = StoreFault{Name: "lease lost"}
)

// StoreFaults are the ways in which the writes of stores fail.
var StoreFaults = []StoreFault{DiskFull, IOError, Busy, ConnectionGone, AnswerLost, Refused, LeaseLost}

// Failing is a store with leases that fails at chosen writes: Append, Prune, AcquireLease, RenewLease and ReleaseLease
// are counted, from 1; those that LeaseLost does not concern, Prune and ReleaseLease, are carried out and not counted
// with it. A test sets a fault for write 1, then for write 2 and so on until none is hit, and each time looks at what a
// caller learned and at what the store inside holds. It is safe for concurrent use.
type Failing struct {
	journal.Store // the store inside; it must have leases

	mu    sync.Mutex // guards the fields below
	count int
	first int
	last  int
	fault StoreFault
	hits  int
}

// Arm makes the writes with numbers first to last, counted from now, fail. With first 0 none fails.
func (f *Failing) Arm(fault StoreFault, first, last int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
	f.first = first
	f.last = last
	f.count = 0
	f.hits = 0
}

// Hits returns how many writes have failed since Arm.
func (f *Failing) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// take counts a write. failed reports whether it fails. ofLease says whether it can fail because the lease is lost.
func (f *Failing) take(ofLease bool) (fault StoreFault, failed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault.Err == nil && !ofLease {
		return f.fault, false
	}
	f.count++
	if failed = f.first > 0 && f.count >= f.first && f.count <= f.last; failed {
		f.hits++
	}
	return f.fault, failed
}

// write carries out a write, or lets it fail. lost is the error if the fault has none; nil: such a fault does not
// concern the write.
func (f *Failing) write(do func() error, lost error) error {
	fault, failed := f.take(lost != nil)
	if failed && !fault.Done {
		if fault.Err == nil {
			return lost
		}
		return fault.Err
	}
	err := do()
	if failed && err == nil {
		return fault.Err
	}
	return err
}

// Append implements journal.Store.
func (f *Failing) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	return f.write(func() error { return f.Store.Append(ctx, thread, after, recs) }, journal.ErrConflict)
}

// Prune implements journal.Store.
func (f *Failing) Prune(ctx context.Context, thread string, before int64) error {
	return f.write(func() error { return f.Store.Prune(ctx, thread, before) }, nil)
}

// change is write for a change of a lease: if the fault has no error, another owner holds it.
func (f *Failing) change(do func(journal.Leaser) (journal.Lease, error)) (l journal.Lease, err error) {
	other := errors.New("lost")
	err = f.write(func() (err error) { l, err = do(f.Store.(journal.Leaser)); return err }, other)
	if err == other {
		return journal.Lease{Owner: "another", Until: time.Now().Add(time.Minute)}, nil
	}
	return l, err
}

// AcquireLease implements journal.Leaser.
func (f *Failing) AcquireLease(ctx context.Context, thread, owner, over string, ttl time.Duration) (journal.Lease, error) {
	return f.change(func(st journal.Leaser) (journal.Lease, error) { return st.AcquireLease(ctx, thread, owner, over, ttl) })
}

// RenewLease implements journal.Leaser.
func (f *Failing) RenewLease(ctx context.Context, thread, owner string, ttl time.Duration) (journal.Lease, error) {
	return f.change(func(st journal.Leaser) (journal.Lease, error) { return st.RenewLease(ctx, thread, owner, ttl) })
}

// ReleaseLease implements journal.Leaser.
func (f *Failing) ReleaseLease(ctx context.Context, thread, owner string) error {
	return f.write(func() error { return f.Store.(journal.Leaser).ReleaseLease(ctx, thread, owner) }, nil)
}

// ReadLease implements journal.Leaser.
func (f *Failing) ReadLease(ctx context.Context, thread string) (journal.Lease, error) {
	return f.Store.(journal.Leaser).ReadLease(ctx, thread)
}
