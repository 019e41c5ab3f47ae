package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"raddle.dev/graph"
)

func openImpatient(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s.patience = time.Nanosecond // SQLite's own wait remains
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// lock holds the file's lock as another program would, until the test ends or
// the function it returns is called.
func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	unlock = sync.OnceFunc(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(unlock)
	return unlock
}

func one() []graph.Record { return []graph.Record{{Kind: graph.KindStep, Head: []byte("h")}} }

func TestLockedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openImpatient(t, path)
	if err := s.Append(t.Context(), "a", 0, one()); err != nil {
		t.Fatal(err)
	}
	unlock := lock(t, path)
	for what, err := range map[string]error{
		"append":    s.Append(t.Context(), "a", 1, one()),
		"batch":     s.Append(t.Context(), "a", 1, append(one(), one()...)),
		"new":       s.Append(t.Context(), "b", 0, one()),
		"prune all": s.Prune(t.Context(), "a", 2),
	} {
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "another process keeps the file locked: wait until it is done, or end it, and try again") {
			t.Errorf("%s: %v", what, err)
		}
	}
	other := openImpatient(t, path)
	for _, s := range []*Store{s, other} {
		n := 0
		for _, err := range s.Read(t.Context(), "a", graph.Range{}) {
			if err != nil {
				t.Errorf("readers wait for the writer: %v", err)
			}
			n++
		}
		if n != 1 {
			t.Errorf("%d records, want 1", n)
		}
	}
	unlock()
	if err := s.Append(t.Context(), "a", 1, one()); err != nil {
		t.Error(err)
	}
}

func TestLockedFileIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openImpatient(t, path)
	s.patience = time.Hour
	unlock := lock(t, path)
	done := make(chan error)
	go func() { done <- s.Append(t.Context(), "a", 0, one()) }()
	select {
	case err := <-done:
		t.Fatalf("Append does not wait for the lock: %v", err)
	case <-time.After(2 * busyTimeout):
	}
	unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCancelEndsTheWaitForALock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openImpatient(t, path)
	s.patience = time.Hour
	lock(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Append(ctx, "a", 0, one()); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestOpenAtTheSameTime(t *testing.T) {
	for range 10 {
		path := filepath.Join(t.TempDir(), "runs.db")
		var wg sync.WaitGroup
		stores, errs := make([]*Store, 8), make([]error, 8)
		for i := range stores {
			wg.Go(func() { stores[i], errs[i] = Open(path) })
		}
		wg.Wait()
		won := 0
		for i, s := range stores {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			if err := s.Append(t.Context(), "a", 0, one()); err == nil {
				won++
			} else if !errors.Is(err, graph.ErrConflict) {
				t.Error(err)
			}
		}
		if won != 1 {
			t.Errorf("%d of 8 have begun one thread, want 1", won)
		}
		for _, s := range stores {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestPruneWhileReading: a reader gets what was there, or is told.
func TestPruneWhileReading(t *testing.T) {
	const n = 3 * pageRows
	for _, test := range []struct {
		name   string
		before int64
		r      graph.Range
		want   error
	}{
		{"behind the reader", 5, graph.Range{}, nil},
		{"what is next", n, graph.Range{}, errChanged},
		{"the thread", n + 1, graph.Range{}, errChanged},
		{"the thread, newest first", n + 1, graph.Range{Newest: true}, errChanged},
		{"the end, newest first", 5, graph.Range{Newest: true}, errChanged},
		{"beyond the limit", n, graph.Range{Limit: 10}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := openImpatient(t, filepath.Join(t.TempDir(), "runs.db"))
			recs := make([]graph.Record, n)
			if err := s.Append(t.Context(), "a", 0, recs); err != nil {
				t.Fatal(err)
			}
			seen := 0
			var failed error
			for rec, err := range s.Read(t.Context(), "a", test.r) {
				if err != nil {
					failed = err
					break
				}
				if seen++; seen == 1 {
					if err := s.Prune(t.Context(), "a", test.before); err != nil {
						t.Fatal(err)
					}
					// What has the name now must not be taken for the rest.
					if err := s.Append(t.Context(), "a", 0, recs); err != nil && !errors.Is(err, graph.ErrConflict) {
						t.Fatal(err)
					}
				}
				if want := int64(seen); !test.r.Newest && rec.Seq != want {
					t.Fatalf("record %d after %d others", rec.Seq, want-1)
				}
			}
			if !errors.Is(failed, test.want) {
				t.Errorf("%v after %d of %d records, want %v", failed, seen, n, test.want)
			}
		})
	}
}
