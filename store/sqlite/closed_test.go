package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
