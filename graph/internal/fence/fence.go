// Package fence ends drives from outside: it marks the lease of a thread whose run was ended or
// changed, so that the drive that works on it notices at its next look, and makes no other effect.
package fence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/process"
	"raddle.dev/graph/internal/record"
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

// attempts is how often ChangeRun makes records, and lastPause the longest pause between two attempts.
const (
	attempts  = 10
	lastPause = 500 * time.Millisecond
)

// ChangeRun appends records that end or change the run of a thread from outside, and displaces the drive that works on
// it. It returns the number of the last record. makeRecords makes them from what the thread holds. If it makes none,
// the run is over: nothing is written, and the number is 0. If others append at the same time, they are made again from
// what the thread holds then, some times. A drive that appends without a pause is displaced before the last attempt; if
// that loses too, the error is journal.ErrConflict.
//
// It returns when the drive has acknowledged, after Patience, or when ctx ends.
func ChangeRun(ctx context.Context, st journal.Store, thread string, makeRecords func(*fold.Thread) ([]journal.Record, error)) (seq int64, err error) {
	for i := range attempts {
		if i > 0 && !Sleep(ctx, rand.N(min(time.Millisecond<<i, lastPause))) {
			return 0, context.Cause(ctx)
		}
		h, err := findHolder(ctx, st, thread)
		if err == nil && i == attempts-1 {
			h.displace(ctx)
			h, err = findHolder(ctx, st, thread)
		}
		if err != nil {
			return 0, err
		}
		s, err := fold.LoadPoint(ctx, st, journal.Point{Thread: thread})
		if err != nil {
			return 0, err
		}
		head := s.Head
		recs, err := makeRecords(s)
		if err != nil {
			return 0, err
		}
		if len(recs) == 0 {
			if s.Run.Status == record.Abandoned {
				h.displaceLate(ctx, st, head)
			}
			return 0, nil
		}
		if same, err := findHolder(ctx, st, thread); err != nil {
			return 0, err
		} else if same != h { // the one that came meanwhile would not be displaced
			continue
		}
		if err = journal.Append(ctx, st, thread, head, recs...); err == nil {
			h.displace(ctx)
			return head + int64(len(recs)), nil
		}
		if !errors.Is(err, journal.ErrConflict) {
			return 0, err
		}
	}
	return 0, fmt.Errorf("%w, and was faster %d times: try again, or stop it first", journal.ErrConflict, attempts)
}

// A holder is who held the lease of a thread when findHolder was called: the drive, or someone who waits until a drive
// has noticed its end.
type holder struct {
	store  journal.Leaser // nil: there is no one
	thread string
	owner  string
}

// findHolder returns the holder of a thread's lease. It is called before the record that ends the drive is written,
// so that displace never ends a drive that came after that record.
func findHolder(ctx context.Context, st journal.Store, thread string) (holder, error) {
	l, ok := st.(journal.Leaser)
	if !ok {
		return holder{}, nil
	}
	by, err := l.ReadLease(ctx, thread)
	if err != nil || by.Owner == "" {
		return holder{}, err
	}
	if process.IsMark(by.Owner) && by.Expired || !process.IsMark(by.Owner) && process.HasOwnerEnded(by.Owner) {
		return holder{}, nil
	}
	return holder{l, thread, by.Owner}, nil
}

// displace takes the lease from the holder, also if ctx has ended, and returns when that has acknowledged, after
// Patience, or when ctx ends. It only waits for a holder that waits itself: what that one does next, it does after
// reading the record. What ended the drive is in the journal already: an error of the store only means that the drive
// notices it later.
func (h holder) displace(ctx context.Context) {
	if h.store == nil {
		return
	}
	mark := h.owner
	if !process.IsWaiting(h.owner) {
		mark = process.NewMark(h.owner)
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), Patience)
	defer cancel()
	for wait := limited; ; {
		by, err := h.store.ReadLease(limited, h.thread)
		if err == nil && by.Owner == h.owner && h.owner != mark {
			by, err = h.store.AcquireLease(limited, h.thread, mark, h.owner, Patience)
		}
		if err == nil {
			if by.Owner != mark || by.Expired {
				return
			}
			wait = ctx
		}
		if !Sleep(wait, PollEvery) || limited.Err() != nil {
			return
		}
	}
}

// displaceLate displaces the holder of a run that was ended before: who ended it may not have come to that. A drive of
// the thread's next run may hold the lease, too, but then it appends at once.
func (h holder) displaceLate(ctx context.Context, st journal.Store, head int64) {
	if h.store == nil || !Sleep(ctx, PollEvery) {
		return
	}
	if now, err := fold.ReadHead(ctx, st, h.thread); err == nil && now == head {
		h.displace(ctx)
	}
}

// Sleep waits for a time. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool { return SleepInBoth(ctx, ctx, d) == nil }

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
