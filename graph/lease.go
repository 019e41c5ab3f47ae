package graph

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"raddle.dev/graph/internal/fence"
	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/process"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// ErrLeaseLost says that a drive has stopped because it has lost its lease: the run was
// ended, edited or taken over (then the error is a *DisplacedError), or the store could
// not be reached until some minutes after the lease had expired.
var ErrLeaseLost = errors.New("graph: the drive has lost its lease")

const (
	leaseTTL   = 15 * time.Second
	leaseEvery = leaseTTL / 3 // between renewals

	// storePatience is how long a drive continues trying to reach its store after the end of its
	// lease. Nothing starts meanwhile.
	storePatience = 5 * time.Minute

	// clockSkew is how much the clocks of a machine and of a store may differ.
	clockSkew = time.Minute

	lookRetry    = 50 * time.Millisecond // after a look that failed, at first
	releaseLimit = time.Second / 2       // for a release while the store is away
)

// lease is the lease that a drive holds.
type lease struct {
	store  journal.Leaser
	thread string
	owner  string
	drive  *drive
	looked atomic.Pointer[time.Time] // the begin of the last look that found the lease held

	ctx  context.Context // of calls of the store
	stop func()

	busy    chan struct{} // holds a value while a goroutine uses the fields below, or calls the store
	renewed time.Time     // the begin of the last renewal
	unsure  bool          // another drive may have had the lease: a look must read the head of the thread
	timer   *time.Timer
	over    bool
}

// acquireLease takes the lease of the drive's thread, if the store has leases. If another
// drive holds a live lease, it returns that lease, and this drive holds nothing. If another may still
// start an effect, it waits until that has acknowledged, or cannot any more.
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
	l := &lease{store: st, thread: d.thread, drive: d, busy: make(chan struct{}, 1)}
	l.ctx, l.stop = context.WithCancel(context.Background())
	name, taken := process.NewOwner(), false
	err = d.callStore(ctx, func(ctx context.Context) (err error) { by, err = st.ReadLease(ctx, l.thread); return err })
	if err != nil {
		return journal.Lease{}, err
	}
	for range 4 { // the lease may have changed its owner again meanwhile
		live, over := by.IsLive(), by.Owner
		if live && !takeover {
			return by, nil
		}
		if l.owner = name; mayStillStart(by) {
			l.owner = process.NewSuccessor(name, over)
		}
		var at time.Time
		err = d.callStore(ctx, func(ctx context.Context) (err error) {
			at = time.Now()
			by, err = st.AcquireLease(ctx, l.thread, l.owner, over, leaseTTL)
			return err
		})
		if err != nil {
			return journal.Lease{}, err
		}
		if taken = taken || live; by.Owner != l.owner {
			continue
		}
		d.lease, l.renewed = l, at
		l.looked.Store(&at)
		if taken {
			err = d.callStore(ctx, d.appendFence)
		}
		if err != nil || l.owner == name {
			return journal.Lease{}, err
		}
		return l.awaitDisplaced(ctx, name)
	}
	return by, nil
}

// mayStillStart reports whether the drive that held a lease may start an effect after it was displaced. It cannot if
// its process has ended, and if it has not renewed the lease for long: a look finds an expired lease only if it renews
// it.
func mayStillStart(by journal.Lease) bool {
	switch {
	case by.Owner == "":
		return false
	case process.IsMark(by.Owner):
		return !by.Expired
	case process.HasOwnerEnded(by.Owner):
		return false
	}
	return !by.Expired || time.Since(by.Until) < clockSkew+fence.LookEvery
}

