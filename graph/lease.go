package graph

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/process"
	"raddle.dev/graph/internal/wire"
	"raddle.dev/graph/journal"
)

// ErrLeaseLost says that a drive has stopped because it has lost its lease: another
// drive has taken the run over (then the error is journal.ErrConflict too), or the store could
// not be reached until the lease had expired.
var ErrLeaseLost = errors.New("graph: the drive has lost its lease")

const (
	leaseTTL   = 15 * time.Second
	leaseEvery = leaseTTL / 3    // between renewals
	leaseRetry = 1 * time.Second // after a renewal that failed
)

// lease is the lease that a drive holds.
type lease struct {
	store  journal.Leaser
	thread string
	owner  string
	lose   func(error) // ends the drive

	startedAt time.Time
	renewed   atomic.Int64 // time of the last renewal, in nanoseconds after startedAt

	mu    sync.Mutex // guards the fields below; held while the store is called
	timer *time.Timer
	over  bool
}

// acquireLease takes the lease of the drive's thread, if the store has leases. If another
// drive holds a live lease, it returns that lease, and this drive holds nothing.
func (d *drive) acquireLease(ctx context.Context, takeover bool) (by journal.Lease, err error) {
	st, ok := d.settings.Store.(journal.Leaser)
	if !ok {
		return journal.Lease{}, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError("Store.AcquireLease", p)
		}
		if err != nil {
			err = fmt.Errorf("lease of thread %s: %w", d.thread, err)
		}
	}()
	l := &lease{store: st, thread: d.thread, owner: process.NewOwner(), startedAt: time.Now()}
	over, taken := "", false
	for range 4 { // the lease may have changed its owner again meanwhile
		l.renewed.Store(int64(time.Since(l.startedAt)))
		if by, err = st.AcquireLease(ctx, l.thread, l.owner, over, leaseTTL); err != nil {
			return journal.Lease{}, err
		}
		if by.Owner == l.owner {
			d.lease = l
			if taken {
				err = d.appendFence(ctx)
			}
			return journal.Lease{}, err
		}
		live := by.IsLive()
		if live && !takeover {
			return by, nil
		}
		over, taken = by.Owner, taken || live
	}
	return by, nil
}

// appendFence appends a claim, so that the displaced drive can append nothing more: it may be
// about to, and the claim of this drive is written only after reading.
func (d *drive) appendFence(ctx context.Context) error {
	for {
		s, err := fold.LoadThread(ctx, d.settings.Store, d.thread, 0)
		if err != nil || s.Head == 0 || s.Run.Status != fold.Running {
			return err
		}
		if by, err := d.lease.readDisplacingLease(ctx); err != nil || by.Owner != "" {
			return err // attachThread reports it
		}
		claim := journal.Record{Kind: journal.KindClaim, Time: d.now().UnixMicro(), Head: wire.PutString(nil, s.Run.ID)}
		if err = journal.Append(ctx, d.settings.Store, d.thread, s.Head, claim); !errors.Is(err, journal.ErrConflict) {
			return err
		}
	}
}

// readDisplacingLease returns the lease of the drive that has taken this one's lease, if there is
// one. A drive that reads the fence of another must not append a claim after it.
func (l *lease) readDisplacingLease(ctx context.Context) (by journal.Lease, err error) {
	by, err = l.store.ReadLease(ctx, l.thread)
	if err != nil {
		return journal.Lease{}, fmt.Errorf("read the lease of thread %s: %w", l.thread, err)
	}
	if by.Owner == l.owner {
		return journal.Lease{}, nil
	}
	if by.Owner == "" { // the drive that took it has released it
		by = journal.Lease{Owner: "?", Expired: true}
	}
	return by, nil
}

// startRenewal renews the lease until release. It calls lose to end the drive when the lease is
// lost.
func (l *lease) startRenewal(lose func(error)) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose = lose
	l.timer = time.AfterFunc(max(0, leaseEvery-l.timeSinceRenewal()), l.renewOnTimer)
}

// timeSinceRenewal returns the time since the lease was last known to be held.
func (l *lease) timeSinceRenewal() time.Duration {
	return time.Since(l.startedAt) - time.Duration(l.renewed.Load())
}

// renewOnTimer renews the lease in the background.
func (l *lease) renewOnTimer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	switch l.renew() {
	case nil:
		l.timer.Reset(leaseEvery)
	default:
		if !l.over {
			l.timer.Reset(min(leaseRetry, max(0, leaseTTL-l.timeSinceRenewal())))
		}
	}
}

// renew renews the lease once. If it is lost, the drive ends. The caller must hold mu.
func (l *lease) renew() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), leaseEvery)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError("Store.RenewLease", p)
		}
		if err != nil && !l.over && l.timeSinceRenewal() >= leaseTTL {
			l.over = true
			l.lose(fmt.Errorf("thread %s: %w: it could not be renewed for %v: %w", l.thread, ErrLeaseLost, leaseTTL, err))
		}
	}()
	at := time.Since(l.startedAt)
	now, err := l.store.RenewLease(ctx, l.thread, l.owner, leaseTTL)
	if err != nil {
		return err
	}
	if now.Owner != l.owner {
		err = fmt.Errorf("thread %s: %w: %w", l.thread, ErrLeaseLost, journal.ErrConflict)
		if now.Owner != "" {
			err = fmt.Errorf("thread %s: %w: %s has taken the run over: %w", l.thread, ErrLeaseLost, now, journal.ErrConflict)
		}
		l.over = true
		l.lose(err)
		return err
	}
	l.renewed.Store(int64(at))
	return nil
}

// renewIfExpired renews a lease that has expired while the process was suspended. An effect must
// not start without a lease.
func (l *lease) renewIfExpired() {
	if l == nil || l.timeSinceRenewal() < leaseTTL {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over && l.timeSinceRenewal() >= leaseTTL {
		_ = l.renew() // ends the drive if it fails
	}
}

// release releases the lease and ends its renewal.
func (l *lease) release() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.over = true
	defer func() { _ = recover() }() // if this fails, the lease expires by itself
	_ = l.store.ReleaseLease(context.Background(), l.thread, l.owner)
}
