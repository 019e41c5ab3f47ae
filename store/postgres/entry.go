package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"raddle.dev/memory"
)

var (
	_ memory.Store = (*Store)(nil)
	_ memory.Adder = (*Store)(nil)
)

const (
	entryColumns = "namespace, key, updated, expires, model, value, vector"
	entryLives   = "(expires IS NULL OR expires > clock_timestamp())"

	putEntry = "INSERT INTO raddle_entry AS e (" + entryColumns + `)
		SELECT $1, $2, n.now, n.now + nullif($3, 0) * interval '1 microsecond', $4, $5, $6 FROM (SELECT clock_timestamp() AS now) n
		ON CONFLICT (namespace, key) DO UPDATE SET
			updated = excluded.updated, expires = excluded.expires, model = excluded.model, value = excluded.value, vector = excluded.vector`
	addEntry = putEntry + " WHERE e.expires <= clock_timestamp()"
	// What another transaction deletes or renews at the same time is left to it.
	dropExpired = `DELETE FROM raddle_entry WHERE ctid IN (
		SELECT ctid FROM raddle_entry WHERE expires <= clock_timestamp() LIMIT 100 FOR UPDATE SKIP LOCKED)`
	deleteEntry = "DELETE FROM raddle_entry WHERE namespace = $1 AND key = $2 AND " + entryLives
	findEntry   = "SELECT " + entryColumns + " FROM raddle_entry WHERE namespace = $1 AND key = $2 AND " + entryLives

	// The character after / is 0. Between a namespace and those below it are others, such as a-b after a.
	withinEntry = "namespace >= $4 AND namespace < $4 || '0'::bytea AND (namespace = $4 OR namespace > $4 || '/'::bytea)"
	listEntries = "SELECT " + entryColumns + ` FROM (
		SELECT *, sum(octet_length(value) + octet_length(vector)) OVER (ORDER BY namespace, key ROWS UNBOUNDED PRECEDING) - octet_length(value) - octet_length(vector) AS bytes FROM (
			SELECT * FROM raddle_entry WHERE (namespace, key) > ($1, $2) AND %s AND ` + entryLives + ` ORDER BY namespace, key LIMIT $3
		) q
	) p WHERE bytes < %d ORDER BY namespace, key`
)

// PutEntry implements memory.Store. It uses the clock of the server. It also deletes some of what has expired.
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
	return s.writeEntry(ctx, &e, ttl, addEntry)
}

// writeEntry executes a statement that writes an entry which was checked.
func (s *Store) writeEntry(ctx context.Context, e *memory.Entry, ttl time.Duration, statement string) error {
	err := s.runWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		_, err := execStatement(ctx, c, statement, []byte(e.Namespace), []byte(e.Key), ttl.Microseconds(), []byte(e.Model), []byte(e.Value), memory.EncodeVector(e.Vector))
		return err
	})
	if err == nil {
		err = s.runWrite(ctx, func(ctx context.Context, c *pgx.Conn) error { _, err := execStatement(ctx, c, dropExpired); return err })
	}
	return s.explainError(fmt.Sprintf("write the entry %q of %q", e.Key, e.Namespace), err)
}

// DeleteEntry implements memory.Store.
func (s *Store) DeleteEntry(ctx context.Context, namespace, key string) error {
	lost := false
	err := s.runWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		n, err := execStatement(ctx, c, deleteEntry, []byte(namespace), []byte(key))
		if err == nil && n == 0 && !lost {
			return memory.ErrNotFound
		}
		lost = err != nil // this attempt may have deleted it
		return err
	})
	if errors.Is(err, memory.ErrNotFound) {
		return err
	}
	return s.explainError(fmt.Sprintf("delete the entry %q of %q", key, namespace), err)
}

// GetEntry implements memory.Store.
func (s *Store) GetEntry(ctx context.Context, namespace, key string) (memory.Entry, error) {
	var found []memory.Entry
	err := s.runRead(ctx, func(c *pgx.Conn) (err error) {
		found, err = readEntries(ctx, c, findEntry, []byte(namespace), []byte(key))
		return err
	})
	switch {
	case err != nil:
		return memory.Entry{}, s.explainError(fmt.Sprintf("read the entry %q of %q", key, namespace), err)
	case len(found) == 0:
		return memory.Entry{}, memory.ErrNotFound
	}
	return found[0], nil
}

// ListEntries implements memory.Store. It reads a page at a time.
func (s *Store) ListEntries(ctx context.Context, namespace string) iter.Seq2[memory.Entry, error] {
	within := withinEntry
	if namespace == "" {
		within = "$4 = ''::bytea"
	}
	text := fmt.Sprintf(listEntries, within, pageBytes)
	return func(yield func(memory.Entry, error) bool) {
		var last memory.Entry
		for {
			var page []memory.Entry
			err := s.runRead(ctx, func(c *pgx.Conn) (err error) {
				page, err = readEntries(ctx, c, text, []byte(last.Namespace), []byte(last.Key), int64(pageRows), []byte(namespace))
				return err
			})
			if err != nil {
				yield(memory.Entry{}, s.explainError(fmt.Sprintf("list the entries of %q", namespace), err))
				return
			}
			for _, e := range page {
				if last = e; !yield(e, nil) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

// readEntries sends a statement that returns entries.
func readEntries(ctx context.Context, c *pgx.Conn, text string, args ...any) ([]memory.Entry, error) {
	rows, err := sendQuery(ctx, c, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page []memory.Entry
	for rows.Next() {
		var e memory.Entry
		var namespace, key, model, value, vector []byte
		var expires *time.Time
		if err := rows.Scan(&namespace, &key, &e.Updated, &expires, &model, &value, &vector); err != nil {
			return nil, err
		}
		e.Namespace, e.Key, e.Model, e.Value, e.Vector = string(namespace), string(key), string(model), value, memory.DecodeVector(vector)
		if expires != nil {
			e.Expires = *expires
		}
		page = append(page, e)
	}
	return page, rows.Err()
}
