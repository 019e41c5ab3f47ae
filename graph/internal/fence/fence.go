// Package fence ends drives from outside: it marks the lease of a thread whose run was ended or
// changed, so that the drive that works on it notices at its next look, and makes no other effect.
package fence

import (
	"context"
	"time"

	"raddle.dev/graph/internal/process"
	"raddle.dev/graph/journal"
)

const (
	// LookEvery is how long a look of a drive at its lease counts: it starts something only
	// if it has looked within this time.
	LookEvery = time.Second

	// Patience is how long a displaced drive gets to acknowledge. After it, no effect of that drive starts,
	// unless its process was stopped between its look and its call.
	Patience = 2 * LookEvery

	// PollEvery is the time between two looks for an acknowledgement.
	PollEvery = 50 * time.Millisecond
)

// A Holder is the drive that held the lease of a thread when FindHolder was called.
type Holder struct {
	store  journal.Leaser // nil: there is no one
	thread string
	owner  string
}

// FindHolder returns the drive that may work on a thread. Call it before the record that ends the drive is written,
// so that Displace never ends a drive that came after that record.
func FindHolder(ctx context.Context, st journal.Store, thread string) (Holder, error) {
	l, ok := st.(journal.Leaser)
	if !ok {
		return Holder{}, nil
	}
	by, err := l.ReadLease(ctx, thread)
	if err != nil || by.Owner == "" || process.HasOwnerEnded(by.Owner) {
		return Holder{}, err
	}
	return Holder{l, thread, by.Owner}, nil
}

// Displace takes the lease from the holder, and returns when that has acknowledged, after Patience, or when ctx ends.
// What ended the drive is in the journal already: an error of the store only means that the drive notices it later.
func (h Holder) Displace(ctx context.Context) {
	if h.store == nil {
		return
	}
	if by, err := h.store.ReadLease(ctx, h.thread); err != nil || by.Owner != h.owner {
		return
	}
	mark := process.NewMark(h.owner)
	by, err := h.store.AcquireLease(ctx, h.thread, mark, h.owner, Patience)
	end := time.Now().Add(Patience)
	for err == nil && by.Owner == mark && time.Now().Before(end) && Sleep(ctx, PollEvery) {
		by, err = h.store.ReadLease(ctx, h.thread)
	}
}

// Sleep waits for a time. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// SleepInBoth waits for a time. If one of two contexts ends first, it returns the cause.
func SleepInBoth(a, b context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-a.Done():
		return context.Cause(a)
	case <-b.Done():
		return context.Cause(b)
	}
}
