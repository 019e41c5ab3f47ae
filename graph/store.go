package graph

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind says what a record is about.
type Kind uint8

// The kinds of records. Every record but a snapshot is a fact; a snapshot is the fold
// of all records before it, so that readers may start there. A fork is a snapshot of
// another thread.
const (
	KindStart    Kind = 1 + iota // a run started: input, frontier, what the caller attached
	KindClaim                    // a drive took the run over
	KindCall                     // a child graph started
	KindIntent                   // an effect is about to happen, or adds a note about itself
	KindEffect                   // an effect's result
	KindTask                     // a task's update, while its siblings may still run
	KindStep                     // a step's writes, and the frontier after it
	KindReturn                   // a child graph ended, or was dropped
	KindQuestion                 // a task asks
	KindAnswer                   // a question was answered
	KindEdit                     // the state was edited
	KindFork                     // the thread began as a copy of another
	KindEnd                      // a drive stopped, and why
	KindSnapshot
	KindFailure // an effect with an intent has failed: it is not in doubt
	KindVoid    // a step cannot be applied: the updates of the tasks that caused this are void
)

var kindNames = [...]string{"", "start", "claim", "call", "intent", "effect", "task", "step", "return", "question", "answer", "edit", "fork", "end", "snapshot", "failure", "void"}

// String returns the word for the kind: "start", "step", …; "unknown" for another number.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// isBase reports whether a reader may start at such a record.
func (k Kind) isBase() bool { return k == KindSnapshot || k == KindFork }

// Record is one entry of a journal. Head is small and says what happened; Data
// holds values. Both, and Sum, are opaque to a store.
type Record struct {
	// Seq is its place in the thread, from 1, without gaps.
	Seq int64

	// Kind says what it is about.
	Kind Kind

	// Time is when it was written, in Unix microseconds.
	Time int64

	// Head says what happened, in few bytes.
	Head []byte

	// Data holds values.
	Data []byte

	// Sum is a checksum, made and checked by this package; 0: none.
	Sum uint64
}

// Range selects records of a thread. The zero Range is all of them, oldest first.
type Range struct {
	// After selects only records with a greater Seq.
	After int64

	// UpTo selects only records with at most this Seq. If 0, all.
	UpTo int64

	// FromSnapshot starts at the newest KindSnapshot or KindFork within the range, if
	// there is one.
	FromSnapshot bool

	// Heads leaves Data nil.
	Heads bool

	// Newest yields the newest record first.
	Newest bool

	// Limit is the largest number of records. If 0, there is no limit.
	Limit int
}

// ThreadInfo is a line of a listing.
type ThreadInfo struct {
	// Name is the name of the thread.
	Name string

	// Head is the newest Seq.
	Head int64

	// First is the oldest record kept, and Last the newest; their Data is nil.
	First Record
	Last  Record

	// Lease is that of the running drive; zero: there is none, or the store has no
	// leases.
	Lease Lease
}

// Store keeps journals, one per thread. Implementations must be safe for concurrent
// use, also by several processes if they share the medium; graphtest has the suite that
// they must pass. A call whose context has ended does nothing and returns the context's
// error.
type Store interface {
	// Append adds records after the one numbered after, all or none, and numbers them
	// from there; Seq of recs is ignored. It fails with ErrConflict if the thread's
	// newest record is not after (0: the thread does not exist yet). It must not keep a
	// reference to recs; appending no records does nothing.
	Append(ctx context.Context, thread string, after int64, recs []Record) error

	// Read yields the records that the thread held when the loop began, batches whole
	// or not at all; the error, if any, is last. What it yields belongs to the caller;
	// nil and empty Head and Data are the same. An unknown thread is empty. The caller
	// may use the store inside the loop.
	Read(ctx context.Context, thread string, r Range) iter.Seq2[Record, error]

	// Threads lists the threads whose name begins with prefix, by name, descending,
	// without reading Data.
	Threads(ctx context.Context, prefix string) iter.Seq2[ThreadInfo, error]

	// Prune deletes, all or none, the records numbered below before; the newest record
	// stays unless its number is below before too: then the thread is deleted.
	Prune(ctx context.Context, thread string, before int64) error

	// Close releases what the store holds. Closing twice is allowed.
	Close() error
}

// DamagedError says that a record is not what was written: its checksum does not match.
// The records before it can still be read.
type DamagedError struct {
	// Thread, Seq and Kind name the record.
	Thread string
	Seq    int64
	Kind   Kind
}

// Error implements error.
func (e *DamagedError) Error() string {
	text := fmt.Sprintf("record %d of thread %s is damaged: its checksum does not match (%s); restore the store from a copy", e.Seq, e.Thread, e.Kind)
	if e.Seq > 1 {
		text += fmt.Sprintf(", or fork the thread at record %d, before it", e.Seq-1)
	}
	return text
}

