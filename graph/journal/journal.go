// Package journal says how the journals of runs are kept: a [Store] holds one sequence of records for
// each thread, appends to it only at its end, and may have leases, so that two processes do not work
// on one run. [Memory] is a store for tests and short programs; the packages store/sqlite,
// store/postgres and store/redis have others. Package graph writes the records and
// decides what they say; package history shows them.
//
//	st := journal.NewMemory()
//	r := &graph.Runner{Graph: g, Store: st}
//	res, err := r.Invoke(ctx, graph.Input{Thread: "t1"})
//	for rec, err := range journal.Records(ctx, st, "t1", journal.Range{}) {
//		fmt.Println(rec.Seq, rec.Kind, err) // 1 start, 2 step, …
//	}
package journal

import (
	"context"
	"iter"
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
	KindSnapshot                 // the fold of all records before it
	KindFailure                  // an effect with an intent has failed: it is not in doubt
	KindVoid                     // a step cannot be applied: the updates of the tasks that caused this are void
)

var kindNames = [...]string{"", "start", "claim", "call", "intent", "effect", "task", "step", "return", "question", "answer", "edit", "fork", "end", "snapshot", "failure", "void"}

// String returns the word for the kind: "start", "step", …; "unknown" for another number.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// IsKnown reports whether this version knows the kind.
func (k Kind) IsKnown() bool { return k > 0 && int(k) < len(kindNames) }

// IsBase reports whether a reader may start at such a record.
func (k Kind) IsBase() bool { return k == KindSnapshot || k == KindFork }

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

	// Sum is a checksum, which Append sets and Records checks; 0: none.
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
//
// An error is one of three: ErrConflict; one that MarkUnavailable has marked, if the same call may succeed later; any
// other was refused permanently, and ends the work. A drive waits some minutes for a store that is not available, and
// starts no effect meanwhile; see Patience. For a store that marks nothing, errors of the network and deadlines of the
// store's own count as marked. An Append whose outcome the store does not know must be marked, or be of the network:
// its caller appends again, and ErrConflict or success says what happened.
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

// Records yields records like Store.Read and checks them: a damaged record is a
// *DamagedError. Records from before there were checksums are not checked. An error is
// last; an unknown thread has no records.
func Records(ctx context.Context, st Store, thread string, r Range) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if st == nil {
			yield(Record{}, ErrNoStore)
			return
		}
		c := NewChecksums(thread)
		for rec, err := range st.Read(ctx, thread, r) {
			if err == nil {
				err = c.Verify(&rec, r.Heads)
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

// Append appends records with their checksums, like Store.Append. It waits some seconds for a store that
// is not available, as Patience.Append does.
func Append(ctx context.Context, st Store, thread string, after int64, recs ...Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return Patience{Limit: ShortPatience}.Append(ctx, st, thread, after, recs...)
}

// A Point is a place in a thread's history: everything up to one record. Places inside
// a step and inside a child graph are points too.
type Point struct {
	// Thread is the thread.
	Thread string

	// Seq is the number of the record; 0: the newest.
	Seq int64
}

// authorKey is the key of an author in a context.
type authorKey struct{}

// WithAuthor returns a context that names the person or program that asks for a change: a fork, an edit
// or an abandoned run is recorded with the name, and history.Entry.By shows it. An answer has its own
// name, graph.Answer.By.
func WithAuthor(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, authorKey{}, name)
}

// AuthorOf returns the name that WithAuthor has put into a context, or "".
func AuthorOf(ctx context.Context) string {
	name, _ := ctx.Value(authorKey{}).(string)
	return name
}
