package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"raddle.dev/graph"
)

const (
	pageRows  = 256
	pageBytes = 1 << 20 // size after which a page ends
)

// Read implements graph.Store.
func (s *Store) Read(ctx context.Context, thread string, r graph.Range) iter.Seq2[graph.Record, error] {
	return func(yield func(graph.Record, error) bool) {
		var sp span
		err := s.runQuery(ctx, func() (err error) { sp, err = s.findSpan(thread, r); return err })
		var page []graph.Record
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
			yield(graph.Record{}, s.explainError(fmt.Sprintf("read thread %q", thread), err))
		}
	}
}

// runQuery runs one query of an iteration, unless the iteration has ended.
func (s *Store) runQuery(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.retryWhileBusy(ctx, f)
}

// span is what an iteration still has to yield: left records of a thread, starting at
// at, upwards or downwards. As a thread has no gaps, the number is known in advance.
type span struct {
	thread   int64 // id << 32
	at, left int64
	down     bool
	heads    bool
}

func (sp *span) advance(n int64) {
	sp.left -= n
	if sp.down {
		n = -n
	}
	sp.at += n
}

// findSpan returns what r selects at this moment.
func (s *Store) findSpan(thread string, r graph.Range) (span, error) {
	text := `SELECT t.id,
		ifnull((SELECT min(id) FROM record WHERE id > t.id << 32 | ?2 AND id <= t.id << 32 | ?3) & 0xffffffff, 0),
		ifnull((SELECT max(id) FROM record WHERE id > t.id << 32 | ?2 AND id <= t.id << 32 | ?3) & 0xffffffff, 0), `
	if r.FromSnapshot {
		text += "ifnull((SELECT max(id) FROM record WHERE kind IN (" + s.baseKinds() + ") AND id > t.id << 32 | ?2 AND id <= t.id << 32 | ?3) & 0xffffffff, 0)"
	} else {
		text += "0"
	}
	text += " FROM thread t WHERE t.name = ?1"
	after, upTo := max(r.After, 0), r.UpTo
	if upTo <= 0 || upTo > maxSeq {
		upTo = maxSeq
	}
	if after >= upTo {
		return span{}, nil
	}
	st, err := s.read.get(text)
	if err != nil {
		return span{}, err
	}
	var id, first, last, base int64
	err = st.QueryRowContext(context.Background(), thread, after, upTo).Scan(&id, &first, &last, &base)
	if errors.Is(err, sql.ErrNoRows) || err == nil && last == 0 {
		return span{}, nil
	}
	sp := span{thread: id << 32, at: max(first, base), down: r.Newest, heads: r.Heads}
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
func (s *Store) readPage(sp span, page []graph.Record) ([]graph.Record, error) {
	n := min(sp.left, pageRows)
	from, to, order, data := sp.at, sp.at+n-1, "ASC", "data"
	if sp.down {
		from, to, order = sp.at-n+1, sp.at, "DESC"
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
		var rec graph.Record
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
