package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"raddle.dev/graph/journal"
)

const (
	maxSeq    = 1<<32 - 1
	maxThread = 1<<31 - 1

	batchRows  = 32        // of one statement
	batchBytes = 256 << 10 // of a statement with several rows, which SQLite gathers in memory
)

// Append implements journal.Store. Records that fit into one statement (32 of them, 256
// KB) are inserted with one; others, and those that start a thread, in a transaction.
func (s *Store) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	if err := ctx.Err(); err != nil || len(recs) == 0 {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	err := s.retryWhileBusy(ctx, func() error {
		line := journal.LineOf(ctx, thread, after, recs)
		change := journal.JobChangeOf(ctx, thread, recs)
		change.Remove = change.Remove && s.w.hasJob(thread)
		if line == nil && !change.Put && !change.Return && !change.Remove {
			return s.w.appendRecords(thread, after, recs)
		}
		return s.w.appendWith(thread, after, recs, &change, line)
	})
	if err != nil {
		return s.explainError(fmt.Sprintf("append to thread %q", thread), err)
	}
	return nil
}

func (w *writer) appendRecords(thread string, after int64, recs []journal.Record) error {
	if err := checkPlace(after, len(recs)); err != nil {
		return err
	}
	if countFitting(recs) == len(recs) { // a new thread comes with a line, and so through appendWith
		return w.insertRecords(thread, after, recs)
	}
	return w.runTransaction(func() error { return w.addRecords(thread, after, recs) })
}

// checkPlace returns an error if no thread has room for n records after one.
func checkPlace(after int64, n int) error {
	switch {
	case after < 0 || after > maxSeq:
		return journal.ErrConflict
	case after+int64(n) > maxSeq:
		return fmt.Errorf("a thread holds at most %d records", int64(maxSeq))
	}
	return nil
}

// addRecords adds records to a thread, and creates it if after is 0. It is a part of a transaction.
func (w *writer) addRecords(thread string, after int64, recs []journal.Record) error {
	if after == 0 {
		if err := w.createThread(thread, &recs[0]); err != nil {
			return err
		}
		after = 1
		recs = recs[1:]
	}
	for len(recs) > 0 {
		n := countFitting(recs)
		if err := w.insertRecords(thread, after, recs[:n]); err != nil {
			return err
		}
		after = after + int64(n)
		recs = recs[n:]
	}
	return nil
}

