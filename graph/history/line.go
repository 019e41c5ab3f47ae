package history

import (
	"cmp"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// A Line is what a listing shows of the newest run of a thread, from its records, one after the other. Unlike that of
// [Describe], it names the run, also while a drive works on it. The zero Line has no record. It must not be copied with
// its Questions and Asked shared: Add replaces them, and changes none of them.
type Line struct {
	// RunInfo is that of the run. Its Status is Crashed while no drive has recorded that it stopped: ApplyLease says
	// whether one works.
	RunInfo

	// Meta is that of the start, or the one that replaced it, after the record that has it; otherwise it stays as the
	// caller leaves it.
	Meta []byte

	// Active is the time that drives have worked on the run, without jumps of the clock. Driving says that the last
	// drive has not recorded that it stopped, and Last is the time of the newest record, in Unix microseconds.
	Active  time.Duration
	Driving bool
	Last    int64

	// Asked are the questions of the run that have no answer, also while a drive works, without timers: in the order of
	// Questions if the run waits, otherwise the newest last.
	Asked []Asked
}

// Add adds the next record of the thread. After an error the line must not be used.
func (l *Line) Add(r *journal.Record) error {
	fold.AddActiveTime(r, &l.Active, &l.Driving, &l.Last)
	first := l.Head == 0
	l.Head = r.Seq
	l.Updated = timeOf(r.Time)
	b := record.Parts{}
	switch r.Kind {
	case journal.KindStart, journal.KindFork, journal.KindClaim:
		if err := b.Read(uint8(r.Kind), r.Head, r.Data); err != nil {
			return err
		}
	case journal.KindEnd, journal.KindEdit:
		if err := b.ReadHead(uint8(r.Kind), r.Head); err != nil {
			return err
		}
	case journal.KindSnapshot:
		if !first {
			return nil // it repeats what was added
		}
		if err := b.Read(uint8(r.Kind), r.Head, r.Data); err != nil {
			return err
		}
	default:
		l.Status = graph.Crashed
		l.Reason = ""
		l.Questions = nil
		l.Due = time.Time{}
		return l.addAsked(r, &b)
	}
	if err := l.addAsked(r, &b); err != nil {
		return err
	}
	switch r.Kind {
	case journal.KindClaim:
		l.Status = graph.Crashed
		l.Reason = ""
		l.Questions = nil
		l.Due = time.Time{}
		l.setMeta(b.Meta)
		return nil
	case journal.KindStart:
		b.Started = r.Time
		b.Status = record.Running
		l.setMeta(b.Meta)
	case journal.KindFork, journal.KindSnapshot:
		l.From = journal.Point(b.Origin)
		l.setState(b.State)
	default:
		b.Run = cmp.Or(b.Run, l.Run) // the oldest edits do not name it
		if !b.Named {
			b.Label = l.Label
			b.Graph = l.Graph
			b.Started = l.Started.UnixMicro()
		}
	}
	b.Origin = record.Origin(l.From)
	l.Questions = nil
	l.setLine(&b)
	return nil
}

// setState takes what the state of a snapshot or fork says of the run.
func (l *Line) setState(st *record.ThreadState) {
	if st == nil {
		return
	}
	l.setMeta(st.Meta)
	l.Active = st.Active
	l.Driving = st.Driving
}

// setMeta replaces Meta, if there is one.
func (l *Line) setMeta(meta []byte) {
	if len(meta) > 0 {
		l.Meta = meta
	}
}
