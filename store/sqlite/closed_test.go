package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph/journal"
)

// TestOperationsAfterClose: each operation of a closed Store says that it is closed, and in which file.
func TestOperationsAfterClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	disk := &faultyDisk{}
	s, err := openOn(path, disk)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	readOnly, err := OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := readOnly.Close(); err != nil {
		t.Fatal(err)
	}
	queue := listQueueOperations(t.Context())
	for what, c := range map[string]struct {
		store      *Store
		operations []operation
	}{
		"a store": {
			store:      s,
			operations: slices.Concat(listOperations(t.Context()), queue),
		},
		"a store for reading": { // it has no jobs and no triggers, open or not
			store:      readOnly,
			operations: slices.Concat(listOperations(t.Context()), queue[:8]),
		},
	} {
		for _, o := range c.operations {
			if err := o.do(c.store); err == nil || !strings.Contains(err.Error(), "closed") || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %s after Close: %v", what, o.name, err)
			}
		}
	}
	for what, s := range map[string]*Store{"a store": s, "a store for reading": readOnly} {
		if err := s.Close(); err != nil {
			t.Errorf("%s is closed again: %v", what, err)
		}
	}
}

// TestReadersOfAReadOnlyStore: it keeps as many connections as one that writes, and not one for each reader.
func TestReadersOfAReadOnlyStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if most := s.db.Stats().MaxOpenConnections; most != readers {
		t.Errorf("it opens at most %d connections, want %d", most, readers)
	}
}

// TestErrorsThatStayAsTheyAre: conflicts and the ends of contexts are compared by callers, so they get no text.
func TestErrorsThatStayAsTheyAre(t *testing.T) {
	s := &Store{path: "runs.db"}
	for _, err := range []error{
		nil,
		journal.ErrConflict,
		context.Canceled,
		context.DeadlineExceeded,
		fmt.Errorf("after a wait: %w", context.DeadlineExceeded),
	} {
		if got := s.explainError("read", err); got != err { //nolint:errorlint // it must be the same one
			t.Errorf("%v becomes %v", err, got)
		}
	}
	if err := s.explainError("read", errDisk); !errors.Is(err, errDisk) || err.Error() != "sqlite: read: runs.db: the disk broke" {
		t.Error(err)
	}
}

// TestRowsThatCannotBeRead: a value of another type than any version writes is an error of the operation that reads it,
// and not a row with less in it.
func TestRowsThatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		damage string
		read   func(s *Store) error
	}{
		{"UPDATE drive SET priority = 'x'", func(s *Store) error { _, err := s.ListJobs(t.Context(), false); return err }},
		{"UPDATE drive SET priority = 'x'", func(s *Store) error { _, _, err := s.ReadJob(t.Context(), "a"); return err }},
		{"UPDATE worker SET pid = 'x'", func(s *Store) error { _, err := s.ListWorkers(t.Context()); return err }},
		{"UPDATE line SET wait = 'x'", func(s *Store) error { _, err := s.ListLines(t.Context(), journal.LineRange{}); return err }},
		{"UPDATE record SET time = 'x'", func(s *Store) error {
			for _, err := range s.Read(t.Context(), "a", journal.Range{}) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		s, err := Open(filepath.Join(t.TempDir(), "runs.db"))
		if err != nil {
			t.Fatal(err)
		}
		fill(t, s)
		worker := journal.Worker{ID: "w"}
		if err := s.PutJob(t.Context(), journal.DriveJob{Thread: "a"}, -time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := s.RenewJobs(t.Context(), worker, nil, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := c.read(s); err != nil {
			t.Fatalf("before %s: %v", c.damage, err)
		}
		if _, err := s.w.conn.ExecContext(t.Context(), c.damage); err != nil {
			t.Fatal(err)
		}
		if err := c.read(s); err == nil {
			t.Errorf("after %s nothing is wrong", c.damage)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLinesOfOlderFilesForReading: the lines of schema 7 count, and those before it do not say what waits.
func TestLinesOfOlderFilesForReading(t *testing.T) {
	for schema, want := range map[int]string{6: "", 7: "waiting", version: "waiting"} {
		path := filepath.Join(t.TempDir(), "runs.db")
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		fill(t, s)
		filled := s.FillLine(t.Context(), journal.Line{Thread: "b", Order: "b", Status: "waiting"})
		_, err = s.w.conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA user_version=%d", schema))
		if err := errors.Join(filled, err, s.Close()); err != nil {
			t.Fatal(err)
		}
		s, err = OpenReadOnly(path)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := s.ListLines(t.Context(), journal.LineRange{})
		if err != nil || len(lines) != 2 || lines[0].Thread != "b" || lines[0].Status != want {
			t.Errorf("schema %d: %+v, %v", schema, lines, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
