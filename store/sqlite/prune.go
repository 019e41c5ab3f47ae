package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Prune implements graph.Store. The file does not shrink: SQLite uses the space for
// later records. See Compact.
func (s *Store) Prune(ctx context.Context, thread string, before int64) error {
	if err := ctx.Err(); err != nil || before <= 1 {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	err := s.retryWhileBusy(ctx, func() error {
		return s.w.runTransaction(func() error { return s.w.pruneThread(thread, before) })
	})
	return s.explainError(fmt.Sprintf("prune thread %q", thread), err)
}

func (w *writer) pruneThread(thread string, before int64) error {
	if w.conn == nil {
		return w.none
	}
	const find = "SELECT t.id, (SELECT max(id) FROM record WHERE id < (t.id + 1) << 32) & 0xffffffff FROM thread t WHERE t.name = ?"
	var id, head int64
	err := w.conn.QueryRowContext(context.Background(), find, thread).Scan(&id, &head)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if before > head {
		if _, err := w.exec("DELETE FROM thread WHERE id = ?", id); err != nil {
			return err
		}
		if _, err := w.exec("DELETE FROM lease WHERE name = ?", thread); err != nil {
			return err
		}
	}
	_, err = w.exec("DELETE FROM record WHERE id > ? AND id < ?", id<<32, id<<32|min(before, head+1))
	return err
}
