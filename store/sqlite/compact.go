package sqlite

import (
	"context"
	"fmt"
	"os"
)

// Delete deletes threads, all or none: for many at once it is much faster than Prune.
// Threads that there are not do no harm.
func (s *Store) Delete(ctx context.Context, threads ...string) error {
	if err := ctx.Err(); err != nil || len(threads) == 0 {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	err := s.patiently(ctx, func() error {
		return s.w.transaction(func() error {
			for _, thread := range threads {
				if err := s.w.prune(thread, maxSeq+1); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return s.explain(fmt.Sprintf("delete %d threads", len(threads)), err)
}

// compactShare is the part of the file, in percent, that must be unused before it is
// worth to write the rest anew.
const compactShare = 10

// Compact gives the space of what was deleted back to the file system: it moves the
// log into the file, empties it, and, where more than a tenth of the file is unused,
// writes the file anew. That needs as much free space as the file has content. Readers
// and writers of other processes wait meanwhile. It returns how large file and log
// were, and are.
func (s *Store) Compact(ctx context.Context) (before, after int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	before = s.size()
	err = s.patiently(ctx, s.w.compact)
	return before, s.size(), s.explain("make the file smaller", err)
}

func (w *writer) compact() error {
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
	// What is kept may not fit into the memory.
	if _, err := w.conn.ExecContext(ctx, "PRAGMA temp_store=file; VACUUM; PRAGMA temp_store=memory; PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		_, _ = w.conn.ExecContext(ctx, "PRAGMA temp_store=memory") // as it was; it does not fail
		return err
	}
	return nil
}

// size is the size of the file and its log, in bytes.
func (s *Store) size() (n int64) {
	for _, path := range []string{s.path, s.path + "-wal"} {
		if i, err := os.Stat(path); err == nil {
			n += i.Size()
		}
	}
	return n
}
