package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"raddle.dev/graph/journal"
)

const (
	pageRows  = 256
	pageBytes = 1 << 20 // of Data, after which a page ends
)

// pendingRead is what an iteration still has to yield: left records of a thread, starting at at,
// upwards or downwards. As a thread has no gaps, the number is known in advance.
type pendingRead struct {
	thread   int64 // its id
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

// Read implements journal.Store. The first page comes with the span in one round trip.
func (s *Store) Read(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		var sp pendingRead
		var page []journal.Record
		err := s.runRead(ctx, func(c *pgx.Conn) (err error) { sp, page, err = readFirstPage(ctx, c, thread, r); return err })
		for err == nil && sp.left > 0 {
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			if sp.advance(int64(len(page))); sp.left > 0 {
				err = s.runRead(ctx, func(c *pgx.Conn) (err error) { page, err = readPage(ctx, c, sp); return err })
			}
		}
		if err != nil {
			yield(journal.Record{}, s.explainError(fmt.Sprintf("read thread %q", thread), s.findDamage(ctx, thread, sp, err)))
		}
	}
}

// findDamage returns a [*journal.DamagedError] if the database has lost the record at which an iteration has failed, or
// cannot read it.
func (s *Store) findDamage(ctx context.Context, thread string, sp pendingRead, err error) error {
	const corrupted = "XX001" // and XX002, for an index
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && (e.Code == corrupted || e.Code == "XX002") {
		return &journal.DamagedError{Thread: thread, Err: err}
	}
	gap, ok := errors.AsType[*gapError](err)
	if !ok || sp.thread == 0 {
		return err
	}
	covered := false
	failed := s.runRead(ctx, func(c *pgx.Conn) error {
		_, err := queryRow(ctx, c, "SELECT first_seq <= $2 AND $2 <= last_seq FROM raddle_thread WHERE id = $1", []any{sp.thread, gap.seq}, &covered)
		return err
	})
	if failed == nil && covered { // it was not pruned
		return &journal.DamagedError{Thread: thread, Seq: gap.seq, Err: errLost}
	}
	return err
}

var errLost = errors.New("the database has lost it")

// buildPage returns the query for the records of a thread between two numbers, in the order of
// the iteration: at most a number of them, and none after the one that fills the page. The size of a
// value is known without reading it.
func buildPage(thread, from, to, limit string, down, heads bool) string {
	order := "ASC"
	data := "data"
	size := "coalesce(octet_length(data), 0)"
	if down {
		order = "DESC"
	}
	if heads {
		data = "NULL::bytea"
		size = "0"
	}
	return fmt.Sprintf(`SELECT seq::bigint, kind, time, checksum, head, data FROM (
		SELECT seq, kind, time, checksum, head, %[1]s AS data, sum(%[2]s) OVER (ORDER BY seq %[3]s ROWS UNBOUNDED PRECEDING) - %[2]s AS bytes
		FROM raddle_record WHERE thread = %[4]s AND seq BETWEEN %[5]s AND %[6]s ORDER BY seq %[3]s LIMIT %[7]s
	) p WHERE bytes < %[8]d ORDER BY seq %[3]s`, data, size, order, thread, from, to, limit, pageBytes)
}

