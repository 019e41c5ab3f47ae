package graph

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"raddle.dev/graph/internal/fence"
	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/lease"
	"raddle.dev/graph/journal"
)

// ErrLeaseLost says that a drive has stopped because it has lost its lease: the run was
// ended, edited or taken over (then the error is a *DisplacedError), or the store could
// not be reached until some minutes after the lease had expired.
var ErrLeaseLost = lease.ErrLost

const lookRetry = 50 * time.Millisecond // after a look that failed, at first

// acquireLease takes the lease of the drive's thread, if the store has leases. If another drive holds a live lease, it
// returns that lease, and this drive holds nothing.
func (d *drive) acquireLease(ctx context.Context, takeover bool) (by journal.Lease, err error) {
	d.lease, by, err = lease.Acquire(ctx, &lease.Drive{
		Store:               d.settings.Store,
		Thread:              d.thread,
		Now:                 d.now,
		CallStore:           d.callStore,
		HasHeadMoved:        func() (moved, known bool, err error) { return d.journal.HasHeadMoved(false) },
		ExplainDisplacement: func(by journal.Lease) error { return d.explainDisplacement(by) },
		Stop:                func(err error) { d.journal.StopWithError(err) },
	}, takeover)
	return by, err
}

// DisplacedError says that a drive stopped because its run was ended, edited or taken over from elsewhere. It is
// ErrLeaseLost and journal.ErrConflict too. The drive has recorded nothing more; the effects that it was making are in
// doubt.
type DisplacedError struct {
	// Thread is the thread of the run.
	Thread string

	// Status is that of the run after what ended the drive: Abandoned, Paused after an edit, or
	// Running if another drive has taken the run over.
	Status Status

	// By is the name of who abandoned or edited the run: see journal.WithAuthor. "": no name was given.
	By string

	// Reason is that of history.Abandon.
	Reason string

	// Lease is that of the drive that has taken the run over; zero: it is not known.
	Lease journal.Lease
}

// Error implements error.
func (e *DisplacedError) Error() string {
	what := "was taken over by another process"
	switch {
	case e.Status == Abandoned:
		what = "was abandoned"
	case e.Status == Paused:
		what = "was edited"
	case e.Lease.Owner != "":
		what = "was taken over by " + e.Lease.String()
	}
	if e.By != "" {
		what += " by " + e.By
	}
	if e.Reason != "" {
		what += " (" + e.Reason + ")"
	}
	return fmt.Sprintf("thread %s: its run %s while this drive worked on it", e.Thread, what)
}

// Unwrap returns ErrLeaseLost and journal.ErrConflict.
func (e *DisplacedError) Unwrap() []error { return []error{ErrLeaseLost, journal.ErrConflict} }

// resultStatus returns how the displaced drive has ended.
func (e *DisplacedError) resultStatus() Status {
	if e.Status == Abandoned {
		return Abandoned
	}
	return Canceled
}

// checkDriving returns nil if the drive may start an effect or an attempt: the run is still its own, by a look of less
// than fence.LookEvery ago. If it has to look and the store does not answer, it waits. The error is what ends the
// drive, or the cause of ctx. A caller whose context has ended, for example to read a recorded result, gets one look.
//
// Without leases, no one waits until a displaced drive has noticed, and only a look immediately before an effect
// counts.
func (d *drive) checkDriving(ctx context.Context) (err error) {
	if d.journal == nil || d.lease != nil && d.lease.TimeSinceLook() < fence.LookEvery {
		return d.fatalError()
	}
	began, away := time.Now(), false
	defer func() {
		if away {
			d.endOutage(err)
		}
	}()
	for delay := lookRetry; ; delay = min(2*delay, fence.LookEvery) {
		if err := d.fatalError(); err != nil {
			return err
		}
		failed := d.look(ctx)
		if failed == nil {
			return d.fatalError()
		}
		if !away && journal.IsUnavailable(failed) {
			away = true
			d.beginOutage(failed)
		}
		if d.lease == nil && (!lease.CanPass(failed) || time.Since(began) >= lease.StorePatience) {
			d.journal.StopWithError(fmt.Errorf("thread %s: the store does not say whether this drive still has the run: %w", d.thread, failed))
		}
		if err := fence.SleepInBoth(ctx, d.ctx, delay); err != nil {
			return cmp.Or(d.fatalError(), err)
		}
	}
}

// look looks once whether the run is still the drive's own. If it is not, the drive ends.
func (d *drive) look(ctx context.Context) error {
	if d.lease != nil {
		return d.lease.Look(ctx)
	}
	moved, _, err := d.journal.HasHeadMoved(true)
	if err == nil && moved {
		err = d.explainDisplacement(journal.Lease{})
		d.journal.StopWithError(err)
	}
	return err
}

// explainDisplacement says what ended the drive, from what the journal holds after its own records. by is the
// lease of who displaced it, as far as that is known.
func (d *drive) explainDisplacement(by journal.Lease) *DisplacedError {
	e := &DisplacedError{Thread: d.thread, Status: Running}
	if _, _, ok := by.Holder(); ok {
		e.Lease = by
	}
	defer func() { _ = recover() }() // a panic of the store: it is said with what is known
	ctx, cancel := context.WithTimeout(context.Background(), lease.RenewEvery)
	defer cancel()
	if end, found := fold.FindEnding(ctx, d.settings.Store, journal.Point{Thread: d.thread, Seq: d.journal.SavedHead()}); found {
		e.Status, e.Reason, e.By = Status(end.Status), end.Reason, end.By
	}
	return e
}
