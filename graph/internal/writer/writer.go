// Package writer is the writing side of a thread: records are gathered, written in batches, and folded into snapshots
// when that is due, and what refuses one of them stops the drive.
package writer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// Config is what a ThreadWriter needs of its drive.
type Config struct {
	Store    journal.Store
	Thread   string
	Patience *journal.Patience // of the drive
	Watch    *Stopwatch        // started
	Stop     func()            // cancels the drive: nothing starts after a write that failed
}

// A ThreadWriter is the writing side of a thread. It is the only writer of a drive: records are gathered, and a caller
// that needs them to be durable writes all gathered records. A nil ThreadWriter holds nothing, and stores nothing.
type ThreadWriter struct {
	Config

	Waits context.Context // its end ends the waiting for a store that is away
	Run   record.Run      // for the record of the end

	saved   atomic.Int64      // number of the newest record that is in the store; it changes while writing is held
	writing Lock              // one batch at a time, also while it waits for the store
	sums    journal.Checksums // used by the goroutine that writes
	mu      sync.Mutex        // guards the fields below
	pending []journal.Record
	spare   []journal.Record // for pending while a batch is written
	few     [4]journal.Record
	err     error
	bytes   int // of records since the last snapshot
	weight  int // bytes plus recordWeight for each record
	size    int // of live state
}

// New returns the writer of a thread that was read to its end. waits is its Waits.
func New(waits context.Context, c Config, s *fold.Thread) *ThreadWriter {
	w := &ThreadWriter{Config: c, Waits: waits, writing: NewLock(), sums: s.Sums, bytes: s.Bytes, weight: s.Weight, size: s.Size}
	w.pending = w.few[:0]
	w.saved.Store(s.Head)
	return w
}

// SavedHead returns the number of the newest record that is in the store.
func (w *ThreadWriter) SavedHead() int64 { return w.saved.Load() }

const (
	maxPending = 1000            // gathered records, at every durability
	lookLimit  = 5 * time.Second // for a look at the head of the thread
)

// AddRecord gathers a record. If flush, it returns when the record is durable. The record may alias b.Value,
// which must not change any more.
func (w *ThreadWriter) AddRecord(k journal.Kind, b *record.Parts, flush bool) error {
	return w.AddRecords(flush, fold.NewRecord(k, b))
}

// AddRecords adds records that reach the store together or not at all.
func (w *ThreadWriter) AddRecords(flush bool, recs ...journal.Record) error {
	_, full, err := w.queueRecords(recs)
	if err != nil || !flush && !full {
		return err
	}
	return w.Flush()
}

// AddNumbered is AddRecords for one record, and returns the sequence number that the record has
// or will have.
func (w *ThreadWriter) AddNumbered(flush bool, rec journal.Record) (seq int64, err error) {
	w.writing.Lock() // no batch is being written, and no snapshot comes between
	defer w.writing.Unlock()
	n, full, err := w.queueRecords([]journal.Record{rec})
	if err != nil {
		return 0, err
	}
	seq = w.saved.Load() + int64(n)
	if flush || full {
		err = w.writePending()
	}
	return seq, err
}

// queueRecords gathers records, and returns how many wait to be written.
func (w *ThreadWriter) queueRecords(recs []journal.Record) (n int, full bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, false, w.err
	}
	for _, r := range w.stampRecords(recs) {
		if r.Kind == journal.KindStart {
			w.Run.Started = r.Time
		}
		w.pending = append(w.pending, r)
		w.countBytes(&r)
	}
	return len(w.pending), len(w.pending) >= maxPending, nil
}

// stampRecords gives records the time. The time between two records of a drive counts as active, but that before a
// claim does not: if the clock has jumped forward, the drive claims the run again first. The caller must hold mu.
func (w *ThreadWriter) stampRecords(recs []journal.Record) []journal.Record {
	if len(recs) == 0 {
		return nil
	}
	now, jumped := w.Watch.readStamp()
	if k := recs[0].Kind; jumped && k != journal.KindStart && k != journal.KindClaim {
		recs = append([]journal.Record{fold.NewRecord(journal.KindClaim, &record.Parts{Run: w.Run.ID})}, recs...)
	}
	for i := range recs {
		recs[i].Time = now.UnixMicro()
	}
	return recs
}

// AddStateSize adds a change of the size of live state, and returns the new size.
func (w *ThreadWriter) AddStateSize(n int) (size int) {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.size += n
	return w.size
}

// StoreError returns the first error of the store. Without a journal it returns nil.
func (w *ThreadWriter) StoreError() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// StopWithError stops the drive: nothing more is written, and no effect starts.
func (w *ThreadWriter) StopWithError(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.mu.Unlock()
	w.Stop()
}

