package graph

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
	KindSnapshot
	KindFailure // an effect with an intent has failed: it is not in doubt
	KindVoid    // a step cannot be applied: the updates of the tasks that caused this are void
)

var kindNames = [...]string{"", "start", "claim", "call", "intent", "effect", "task", "step", "return", "question", "answer", "edit", "fork", "end", "snapshot", "failure", "void"}

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
	Seq  int64 // its place in the thread, from 1, without gaps
	Kind Kind
	Time int64 // Unix microseconds
	Head []byte
	Data []byte
	Sum  uint64 // a checksum, made and checked by this package; 0: none
}

// Range selects records of a thread. The zero Range is all of them, oldest first.
type Range struct {
	After        int64 // only records with a greater Seq
	UpTo         int64 // only records with at most this Seq; 0: all
	FromSnapshot bool  // start at the newest KindSnapshot or KindFork within the range, if there is one
	Heads        bool  // leave Data nil
	Newest       bool  // newest first
	Limit        int   // the largest number of records; 0: all
}

// ThreadInfo is a line of a listing.
type ThreadInfo struct {
	Name  string
	Head  int64  // the newest Seq
	First Record // the oldest record kept, Data nil
	Last  Record // the newest record, Data nil
	Lease Lease  // of the running drive; zero: none, or the store has no leases
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