// Records yields records like Store.Read and checks them: a damaged record is a
// *DamagedError. Records from before there were checksums are not checked. An error is
// last; an unknown thread has no records.
func Records(ctx context.Context, st Store, thread string, r Range) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if st == nil {
			yield(Record{}, errNoStore)
			return
		}
		c := newChecker(thread)
		for rec, err := range st.Read(ctx, thread, r) {
			if err == nil {
				err = c.verifyRecord(&rec, r.Heads)
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// appendSealed appends records with their checksums.
func appendSealed(ctx context.Context, st Store, thread string, after int64, recs ...Record) error {
	c := newChecker(thread)
	c.setChecksums(after, recs)
	return st.Append(ctx, thread, after, recs)
}

// A checker computes the checksums of a thread's records. They are CRC-32C: one of
// everything but Data, for readers of heads only, and one of everything.
type checker struct {
	thread string
	name   uint32   // checksum of the thread's name
	place  [17]byte // buffer for sum, allocated once for all records
}

func newChecker(thread string) checker {
	return checker{thread: thread, name: updateCRC(0, []byte(thread))}
}

func updateCRC(sum uint32, b []byte) uint32 {
	return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), b)
}

func (c *checker) computeSums(r *Record) (head, all uint32) {
	binary.BigEndian.PutUint64(c.place[:], uint64(r.Seq))
	binary.BigEndian.PutUint64(c.place[8:], uint64(r.Time))
	c.place[16] = byte(r.Kind)
	head = updateCRC(updateCRC(c.name, c.place[:]), r.Head)
	return head, updateCRC(head, r.Data)
}

// setChecksums sets the checksums of records that will be appended after a sequence number.
func (c *checker) setChecksums(after int64, recs []Record) {
	for i := range recs {
		r := &recs[i]
		r.Seq = after + int64(i) + 1
		head, all := c.computeSums(r)
		r.Sum = max(1, uint64(head)<<32|uint64(all)) // 0 means: no checksum
	}
}

// verifyRecord compares a record with its checksum. If headOnly, it checks only the head.
func (c *checker) verifyRecord(r *Record, headOnly bool) error {
	if r.Sum == 0 {
		return nil
	}
	head, all := c.computeSums(r)
	if headOnly {
		all = uint32(r.Sum)
	}
	if max(1, uint64(head)<<32|uint64(all)) == r.Sum {
		return nil
	}
	return &DamagedError{Thread: c.thread, Seq: r.Seq, Kind: r.Kind}
}

// Memory is a Store, with leases, whose content is lost when the process ends. Make it with
// NewMemory. It is safe for concurrent use.
type Memory struct {
	mu      sync.RWMutex
	threads map[string]*memThread
	leases  map[string]Lease
}

var _ Leaser = (*Memory)(nil)

// memThread holds the records first, first+1, …; a slice that was taken under the lock
// may be read without it, because entries never change.
type memThread struct {
	first int64
	recs  []Record
}

func (t *memThread) headSeq() int64 { return t.first + int64(len(t.recs)) - 1 }

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	return &Memory{threads: map[string]*memThread{}, leases: map[string]Lease{}}
}

// Append implements Store.
func (m *Memory) Append(ctx context.Context, thread string, after int64, recs []Record) error {
	if err := ctx.Err(); err != nil || len(recs) == 0 {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.threads[thread]
	switch {
	case t == nil && after != 0, t != nil && t.headSeq() != after:
		return ErrConflict
	case t == nil:
		t = &memThread{first: 1}
		m.threads[thread] = t
	}
	size := 0
	for i := range recs {
		size += len(recs[i].Head) + len(recs[i].Data)
	}
	if t.recs == nil {
		t.recs = make([]Record, 0, 8)
	}
	block := make([]byte, 0, size)
	for i, r := range recs {
		r.Seq = after + int64(i) + 1
		r.Head, r.Data, block = copyBytes(r.Head, r.Data, block)
		t.recs = append(t.recs, r)
	}
	return nil
}

// copyBytes appends the bytes of a record to block, and returns the copies and the longer
// block.
func copyBytes(head, data, block []byte) (_, _, behind []byte) {
	n := len(block)
	block = append(append(block, head...), data...)
	at := n + len(head)
	return block[n:at:at], block[at:len(block):len(block)], block
}

// clone returns the record with its own copy of the bytes.
func (r Record) clone() Record {
	r.Head, r.Data, _ = copyBytes(r.Head, r.Data, make([]byte, 0, len(r.Head)+len(r.Data)))
	return r
}

// zeroCopyMemory is a Memory that is read without copies.
type zeroCopyMemory struct{ *Memory }

// eachRecord calls add for records whose bytes it must not change, until add returns false.
func (m zeroCopyMemory) eachRecord(ctx context.Context, thread string, r Range, add func(Record, error) bool) {
	if err := ctx.Err(); err != nil {
		add(Record{}, err)
		return
	}
	l := m.selectRecords(thread, r)
	for i := 0; i < len(l) && add(l[i], nil); i++ {
	}
}

// Read implements Store.
func (m *Memory) Read(ctx context.Context, thread string, r Range) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(Record{}, err)
			return
		}
		l := m.selectRecords(thread, r)
		for i := range l {
			rec := l[i]
			if r.Newest {
				rec = l[len(l)-1-i]
			}
			if r.Limit > 0 && i >= r.Limit {
				return
			}
			if r.Heads {
				rec.Data = nil
			}
			rec = rec.clone()
			if !yield(rec, nil) {
				return
			}
		}
	}
}

