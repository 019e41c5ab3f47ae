package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"raddle.dev/graph/journal"
)

var _ journal.Index = (*Store)(nil)

// maxLabels is how many bytes the status and the label of a line have at most, so that a row of raddle_line_label holds
// both and an order of maxName bytes.
const maxLabels = 500

// The parts of a statement that changes lines. l is what it has done with lines: their status; was, the one before; and
// n, how many. NULL: there is no line. countLines must be the last to lock anything in its transaction. It locks the
// rows of one stripe in the order of their statuses, so that two transactions never wait for each other in a circle.
// Those of different sessions seldom have the same stripe, and do not wait for each other's commit.
const (
	writeLine = `, l AS (INSERT INTO raddle_line AS o (name, place, status, label, details, wait, parent)
		SELECT $1, $%[1]d, $%[2]d, $%[3]d, $%[4]d, $%[5]d, $%[6]d FROM t
		ON CONFLICT (name) DO UPDATE SET place = EXCLUDED.place, status = EXCLUDED.status, label = EXCLUDED.label,
			details = EXCLUDED.details, wait = EXCLUDED.wait, parent = EXCLUDED.parent, was = o.status
		RETURNING status, was, 1 AS n), c AS (` + countLines + ")"

	fillLine = `WITH l AS (UPDATE raddle_line SET place = $2, status = $3, label = $4, details = $5, wait = $6, parent = $7, was = ''
		WHERE name = $1 AND status = '' RETURNING status, was, 1 AS n) ` + countLines

	removeLines = `WITH d AS (DELETE FROM raddle_line WHERE name = ANY($1) RETURNING status),
		l AS (SELECT NULL::bytea AS status, status AS was, count(*) AS n FROM d GROUP BY status) ` + countLines

	countLines = `INSERT INTO raddle_line_count AS o (status, stripe, lines)
		SELECT v.status, pg_backend_pid() & 15, v.n
		FROM l CROSS JOIN LATERAL (VALUES (l.status, l.n), (l.was, -l.n)) v(status, n)
		WHERE l.status IS DISTINCT FROM l.was AND v.status IS NOT NULL ORDER BY v.status
		ON CONFLICT (status, stripe) DO UPDATE SET lines = o.lines + EXCLUDED.lines`
)

// lineArgs returns the columns of a line but its name. One that no index can hold has no status: its records say what
// there is.
func lineArgs(l *journal.Line) []any {
	if l.Status == "" || len(l.Order) > maxName || len(l.Parent) > maxName || len(l.Status)+len(l.Label) > maxLabels {
		l = &journal.Line{Thread: l.Thread, Order: l.Thread}
	}
	return []any{[]byte(l.Order), []byte(l.Status), []byte(l.Label), orNull(l.Details), l.Wait, []byte(l.Parent)}
}

// changeLine returns the part of an append that writes a line, and its arguments, which come after n others; "" if l is
// nil.
func changeLine(l *journal.Line, n int) (text string, args []any) {
	if l == nil {
		return "", nil
	}
	return fmt.Sprintf(writeLine, n+1, n+2, n+3, n+4, n+5, n+6), lineArgs(l)
}

// deleteLines deletes the lines of deleted threads. It is the last part of a transaction.
func deleteLines(ctx context.Context, c *pgx.Conn, threads []string) error {
	if len(threads) == 0 {
		return nil
	}
	_, err := execStatement(ctx, c, removeLines, listBytes(threads))
	return err
}

// FillLine implements journal.Index.
func (s *Store) FillLine(ctx context.Context, l journal.Line) error {
	err := s.runWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		_, err := execStatement(ctx, c, fillLine, append([]any{[]byte(l.Thread)}, lineArgs(&l)...)...)
		return err
	})
	return s.explainError(fmt.Sprintf("fill the line of thread %q", l.Thread), err)
}

// ReadLine implements journal.Index.
func (s *Store) ReadLine(ctx context.Context, thread string) (l journal.Line, ok bool, err error) {
	err = s.runRead(ctx, func(c *pgx.Conn) error {
		list, err := queryLines(ctx, c, withLeases("SELECT * FROM raddle_line WHERE name = $1"), []byte(thread))
		if len(list) > 0 {
			l = list[0]
			ok = true
		}
		return err
	})
	return l, ok, s.explainError(fmt.Sprintf("read the line of thread %q", thread), err)
}

// ListLines implements journal.Index with one statement. Unless the range has a prefix, it reads as many lines of each
// status as are selected, from an index, in their order, and merges them. It does so for all statuses too: with an index
// of all lines, the planner would look for the few of a rare status there, and read the others.
func (s *Store) ListLines(ctx context.Context, r journal.LineRange) (list []journal.Line, err error) {
	text, args := selectLines(r)
	err = s.runRead(ctx, func(c *pgx.Conn) (err error) {
		list, err = queryLines(ctx, c, text, args...)
		return err
	})
	return list, s.explainError("list lines", err)
}

// lineOrder is the order of lists, of bytes.
const lineOrder = " ORDER BY place DESC, name DESC"

