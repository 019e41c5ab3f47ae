package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph"
)

const (
	maxSeq    = 1<<32 - 1
	maxThread = 1<<31 - 1

	batchRows  = 32        // of one statement
	batchBytes = 256 << 10 // of a statement with several rows, which SQLite gathers in memory
)

// Append implements graph.Store. Records that fit into one statement (32 of them, 256
// KB) are inserted with one; others, and those that start a thread, in a transaction.
func (s *Store) Append(ctx context.Context, thread string, after int64, recs []graph.Record) error {
	if err := ctx.Err(); err != nil || len(recs) == 0 {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	err := s.retryWhileBusy(ctx, func() error { return s.w.appendRecords(thread, after, recs) })
	if err != nil {
		return s.explainError(fmt.Sprintf("append to thread %q", thread), err)
	}
	return nil
}

func (w *writer) appendRecords(thread string, after int64, recs []graph.Record) error {
	switch {
	case after < 0 || after > maxSeq:
		return graph.ErrConflict
	case after+int64(len(recs)) > maxSeq:
		return fmt.Errorf("a thread holds at most %d records", int64(maxSeq))
	case after > 0 && countFitting(recs) == len(recs):
		return w.insertRecords(thread, after, recs)
	}
	return w.runTransaction(func() error {
		if after == 0 {
			if err := w.createThread(thread, &recs[0]); err != nil {
				return err
			}
			after, recs = 1, recs[1:]
		}
		for len(recs) > 0 {
			n := countFitting(recs)
			if err := w.insertRecords(thread, after, recs[:n]); err != nil {
				return err
			}
			after, recs = after+int64(n), recs[n:]
		}
		return nil
	})
}

// countFitting returns how many of recs go into one statement: at least one.
func countFitting(recs []graph.Record) int {
	bytes := 0
	for i := range recs {
		bytes += len(recs[i].Head) + len(recs[i].Data)
		if i == batchRows || i > 0 && bytes > batchBytes {
			return i
		}
	}
	return len(recs)
}

// createThread creates a thread and its first record.
func (w *writer) createThread(thread string, r *graph.Record) error {
	res, err := w.exec("INSERT INTO thread(name) VALUES(?) ON CONFLICT DO NOTHING", thread)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil {
		return err
	} else if n == 0 {
		return graph.ErrConflict
	}
	id, err := res.LastInsertId()
	if err != nil {
		return err
	}
	if id > maxThread {
		return fmt.Errorf("the file has reached its limit of %d threads: use another file", int64(maxThread))
	}
	w.heads = putHead(w.heads[:0], r)
	_, err = w.exec("INSERT INTO record(id, kind, time, head, data) VALUES(?, ?, ?, ?, ?)", id<<32|1, kindOf(r), r.Time, w.heads, r.Data)
	return err
}

// insertRecords adds records to a thread in one statement.
func (w *writer) insertRecords(thread string, after int64, recs []graph.Record) error {
	if w.insert[len(recs)] == "" {
		w.insert[len(recs)] = buildInsert(len(recs))
	}
	bytes := 0
	for i := range recs {
		bytes += headBytes(&recs[i])
	}
	w.heads = slices.Grow(w.heads[:0], bytes) // it must not be reallocated below
	w.args = append(w.args[:0], thread, after)
	for i := range recs {
		r, from := &recs[i], len(w.heads)
		w.heads = putHead(w.heads, r)
		w.args = append(w.args, kindOf(r), r.Time, w.heads[from:], r.Data)
	}
	res, err := w.exec(w.insert[len(recs)], w.args...)
	clear(w.args) // does not keep references to recs
	if cap(w.heads) > batchBytes {
		w.heads = nil
	}
	if isKeyTaken(err) {
		return graph.ErrConflict
	}
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil {
		return err
	} else if n == 0 {
		return graph.ErrConflict
	}
	return nil
}

// buildInsert returns the statement that adds rows after record ?2 of thread ?1. It fails if
// the sequence number is taken. If the record or the thread is missing, the statement
// for a single row fails too, because a key cannot be text, and the one for several
// rows adds nothing. Both could be an INSERT … SELECT, but as that reads the table that
// it writes, SQLite sends its rows through a temporary table, which makes a single row
// a fifth more expensive.
func buildInsert(rows int) string {
	const into = "INSERT INTO record(id, kind, time, head, data) "
	if rows == 1 {
		return into + "VALUES(ifnull((SELECT p.id + 1 FROM thread t CROSS JOIN record p WHERE t.name = ?1 AND p.id = t.id << 32 | ?2), 'none'), ?3, ?4, ?5, ?6)"
	}
	var b strings.Builder
	b.WriteString(into + "SELECT p.id + v.column1, v.column2, v.column3, v.column4, v.column5 FROM thread t CROSS JOIN record p CROSS JOIN (VALUES ")
	for i := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		p := 3 + 4*i
		fmt.Fprintf(&b, "(%d, ?%d, ?%d, ?%d, ?%d)", i+1, p, p+1, p+2, p+3)
	}
	b.WriteString(") v WHERE t.name = ?1 AND p.id = t.id << 32 | ?2")
	return b.String()
}
