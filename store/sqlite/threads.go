package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"strings"

	"raddle.dev/graph"
)

// The first page of a listing is short, for callers that only want the newest threads;
// each further page is larger, so that a whole listing takes few queries.
const (
	firstThreads = 64
	moreThreads  = 8
	maxThreads   = 32768
)

const listThreads = `
SELECT t.name, f.id, f.kind, f.time, f.head, l.id, l.kind, l.time, l.head, e.owner, e.until
FROM thread t
CROSS JOIN record f ON f.id = (SELECT min(id) FROM record WHERE id > t.id << 32)
CROSS JOIN record l ON l.id = (SELECT max(id) FROM record WHERE id < (t.id + 1) << 32)
LEFT JOIN lease e ON e.name = t.name
WHERE t.name >= ? AND t.name < ?
ORDER BY t.name DESC
LIMIT ?`

// Threads implements graph.Store. It reads the first and the last record of each thread
// by their keys, without their Data. A thread that is created or deleted during the
// iteration may or may not be in it.
func (s *Store) Threads(ctx context.Context, prefix string) iter.Seq2[graph.ThreadInfo, error] {
	return func(yield func(graph.ThreadInfo, error) bool) {
		below := prefixUpperBound(prefix)
		for size := firstThreads; ; size = min(size*moreThreads, maxThreads) {
			var page []graph.ThreadInfo
			err := s.runQuery(ctx, func() (err error) { page, err = s.readThreads(prefix, below, size); return err })
			for _, t := range page {
				if !yield(t, nil) {
					return
				}
			}
			if err != nil {
				yield(graph.ThreadInfo{}, s.explainError(fmt.Sprintf("list threads %q", prefix), err))
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

func (s *Store) readThreads(from string, below any, limit int) ([]graph.ThreadInfo, error) {
	text := listThreads
	if s.old {
		text = strings.ReplaceAll(text, "LEFT JOIN lease", "LEFT JOIN (SELECT NULL AS name, NULL AS owner, NULL AS until)")
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
	var page []graph.ThreadInfo
	var owner sql.NullString
	var until sql.NullInt64
	for rows.Next() {
		var t graph.ThreadInfo
		var first, last int64
		f, l := &t.First, &t.Last
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