// selectLines returns the statement for the lines of a range, and its arguments.
func selectLines(r journal.LineRange) (text string, args []any) {
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	limit := int64(math.MaxInt64)
	if r.Limit > 0 {
		limit = int64(r.Limit)
	}
	also := ""
	if r.Below != "" {
		place := arg([]byte(r.Below))
		also = fmt.Sprintf(" AND place <= %[1]s AND (place < %[1]s OR name < %s)", place, arg([]byte(r.BelowThread)))
	}
	end := lineOrder + " LIMIT " + arg(limit)
	statuses := "(SELECT DISTINCT status FROM raddle_line_count)"
	if r.Statuses != nil {
		statuses = fmt.Sprintf("(SELECT DISTINCT unnest(%s || ''::bytea) AS status)", arg(listBytes(r.Statuses)))
	}
	// Lines without a status have no label either.
	same := "raddle_line.status = s.status"
	if r.Label != "" {
		same += " AND raddle_line.label = CASE WHEN s.status = '' THEN '' ELSE " + arg([]byte(r.Label)) + " END"
	}
	if r.Prefix != "" {
		if bound, ok := prefixUpperBound(r.Prefix); ok {
			also += " AND name < " + arg(bound)
		}
		which := " AND EXISTS (SELECT FROM " + statuses + " s WHERE " + same + ")"
		text = "SELECT * FROM raddle_line WHERE name >= " + arg([]byte(r.Prefix)) + which + also + end
	} else {
		part := "SELECT * FROM raddle_line WHERE " + same + also + end
		text = "SELECT l.* FROM " + statuses + " s CROSS JOIN LATERAL (" + part + ") l" + end
	}
	return withLeases(text) + lineOrder, args
}

// ListWaiting implements journal.Index.
func (s *Store) ListWaiting(ctx context.Context, r journal.WaitRange) (list []journal.Line, err error) {
	limit := int64(math.MaxInt64)
	if r.Limit > 0 {
		limit = int64(r.Limit)
	}
	args := []any{limit}
	after := ""
	if r.After != 0 {
		after = " AND (wait, name) > ($2, $3)"
		args = append(args, r.After, []byte(r.AfterThread))
	}
	text := withLeases("SELECT * FROM raddle_line WHERE wait > 0" + after + " ORDER BY wait, name LIMIT $1")
	err = s.runRead(ctx, func(c *pgx.Conn) (err error) {
		list, err = queryLines(ctx, c, text+" ORDER BY wait, name", args...)
		return err
	})
	return list, s.explainError("list waiting lines", err)
}

// ListForks implements journal.Index.
func (s *Store) ListForks(ctx context.Context, parents []string) (list []journal.Line, err error) {
	text := withLeases("SELECT * FROM raddle_line WHERE parent <> '' AND parent = ANY($1)")
	err = s.runRead(ctx, func(c *pgx.Conn) (err error) {
		list, err = queryLines(ctx, c, text+" ORDER BY l.name", listBytes(parents))
		return err
	})
	return list, s.explainError("list forks", err)
}

// withLeases returns the statement that adds the leases to lines which another one selects. The limit of 1 keeps the
// planner from reading all leases.
func withLeases(text string) string {
	return `SELECT l.name, l.place, l.status, l.label, l.wait, l.parent, l.details, e.owner, e.until, e.until <= clock_timestamp()
		FROM (` + text + ") l LEFT JOIN LATERAL (SELECT * FROM raddle_lease WHERE name = l.name LIMIT 1) e ON true"
}

// queryLines sends a statement that returns lines with their leases.
func queryLines(ctx context.Context, c *pgx.Conn, text string, args ...any) ([]journal.Line, error) {
	rows, err := sendQuery(ctx, c, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []journal.Line
	for rows.Next() {
		var l journal.Line
		var name, place, status, label, parent, owner []byte
		var until *time.Time
		var expired *bool
		if err := rows.Scan(&name, &place, &status, &label, &l.Wait, &parent, &l.Details, &owner, &until, &expired); err != nil {
			return nil, err
		}
		l.Thread = string(name)
		l.Order = string(place)
		l.Status = string(status)
		l.Label = string(label)
		l.Parent = string(parent)
		if until != nil {
			l.Lease = journal.Lease{Owner: string(owner), Until: *until, Expired: *expired}
		}
		list = append(list, l)
	}
	return list, rows.Err()
}

// CountLines implements journal.Index.
func (s *Store) CountLines(ctx context.Context) (count map[string]int, err error) {
	const sum = "SELECT status, sum(lines)::bigint FROM raddle_line_count GROUP BY status HAVING sum(lines) > 0"
	err = s.runRead(ctx, func(c *pgx.Conn) error {
		count = map[string]int{}
		rows, err := sendQuery(ctx, c, sum)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var status []byte
			var n int64
			if err := rows.Scan(&status, &n); err != nil {
				return err
			}
			count[string(status)] = int(n)
		}
		return rows.Err()
	})
	return count, s.explainError("count lines", err)
}
