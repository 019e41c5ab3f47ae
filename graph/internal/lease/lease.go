// Package lease keeps the lease of a thread for the drive that works on it: it is taken, renewed, looked at, and released or lost.
package lease

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

// ErrLost is graph.ErrLost.
var ErrLost = errors.New("graph: the drive has lost its lease")

const (
	// TTL is how long a lease lives that is not renewed, and RenewEvery the time between two renewals.
	TTL        = 15 * time.Second
	RenewEvery = TTL / 3

	// StorePatience is how long a drive continues trying to reach its store after the end of its
	// lease. Nothing starts meanwhile.
	StorePatience = 5 * time.Minute

	// clockSkew is how much the clocks of a machine and of a store may differ.
	clockSkew = time.Minute

	releaseLimit = time.Second / 2 // for a release while the store is away
)

// A Drive is what a lease needs of the drive that holds it.
type Drive struct {
	Store  journal.Store
	Thread string

	// Now is the time of the drive's records.
	Now func() time.Time

	// CallStore calls a function, which only reads or does no harm when it is done twice, until the store is available.
	CallStore func(ctx context.Context, f func(context.Context) error) error

	// HasHeadMoved reports whether the thread has records that the drive has not written; known is false while the drive
	// writes. It is called only after StartRenewal.
	HasHeadMoved func() (moved, known bool, err error)

	// ExplainDisplacement says what has ended the drive. by is the lease of who displaced it, as far as that is known.
	ExplainDisplacement func(by journal.Lease) error

	// Stop ends the drive with an error. It is called only after StartRenewal.
	Stop func(err error)
}

// A Lease is the lease that a drive holds. A nil Lease is that of a store without leases. It is safe for concurrent use.
type Lease struct {
	store  journal.Leaser
	owner  string
	drive  *Drive
	looked atomic.Pointer[time.Time] // the begin of the last look that found the lease held

	ctx  context.Context // of calls of the store
	stop func()

	busy    chan struct{} // holds a value while a goroutine uses the fields below, or calls the store
	renewed time.Time     // the begin of the last renewal
	unsure  bool          // another drive may have had the lease: a look must read the head of the thread
	timer   *time.Timer
	over    bool
}