// readFirstPage returns what a range selects at this moment, and its first records.
func readFirstPage(ctx context.Context, c *pgx.Conn, thread string, r journal.Range) (pendingRead, []journal.Record, error) {
	after := max(r.After, 0)
	upTo := r.UpTo
	if upTo <= 0 || upTo > maxSeq {
		upTo = maxSeq
	}
	if after >= upTo {
		return pendingRead{}, nil, nil
	}
	limit := int64(pageRows)
	if r.Limit > 0 {
		limit = min(limit, int64(r.Limit))
	}
	from := "t.low"
	if r.FromSnapshot {
		from = "coalesce((SELECT max(seq) FROM raddle_record WHERE thread = t.id AND kind IN (12, 14) AND seq BETWEEN t.low AND t.high), t.low)"
	}
	// The limit of 1 keeps the planner from another order of the two parts.
	text := `SELECT s.id, s.low::bigint, s.high::bigint, p.* FROM (
		SELECT t.id, ` + from + ` AS low, t.high FROM (
			SELECT id, greatest(first_seq, $2 + 1) AS low, least(last_seq, $3) AS high FROM raddle_thread WHERE name = $1 LIMIT 1
		) t
	) s LEFT JOIN LATERAL (` + buildPage("s.id", "s.low", "s.high", "$4", r.Newest, r.Heads) + `) p ON true`
	rows, err := sendQuery(ctx, c, text, []byte(thread), after, upTo, limit)
	if err != nil {
		return pendingRead{}, nil, err
	}
	defer rows.Close()
	sp := pendingRead{down: r.Newest, heads: r.Heads}
	var page []journal.Record
	var high int64
	for rows.Next() {
		row := recordRow{extra: []any{&sp.thread, &sp.at, &high}}
		if err := row.scanColumns(rows); err != nil {
			return sp, nil, err
		}
		if row.seq != nil {
			page = append(page, row.toRecord())
		}
	}
	if err := rows.Err(); err != nil || sp.thread == 0 {
		return pendingRead{}, nil, err
	}
	sp.left = high - sp.at + 1
	if sp.down {
		sp.at = high
	}
	if r.Limit > 0 {
		sp.left = min(sp.left, int64(r.Limit))
	}
	if sp.left <= 0 {
		return pendingRead{}, nil, nil
	}
	return sp, page, checkPage(sp, page)
}

// readPage reads the first records of a span, and at least one.
func readPage(ctx context.Context, c *pgx.Conn, sp pendingRead) ([]journal.Record, error) {
	n := min(sp.left, pageRows)
	from := sp.at
	to := sp.at + n - 1
	if sp.down {
		from = sp.at - n + 1
		to = sp.at
	}
	rows, err := sendQuery(ctx, c, buildPage("$1", "$2", "$3", "$4", sp.down, sp.heads), sp.thread, from, to, n)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page []journal.Record
	for rows.Next() {
		var row recordRow
		if err := row.scanColumns(rows); err != nil {
			return nil, err
		}
		page = append(page, row.toRecord())
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return page, checkPage(sp, page)
}

// checkPage returns a [*gapError] unless a page has the first records of a span, without a gap.
func checkPage(sp pendingRead, page []journal.Record) error {
	if len(page) == 0 {
		return &gapError{sp.at}
	}
	for i := range page {
		if page[i].Seq != sp.at {
			return &gapError{sp.at}
		}
		sp.advance(1)
	}
	return nil
}

// A gapError says that a record was not where the span has it.
type gapError struct{ seq int64 }

func (e *gapError) Error() string { return errChanged.Error() }
func (e *gapError) Unwrap() error { return errChanged }

// recordRow is a row of a page. Its columns are NULL if there is no record.
type recordRow struct {
	extra               []any // of the columns before it
	seq, time, checksum *int64
	kind                *int16
	head, data          []byte
}

func (r *recordRow) scanColumns(rows pgx.Rows) error {
	return rows.Scan(append(r.extra, &r.seq, &r.kind, &r.time, &r.checksum, &r.head, &r.data)...)
}

func (r *recordRow) toRecord() journal.Record {
	return journal.Record{Seq: *r.seq, Kind: journal.Kind(*r.kind), Time: *r.time, Sum: uint64(*r.checksum), Head: r.head, Data: r.data}
}

// The first page of a listing is short, for callers that only want the newest threads;
// each further page is larger, so that a whole listing takes few queries.
const (
	firstThreads = 64
	moreThreads  = 8
	maxThreads   = 8192
)

// listThreads reads the first and the last record of each thread by their keys. The limits of 1 keep
// the planner from reading the table of records in another way.
const listThreads = `
SELECT t.name, coalesce(f.seq::bigint, 0), coalesce(f.kind, 0), coalesce(f.time, 0), coalesce(f.checksum, 0), f.head,
	coalesce(l.seq::bigint, 0), coalesce(l.kind, 0), coalesce(l.time, 0), coalesce(l.checksum, 0), l.head, e.owner, e.until, e.until <= clock_timestamp()
FROM (SELECT id, name, first_seq, last_seq FROM raddle_thread WHERE name >= $1 AND %s ORDER BY name DESC LIMIT $2) t
LEFT JOIN LATERAL (SELECT * FROM raddle_record WHERE thread = t.id AND seq = t.first_seq LIMIT 1) f ON true
LEFT JOIN LATERAL (SELECT * FROM raddle_record WHERE thread = t.id AND seq = t.last_seq LIMIT 1) l ON true
LEFT JOIN LATERAL (SELECT * FROM raddle_lease WHERE name = t.name LIMIT 1) e ON true
ORDER BY t.name DESC`

// Threads implements journal.Store, without reading Data. A thread that is created or deleted during
// the iteration may or may not be in it.
func (s *Store) Threads(ctx context.Context, prefix string) iter.Seq2[journal.ThreadInfo, error] {
	return func(yield func(journal.ThreadInfo, error) bool) {
		below, bounded := prefixUpperBound(prefix)
		for size := firstThreads; ; size = min(size*moreThreads, maxThreads) {
			var page []journal.ThreadInfo
			err := s.runRead(ctx, func(c *pgx.Conn) (err error) {
				page, err = readThreads(ctx, c, prefix, below, bounded, size)
				return err
			})
			if err != nil {
				yield(journal.ThreadInfo{}, s.explainError(fmt.Sprintf("list threads %q", prefix), err))
				return
			}
			for _, t := range page {
				if !yield(t, nil) {
					return
				}
			}
			if len(page) < size {
				return
			}
			below = []byte(page[size-1].Name)
			bounded = true
		}
	}
}

// prefixUpperBound returns the bound above all names with the prefix; ok is false if there is none.
func prefixUpperBound(prefix string) (bound []byte, ok bool) {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return b[:i+1], true
		}
	}
	return nil, false
}

