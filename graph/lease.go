package graph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/process"
	"raddle.dev/graph/internal/wire"
)

// Leaser may be implemented by a Store, so that a running drive can be detected: every
// drive holds the lease of its thread, and a second one gets a *BusyError. Without a
// Leaser only the claim record keeps two drives apart.
//
// Leases are stored outside the journal: renewing one appends nothing and need not
// reach the disk before the call returns. The store's clock counts. Owners are opaque
// to a store. A lease may be held on a thread that does not exist yet; a Prune that
// deletes a thread deletes its lease too.
type Leaser interface {
	// AcquireLease gives the lease of a thread to owner, until ttl from now, if the
	// lease is free, if it has expired, or if owner or over holds it ("" for over: no
	// other owner). It returns the lease after the call: with another Owner, the call
	// has changed nothing.
	AcquireLease(ctx context.Context, thread, owner, over string, ttl time.Duration) (Lease, error)

	// RenewLease extends the lease of owner until ttl from now, even if it has expired.
	// It returns the lease after the call: with another Owner, or none, owner has lost
	// it.
	RenewLease(ctx context.Context, thread, owner string, ttl time.Duration) (Lease, error)

	// ReleaseLease ends the lease of owner. If owner does not hold it, nothing happens.
	ReleaseLease(ctx context.Context, thread, owner string) error

	// ReadLease returns the lease of a thread; the zero Lease if it is free.
	ReadLease(ctx context.Context, thread string) (Lease, error)
}

// Lease says which drive works on a thread, and until when unless it is renewed.
type Lease struct {
	// Owner identifies the drive, which has made it; "": the lease is free.
	Owner string

	// Until is when the lease ends unless it is renewed, by the store's clock.
	Until time.Time

	// Expired reports whether Until has passed.
	Expired bool
}

// IsLive reports whether the drive that holds the lease may still run: the lease has not
// expired, and its process is not known to have ended. Only processes of this host can
// be known to have ended.
func (l Lease) IsLive() bool { return l.Owner != "" && !l.Expired && !process.HasOwnerEnded(l.Owner) }

// Holder returns the process that holds the lease: the name of its host and its number.
// ok is false if the owner was not made by this package.
func (l Lease) Holder() (host string, pid int, ok bool) {
	p, ok := process.ParseOwner(l.Owner)
	return p.Host, p.PID, ok
}

// FindProcess returns the number of the process that holds the lease. ok is false unless it is known to be a process of this
// host that has not ended.
func (l Lease) FindProcess() (pid int, ok bool) { return process.FindOwner(l.Owner) }

// String says which process holds the lease, for people.
func (l Lease) String() string {
	host, pid, ok := l.Holder()
	if !ok {
		return "another process"
	}
	if name, _ := os.Hostname(); name == host {
		return "process " + strconv.Itoa(pid)
	}
	return fmt.Sprintf("process %d on host %s", pid, host)
}

// ErrLeaseLost says that a drive has stopped because it has lost its lease: another
// drive has taken the run over (then the error is ErrConflict too), or the store could
// not be reached until the lease had expired.
var ErrLeaseLost = errors.New("graph: the drive has lost its lease")

const (
	leaseTTL   = 15 * time.Second
	leaseEvery = leaseTTL / 3    // between renewals
	leaseRetry = 1 * time.Second // after a renewal that failed
)

// lease is the lease that a drive holds.
type lease struct {
	store  Leaser
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
func (x *drive) acquireLease(ctx context.Context, takeover bool) (by Lease, err error) {
	st, ok := x.r.Store.(Leaser)
	if !ok {
		return Lease{}, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError("Store.AcquireLease", p)
		}
		if err != nil {
			err = fmt.Errorf("lease of thread %s: %w", x.thread, err)
		}
	}()
	l := &lease{store: st, thread: x.thread, owner: process.NewOwner(), startedAt: time.Now()}
	over, taken := "", false
	for range 4 { // the lease may have changed its owner again meanwhile
		l.renewed.Store(int64(time.Since(l.startedAt)))
		if by, err = st.AcquireLease(ctx, l.thread, l.owner, over, leaseTTL); err != nil {
			return Lease{}, err
		}
		if by.Owner == l.owner {
			x.lease = l
			if taken {
				err = x.appendFence(ctx)
			}
			return Lease{}, err
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
func (x *drive) appendFence(ctx context.Context) error {
	for {
		s, err := loadThread(ctx, x.r.Store, x.thread, 0)
		if err != nil || s.head == 0 || s.run.status != Running {
			return err
		}
		if by, err := x.lease.readDisplacingLease(ctx); err != nil || by.Owner != "" {
			return err // attachThread reports it
		}
		claim := Record{Kind: KindClaim, Time: x.now().UnixMicro(), Head: wire.PutString(nil, s.run.id)}
		if err = appendSealed(ctx, x.r.Store, x.thread, s.head, claim); !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// readDisplacingLease returns the lease of the drive that has taken this one's lease, if there is
// one. A drive that reads the fence of another must not append a claim after it.
func (l *lease) readDisplacingLease(ctx context.Context) (by Lease, err error) {
	by, err = l.store.ReadLease(ctx, l.thread)
	if err != nil {
		return Lease{}, fmt.Errorf("read the lease of thread %s: %w", l.thread, err)
	}
	if by.Owner == l.owner {
		return Lease{}, nil
	}
	if by.Owner == "" { // the drive that took it has released it
		by = Lease{Owner: "?", Expired: true}
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
		err = fmt.Errorf("thread %s: %w: %w", l.thread, ErrLeaseLost, ErrConflict)
		if now.Owner != "" {
			err = fmt.Errorf("thread %s: %w: %s has taken the run over: %w", l.thread, ErrLeaseLost, now, ErrConflict)
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