// Flush makes all gathered records durable.
func (w *ThreadWriter) Flush() error {
	if w == nil {
		return nil
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	return w.writePending()
}

// writePending appends the gathered records. The caller must hold writing.
func (w *ThreadWriter) writePending() error {
	w.mu.Lock()
	batch := w.pending
	err := w.err
	head := w.saved.Load()
	w.pending = w.spare
	w.spare = nil
	w.mu.Unlock()
	if err != nil || len(batch) == 0 {
		return err
	}
	err = w.appendBatch(head, batch)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if w.err == nil { // otherwise the drive was ended while it waited for the store
			w.err = err
		}
		w.Stop()
		return w.err
	}
	w.saved.Store(head + int64(len(batch)))
	clear(batch)
	if w.spare = batch[:0]; len(w.pending) == 0 {
		w.pending, w.spare = w.spare, w.pending
	}
	return nil
}

// appendBatch writes records, and waits for a store that is away. The end of the drive ends only the waiting, so
// that a write is not cancelled halfway. A panic in a store is a failed write.
func (w *ThreadWriter) appendBatch(head int64, batch []journal.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError("Store.Append", p)
		}
	}()
	w.sums.Set(head, batch)
	if err = w.Patience.AppendSealed(w.Waits, w.Store, w.Thread, head, batch); err != nil {
		return fmt.Errorf("save thread %s: %w", w.Thread, err)
	}
	return nil
}

// LoadThread reads the thread up to the newest record that is written. It is not cancelled while the store is there.
func (w *ThreadWriter) LoadThread() (s *fold.Thread, err error) {
	err = w.Patience.Retry(w.Waits, func(ctx context.Context) (err error) {
		s, err = fold.LoadToDrive(context.WithoutCancel(ctx), w.Store, w.Thread)
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

// SnapshotIfDue writes the fold of the journal when that is due, so that reading is bounded.
// It at most doubles what is written, or triples it if state only grows. The fold is
// read back from the store, so that no second copy of the state is needed.
func (w *ThreadWriter) SnapshotIfDue() error {
	if !w.isSnapshotDue() {
		return nil
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if !w.isSnapshotDue() { // another child has written it
		return nil
	}
	if err := w.writePending(); err != nil {
		return err
	}
	err := w.writeSnapshot()
	if err != nil {
		w.StopWithError(err)
	}
	return err
}

func (w *ThreadWriter) isSnapshotDue() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.weight-w.bytes >= snapshotRecords*fold.RecordWeight && 2*w.bytes >= w.size {
		return true
	}
	return w.weight >= snapshotAfter && w.bytes >= w.size && (w.weight >= snapshotWeight*w.size || w.bytes >= snapshotBytes*w.size)
}

// writeSnapshot appends the snapshot. The caller must hold writing.
func (w *ThreadWriter) writeSnapshot() error {
	s, err := w.LoadThread()
	if err != nil {
		return err
	}
	now, _ := w.Watch.readStamp() // the time before a snapshot does not count
	rec := s.NewSnapshot(journal.KindSnapshot, now.UnixMicro(), "")
	w.mu.Lock()
	w.bytes = 0
	w.weight = 0
	w.size = len(rec.Data) // includes overlays, effects and updates of open steps
	w.mu.Unlock()
	return w.appendBehind(s.Head, []journal.Record{rec})
}

// appendBehind writes records to the thread, which was read up to head and must end there. The caller must hold
// writing.
func (w *ThreadWriter) appendBehind(head int64, recs []journal.Record) error {
	if head != w.saved.Load() {
		return fmt.Errorf("save thread %s: %w", w.Thread, journal.ErrConflict)
	}
	if err := w.appendBatch(head, recs); err != nil {
		return err
	}
	w.saved.Add(int64(len(recs)))
	return nil
}

// HasHeadMoved reports whether another has appended to the thread. While records are being written, it waits if wait is
// set, else known is false: then the store compares.
func (w *ThreadWriter) HasHeadMoved(wait bool) (moved, known bool, err error) {
	if !w.writing.TryLock() {
		if !wait {
			return false, false, nil
		}
		w.writing.Lock()
	}
	defer w.writing.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), lookLimit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError("Store.Read", p)
		}
		if ctx.Err() != nil { // whatever the store makes of that
			err = journal.MarkUnavailable(err)
		}
	}()
	head, err := fold.ReadHead(ctx, w.Store, w.Thread)
	if err != nil {
		return false, false, err
	}
	return head != w.saved.Load(), true, nil
}

// InsertRecords writes records that are made from what the thread holds, before those that are gathered later.
func (w *ThreadWriter) InsertRecords(makeRecords func(*fold.Thread) ([]journal.Record, error)) error {
	w.writing.Lock() // nothing is written between the reading and the records
	defer w.writing.Unlock()
	if err := w.writePending(); err != nil {
		return err
	}
	s, err := w.LoadThread()
	if err != nil {
		return err
	}
	recs, err := makeRecords(s)
	if err != nil {
		return err
	}
	w.mu.Lock()
	recs = w.stampRecords(recs)
	for i := range recs {
		w.countBytes(&recs[i])
	}
	w.mu.Unlock()
	if err = w.appendBehind(s.Head, recs); err != nil {
		w.StopWithError(err)
	}
	return err
}

// countBytes adds a record to those since the last snapshot. The caller must hold mu.
func (w *ThreadWriter) countBytes(r *journal.Record) {
	w.bytes += len(r.Head) + len(r.Data)
	w.weight += len(r.Head) + len(r.Data) + fold.RecordWeight
}
