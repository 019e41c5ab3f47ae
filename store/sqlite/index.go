package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"iter"
	"slices"
	"strings"

	"raddle.dev/graph/journal"
)

var _ journal.Index = (*Store)(nil)

// index is what schema 6 added, and schema 7 made again: what lists show of each thread. The threads that were there have
// lines without a status.
const index = `
CREATE TABLE line (
	name    TEXT PRIMARY KEY, -- of the thread
	place   TEXT NOT NULL,    -- journal.Line.Order
	status  TEXT NOT NULL,
	label   TEXT NOT NULL,
	wait    INTEGER NOT NULL DEFAULT 0, -- journal.Line.Wait
	parent  TEXT NOT NULL DEFAULT '',
	details BLOB
);
CREATE INDEX line_place ON line(place, name);
CREATE INDEX line_status ON line(status, place, name);
CREATE INDEX line_label ON line(label, status, place, name);
CREATE INDEX line_wait ON line(wait, name) WHERE wait > 0;
CREATE INDEX line_parent ON line(parent, name) WHERE parent <> '';
CREATE TABLE line_count (
	status TEXT PRIMARY KEY,
	n      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER line_added AFTER INSERT ON line BEGIN
	INSERT INTO line_count VALUES(new.status, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER line_changed AFTER UPDATE OF status ON line WHEN old.status <> new.status BEGIN
	UPDATE line_count SET n = n - 1 WHERE status = old.status;
	INSERT INTO line_count VALUES(new.status, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER line_removed AFTER DELETE ON line BEGIN
	UPDATE line_count SET n = n - 1 WHERE status = old.status;
END;
INSERT INTO line(name, place, status, label) SELECT name, name, '', '' FROM thread;
`

// dropIndex removes what schema 6 had.
const dropIndex = "DROP TABLE line; DROP TABLE line_count;"

// selectLines is the statement of queryLines, without its condition.
const selectLines = "SELECT l.name, l.place, l.status, l.label, l.wait, l.parent, l.details, e.owner, e.until FROM line l LEFT JOIN lease e ON e.name = l.name "

// olderLines are the lines of a file that has none, and is open for reading only.
const olderLines = "FROM (SELECT name, name AS place, '' AS status, '' AS label, 0 AS wait, '' AS parent, NULL AS details FROM thread) l"

// putLine writes the line of a thread. It is a part of a transaction.
func (w *writer) putLine(l *journal.Line) error {
	const put = `INSERT INTO line(name, place, status, label, wait, parent, details) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)
		ON CONFLICT(name) DO UPDATE SET place = ?2, status = ?3, label = ?4, wait = ?5, parent = ?6, details = ?7`
	_, err := w.exec(put, l.Thread, l.Order, l.Status, l.Label, l.Wait, l.Parent, l.Details)
	return err
}

// FillLine implements journal.Index.
func (s *Store) FillLine(ctx context.Context, l journal.Line) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.explainError("fill a line", s.retryWhileBusy(ctx, func() error {
		const fill = "UPDATE line SET place = ?2, status = ?3, label = ?4, wait = ?5, parent = ?6, details = ?7 WHERE name = ?1 AND status = ''"
		_, err := s.w.exec(fill, l.Thread, l.Order, l.Status, l.Label, l.Wait, l.Parent, l.Details)
		return err
	}))
}

// ReadLine implements journal.Index.
func (s *Store) ReadLine(ctx context.Context, thread string) (l journal.Line, ok bool, err error) {
	list, err := s.queryLines(ctx, "WHERE l.name = ?", thread)
	if err != nil || len(list) == 0 {
		return l, false, s.explainError("read a line", err)
	}
	return list[0], true, nil
}

// ListLines implements journal.Index. The lines of each status come from an index of their own.
func (s *Store) ListLines(ctx context.Context, r journal.LineRange) ([]journal.Line, error) {
	list, err := s.listLines(ctx, r)
	return list, s.explainError("list lines", err)
}

func (s *Store) listLines(ctx context.Context, r journal.LineRange) (list []journal.Line, err error) {
	limit := cmp.Or(max(r.Limit, 0), -1)
	switch {
	case r.Prefix != "":
		list, err = s.queryLines(ctx, "WHERE l.name >= ? AND l.name < ? ORDER BY +l.place DESC, +l.name DESC", r.Prefix, prefixUpperBound(r.Prefix))
		list = slices.DeleteFunc(list, func(l journal.Line) bool { return !r.Selects(&l) })
	case r.Statuses == nil && r.Label == "":
		text, args := rangeBelow(r, "TRUE")
		return s.queryLines(ctx, text+" LIMIT ?", append(args, limit)...)
	default:
		statuses := r.Statuses
		if statuses == nil {
			if statuses, err = s.listStatuses(ctx); err != nil {
				return nil, err
			}
		}
		for _, status := range append(slices.Clone(statuses), "") {
			text, args := rangeBelow(r, "l.status = ?", status)
			if status != "" && r.Label != "" {
				text, args = rangeBelow(r, "l.status = ? AND l.label = ?", status, r.Label)
			}
			part, err := s.queryLines(ctx, text+" LIMIT ?", append(args, limit)...)
			if err != nil {
				return nil, err
			}
			list = append(list, part...)
		}
		slices.SortFunc(list, func(a, b journal.Line) int {
			return cmp.Or(strings.Compare(b.Order, a.Order), strings.Compare(b.Thread, a.Thread))
		})
		list = slices.CompactFunc(list, func(a, b journal.Line) bool { return a.Thread == b.Thread }) // a status was named twice
	}
	if r.Limit > 0 && len(list) > r.Limit {
		list = list[:r.Limit]
	}
	return list, err
}

