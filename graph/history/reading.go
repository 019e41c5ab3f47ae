package history

import (
	"context"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// A Reading is a thread that is read record by record, oldest first. One pass gives the line and the content of each
// record, and the snapshot at any of them: records that are appended later are added when they are there. It is not
// safe for concurrent use.
type Reading struct {
	thread string
	loader *fold.Loader
}

// NewReading returns a reading of a thread that has read no record yet.
func NewReading(thread string) *Reading {
	return &Reading{thread: thread, loader: fold.NewLoader(thread)}
}

// Head returns the number of the newest record that was added; 0: there is none.
func (r *Reading) Head() int64 { return r.loader.Head }

// Status returns the status that the records have given the newest run of the thread: [graph.Crashed] if none says that
// its last drive has stopped. There must be a record.
func (r *Reading) Status() graph.Status { return graph.Status(r.loader.RunStatus()) }

// Meta returns what the caller of the newest run has attached to its start: see graph.Input.Meta. It must not be changed.
func (r *Reading) Meta() []byte { return r.loader.Meta }

// Due returns when the first timer or deadline of a run that waits has come; zero: it waits for answers alone, or not.
func (r *Reading) Due() time.Time { return record.TimeOf(r.loader.DueTime()) }

// Add adds the next record of the thread, which was read with its data and is not verified yet, and returns its line
// and content. The first one is the first of the thread. It fails with a *journal.DamagedError; nothing can be added
// after that.
func (r *Reading) Add(rec journal.Record) (e Entry, c Content, err error) {
	b := record.Parts{}
	if err := r.loader.Add(&rec, &b); err != nil {
		return e, c, err
	}
	if c, err = newContent(&rec, &b); err != nil {
		return e, c, &journal.DamagedError{Thread: r.thread, Seq: rec.Seq, Kind: rec.Kind, Err: err}
	}
	return newEntry(&rec, &b), c, nil
}

// Snapshot returns what the thread holds after the newest record that was added. It is that of [Inspect], and later
// records do not change it. live is the store if that is the newest record of the thread: its lease says whether a
// drive works; nil: it is not. There must be a record.
func (r *Reading) Snapshot(ctx context.Context, live journal.Store) (*Snapshot, error) {
	v, err := newSnapshot(r.thread, &r.loader.Thread)
	if err == nil && live != nil {
		err = v.readLease(ctx, live)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}
