package graph

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"raddle.dev/graph/internal/fence"
	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/journal"
)

// Durability says when a run waits for its store. A crash loses at most what the run
// has not waited for; the run does that again.
type Durability int

// The levels of durability, strictest first.
const (
	EveryEffect   Durability = iota // each effect and each task before its result is used
	EveryStep                       // each step; effects and tasks are written with it
	QuestionsOnly                   // questions and the end of a drive; everything else is written with them
)

// A journalWriter is the writing side of a thread. It is the only writer of a drive: records
// are gathered, and a caller that needs them to be durable writes all gathered records.
type journalWriter struct {
	store  journal.Store
	thread string

	patience *journal.Patience // of the drive
	waits    context.Context   // its end ends the waiting for a store that is away

	level Durability
	clock Clock
	stop  func()   // cancels the drive: nothing starts after a write that failed
	run   fold.Run // for the record of the end

	saved   atomic.Int64      // number of the newest record that is in the store
	writing fence.Lock        // one batch at a time, also while it waits for the store
	sums    journal.Checksums // used by the goroutine that writes
	mu      sync.Mutex        // guards the fields below
	head    int64
	pending []journal.Record
	spare   []journal.Record // for pending while a batch is written
	few     [4]journal.Record
	err     error
	bytes   int // of records since the last snapshot
	weight  int // bytes plus recordWeight for each record
	size    int // of live state
}

// maxPending is the largest number of gathered records, at every durability.
const maxPending = 1000

// addRecord gathers a record. If flush, it returns when the record is durable.
func (j *journalWriter) addRecord(k journal.Kind, head, data []byte, flush bool) error {
	return j.addRecords(flush, journal.Record{Kind: k, Head: head, Data: data})
}

// addRecords adds records that reach the store together or not at all.
func (j *journalWriter) addRecords(flush bool, recs ...journal.Record) error {
	_, full, err := j.queueRecords(recs)
	if err != nil || !flush && !full {
		return err
	}
	return j.flush()
}

// addNumbered is gather for one record, and returns the sequence number that the record has
// or will have.
func (j *journalWriter) addNumbered(flush bool, rec journal.Record) (seq int64, err error) {
	j.writing.Lock() // no batch is being written, and no snapshot comes between
	defer j.writing.Unlock()
	n, full, err := j.queueRecords([]journal.Record{rec})
	if err != nil {
		return 0, err
	}
	seq = j.head + int64(n)
	if flush || full {
		err = j.writePending()
	}
	return seq, err
}

// queueRecords gathers records, and returns how many wait to be written.
func (j *journalWriter) queueRecords(recs []journal.Record) (n int, full bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return 0, false, j.err
	}
	now := j.clock.Now().UnixMicro()
	for _, r := range recs {
		if r.Time = now; r.Kind == journal.KindStart {
			j.run.Started = now
		}
		j.pending = append(j.pending, r)
		j.bytes += len(r.Head) + len(r.Data)
		j.weight += len(r.Head) + len(r.Data) + fold.RecordWeight
	}
	return len(j.pending), len(j.pending) >= maxPending, nil
}

