// Package sqlite keeps journals in one SQLite file, which several processes may
// use at the same time. It is pure Go: no C compiler, no library to install.
//
// A thread is a row of one table and its records are rows of another, keyed by
// thread and sequence number: two writers that append behind the same record
// meet on that key, and exactly one of them wins. The file is in WAL mode, so
// that readers and the writer do not wait for each other. What Append has
// returned from survives a crash of the process; a power cut may take the last
// records before the latest checkpoint with it, but leaves no gap and a sound
// file.
//
// The file must lie on a local disk: network file systems do not keep the locks
// that SQLite relies on.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"raddle.dev/graph"
)

// Store is a graph.Store in a file. It is safe for concurrent use, and other
// processes may use the file meanwhile, as may other Stores of this process.
//
// An operation whose context is cancelled ends before its next query; a query or
// a write that has begun is carried through, which takes milliseconds. Where
// another process keeps the file locked, an operation waits for ten seconds
// before it fails.
//
// An iterator fetches its records a page at a time and holds nothing while its
// consumer works: the consumer may be slow, and may use the Store. Read yields
// what the thread held when the loop began; if a Prune takes some of it away
// meanwhile, the iteration ends with an error rather than with a gap.
type Store struct {
	path     string
	db       *sql.DB // readers take their connections from here; the writer holds one of its own
	read     statements
	w        writer
	patience time.Duration
	readOnly bool // see OpenReadOnly
	old      bool // read-only, and of schema 1
}

// bases are the kinds that the index of snapshots is about.
func (s *Store) bases() string {
	if s.old {
		return basesOfSchema1
	}
	return bases
}

var _ graph.Store = (*Store)(nil)

// Close moves what the log holds into the file itself and releases the file.
// Whatever is called later fails, but closing twice is no fault.
func (s *Store) Close() error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.readOnly {
		s.w.none = errClosed
		return s.explain("close", errors.Join(s.read.close(), s.db.Close()))
	}
	if s.w.conn == nil {
		return nil
	}
	// A passive checkpoint waits for nobody. Where other processes are reading
	// it leaves something to them: the last one that closes the file does it all.
	_, err := s.w.conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)")
	err = errors.Join(err, s.w.close(), s.read.close(), s.db.Close())
	return s.explain("close", err)
}

// patiently calls f until the file is not locked, the Store's patience is at an
// end or ctx is cancelled. SQLite itself waits for busyTimeout in each call.
func (s *Store) patiently(ctx context.Context, f func() error) error {
	err := f()
	if !busy(err) {
		return err
	}
	for start := time.Now(); busy(err) && time.Since(start) < s.patience; err = f() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return err
}
