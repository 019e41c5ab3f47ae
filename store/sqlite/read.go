package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	lib "modernc.org/sqlite/lib"
	"raddle.dev/graph/journal"
)

const (
	pageRows  = 256
	pageBytes = 1 << 20 // size after which a page ends
)

// Read implements journal.Store.
func (s *Store) Read(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		var sp pendingRead
		err := s.runQuery(ctx, func() (err error) { sp, err = s.findSpan(thread, r); return err })
		var page []journal.Record
		for err == nil && sp.left > 0 {
			err = s.runQuery(ctx, func() (err error) { page, err = s.readPage(sp, page[:0]); return err })
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			sp.advance(int64(len(page)))
		}
		if err != nil {
			yield(journal.Record{}, s.explainError(fmt.Sprintf("read thread %q", thread), s.findDamage(ctx, thread, sp, err)))
		}
	}
}

// findDamage returns a [*journal.DamagedError] if the file has lost the record at which an iteration has failed, or
// cannot read it.
func (s *Store) findDamage(ctx context.Context, thread string, sp pendingRead, err error) error {
	if code := resultCode(err); code == lib.SQLITE_CORRUPT {
		return &journal.DamagedError{Thread: thread, Err: err}
	}
	if !errors.Is(err, errChanged) {
		return err
	}
	var now pendingRead
	if failed := s.runQuery(ctx, func() (err error) { now, err = s.findSpan(thread, journal.Range{}); return err }); failed != nil {
		return err
	}
	if now.thread == sp.thread && now.at <= sp.at && sp.at < now.at+now.left { // it was not pruned
		return &journal.DamagedError{Thread: thread, Seq: sp.at, Err: errLost}
	}
	return err
}

var errLost = errors.New("the file has lost it")

// runQuery runs one query of an iteration, unless the iteration has ended.
func (s *Store) runQuery(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.retryWhileBusy(ctx, f)
}

// pendingRead is what an iteration still has to yield: left records of a thread, starting at
// at, upwards or downwards. As a thread has no gaps, the number is known in advance.
type pendingRead struct {
	thread   int64 // id << 32
	at, left int64
	down     bool
	heads    bool
}

func (sp *pendingRead) advance(n int64) {
	sp.left -= n
	if sp.down {
		n = -n
	}
	sp.at += n
}

// findSpan returns what r selects at this moment.
func (s *Store) findSpan(thread string, r journal.Range) (pendingRead, error) {
	text := `SELECT t.id,
		ifnull((SELECT min(id) FROM record WHERE id > t.id << 32 | ?2 AND id <= t.id << 32 | ?3) & 0xffffffff, 0),
		ifnull((SELECT max(id) FROM record WHERE id > t.id << 32 | ?2 AND id <= t.id << 32 | ?3) & 0xffffffff, 0), `
	if r.FromSnapshot {
		text += "ifnull((SELECT max(id) FROM record WHERE " + isBase + " AND id > t.id << 32 | ?2 AND id <= t.id << 32 | ?3) & 0xffffffff, 0)"
	} else {
		text += "0"
	}
	text += " FROM thread t WHERE t.name = ?1"
	after := max(r.After, 0)
	upTo := r.UpTo
	if upTo <= 0 || upTo > maxSeq {
		upTo = maxSeq
	}
	if after >= upTo {
		return pendingRead{}, nil
	}
	st, err := s.read.get(text)
	if err != nil {
		return pendingRead{}, err
	}
	var id, first, last, base int64
	err = st.QueryRowContext(context.Background(), thread, after, upTo).Scan(&id, &first, &last, &base)
	if errors.Is(err, sql.ErrNoRows) || err == nil && last == 0 {
		return pendingRead{}, nil
	}
	sp := pendingRead{thread: id << 32, at: max(first, base), down: r.Newest, heads: r.Heads}
	sp.left = last - sp.at + 1
	if r.Newest {
		sp.at = last
	}
	if r.Limit > 0 {
		sp.left = min(sp.left, int64(r.Limit))
	}
	return sp, err
}

// readPage reads the first records of sp into page, and at least one.
func (s *Store) readPage(sp pendingRead, page []journal.Record) ([]journal.Record, error) {
	n := min(sp.left, pageRows)
	from := sp.at
	to := sp.at + n - 1
	order := "ASC"
	data := "data"
	if sp.down {
		from = sp.at - n + 1
		to = sp.at
		order = "DESC"
	}
	if sp.heads {
		data = "NULL"
	}
	st, err := s.read.get("SELECT id, kind, time, head, " + data + " FROM record WHERE id BETWEEN ? AND ? ORDER BY id " + order)
	if err != nil {
		return page, err
	}
	rows, err := st.QueryContext(context.Background(), sp.thread|from, sp.thread|to)
	if err != nil {
		return page, err
	}
	defer func() { _ = rows.Close() }()
	for bytes := 0; int64(len(page)) < n && bytes < pageBytes; sp.advance(1) {
		if !rows.Next() {
			return page, cmp.Or(rows.Err(), errChanged)
		}
		var id, kind int64
		var rec journal.Record
		if err := rows.Scan(&id, &kind, &rec.Time, &rec.Head, &rec.Data); err != nil {
			return page, err
		}
		if id != sp.thread|sp.at {
			return page, errChanged
		}
		rec.Seq = sp.at
		decodeRow(&rec, kind)
		page = append(page, rec)
		bytes += len(rec.Head) + len(rec.Data)
	}
	return page, nil
}

// The first page of a listing is short, for callers that only want the newest threads;
// each further page is larger, so that a whole listing takes few queries.
const (
	firstThreads = 64
	moreThreads  = 8
	maxThreads   = 32768
)

