package graph

import (
	"context"
	"fmt"
	"time"
)

// Keep says what Prune keeps in addition to what a resume needs. A record is kept if at
// least one field names it; the zero Keep names none.
type Keep struct {
	Records int       // the number of newest records
	Steps   int       // the number of newest steps of the root, with everything since
	Since   time.Time // everything written at this time or later
}

// Prune shortens a thread from its beginning, and returns the oldest record that is
// left. The rest is complete: the newest state, the frontier, open questions and
// answers, and every record named by k with the state at it. Forks made from the thread
// are copies and lose nothing.
//
// A thread can be cut only at a snapshot, so more may be left than k names. If there is
// no snapshot, Prune writes one after the newest record, and the thread is cut there,
// now with the zero Keep, or else by a later Prune. Prune writes nothing to a thread
// that is being driven, or whose last drive did not record that it stopped. If a drive
// starts at the same time, it or Prune gets ErrConflict.
func Prune(ctx context.Context, st Store, thread string, k Keep) (first int64, err error) {
	c, err := k.planPrune(ctx, st, thread)
	if err == nil && c.hasExcess() && c.inside == 0 {
		err = c.writeSnapshot(ctx, st, thread)
	}
	if err == nil && c.base > 0 {
		err = st.Prune(ctx, thread, c.base)
	}
	if err != nil {
		return 0, fmt.Errorf("prune thread %s: %w", thread, err)
	}
	return max(c.base, c.first), nil
}

// prunePlan says where a thread can be cut, and where it should be.
type prunePlan struct {
	first  int64 // the oldest record, or base
	head   int64 // the newest record
	named  int64 // the oldest record that Keep names; head+1: it names none
	base   int64 // the newest snapshot at or before named; 0: none
	inside int64 // the oldest snapshot among the named records; 0: none
}

// keepsRecord reports whether k names a record after which there are newer records, and
// steps.
func (k Keep) keepsRecord(e Entry, newer int64, steps int) bool {
	return newer < int64(k.Records) || steps < k.Steps || !k.Since.IsZero() && !e.Time.Before(k.Since)
}

// planPrune reads back as far as needed.
func (k Keep) planPrune(ctx context.Context, st Store, thread string) (c prunePlan, err error) {
	steps, more := 0, true
	for e, err := range History(ctx, st, thread) {
		if err != nil {
			return c, err
		}
		if c.head == 0 {
			c.head, c.named = e.Seq, e.Seq+1
		}
		c.first = e.Seq
		if more = more && k.keepsRecord(e, c.head-e.Seq, steps); more {
			c.named = e.Seq
		} else if c.inside == c.named {
			c.base, c.first = c.inside, c.inside
			return c, nil
		}
		switch {
		case e.Kind.isBase() && more:
			c.inside = e.Seq
		case e.Kind.isBase():
			c.base = e.Seq
			return c, nil
		case e.Kind == KindStep && e.Path == "":
			steps++
		}
	}
	if c.head == 0 {
		return c, ErrNoThread
	}
	return c, nil
}

// hasExcess reports whether there are records that neither k nor a resume needs.
func (c *prunePlan) hasExcess() bool {
	if c.base == 0 {
		return c.first < c.named
	}
	return c.base+1 < c.named
}

// writeSnapshot writes a snapshot after the newest record, unless a drive may be running.
func (c *prunePlan) writeSnapshot(ctx context.Context, st Store, thread string) error {
	s, err := loadThread(ctx, st, thread, 0)
	if err != nil {
		return err
	}
	if s.head != c.head {
		return ErrConflict
	}
	if s.run.status == Running {
		return nil
	}
	rec := Record{Kind: KindSnapshot, Time: s.last, Head: s.encodeSnapshotHead(), Data: s.encode()}
	if err := appendSealed(ctx, st, thread, c.head, rec); err != nil {
		return err
	}
	if c.named > c.head {
		c.base = c.head + 1
	}
	return nil
}