// addStateSize adds a change of the size of live state, and returns the new size.
func (j *journalWriter) addStateSize(n int) (size int) {
	if j == nil {
		return 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.size += n
	return j.size
}

// storeError returns the first error of the store. Without a journal it returns nil.
func (j *journalWriter) storeError() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// stopWithError stops the drive: nothing more is written, and no effect starts.
func (j *journalWriter) stopWithError(err error) {
	j.mu.Lock()
	if j.err == nil {
		j.err = err
	}
	j.mu.Unlock()
	j.stop()
}

// flush makes all gathered records durable.
func (j *journalWriter) flush() error {
	if j == nil {
		return nil
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.writePending()
}

// writePending appends the gathered records. The caller must hold writing.
func (j *journalWriter) writePending() error {
	j.mu.Lock()
	batch, err, head := j.pending, j.err, j.head
	j.pending, j.spare = j.spare, nil
	j.mu.Unlock()
	if err != nil || len(batch) == 0 {
		return err
	}
	err = j.appendBatch(head, batch)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		if j.err == nil { // otherwise the drive was ended while it waited for the store
			j.err = err
		}
		j.stop()
		return j.err
	}
	j.head = head + int64(len(batch))
	j.saved.Store(j.head)
	clear(batch)
	if j.spare = batch[:0]; len(j.pending) == 0 {
		j.pending, j.spare = j.spare, j.pending
	}
	return nil
}

// appendBatch writes records, and waits for a store that is away. The end of the drive ends only the waiting, so
// that a write is not cancelled halfway. A panic in a store is a failed write.
func (j *journalWriter) appendBatch(head int64, batch []journal.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError("Store.Append", p)
		}
	}()
	j.sums.Set(head, batch)
	if err = j.patience.AppendSealed(j.waits, j.store, j.thread, head, batch); err != nil {
		return fmt.Errorf("save thread %s: %w", j.thread, err)
	}
	return nil
}

// loadThread reads the thread whose records are all written. It is not cancelled while the store is there.
func (j *journalWriter) loadThread() (s *fold.Thread, err error) {
	err = j.patience.Retry(j.waits, func(ctx context.Context) (err error) {
		s, err = fold.LoadToDrive(context.WithoutCancel(ctx), j.store, j.thread)
		return err
	})
	return s, err
}

// A snapshot is written when reading without it would cost several times the live
// state. The cost of reading is the weight of the records: for small records that is
// much more than their bytes, and a snapshot must not be larger than those. State that
// only grows is as long in its records as in a snapshot: there a snapshot only saves
// the cost of each record. It is written when there are many records with at least half
// the bytes of the snapshot.
const (
	snapshotAfter   = 64 << 10 // weight of records
	snapshotWeight  = 8        // times the live state: weight of records
	snapshotBytes   = 2        // times the live state: bytes of records
	snapshotRecords = 5000     // of state that only grows
)

// snapshotIfDue writes the fold of the journal when that is due, so that reading is bounded.
// It at most doubles what is written, or triples it if state only grows. The fold is
// read back from the store, so that no second copy of the state is needed.
func (j *journalWriter) snapshotIfDue() error {
	if !j.isSnapshotDue() {
		return nil
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	if !j.isSnapshotDue() { // another child has written it
		return nil
	}
	if err := j.writePending(); err != nil {
		return err
	}
	err := j.writeSnapshot()
	if err != nil {
		j.stopWithError(err)
	}
	return err
}

func (j *journalWriter) isSnapshotDue() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.weight-j.bytes >= snapshotRecords*fold.RecordWeight && 2*j.bytes >= j.size {
		return true
	}
	return j.weight >= snapshotAfter && j.bytes >= j.size && (j.weight >= snapshotWeight*j.size || j.bytes >= snapshotBytes*j.size)
}

// writeSnapshot appends the snapshot. The caller must hold writing.
func (j *journalWriter) writeSnapshot() error {
	s, err := j.loadThread()
	if err != nil {
		return err
	}
	rec := journal.Record{Kind: journal.KindSnapshot, Time: j.clock.Now().UnixMicro(), Head: s.EncodeSnapshotHead(), Data: s.EncodeSnapshot()}
	j.mu.Lock()
	head := j.head
	j.bytes, j.weight, j.size = 0, 0, len(rec.Data) // includes overlays, effects and updates of open steps
	j.mu.Unlock()
	if s.Head != head {
		return fmt.Errorf("save thread %s: %w", j.thread, journal.ErrConflict)
	}
	if err := j.appendBatch(head, []journal.Record{rec}); err != nil {
		return err
	}
	j.mu.Lock()
	j.head++
	j.saved.Store(j.head)
	j.mu.Unlock()
	return nil
}
