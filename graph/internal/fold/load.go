package fold

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// errMissing says that a store has lost a record.
var errMissing = errors.New("it is missing")

// LoadThread reads and folds a thread up to a record (0: all). A panic in a store is a failure to
// read. The Thread of an unknown thread has Head 0.
func LoadThread(ctx context.Context, st journal.Store, thread string, upTo int64) (*Thread, error) {
	if st == nil {
		return nil, journal.ErrNoStore
	}
	return foldRecords(thread, func(add func(journal.Record, error) bool) {
		st.Read(ctx, thread, journal.Range{FromSnapshot: true, UpTo: upTo})(add) // Read itself may panic, too
	})
}

// LoadPoint reads and folds a thread up to a record (0: all), which must exist.
func LoadPoint(ctx context.Context, st journal.Store, p journal.Point) (*Thread, error) {
	if p.Seq < 0 {
		return nil, fmt.Errorf("%w %s: records are numbered from 1, not %d", journal.ErrNoPoint, p.Thread, p.Seq)
	}
	s, err := LoadThread(ctx, st, p.Thread, p.Seq)
	if err != nil || s.Head > 0 && (p.Seq == 0 || p.Seq == s.Head) {
		return s, err
	}
	head, err := ReadHead(ctx, st, p.Thread)
	switch {
	case err != nil:
		return nil, err
	case head == 0:
		return nil, fmt.Errorf("%w: %s", journal.ErrNoThread, p.Thread)
	case p.Seq > head:
		return nil, fmt.Errorf("%w %s: its newest record is %d, not %d", journal.ErrNoPoint, p.Thread, head, p.Seq)
	}
	return nil, fmt.Errorf("%w %s: record %d was pruned", journal.ErrNoPoint, p.Thread, p.Seq)
}

// ReadHead returns the number of the newest record of a thread; 0: there is no record.
func ReadHead(ctx context.Context, st journal.Store, thread string) (head int64, err error) {
	for r, err := range st.Read(ctx, thread, journal.Range{Heads: true, Newest: true, Limit: 1}) {
		if err != nil {
			return 0, fmt.Errorf("read the end of thread %s: %w", thread, err)
		}
		head = r.Seq
	}
	return head, nil
}

// LoadToDrive is LoadThread for a drive, which never changes what it has read: if the store is in
// memory, the bytes of the records are shared with it.
func LoadToDrive(ctx context.Context, st journal.Store, thread string) (*Thread, error) {
	m, ok := st.(*journal.Memory)
	if !ok {
		return LoadThread(ctx, st, thread, 0)
	}
	return foldRecords(thread, func(add func(journal.Record, error) bool) {
		m.EachFromSnapshot(ctx, thread, add)
	})
}

// foldRecords folds the records of a thread.
func foldRecords(thread string, records iter.Seq2[journal.Record, error]) (s *Thread, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("read thread %s: %w", thread, panics.NewError("Store.Read", p))
		}
	}()
	l := NewLoader(thread)
	records(l.addRecord)
	if l.err != nil {
		return nil, l.err
	}
	l.measureSize()
	return &l.Thread, nil
}

// A Loader is a Thread while its records are read, one after another from the first one, or from a snapshot. It is a
// type, because a loop would allocate more for each thread that is opened.
type Loader struct {
	Thread
	thread string
	err    error
	summed bool // the record before it had a checksum
}

// NewLoader returns a loader that has read nothing of a thread.
func NewLoader(thread string) *Loader {
	l := &Loader{thread: thread}
	l.Sums = journal.NewChecksums(thread)
	return l
}

// verifyRecord refuses a damaged record. After a record with a checksum, every record must
// have one.
func (l *Loader) verifyRecord(r *journal.Record) error {
	if r.Sum == 0 && l.summed {
		return &journal.DamagedError{Thread: l.thread, Seq: r.Seq, Kind: r.Kind}
	}
	l.summed = r.Sum != 0
	return l.Sums.Verify(r, false)
}

func (l *Loader) addRecord(r journal.Record, err error) bool {
	switch {
	case l.err != nil: // the store has continued although add returned false
	case err != nil:
		l.err = fmt.Errorf("read thread %s: %w", l.thread, err)
	default:
		b := record.Parts{}
		l.err = l.Add(&r, &b)
	}
	return l.err == nil
}

// Add folds the next record, and sets b, which must be empty, to what the record holds. It fails with
// journal.ErrNoPoint if the first record needs older ones, which were pruned, and otherwise with a
// *journal.DamagedError.
func (l *Loader) Add(r *journal.Record, b *record.Parts) error {
	switch {
	case l.Head > 0 && r.Seq != l.Head+1:
		return &journal.DamagedError{Thread: l.thread, Seq: l.Head + 1, Err: errMissing}
	case l.Head == 0 && r.Seq > 1 && !r.Kind.IsBase():
		return fmt.Errorf("%w %s: what lies before record %d was pruned", journal.ErrNoPoint, l.thread, r.Seq)
	}
	if err := l.verifyRecord(r); err != nil {
		return err
	}
	if err := l.applyParts(r, b); err != nil {
		return &journal.DamagedError{Thread: l.thread, Seq: r.Seq, Kind: r.Kind, Err: err}
	}
	return nil
}
