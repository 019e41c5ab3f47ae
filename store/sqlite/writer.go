package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// writer is the one connection that writes. Its statements get a context that is
// never cancelled: a write takes microseconds, and the driver would keep a
// goroutine to watch over the context of each.
type writer struct {
	mu     sync.Mutex // held by whoever uses the rest
	conn   *sql.Conn  // nil: none says why
	none   error      // the Store is closed, or opened for reading
	stmts  *statements
	insert [batchRows + 1]string // by rows
	args   []any
	heads  []byte // of the records of one statement
}

func (w *writer) use(c *sql.Conn) {
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

// transaction keeps all of f or nothing. It waits for the file's lock at its
// beginning and nowhere else.
func (w *writer) transaction(f func() error) error {
	if _, err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		_, err = w.exec("COMMIT")
	}
	if err != nil {
		_, _ = w.exec("ROLLBACK") // fails where SQLite has done so itself
	}
	return err
}

// probe finds out at once, and not at the first record, that the file cannot be
// written. That another process has locked it is answer enough. (BEGIN IMMEDIATE
// would not do: SQLite makes it a mere BEGIN where it cannot write.)
func (w *writer) probe() error {
	if _, err := w.exec("DELETE FROM record WHERE id = 0"); !busy(err) {
		return err
	}
	return nil
}