func readThreads(ctx context.Context, c *pgx.Conn, from string, below []byte, bounded bool, limit int) ([]journal.ThreadInfo, error) {
	args := []any{[]byte(from), int64(limit)}
	bound := "true"
	if bounded {
		args = append(args, below)
		bound = "name < $3"
	}
	rows, err := sendQuery(ctx, c, strings.Replace(listThreads, "%s", bound, 1), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page []journal.ThreadInfo
	for rows.Next() {
		var t journal.ThreadInfo
		var name, owner []byte
		var until *time.Time
		var expired *bool
		var firstSum, lastSum int64
		var firstKind, lastKind int16
		f := &t.First
		l := &t.Last
		err := rows.Scan(&name, &f.Seq, &firstKind, &f.Time, &firstSum, &f.Head, &l.Seq, &lastKind, &l.Time, &lastSum, &l.Head, &owner, &until, &expired)
		if err != nil {
			return nil, err
		}
		f.Kind, f.Sum, l.Kind, l.Sum = journal.Kind(firstKind), uint64(firstSum), journal.Kind(lastKind), uint64(lastSum)
		t.Name = string(name)
		t.Head = l.Seq
		if until != nil {
			t.Lease = journal.Lease{Owner: string(owner), Until: *until, Expired: *expired}
		}
		page = append(page, t)
	}
	return page, rows.Err()
}

// Size returns the space that the tables and their indexes take, in bytes.
func (s *Store) Size(ctx context.Context) (bytes int64, err error) {
	const sum = `SELECT sum(pg_total_relation_size(t::regclass))::bigint FROM unnest(ARRAY['raddle_thread', 'raddle_record', 'raddle_lease',
		'raddle_pruned', 'raddle_entry', 'raddle_line', 'raddle_line_count', 'raddle_trigger', 'raddle_tick']) t`
	err = s.runRead(ctx, func(c *pgx.Conn) error {
		_, err := queryRow(ctx, c, sum, nil, &bytes)
		return err
	})
	return bytes, s.explainError("read the size of the tables", err)
}
