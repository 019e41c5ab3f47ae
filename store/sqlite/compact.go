package sqlite

import (
	"context"
	"fmt"
	"os"
)

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
