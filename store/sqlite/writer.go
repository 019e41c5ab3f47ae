package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// writer is the one connection that writes. Its statements get a context that is never
// cancelled: a write takes microseconds, and the driver would start a goroutine to
// watch the context of each.
type writer struct {
	mu     sync.Mutex // held while the other fields are used
	conn   *sql.Conn  // nil: none says why
	none   error      // the Store is closed, or opened for reading
	stmts  *statements
	insert [batchRows + 1]string // by rows
	args   []any
	heads  []byte // of the records of one statement
}

func (w *writer) useConnection(c *sql.Conn) {
	w.conn, w.stmts = c, &statements{on: c}
}

func (w *writer) close() error {
	err := errors.Join(w.stmts.close(), w.conn.Close())
	w.conn, w.stmts, w.none = nil, nil, errClosed
	return err
}

func (w *writer) exec(text string, args ...any) (sql.Result, error) {
	if w.conn == nil {
		return nil, w.none
	}
	st, err := w.stmts.get(text)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(context.Background(), args...)
}

// runTransaction stores all changes of f or none. It waits for the file's lock only at its
// beginning.
func (w *writer) runTransaction(f func() error) error {
	if _, err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		_, err = w.exec("COMMIT")
	}
	if err != nil {
		_, _ = w.exec("ROLLBACK") // fails if SQLite has already rolled back
	}
	return err
}

// checkWritable detects immediately, and not at the first record, that the file cannot be
// written. A lock of another process is not an error here. (BEGIN IMMEDIATE is not
// enough: SQLite turns it into BEGIN if it cannot write.)
func (w *writer) checkWritable() error {
	if _, err := w.exec("DELETE FROM record WHERE id = 0"); !isBusy(err) {
		return err
	}
	return nil
}