// awaitDisplaced waits for the acknowledgement of the drive that was displaced, but not longer than that may still
// start something. From then on, name is the owner. If another drive has displaced this one, it returns that one's
// lease.
func (l *lease) awaitDisplaced(ctx context.Context, name string) (by journal.Lease, err error) {
	waiting := l.owner
	for end := time.Now().Add(fence.Patience); time.Now().Before(end); {
		if !fence.Sleep(ctx, fence.PollEvery) {
			return journal.Lease{}, context.Cause(ctx)
		}
		if by, err = l.store.ReadLease(ctx, l.thread); err == nil && by.Owner != waiting {
			break
		}
	}
	l.owner = name
	var at time.Time
	err = l.drive.callStore(ctx, func(ctx context.Context) (err error) {
		at = time.Now()
		by, err = l.store.AcquireLease(ctx, l.thread, name, waiting, leaseTTL)
		return err
	})
	if err != nil {
		l.owner = waiting
		return journal.Lease{}, err
	}
	if by.Owner != name {
		return by, nil
	}
	l.renewed = at
	l.looked.Store(&at)
	return journal.Lease{}, nil
}

// appendFence appends a claim, so that the displaced drive can append nothing more: it may be
// about to, and the claim of this drive is written only after reading.
func (d *drive) appendFence(ctx context.Context) error {
	for {
		s, err := fold.LoadThread(ctx, d.settings.Store, d.thread, 0)
		if err != nil || s.Head == 0 || s.Run.Status != record.Running {
			return err
		}
		if by, err := d.lease.readDisplacingLease(ctx); err != nil || by.Owner != "" {
			return err // attachThread reports it
		}
		claim := fold.NewRecord(journal.KindClaim, &record.Parts{Run: s.Run.ID})
		claim.Time = d.now().UnixMicro()
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

// startRenewal renews the lease until release, and looks at it in between. The drive ends
// when the lease is lost.
func (l *lease) startRenewal() {
	if l == nil {
		return
	}
	l.busy <- struct{}{}
	defer func() { <-l.busy }()
	l.timer = time.AfterFunc(fence.LookEvery, l.renewOnTimer)
}

// timeSinceLook returns the time since the last look that found the lease held. It counts the time that
// the machine slept, if the wall clock does.
func (l *lease) timeSinceLook() time.Duration {
	at, now := *l.looked.Load(), time.Now()
	return max(now.Sub(at), now.Round(0).Sub(at.Round(0)), at.Round(0).Sub(now.Round(0)))
}

// renewOnTimer renews the lease in the background, or looks at it.
func (l *lease) renewOnTimer() {
	l.busy <- struct{}{}
	defer func() { <-l.busy }()
	if l.over {
		return
	}
	if time.Since(l.renewed) >= leaseEvery {
		_ = l.renew() // tried again
	} else if l.timeSinceLook() >= fence.LookEvery {
		_ = l.read()
	}
	if !l.over {
		l.timer.Reset(fence.LookEvery)
	}
}

// look looks at the lease unless that was done a moment ago. It returns nil if the drive still holds it. A context that
// has ended before does not keep it from looking.
func (l *lease) look(ctx context.Context) error {
	if ctx.Err() != nil {
		ctx = l.ctx
	}
	select {
	case l.busy <- struct{}{}:
		defer func() { <-l.busy }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch {
	case l.over:
		return ErrLeaseLost
	case l.timeSinceLook() < fence.LookEvery:
		return nil
	case time.Since(l.renewed) >= leaseEvery:
		return l.renew()
	}
	return l.read()
}

// read reads the lease. If another has taken it, the drive ends; if it has expired, it is renewed. The caller must hold
// busy.
func (l *lease) read() (err error) {
	defer func() { l.judgeError(err) }()
	at := time.Now()
	by, err := l.call("Store.ReadLease", func(ctx context.Context) (journal.Lease, error) { return l.store.ReadLease(ctx, l.thread) })
	switch {
	case err != nil:
		return err
	case by.Owner != l.owner || by.Expired || l.unsure:
		return l.renew()
	}
	l.looked.Store(&at)
	return nil
}

// renew renews the lease once. If it is lost, the drive ends. The caller must hold busy.
func (l *lease) renew() (err error) {
	defer func() { l.judgeError(err) }()
	at := time.Now()
	now, err := l.call("Store.RenewLease", func(ctx context.Context) (journal.Lease, error) {
		return l.store.RenewLease(ctx, l.thread, l.owner, leaseTTL)
	})
	if err == nil && now.Owner == "" { // a drive had it and has ended, or the store has lost it
		l.unsure = true
		now, err = l.call("Store.AcquireLease", func(ctx context.Context) (journal.Lease, error) {
			return l.store.AcquireLease(ctx, l.thread, l.owner, "", leaseTTL)
		})
	}
	if err != nil {
		return err
	}
	if now.Owner != l.owner {
		err = l.drive.explainDisplacement(now)
		l.lose(err)
		return err
	}
	moved, known, err := l.drive.journal.HasHeadMoved(false)
	switch {
	case err != nil:
		return err
	case moved:
		err = l.drive.explainDisplacement(journal.Lease{})
		l.lose(err)
		return err
	case l.unsure && !known:
		return errBeingWritten
	}
	l.unsure, l.renewed = false, at
	l.looked.Store(&at)
	return nil
}

// errBeingWritten says that a look could not read the head of the thread, because records are being written.
var errBeingWritten = errors.New("the thread is being written to")

// canPass reports whether a look that has failed may succeed later.
func canPass(err error) bool { return journal.IsUnavailable(err) || errors.Is(err, errBeingWritten) }

// judgeError ends the drive if a look has failed with an error that cannot pass, or fails for too long. The caller must
// hold busy.
func (l *lease) judgeError(err error) {
	switch {
	case err == nil || l.over:
	case !canPass(err):
		l.lose(fmt.Errorf("thread %s: the store does not say whether this drive still has the run: %w", l.thread, err))
	case time.Since(l.renewed) >= leaseTTL+storePatience:
		l.lose(fmt.Errorf("thread %s: %w: it could not be renewed for %v: %w", l.thread, ErrLeaseLost, leaseTTL+storePatience, err))
	}
}

// lose ends the drive. The caller must hold busy.
func (l *lease) lose(err error) {
	l.over = true
	l.drive.journal.StopWithError(err)
}

// call calls the store, for a limited time. A panic in it is an error.
func (l *lease) call(what string, do func(context.Context) (journal.Lease, error)) (by journal.Lease, err error) {
	ctx, cancel := context.WithTimeout(l.ctx, leaseEvery)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError(what, p)
		}
		if ctx.Err() != nil { // whatever the store makes of that
			err = journal.MarkUnavailable(err)
		}
	}()
	return do(ctx)
}

// release ends the renewal of the lease, and releases it. If it was taken, it tells the one who did that this drive
// starts nothing more. It waits some seconds for a store that is away, unless ctx ends, or err, which has ended the
// drive, is that it was away.
func (l *lease) release(ctx context.Context, err error) {
	if l == nil {
		return
	}
	l.stop()
	l.busy <- struct{}{}
	defer func() { <-l.busy }()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.over = true
	defer func() { _ = recover() }() // if this fails, the lease expires by itself
	patience, whole := journal.Patience{Limit: journal.ShortPatience}, context.WithoutCancel(ctx)
	if journal.IsUnavailable(err) {
		limited, cancel := context.WithTimeout(whole, releaseLimit)
		defer cancel()
		patience, whole = journal.Patience{}, limited
	} else if err != nil {
		l.acknowledge()
	}
	_ = patience.Retry(ctx, func(context.Context) error { return l.store.ReleaseLease(whole, l.thread, l.owner) })
}

// acknowledge lets the drive that has displaced this one start at once. If it fails, that one waits a moment.
func (l *lease) acknowledge() {
	ctx, cancel := context.WithTimeout(context.Background(), leaseEvery)
	defer cancel()
	by, err := l.store.ReadLease(ctx, l.thread)
	if err != nil {
		return
	}
	switch next, ok := process.Acknowledge(by.Owner, l.owner); {
	case !ok:
	case next == "":
		_ = l.store.ReleaseLease(ctx, l.thread, by.Owner)
	default:
		_, _ = l.store.AcquireLease(ctx, l.thread, next, by.Owner, leaseTTL)
	}
}
