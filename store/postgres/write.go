package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"raddle.dev/graph/journal"
)

const (
	maxSeq   = math.MaxInt32 - 1
	maxName  = 2000      // bytes; a row of an index holds 2,704
	maxBatch = 512 << 20 // bytes; the message for it must be smaller than 1 GB

	prunedRows = 1000 // of one transaction
)

var errName = fmt.Errorf("the name of a thread has at most %d bytes", maxName)

// The two statements of an append. Either changes the row of the thread or nothing; another
// transaction that wants to change the row waits until this one has ended, and sees it then.
const (
	insertThread = "WITH t AS (INSERT INTO raddle_thread(name, last_seq) VALUES ($1, $2 + $3) ON CONFLICT (name) DO NOTHING RETURNING id)"
	updateThread = "WITH t AS (UPDATE raddle_thread SET last_seq = $2 + $3 WHERE name = $1 AND last_seq = $2 RETURNING id)"

	insertRecords = ` INSERT INTO raddle_record(thread, time, checksum, seq, kind, head, data)
		SELECT t.id, v.time, v.checksum, $2 + v.n, v.kind, v.head, v.data
		FROM t CROSS JOIN unnest($4, $5, $6, $7, $8) WITH ORDINALITY AS v(time, checksum, kind, head, data, n)`
)

// Append implements journal.Store with one statement, in one round trip.
func (s *Store) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	if err := ctx.Err(); err != nil || len(recs) == 0 {
		return err
	}
	if err := s.appendRecords(ctx, thread, after, recs); err != nil {
		return s.explainError(fmt.Sprintf("append to thread %q", thread), err)
	}
	return nil
}

func (s *Store) appendRecords(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	switch {
	case len(thread) > maxName:
		return errName
	case after < 0 || after > maxSeq:
		return journal.ErrConflict
	case after+int64(len(recs)) > maxSeq:
		return fmt.Errorf("a thread holds at most %d records", maxSeq)
	}
	bytes := 0
	times := make([]int64, len(recs))
	sums := make([]int64, len(recs))
	kinds := make([]int16, len(recs))
	heads := make([][]byte, len(recs))
	datas := make([][]byte, len(recs))
	for i := range recs {
		r := &recs[i]
		times[i], sums[i], kinds[i] = r.Time, int64(r.Sum), int16(r.Kind)
		heads[i], datas[i] = orNull(r.Head), orNull(r.Data)
		bytes += len(r.Head) + len(r.Data)
	}
	if bytes > maxBatch {
		return fmt.Errorf("the records of one append have %d MB; Postgres takes at most %d", bytes>>20, maxBatch>>20)
	}
	text := updateThread
	if after == 0 {
		text = insertThread
	}
	args := []any{[]byte(thread), after, int64(len(recs)), times, sums, kinds, heads, datas}
	job, jobArgs := changeJob(journal.JobChangeOf(ctx, thread, recs))
	args = append(args, jobArgs...)
	line, lineArgs := changeLine(journal.LineOf(ctx, thread, after, recs), len(args))
	args = append(args, lineArgs...)
	text += job + line + insertRecords
	return s.sendWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		n, err := execStatement(ctx, c, text, args...)
		if err == nil && n != int64(len(recs)) {
			return journal.ErrConflict
		}
		return err
	})
}

