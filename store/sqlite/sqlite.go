// Package sqlite keeps journals in one SQLite file, which several processes may use at
// the same time. It is pure Go: no C compiler, no library to install.
//
// A thread is a row of one table and its records are rows of another, keyed by thread
// and sequence number: if two writers append after the same record, both try to insert
// that key, and exactly one of them succeeds. The file is in WAL mode, so that readers
// and the writer do not wait for each other. Records that Append has stored survive a
// crash of the process. A power failure may lose the newest records since the last
// checkpoint, but leaves no gap and a valid file.
//
// The file must be on a local disk: network file systems do not keep the locks that
// SQLite relies on.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"raddle.dev/graph"
)

// Store is a graph.Store in a file. It is safe for concurrent use. Other processes, and
// other Stores of this process, may use the file at the same time.
//
// An operation whose context is cancelled ends before its next query; a query or a
// write that has started runs to its end, which takes milliseconds. If another process
// keeps the file locked, an operation waits for ten seconds before it fails.
//
// An iterator reads its records a page at a time and holds no lock while its consumer
// runs: the consumer may be slow, and may use the Store. Read yields what the thread
// held when the loop began; if a Prune deletes some of it meanwhile, the iteration ends
// with an error, not with a gap.
type Store struct {
	path     string
	db       *sql.DB // readers take their connections from here; the writer holds a separate one
	read     statements
	w        writer
	patience time.Duration
	readOnly bool // see OpenReadOnly
	old      bool // read-only, and with schema 1
}

// baseKinds returns the kinds that the index of snapshots covers.
func (s *Store) baseKinds() string {
	if s.old {
		return basesOfSchema1
	}
	return bases
}

var _ graph.Store = (*Store)(nil)

// Close moves the content of the log into the file and releases the file. Later calls
// fail, except that closing twice is allowed.
func (s *Store) Close() error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.readOnly {
		s.w.none = errClosed
		return s.explainError("close", errors.Join(s.read.close(), s.db.Close()))
	}
	if s.w.conn == nil {
		return nil
	}
	// A passive checkpoint does not wait. If other processes are reading, it leaves a
	// part to them: the last process that closes the file does the rest.
	_, err := s.w.conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)")
	err = errors.Join(err, s.w.close(), s.read.close(), s.db.Close())
	return s.explainError("close", err)
}

// retryWhileBusy calls f until the file is not locked, the Store's patience has ended or ctx
// is cancelled. SQLite itself waits for busyTimeout in each call.
func (s *Store) retryWhileBusy(ctx context.Context, f func() error) error {
	err := f()
	if !isBusy(err) {
		return err
	}
	for start := time.Now(); isBusy(err) && time.Since(start) < s.patience; err = f() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return err
}