const listThreads = `
SELECT t.name, ifnull(f.id, 0), ifnull(f.kind, 0), ifnull(f.time, 0), f.head, ifnull(l.id, 0), ifnull(l.kind, 0), ifnull(l.time, 0), l.head, e.owner, e.until
FROM thread t
LEFT JOIN record f ON f.id = (SELECT min(id) FROM record WHERE id > t.id << 32) AND f.id < (t.id + 1) << 32
LEFT JOIN record l ON l.id = (SELECT max(id) FROM record WHERE id < (t.id + 1) << 32) AND l.id > t.id << 32
LEFT JOIN lease e ON e.name = t.name
WHERE t.name >= ? AND t.name < ?
ORDER BY t.name DESC
LIMIT ?`

// olderLeases are the leases of a file that has none, and is open for reading only.
const olderLeases = "(SELECT NULL AS name, NULL AS owner, NULL AS until)"

// Threads implements journal.Store. It reads the first and the last record of each thread
// by their keys, without their Data. A thread that is created or deleted during the
// iteration may or may not be in it.
func (s *Store) Threads(ctx context.Context, prefix string) iter.Seq2[journal.ThreadInfo, error] {
	return func(yield func(journal.ThreadInfo, error) bool) {
		below := prefixUpperBound(prefix)
		for size := firstThreads; ; size = min(size*moreThreads, maxThreads) {
			var page []journal.ThreadInfo
			err := s.runQuery(ctx, func() (err error) { page, err = s.readThreads(prefix, below, size); return err })
			for _, t := range page {
				if !yield(t, nil) {
					return
				}
			}
			if err != nil {
				yield(journal.ThreadInfo{}, s.explainError(fmt.Sprintf("list threads %q", prefix), err))
			}
			if err != nil || len(page) < size {
				return
			}
			below = page[size-1].Name
		}
	}
}

// prefixUpperBound returns the bound above all names with the prefix: a string, or if there is
// none a blob, which SQLite sorts after every string.
func prefixUpperBound(prefix string) any {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return string(b[:i+1])
		}
	}
	return []byte{0}
}

func (s *Store) readThreads(from string, below any, limit int) ([]journal.ThreadInfo, error) {
	text := listThreads
	if s.noLeases {
		text = strings.Replace(text, "JOIN lease", "JOIN "+olderLeases, 1)
	}
	st, err := s.read.get(text)
	if err != nil {
		return nil, err
	}
	rows, err := st.QueryContext(context.Background(), from, below, limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var page []journal.ThreadInfo
	var owner sql.NullString
	var until sql.NullInt64
	for rows.Next() {
		var t journal.ThreadInfo
		var first, last int64
		f := &t.First
		l := &t.Last
		if err := rows.Scan(&t.Name, &f.Seq, &first, &f.Time, &f.Head, &l.Seq, &last, &l.Time, &l.Head, &owner, &until); err != nil {
			return page, err
		}
		f.Seq, l.Seq = f.Seq&maxSeq, l.Seq&maxSeq
		decodeRow(f, first)
		decodeRow(l, last)
		t.Head, t.Lease = l.Seq, leaseOf(owner.String, until.Int64)
		page = append(page, t)
	}
	return page, rows.Err()
}

var errReadOnly = errors.New("the file was opened for reading only: it and its directory need write permission, on a medium that is not read-only")

// OpenReadOnly opens an existing file for reading. Use it if Open fails because the
// medium or the permissions do not allow writing. Operations that write fail. If the
// medium is read-only, no file is created next to it.
func OpenReadOnly(path string) (*Store, error) {
	s := &Store{path: path, patience: patience, readOnly: true, connector: newConnector}
	s.w.none = errReadOnly
	if err := s.openReadOnly(); err != nil {
		return nil, s.explainError("open for reading", err)
	}
	return s, nil
}

func (s *Store) openReadOnly() (err error) {
	if s.path, err = filepath.Abs(s.path); err != nil {
		return err
	}
	if i, err := os.Stat(s.path); err != nil {
		return err
	} else if !i.Mode().IsRegular() {
		return errors.New("this is not a file: name the file that journals are in")
	}
	first := s.connectReadOnly("&mode=ro")
	if first == nil {
		return nil
	}
	// SQLite wants to create an index of the log. If there is no log and no other
	// process writes, the option immutable makes that unnecessary. With a log, its
	// content would be missed.
	if i, err := os.Stat(s.path + "-wal"); err == nil && i.Size() > 0 {
		return fmt.Errorf("its log %s-wal cannot be read where it is: copy both files to a directory that can be written, and open the copy: %w", filepath.Base(s.path), first)
	}
	if s.connectReadOnly("&mode=ro&immutable=1") != nil {
		return first
	}
	return nil
}

// connectReadOnly opens the file with options of SQLite, and checks whose file it is.
func (s *Store) connectReadOnly(options string) (err error) {
	c, err := s.connector(formatDSN(s.path) + options)
	if err != nil {
		return err
	}
	s.db = sql.OpenDB(c)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.db.Close())
		}
	}()
	s.db.SetMaxOpenConns(readers)
	s.db.SetMaxIdleConns(readers)
	s.read.on = s.db
	return s.retryWhileBusy(context.Background(), func() error {
		c, err := s.db.Conn(context.Background())
		if err != nil {
			return err
		}
		defer c.Close()
		found, err := checkSchema(context.Background(), c)
		if err == nil && found == 0 {
			err = errors.New("the file is empty: no journal was ever written to it")
		}
		s.noLeases = found == 1
		s.noEntries = found < 4
		s.noLines = found < 7
		return err
	})
}