// countFitting returns how many of recs go into one statement: at least one.
func countFitting(recs []journal.Record) int {
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
func (w *writer) createThread(thread string, r *journal.Record) error {
	res, err := w.exec("INSERT INTO thread(name) VALUES(?) ON CONFLICT DO NOTHING", thread)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil {
		return err
	} else if n == 0 {
		return journal.ErrConflict
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
func (w *writer) insertRecords(thread string, after int64, recs []journal.Record) error {
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
		r := &recs[i]
		from := len(w.heads)
		w.heads = putHead(w.heads, r)
		w.args = append(w.args, kindOf(r), r.Time, w.heads[from:], r.Data)
	}
	res, err := w.exec(w.insert[len(recs)], w.args...)
	clear(w.args) // does not keep references to recs
	if cap(w.heads) > batchBytes {
		w.heads = nil
	}
	if isKeyTaken(err) {
		return journal.ErrConflict
	}
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil {
		return err
	} else if n == 0 {
		return journal.ErrConflict
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
	w.conn = c
	w.stmts = &statements{on: c}
}

func (w *writer) close() error {
	err := errors.Join(w.stmts.close(), w.conn.Close())
	w.conn = nil
	w.stmts = nil
	w.none = errClosed
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

// If a record has a checksum, its row holds it before the head and marks that in the
// kind. Two bits mark it, so that one flipped bit is detected. Files of schema 1 have
// records without checksums.
const (
	sumBytes = 8
	sealed   = 0x60 // for kinds below narrow: all kinds of package graph
	narrow   = 0x20
	wide     = 0x10000 // for all others
	sealWide = 0x600
)

// isBase is the condition for the records that journal.Range.FromSnapshot looks for:
// journal.KindFork and journal.KindSnapshot, with a checksum or without one (^sealed is -97).
// Every insert evaluates it. A list of four kinds would cost more than the rest of the
// insert's program, because SQLite builds a temporary table for more than two.
const isBase = "kind & -97 IN (12, 14)"

// kindOf returns the kind of a record as stored in its row.
func kindOf(r *journal.Record) int64 {
	k := int64(r.Kind)
	switch {
	case k < narrow && r.Sum == 0:
		return k
	case k < narrow:
		return k | sealed
	case r.Sum == 0:
		return k | wide
	}
	return k | wide | sealWide
}

// putHead appends the head of a record as stored in its row.
func putHead(b []byte, r *journal.Record) []byte {
	if r.Sum != 0 {
		b = binary.BigEndian.AppendUint64(b, r.Sum)
	}
	return append(b, r.Head...)
}

// headBytes returns how many bytes putHead appends.
func headBytes(r *journal.Record) int {
	if r.Sum != 0 {
		return sumBytes + len(r.Head)
	}
	return len(r.Head)
}

// decodeRow reads kind, head and checksum of a record from its row. A row that this
// package cannot have written is damaged: its record gets a checksum that does not
// match.
func decodeRow(r *journal.Record, kind int64) {
	r.Kind = journal.Kind(kind)
	if kind&^(narrow-1) == sealed {
		r.Kind &^= sealed
	}
	want := journal.Record{Kind: r.Kind}
	if kind == kindOf(&want) {
		return
	}
	if want.Sum = 1; kind == kindOf(&want) && len(r.Head) >= sumBytes {
		r.Sum, r.Head = binary.BigEndian.Uint64(r.Head), r.Head[sumBytes:]
		return
	}
	r.Sum = 1
}

// Prune implements journal.Store. The file does not shrink: SQLite uses the space for
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
		if _, err := w.exec("DELETE FROM drive WHERE name = ?", thread); err != nil {
			return err
		}
		if _, err := w.exec("DELETE FROM line WHERE name = ?", thread); err != nil {
			return err
		}
	}
	_, err = w.exec("DELETE FROM record WHERE id > ? AND id < ?", id<<32, id<<32|min(before, head+1))
	return err
}

// Delete deletes threads, all or none: for many threads it is much faster than Prune.
// Unknown threads are ignored.
func (s *Store) Delete(ctx context.Context, threads ...string) error {
	if err := ctx.Err(); err != nil || len(threads) == 0 {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	err := s.retryWhileBusy(ctx, func() error {
		return s.w.runTransaction(func() error {
			for _, thread := range threads {
				if err := s.w.pruneThread(thread, maxSeq+1); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return s.explainError(fmt.Sprintf("delete %d threads", len(threads)), err)
}

// compactShare is the part of the file, in percent, that must be unused before Compact
// rewrites the file.
const compactShare = 10

// Compact returns the space of deleted records to the file system: it moves the log
// into the file, empties the log, and, if more than a tenth of the file is unused,
// rewrites the file. That needs as much free space as the file has content. Readers and
// writers of other processes wait meanwhile. Compact returns the size of file and log
// together, in bytes, before and after.
func (s *Store) Compact(ctx context.Context) (before, after int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	before = s.fileSize()
	err = s.retryWhileBusy(ctx, s.w.compactFile)
	return before, s.fileSize(), s.explainError("make the file smaller", err)
}

func (w *writer) compactFile() error {
	if w.conn == nil {
		return w.none
	}
	ctx := context.Background()
	// Emptying the log first leaves room for what follows, on a full disk too.
	if _, err := w.conn.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return err
	}
	var pages, free int64
	if err := w.conn.QueryRowContext(ctx, "SELECT page_count, freelist_count FROM pragma_page_count, pragma_freelist_count").Scan(&pages, &free); err != nil {
		return err
	}
	if free*100 <= pages*compactShare {
		return nil
	}
	// The content of the file may not fit into memory.
	if _, err := w.conn.ExecContext(ctx, "PRAGMA temp_store=file; VACUUM; PRAGMA temp_store=memory; PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		_, _ = w.conn.ExecContext(ctx, "PRAGMA temp_store=memory") // reset it; this does not fail
		return err
	}
	return nil
}

// fileSize returns the size of the file and its log, in bytes.
func (s *Store) fileSize() (n int64) {
	for _, path := range []string{s.path, s.path + "-wal"} {
		if i, err := os.Stat(path); err == nil {
			n += i.Size()
		}
	}
	return n
}

// Size returns the size of the file and its log, in bytes.
func (s *Store) Size(ctx context.Context) (int64, error) {
	return s.fileSize(), ctx.Err()
}
