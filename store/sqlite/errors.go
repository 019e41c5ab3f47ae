package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"raddle.dev/graph"
)

var (
	errChanged = errors.New("the thread was pruned or deleted while it was being read: read it again")
	errClosed  = errors.New("the store is closed")
)

// advice says, for SQLite's codes, what happened and what to do.
var advice = map[int]string{
	lib.SQLITE_BUSY:     "another process keeps the file locked: wait until it is done, or end it, and try again",
	lib.SQLITE_LOCKED:   "another process keeps the file locked: wait until it is done, or end it, and try again",
	lib.SQLITE_READONLY: "the file cannot be written: it and its directory need write permission, on a medium that is not read-only; or name another file",
	lib.SQLITE_CANTOPEN: "the file cannot be used: it and its directory need read and write permission, on a medium that is not read-only; or name another file",
	lib.SQLITE_FULL:     "the disk is full and nothing was written: free some space and try again",
	lib.SQLITE_IOERR:    "the disk failed to read or write: check it, and try again",
	lib.SQLITE_NOTADB:   "this is not a SQLite database: name another file, or move this one away",
	lib.SQLITE_CORRUPT:  "the database is damaged: restore it from a copy, or save what is left with sqlite3's .recover command",
	lib.SQLITE_TOOBIG:   "a value is larger than SQLite can hold (1 GB)",
}

// explainError adds to an error what was tried, where, and what to do next. Conflicts and
// the ends of contexts do not change.
func (s *Store) explainError(op string, err error) error {
	if err == nil || errors.Is(err, graph.ErrConflict) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	text := advice[resultCode(err)]
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		text = advice[lib.SQLITE_CANTOPEN]
	}
	if text != "" {
		return fmt.Errorf("sqlite: %s: %s: %s: %w", op, s.path, text, err)
	}
	return fmt.Errorf("sqlite: %s: %s: %w", op, s.path, err)
}

// resultCode returns the primary result code of an error of SQLite, else 0.
func resultCode(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool {
	c := resultCode(err)
	return c == lib.SQLITE_BUSY || c == lib.SQLITE_LOCKED
}

// isKeyTaken reports whether a row's key was not free, or could not be computed because the
// row before it is missing.
func isKeyTaken(err error) bool {
	c := resultCode(err)
	return c == lib.SQLITE_CONSTRAINT || c == lib.SQLITE_MISMATCH
}