// orNull returns nil, which is stored as NULL, for no bytes.
func orNull(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// Prune implements journal.Store. In one transaction it changes the row of the thread, so that
// the records do not exist for readers any more. The rows of the records are deleted after that, in
// batches; if the process ends before all are deleted, the next Prune of any thread deletes the rest.
func (s *Store) Prune(ctx context.Context, thread string, before int64) error {
	if err := ctx.Err(); err != nil || before <= 1 {
		return err
	}
	err := s.pruneThreads(ctx, before, thread)
	if err == nil {
		err = s.deletePruned(ctx)
	}
	return s.explainError(fmt.Sprintf("prune thread %q", thread), err)
}

// Delete deletes threads, all or none: for many threads it is faster than Prune. Unknown threads
// are ignored.
func (s *Store) Delete(ctx context.Context, threads ...string) error {
	if err := ctx.Err(); err != nil || len(threads) == 0 {
		return err
	}
	threads = slices.Sorted(slices.Values(threads)) // two deletions do not wait for each other in a circle
	err := s.pruneThreads(ctx, math.MaxInt64, threads...)
	if err == nil {
		err = s.deletePruned(ctx)
	}
	return s.explainError(fmt.Sprintf("delete %d threads", len(threads)), err)
}

// pruneThreads prunes threads, all or none.
func (s *Store) pruneThreads(ctx context.Context, before int64, threads ...string) error {
	return s.runTransaction(ctx, func(ctx context.Context, c *pgx.Conn) error {
		var deleted []string
		for _, thread := range threads {
			gone, err := pruneThread(ctx, c, thread, before)
			if err != nil {
				return err
			}
			if gone {
				deleted = append(deleted, thread)
			}
		}
		return deleteLines(ctx, c, deleted)
	})
}

// pruneThread hides the records below before, or the thread, and notes which rows are to be deleted. It reports whether
// the thread is deleted; its line is not. It is a part of a transaction.
func pruneThread(ctx context.Context, c *pgx.Conn, thread string, before int64) (gone bool, err error) {
	name := []byte(thread)
	var id, first, last int64
	ok, err := queryRow(ctx, c, "SELECT id, first_seq::bigint, last_seq::bigint FROM raddle_thread WHERE name = $1 FOR UPDATE", []any{name}, &id, &first, &last)
	if err != nil || !ok || before <= first {
		return false, err
	}
	if before > last {
		gone = true
		before = last + 1
		if _, err := execStatement(ctx, c, "DELETE FROM raddle_thread WHERE id = $1", id); err != nil {
			return false, err
		}
		if _, err := execStatement(ctx, c, "DELETE FROM raddle_drive WHERE name = $1", name); err != nil {
			return false, err
		}
		_, err = execStatement(ctx, c, "DELETE FROM raddle_lease WHERE name = $1", name)
	} else {
		_, err = execStatement(ctx, c, "UPDATE raddle_thread SET first_seq = $2 WHERE id = $1", id, before)
	}
	if err != nil {
		return false, err
	}
	_, err = execStatement(ctx, c, "INSERT INTO raddle_pruned(thread, below) VALUES ($1, $2)", id, before)
	return gone, err
}

// deletePruned deletes the rows of pruned records, a batch in each transaction, until none are left
// or ctx has ended. Batches that another process is deleting are left to it.
func (s *Store) deletePruned(ctx context.Context) error {
	for more := true; more && ctx.Err() == nil; {
		err := s.runTransaction(ctx, func(ctx context.Context, c *pgx.Conn) (err error) {
			more, err = deleteBatch(ctx, c)
			return err
		})
		if err != nil && !errors.Is(err, ctx.Err()) {
			return err
		}
	}
	return nil
}

// deleteBatch deletes some rows of pruned records, and reports whether there were any.
func deleteBatch(ctx context.Context, c *pgx.Conn) (bool, error) {
	var id, thread, below int64
	const find = "SELECT id, thread, below::bigint FROM raddle_pruned ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
	ok, err := queryRow(ctx, c, find, nil, &id, &thread, &below)
	if err != nil || !ok {
		return false, err
	}
	const remove = `DELETE FROM raddle_record WHERE thread = $1 AND seq < $2
		AND seq <= (SELECT min(seq) FROM raddle_record WHERE thread = $1) + $3`
	if _, err := execStatement(ctx, c, remove, thread, below, int64(prunedRows-1)); err != nil {
		return false, err
	}
	_, err = execStatement(ctx, c, `DELETE FROM raddle_pruned WHERE id = $1
		AND NOT EXISTS (SELECT FROM raddle_record WHERE thread = $2 AND seq < $3)`, id, thread, below)
	return true, err
}
