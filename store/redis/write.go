package redis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	client "github.com/redis/go-redis/v9"
	"raddle.dev/graph/journal"
)

const (
	maxAppend   = 500 << 20 // bytes of one append: below the limit of one value, and of a request
	freedAtOnce = 1000      // records that one request of Prune frees: it blocks the server for less than a millisecond
)

// Append implements journal.Store.
func (s *Store) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	if err := ctx.Err(); err != nil || len(recs) == 0 {
		return err
	}
	if after < 0 || after > maxSeq-int64(len(recs)) {
		return journal.ErrConflict
	}
	op := fmt.Sprintf("append to thread %q", thread)
	args, err := encodeAppend(thread, after, recs, journal.LineOf(ctx, thread, after, recs))
	if err != nil {
		return s.explainError(op, err)
	}
	result, err := s.runScript(ctx, appendScript, append(threadKeys(thread), keyNames, keyIDs, keyFormat), args...)
	switch {
	case err != nil:
		return s.explainError(op, err)
	case result == "ok":
		return nil
	case result == "conflict":
		return journal.ErrConflict
	}
	return s.explainError(op, errFormat)
}

// encodeAppend returns the arguments of appendScript. The line may be nil.
func encodeAppend(thread string, after int64, recs []journal.Record, line *journal.Line) ([]any, error) {
	mark := rand.Uint64()
	bytes := 0
	args := make([]any, 0, 10+3*len(recs))
	args = append(args, format, after, binary.BigEndian.AppendUint64(nil, mark), thread, len(recs))
	if line == nil {
		args = append(args, 0)
	} else {
		args = append(append(args, 6), lineArgs(line)...)
	}
	for i := range recs {
		r := &recs[i]
		bytes += headStart + len(r.Head) + len(r.Data)
		if bytes > maxAppend {
			return nil, refusal(fmt.Sprintf("the records have more than the %d MiB that Redis can store at once", maxAppend>>20))
		}
		args = append(args, encodeRecord(r, mark))
	}
	for i := range recs {
		args = append(args, recs[i].Data)
	}
	for i := range recs {
		if recs[i].Kind.IsBase() {
			args = append(args, after+int64(i)+1)
		}
	}
	return args, nil
}

// Prune implements journal.Store. It hides the records at once and then frees their memory a
// batch at a time. If it is interrupted between two batches, the next Prune of the thread
// frees the rest.
func (s *Store) Prune(ctx context.Context, thread string, before int64) error {
	if err := ctx.Err(); err != nil || before <= 1 {
		return err
	}
	op := fmt.Sprintf("prune thread %q", thread)
	ids, err := s.readIDs(ctx, thread)
	if err != nil || ids[0] == "" {
		return s.explainError(op, err)
	}
	keys := append(threadKeys(thread), keyNames)
	for first := true; ; first = false {
		left, err := s.runScript(ctx, pruneScript, keys, ids[0], min(before, maxSeq), freedAtOnce, thread)
		if err != nil && first {
			return s.explainError(op, err)
		}
		if n, ok := left.(int64); err != nil || !ok || n <= 0 {
			return nil
		}
	}
}

// Delete deletes threads, all or none: for many threads it is much faster than Prune.
// Unknown threads are ignored.
func (s *Store) Delete(ctx context.Context, threads ...string) error {
	if err := ctx.Err(); err != nil || len(threads) == 0 {
		return err
	}
	op := fmt.Sprintf("delete %d threads", len(threads))
	ids, err := s.readIDs(ctx, threads...)
	if err != nil {
		return s.explainError(op, err)
	}
	keys := []string{keyNames}
	var args []any
	for i, thread := range threads {
		if ids[i] != "" {
			keys = append(keys, threadKeys(thread)...)
			args = append(args, thread, ids[i])
		}
	}
	if len(args) == 0 {
		return nil
	}
	_, err = s.runScript(ctx, deleteScript, keys, args...)
	return s.explainError(op, err)
}

// readIDs returns the ids of threads; "" for one that does not exist. A thread that is
// deleted and created again has another id: what is sent twice does not delete it.
func (s *Store) readIDs(ctx context.Context, threads ...string) (ids []string, err error) {
	err = s.retryWhileLost(ctx, func(ctx context.Context) error {
		pipe := s.db.Pipeline()
		var found []*client.StringCmd
		for _, thread := range threads {
			found = append(found, pipe.HGet(ctx, prefixMeta+thread, "id"))
		}
		if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, client.Nil) {
			return err
		}
		ids = ids[:0]
		for _, f := range found {
			if err := f.Err(); err != nil && !errors.Is(err, client.Nil) {
				return err
			}
			ids = append(ids, f.Val())
		}
		return nil
	})
	return ids, err
}
