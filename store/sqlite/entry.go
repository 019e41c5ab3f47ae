package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"raddle.dev/memory"
)

var (
	_ memory.Store = (*Store)(nil)
	_ memory.Adder = (*Store)(nil)
)

// entries is what schema 4 added: the entries of package memory.
const entries = `
CREATE TABLE entry (
	namespace TEXT NOT NULL,
	key       TEXT NOT NULL,
	updated   INTEGER NOT NULL, -- Unix microseconds
	expires   INTEGER,          -- the same; NULL: never
	model     TEXT NOT NULL,
	value     BLOB NOT NULL,
	vector    BLOB,
	PRIMARY KEY (namespace, key)
);
CREATE INDEX expiry ON entry(expires) WHERE expires IS NOT NULL;
`

// How an entry is written.
const (
	addEntry = `INSERT INTO entry(namespace, key, updated, expires, model, value, vector) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)
		ON CONFLICT(namespace, key) DO `
	putEntry = addEntry + "UPDATE SET updated = ?3, expires = ?4, model = ?5, value = ?6, vector = ?7"
)

// PutEntry implements memory.Store. It uses the clock of this machine. It also deletes what has expired.
func (s *Store) PutEntry(ctx context.Context, e memory.Entry, ttl time.Duration) error {
	e, err := memory.CheckEntry(e, ttl)
	if err != nil {
		return err
	}
	return s.writeEntry(ctx, &e, ttl, putEntry)
}

// AddEntry implements memory.Adder.
func (s *Store) AddEntry(ctx context.Context, e memory.Entry, ttl time.Duration) error {
	e, err := memory.CheckEntry(e, ttl)
	if err != nil {
		return err
	}
	return s.writeEntry(ctx, &e, ttl, addEntry+"NOTHING")
}

// writeEntry executes a statement that writes an entry which was checked, after those that have expired are deleted.
func (s *Store) writeEntry(ctx context.Context, e *memory.Entry, ttl time.Duration, statement string) error {
	return s.changeEntry(ctx, "write", e.Namespace, e.Key, func() error {
		now := time.Now()
		var expires any
		if ttl > 0 {
			expires = now.Add(ttl).UnixMicro()
		}
		if _, err := s.w.exec("DELETE FROM entry WHERE expires <= ?", now.UnixMicro()); err != nil {
			return err
		}
		_, err := s.w.exec(statement, e.Namespace, e.Key, now.UnixMicro(), expires, e.Model, []byte(e.Value), memory.EncodeVector(e.Vector))
		return err
	})
}

// DeleteEntry implements memory.Store.
func (s *Store) DeleteEntry(ctx context.Context, namespace, key string) error {
	return s.changeEntry(ctx, "delete", namespace, key, func() error {
		const remove = "DELETE FROM entry WHERE namespace = ? AND key = ? AND (expires IS NULL OR expires > ?)"
		res, err := s.w.exec(remove, namespace, key, time.Now().UnixMicro())
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return memory.ErrNotFound
	})
}

// changeEntry stores all changes of f or none.
func (s *Store) changeEntry(ctx context.Context, what, namespace, key string, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	err := s.retryWhileBusy(ctx, func() error { return s.w.runTransaction(f) })
	if errors.Is(err, memory.ErrNotFound) {
		return err
	}
	return s.explainError(fmt.Sprintf("%s the entry %q of %q", what, key, namespace), err)
}

const selectEntries = "SELECT namespace, key, updated, ifnull(expires, 0), model, value, vector FROM entry WHERE (expires IS NULL OR expires > ?1) AND "

// GetEntry implements memory.Store.
func (s *Store) GetEntry(ctx context.Context, namespace, key string) (e memory.Entry, err error) {
	if s.noEntries {
		return e, memory.ErrNotFound
	}
	err = s.runQuery(ctx, func() error {
		st, err := s.read.get(selectEntries + "namespace = ?2 AND key = ?3")
		if err != nil {
			return err
		}
		e, err = scanEntry(st.QueryRowContext(context.Background(), time.Now().UnixMicro(), namespace, key))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return memory.Entry{}, memory.ErrNotFound
	}
	return e, s.explainError(fmt.Sprintf("read the entry %q of %q", key, namespace), err)
}

// ListEntries implements memory.Store. It reads a page at a time.
func (s *Store) ListEntries(ctx context.Context, namespace string) iter.Seq2[memory.Entry, error] {
	return func(yield func(memory.Entry, error) bool) {
		var last memory.Entry
		for more := !s.noEntries; more; {
			var page []memory.Entry
			err := s.runQuery(ctx, func() (err error) { page, more, err = s.readEntries(namespace, last); return err })
			if err != nil {
				yield(memory.Entry{}, s.explainError(fmt.Sprintf("list the entries of %q", namespace), err))
				return
			}
			for _, e := range page {
				if last = e; !yield(e, nil) {
					return
				}
			}
		}
	}
}

// readEntries reads the entries after last, and reports whether there may be more of them.
func (s *Store) readEntries(namespace string, last memory.Entry) (page []memory.Entry, more bool, err error) {
	// The character after / is 0. Between a namespace and those below it are others, such as a-b after a.
	within := "namespace >= ?4 AND namespace < ?4 || '0' AND (namespace = ?4 OR namespace > ?4 || '/')"
	if namespace == "" {
		within = "?4 = ''"
	}
	st, err := s.read.get(selectEntries + within + " AND (namespace, key) > (?2, ?3) ORDER BY namespace, key")
	if err != nil {
		return nil, false, err
	}
	rows, err := st.QueryContext(context.Background(), time.Now().UnixMicro(), last.Namespace, last.Key, namespace)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = rows.Close() }()
	for bytes := 0; len(page) < pageRows && bytes < pageBytes; {
		if !rows.Next() {
			return page, false, rows.Err()
		}
		e, err := scanEntry(rows)
		if err != nil {
			return nil, false, err
		}
		page = append(page, e)
		bytes = bytes + len(e.Value) + 4*len(e.Vector)
	}
	return page, true, nil
}

// scanEntry reads a row of selectEntries.
func scanEntry(row interface{ Scan(dest ...any) error }) (memory.Entry, error) {
	var e memory.Entry
	var updated, expires int64
	var value, vector []byte
	if err := row.Scan(&e.Namespace, &e.Key, &updated, &expires, &e.Model, &value, &vector); err != nil {
		return memory.Entry{}, err
	}
	e.Updated, e.Value, e.Vector = time.UnixMicro(updated), value, memory.DecodeVector(vector)
	if expires != 0 {
		e.Expires = time.UnixMicro(expires)
	}
	return e, nil
}