func (m *Memory) selectRecords(thread string, r Range) []Record {
	m.mu.RLock()
	defer m.mu.RUnlock()
	t := m.threads[thread]
	if t == nil {
		return nil
	}
	from, to := max(0, r.After+1-t.first), int64(len(t.recs))
	if r.UpTo > 0 {
		to = min(to, r.UpTo+1-t.first)
	}
	if from >= to {
		return nil
	}
	l := t.recs[from:to]
	for i := len(l) - 1; i >= 0 && r.FromSnapshot; i-- {
		if l[i].Kind.isBase() {
			return l[i:]
		}
	}
	return l
}

// Threads implements Store.
func (m *Memory) Threads(ctx context.Context, prefix string) iter.Seq2[ThreadInfo, error] {
	return func(yield func(ThreadInfo, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(ThreadInfo{}, err)
			return
		}
		for _, i := range m.listThreads(prefix) {
			if !yield(i, nil) {
				return
			}
		}
	}
}

func (m *Memory) listThreads(prefix string) []ThreadInfo {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var l []ThreadInfo
	for name, t := range m.threads {
		if strings.HasPrefix(name, prefix) {
			i := ThreadInfo{Name: name, Head: t.headSeq(), First: t.recs[0], Last: t.recs[len(t.recs)-1]}
			i.First.Data, i.Last.Data = nil, nil
			i.First.Head, i.Last.Head = slices.Clone(i.First.Head), slices.Clone(i.Last.Head)
			i.Lease = m.currentLease(name)
			l = append(l, i)
		}
	}
	slices.SortFunc(l, func(a, b ThreadInfo) int { return cmp.Compare(b.Name, a.Name) })
	return l
}

// Prune implements Store.
func (m *Memory) Prune(ctx context.Context, thread string, before int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.threads[thread]
	switch {
	case t == nil || before <= t.first:
		return nil
	case before > t.headSeq():
		delete(m.threads, thread)
		delete(m.leases, thread)
		return nil
	}
	m.threads[thread] = &memThread{first: before, recs: slices.Clone(t.recs[before-t.first:])}
	return nil
}

// AcquireLease implements Leaser.
func (m *Memory) AcquireLease(ctx context.Context, thread, owner, over string, ttl time.Duration) (Lease, error) {
	return m.useLease(ctx, thread, func(l Lease) {
		if l.Owner == "" || l.Expired || l.Owner == owner || l.Owner == over {
			m.leases[thread] = Lease{Owner: owner, Until: time.Now().Add(ttl)}
		}
	})
}

// RenewLease implements Leaser.
func (m *Memory) RenewLease(ctx context.Context, thread, owner string, ttl time.Duration) (Lease, error) {
	return m.useLease(ctx, thread, func(l Lease) {
		if l.Owner == owner {
			m.leases[thread] = Lease{Owner: owner, Until: time.Now().Add(ttl)}
		}
	})
}

// ReleaseLease implements Leaser.
func (m *Memory) ReleaseLease(ctx context.Context, thread, owner string) error {
	_, err := m.useLease(ctx, thread, func(l Lease) {
		if l.Owner == owner {
			delete(m.leases, thread)
		}
	})
	return err
}

// ReadLease implements Leaser.
func (m *Memory) ReadLease(ctx context.Context, thread string) (Lease, error) {
	return m.useLease(ctx, thread, func(Lease) {})
}

// useLease calls change with the lease of a thread, which it may replace in m.leases, and
// returns the lease after that.
func (m *Memory) useLease(ctx context.Context, thread string, change func(Lease)) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return Lease{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m.currentLease(thread))
	return m.currentLease(thread), nil
}

// currentLease returns the lease of a thread. The caller must hold mu.
func (m *Memory) currentLease(thread string) Lease {
	l, ok := m.leases[thread]
	l.Expired = ok && !time.Now().Before(l.Until)
	return l
}

// Close implements Store.
func (m *Memory) Close() error { return nil }