// Acquire takes the lease of the drive's thread, if the store has leases. If another
// drive holds a live lease, it returns that lease, and this drive holds nothing. If another may still
// start an effect, it waits until that has acknowledged, or cannot any more. The Lease is that of the drive, whatever the
// error: the drive must release it. It is nil if the drive holds none.
func Acquire(ctx context.Context, d *Drive, takeover bool) (l *Lease, by journal.Lease, err error) {
	st, ok := d.Store.(journal.Leaser)
	if !ok {
		return nil, journal.Lease{}, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError("Store.AcquireLease", p)
		}
		if err != nil {
			err = fmt.Errorf("lease of thread %s: %w", d.Thread, err)
		}
	}()
	want := &Lease{store: st, drive: d, busy: make(chan struct{}, 1)}
	want.ctx, want.stop = context.WithCancel(context.Background())
	err = d.CallStore(ctx, func(ctx context.Context) (err error) { by, err = st.ReadLease(ctx, d.Thread); return err })
	if err != nil {
		return nil, journal.Lease{}, err
	}
	name := process.NewOwner()
	taken := false
	for range 4 { // the lease may have changed its owner again meanwhile
		live, over := by.IsLive(), by.Owner
		if live && !takeover {
			return nil, by, nil
		}
		if want.owner = name; mayStillStart(by) {
			want.owner = process.NewSuccessor(name, over)
		}
		var at time.Time
		err = d.CallStore(ctx, func(ctx context.Context) (err error) {
			at = time.Now()
			by, err = st.AcquireLease(ctx, d.Thread, want.owner, over, TTL)
			return err
		})
		if err != nil {
			return nil, journal.Lease{}, err
		}
		if taken = taken || live; by.Owner != want.owner {
			continue
		}
		l = want
		l.renewed = at
		l.looked.Store(&at)
		if taken {
			err = d.CallStore(ctx, l.appendFence)
		}
		if err != nil || l.owner == name {
			return l, journal.Lease{}, err
		}
		by, err = l.awaitDisplaced(ctx, name)
		return l, by, err
	}
	return nil, by, nil
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
func (l *Lease) awaitDisplaced(ctx context.Context, name string) (by journal.Lease, err error) {
	waiting := l.owner
	for end := time.Now().Add(fence.Patience); time.Now().Before(end); {
		if !fence.Sleep(ctx, fence.PollEvery) {
			return journal.Lease{}, context.Cause(ctx)
		}
		if by, err = l.store.ReadLease(ctx, l.drive.Thread); err == nil && by.Owner != waiting {
			break
		}
	}
	l.owner = name
	var at time.Time
	err = l.drive.CallStore(ctx, func(ctx context.Context) (err error) {
		at = time.Now()
		by, err = l.store.AcquireLease(ctx, l.drive.Thread, name, waiting, TTL)
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
func (l *Lease) appendFence(ctx context.Context) error {
	d := l.drive
	for {
		s, err := fold.LoadThread(ctx, d.Store, d.Thread, 0)
		if err != nil || s.Head == 0 || s.Run.Status != record.Running {
			return err
		}
		if by, err := l.ReadDisplacing(ctx); err != nil || by.Owner != "" {
			return err // attachThread reports it
		}
		claim := fold.NewRecord(journal.KindClaim, &record.Parts{Run: s.Run.ID})
		claim.Time = d.Now().UnixMicro()
		if err = journal.Append(ctx, d.Store, d.Thread, s.Head, claim); !errors.Is(err, journal.ErrConflict) {
			return err
		}
	}
}

// ReadDisplacing returns the lease of the drive that has taken this one's lease, if there is
// one. A drive that reads the fence of another must not append a claim after it.
func (l *Lease) ReadDisplacing(ctx context.Context) (by journal.Lease, err error) {
	by, err = l.store.ReadLease(ctx, l.drive.Thread)
	if err != nil {
		return journal.Lease{}, fmt.Errorf("read the lease of thread %s: %w", l.drive.Thread, err)
	}
	if by.Owner == l.owner {
		return journal.Lease{}, nil
	}
	if by.Owner == "" { // the drive that took it has released it
		by = journal.Lease{Owner: "?", Expired: true}
	}
	return by, nil
}

// StartRenewal renews the lease until Release, and looks at it in between. The drive ends
// when the lease is lost.
func (l *Lease) StartRenewal() {
	if l == nil {
		return
	}
	l.busy <- struct{}{}
	defer func() { <-l.busy }()
	l.timer = time.AfterFunc(fence.LookEvery, l.renewOnTimer)
}

// TimeSinceLook returns the time since the last look that found the lease held. It counts the time that
// the machine slept, if the wall clock does.
func (l *Lease) TimeSinceLook() time.Duration {
	at, now := *l.looked.Load(), time.Now()
	return max(now.Sub(at), now.Round(0).Sub(at.Round(0)), at.Round(0).Sub(now.Round(0)))
}

// renewOnTimer renews the lease in the background, or looks at it.
func (l *Lease) renewOnTimer() {
	l.busy <- struct{}{}
	defer func() { <-l.busy }()
	if l.over {
		return
	}
	if time.Since(l.renewed) >= RenewEvery {
		_ = l.renew() // tried again
	} else if l.TimeSinceLook() >= fence.LookEvery {
		_ = l.read()
	}
	if !l.over {
		l.timer.Reset(fence.LookEvery)
	}
}

// Look looks at the lease unless that was done a moment ago. It returns nil if the drive still holds it. A context that
// has ended before does not keep it from looking.
func (l *Lease) Look(ctx context.Context) error {
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
		return ErrLost
	case l.TimeSinceLook() < fence.LookEvery:
		return nil
	case time.Since(l.renewed) >= RenewEvery:
		return l.renew()
	}
	return l.read()
}

// read reads the lease. If another has taken it, the drive ends; if it has expired, it is renewed. The caller must hold
// busy.
func (l *Lease) read() (err error) {
	defer func() { l.judgeError(err) }()
	at := time.Now()
	by, err := l.call("Store.ReadLease", func(ctx context.Context) (journal.Lease, error) { return l.store.ReadLease(ctx, l.drive.Thread) })
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
func (l *Lease) renew() (err error) {
	defer func() { l.judgeError(err) }()
	at := time.Now()
	now, err := l.call("Store.RenewLease", func(ctx context.Context) (journal.Lease, error) {
		return l.store.RenewLease(ctx, l.drive.Thread, l.owner, TTL)
	})
	if err == nil && now.Owner == "" { // a drive had it and has ended, or the store has lost it
		l.unsure = true
		now, err = l.call("Store.AcquireLease", func(ctx context.Context) (journal.Lease, error) {
			return l.store.AcquireLease(ctx, l.drive.Thread, l.owner, "", TTL)
		})
	}
	if err != nil {
		return err
	}
	if now.Owner != l.owner {
		err = l.drive.ExplainDisplacement(now)
		l.lose(err)
		return err
	}
	moved, known, err := l.drive.HasHeadMoved()
	switch {
	case err != nil:
		return err
	case moved:
		err = l.drive.ExplainDisplacement(journal.Lease{})
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

// CanPass reports whether a look that has failed may succeed later.
func CanPass(err error) bool { return journal.IsUnavailable(err) || errors.Is(err, errBeingWritten) }

// judgeError ends the drive if a look has failed with an error that cannot pass, or fails for too long. The caller must
// hold busy.
func (l *Lease) judgeError(err error) {
	switch {
	case err == nil || l.over:
	case !CanPass(err):
		l.lose(fmt.Errorf("thread %s: the store does not say whether this drive still has the run: %w", l.drive.Thread, err))
	case time.Since(l.renewed) >= TTL+StorePatience:
		l.lose(fmt.Errorf("thread %s: %w: it could not be renewed for %v: %w", l.drive.Thread, ErrLost, TTL+StorePatience, err))
	}
}

// lose ends the drive. The caller must hold busy.
func (l *Lease) lose(err error) {
	l.over = true
	l.drive.Stop(err)
}

// call calls the store, for a limited time. A panic in it is an error.
func (l *Lease) call(what string, do func(context.Context) (journal.Lease, error)) (by journal.Lease, err error) {
	ctx, cancel := context.WithTimeout(l.ctx, RenewEvery)
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

// Release ends the renewal of the lease, and releases it. If it was taken, it tells the one who did that this drive
// starts nothing more. It waits some seconds for a store that is away, unless ctx ends, or err, which has ended the
// drive, is that it was away.
func (l *Lease) Release(ctx context.Context, err error) {
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
	_ = patience.Retry(ctx, func(context.Context) error { return l.store.ReleaseLease(whole, l.drive.Thread, l.owner) })
}

// acknowledge lets the drive that has displaced this one start at once. If it fails, that one waits a moment.
func (l *Lease) acknowledge() {
	ctx, cancel := context.WithTimeout(context.Background(), RenewEvery)
	defer cancel()
	by, err := l.store.ReadLease(ctx, l.drive.Thread)
	if err != nil {
		return
	}
	switch next, ok := process.Acknowledge(by.Owner, l.owner); {
	case !ok:
	case next == "":
		_ = l.store.ReleaseLease(ctx, l.drive.Thread, by.Owner)
	default:
		_, _ = l.store.AcquireLease(ctx, l.drive.Thread, next, by.Owner, TTL)
	}
}
