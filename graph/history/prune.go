package history

import (
	"context"
	"fmt"
	"math"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/internal/fence"
	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// Keep says what Prune keeps in addition to what a resume needs. A record is kept if at
// least one field names it; the zero Keep names none.
type Keep struct {
	// Records is the number of newest records.
	Records int

	// Steps is the number of newest steps of the root, with everything since.
	Steps int

	// Since keeps everything written at this time or later. If zero, it names nothing.
	Since time.Time
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
// starts at the same time, it or Prune gets journal.ErrConflict.
func Prune(ctx context.Context, st journal.Store, thread string, k Keep) (first int64, err error) {
	p, err := k.planPrune(ctx, st, thread)
	if err == nil && p.hasExcess() && p.inside == 0 {
		err = p.writeSnapshot(ctx, st, thread)
	}
	if err == nil && p.base > 0 {
		err = st.Prune(ctx, thread, p.base)
	}
	if err != nil {
		return 0, fmt.Errorf("prune thread %s: %w", thread, err)
	}
	return max(p.base, p.first), nil
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
func (k Keep) planPrune(ctx context.Context, st journal.Store, thread string) (p prunePlan, err error) {
	steps := 0
	more := true
	for e, err := range Entries(ctx, st, thread) {
		if err != nil {
			return p, err
		}
		if p.head == 0 {
			p.head = e.Seq
			p.named = e.Seq + 1
		}
		p.first = e.Seq
		if more = more && k.keepsRecord(e, p.head-e.Seq, steps); more {
			p.named = e.Seq
		} else if p.inside == p.named {
			p.base = p.inside
			p.first = p.inside
			return p, nil
		}
		switch {
		case e.Kind.IsBase() && more:
			p.inside = e.Seq
		case e.Kind.IsBase():
			p.base = e.Seq
			return p, nil
		case e.Kind == journal.KindStep && e.Path == "":
			steps++
		}
	}
	if p.head == 0 {
		return p, journal.ErrNoThread
	}
	return p, nil
}

// hasExcess reports whether there are records that neither k nor a resume needs.
func (p *prunePlan) hasExcess() bool {
	if p.base == 0 {
		return p.first < p.named
	}
	return p.base+1 < p.named
}

// writeSnapshot writes a snapshot after the newest record, unless a drive may be running.
func (p *prunePlan) writeSnapshot(ctx context.Context, st journal.Store, thread string) error {
	s, err := fold.LoadThread(ctx, st, thread, 0)
	if err != nil {
		return err
	}
	if s.Head != p.head {
		return journal.ErrConflict
	}
	if s.Run.Status == record.Running {
		return nil
	}
	rec := s.NewSnapshot(journal.KindSnapshot, s.Last, "")
	if err := journal.Append(ctx, st, thread, p.head, rec); err != nil {
		return err
	}
	if p.named > p.head {
		p.base = p.head + 1
	}
	return nil
}

// WriteSnapshot appends the fold of a thread as a snapshot, written now: readers may start there,
// and the thread is the one that was changed last. It changes no state. If another drive holds the
// thread, the error is a *graph.BusyError, provided the store implements journal.Leaser; without leases one of the
// two gets journal.ErrConflict. An unknown thread is journal.ErrNoThread.
func WriteSnapshot(ctx context.Context, st journal.Store, thread string) error {
	fail := func(err error) error { return fmt.Errorf("write a snapshot of thread %s: %w", thread, err) }
	s, err := fold.LoadPoint(ctx, st, journal.Point{Thread: thread})
	if err != nil {
		return fail(err)
	}
	if l, ok := st.(journal.Leaser); ok {
		lease, err := l.ReadLease(ctx, thread)
		if err == nil && lease.IsLive() {
			err = &graph.BusyError{Thread: thread, Run: s.Run.ID, Status: graph.Running, Lease: lease}
		}
		if err != nil {
			return fail(err)
		}
	}
	rec := s.NewSnapshot(journal.KindSnapshot, max(time.Now().UnixMicro(), s.Last), "")
	if err := journal.Append(ctx, st, thread, s.Head, rec); err != nil {
		return fail(err)
	}
	return nil
}

// Delete deletes a thread with all its records. Threads that were forked from it are
// copies and stay. An unknown thread is journal.ErrNoThread.
//
// If another drive holds the thread, the error is a *graph.BusyError, provided the store
// implements journal.Leaser; without leases that drive gets journal.ErrConflict at its next record.
// Processes that a killed drive has left behind keep running.
func Delete(ctx context.Context, st journal.Store, thread string) error {
	fail := func(err error) error { return fmt.Errorf("delete thread %s: %w", thread, err) }
	if st == nil {
		return fail(journal.ErrNoStore)
	}
	head, err := fold.ReadHead(ctx, st, thread)
	if err != nil {
		return fail(err)
	}
	if head == 0 {
		return fail(journal.ErrNoThread)
	}
	if l, ok := st.(journal.Leaser); ok {
		lease, err := l.ReadLease(ctx, thread)
		if err != nil {
			return fail(err)
		}
		if lease.IsLive() {
			return fail(&graph.BusyError{Thread: thread, Status: graph.Running, Lease: lease})
		}
	}
	if err := st.Prune(ctx, thread, math.MaxInt64); err != nil {
		return fail(err)
	}
	return nil
}

// Abandon ends the run of a thread by hand and permanently: nothing more of it runs,
// and its status is Abandoned. Its state stays, and a new run can be started on the
// thread. reason is shown to those who look at the run later; it may be empty.
//
// Processes that a killed drive has left behind keep running: InDoubt of Inspect names them. It returns the number of
// the record of the end; 0: the run was over before and keeps its status. A running drive ends with a
// *graph.DisplacedError and starts no other effect; Abandon returns when it has ended, after two seconds, or when ctx
// ends. If the drive appends first, Abandon tries again; only after ten times is the error journal.ErrConflict. An
// unknown thread is journal.ErrNoThread.
func Abandon(ctx context.Context, st journal.Store, thread, reason string) (seq int64, err error) {
	seq, err = fence.ChangeRun(ctx, st, thread, func(s *fold.Thread) ([]journal.Record, error) {
		if s.Run.Status.Final() {
			return nil, nil
		}
		return []journal.Record{newAbandonRecord(s, reason, journal.AuthorOf(ctx))}, nil
	})
	if err != nil {
		return 0, fmt.Errorf("abandon thread %s: %w", thread, err)
	}
	return seq, nil
}

// newAbandonRecord returns the end record. If the run has crashed, the time since then does
// not count as active.
func newAbandonRecord(s *fold.Thread, reason, by string) journal.Record {
	at := s.Last
	if !s.Driving {
		at = max(at, time.Now().UnixMicro())
	}
	b := record.Parts{Status: record.Abandoned, Reason: reason, Run: s.Run.ID, Label: s.Run.Label, Graph: s.Run.Graph, Started: s.Run.Started, By: by}
	rec := fold.NewRecord(journal.KindEnd, &b)
	rec.Time = at
	return rec
}