// ListWaiting implements journal.Index.
func (s *Store) ListWaiting(ctx context.Context, r journal.WaitRange) ([]journal.Line, error) {
	where := "WHERE l.wait > 0"
	var args []any
	if r.After != 0 {
		where += " AND (l.wait, l.name) > (?, ?)"
		args = append(args, r.After, r.AfterThread)
	}
	list, err := s.queryLines(ctx, where+" ORDER BY l.wait, l.name LIMIT ?", append(args, cmp.Or(max(r.Limit, 0), -1))...)
	return list, s.explainError("list waiting lines", err)
}

// ListForks implements journal.Index.
func (s *Store) ListForks(ctx context.Context, parents []string) (list []journal.Line, err error) {
	for names := range chunkNames(parents) {
		part, err := s.queryLines(ctx, "WHERE l.parent <> '' AND l.parent IN "+nameList, names...)
		if err != nil {
			return nil, s.explainError("list forks", err)
		}
		list = append(list, part...)
	}
	slices.SortFunc(list, func(a, b journal.Line) int { return strings.Compare(a.Thread, b.Thread) })
	return slices.CompactFunc(list, func(a, b journal.Line) bool { return a.Thread == b.Thread }), nil
}

// A statement with nameList looks for namesAtOnce names.
const namesAtOnce = 64

var nameList = "(?" + strings.Repeat(", ?", namesAtOnce-1) + ")"

// chunkNames returns names as the arguments of statements with nameList. The last name fills the last ones.
func chunkNames(names []string) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for chunk := range slices.Chunk(names, namesAtOnce) {
			args := make([]any, namesAtOnce)
			for i := range args {
				args[i] = chunk[min(i, len(chunk)-1)]
			}
			if !yield(args) {
				return
			}
		}
	}
}

// rangeBelow returns the condition for the lines of a range for which another one holds too, in their order.
func rangeBelow(r journal.LineRange, also string, args ...any) (text string, all []any) {
	text = "WHERE " + also
	if r.Below != "" {
		text += " AND (l.place, l.name) < (?, ?)"
		args = append(args, r.Below, r.BelowThread)
	}
	return text + " ORDER BY l.place DESC, l.name DESC", args
}

// listStatuses returns the statuses that lines have, without "".
func (s *Store) listStatuses(ctx context.Context) (list []string, err error) {
	count, err := s.CountLines(ctx)
	for status := range count {
		if status != "" {
			list = append(list, status)
		}
	}
	return list, err
}

// queryLines returns the lines that a condition selects.
func (s *Store) queryLines(ctx context.Context, where string, args ...any) (list []journal.Line, err error) {
	text := selectLines
	if s.noLines {
		text = strings.Replace(text, "FROM line l", olderLines, 1)
	}
	if s.noLeases {
		text = strings.Replace(text, "JOIN lease", "JOIN "+olderLeases, 1)
	}
	err = s.runQuery(ctx, func() error {
		st, err := s.read.get(text + where)
		if err != nil {
			return err
		}
		rows, err := st.QueryContext(context.Background(), args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		list = nil
		for rows.Next() {
			var l journal.Line
			var owner sql.NullString
			var until sql.NullInt64
			if err := rows.Scan(&l.Thread, &l.Order, &l.Status, &l.Label, &l.Wait, &l.Parent, &l.Details, &owner, &until); err != nil {
				return err
			}
			l.Lease = leaseOf(owner.String, until.Int64)
			list = append(list, l)
		}
		return rows.Err()
	})
	return list, err
}

// CountLines implements journal.Index.
func (s *Store) CountLines(ctx context.Context) (map[string]int, error) {
	count := map[string]int{}
	text := "SELECT status, n FROM line_count WHERE n > 0"
	if s.noLines {
		text = "SELECT '', count(*) FROM thread"
	}
	err := s.runQuery(ctx, func() error {
		st, err := s.read.get(text)
		if err != nil {
			return err
		}
		rows, err := st.QueryContext(context.Background())
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var status string
			var n int
			if err := rows.Scan(&status, &n); err != nil {
				return err
			}
			count[status] = n
		}
		return rows.Err()
	})
	return count, s.explainError("count lines", err)
}
