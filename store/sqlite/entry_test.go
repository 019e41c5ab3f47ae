package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"

	"raddle.dev/memory"
	"raddle.dev/memory/memorytest"
	"raddle.dev/store/sqlite"
)

func TestEntries(t *testing.T) {
	memorytest.TestStore(t, func(t *testing.T) memory.Store { return open(t, filepath.Join(t.TempDir(), "runs.db")) })
}

func TestDurableEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	memorytest.TestDurable(t, func(t *testing.T) memory.Store { return open(t, path) })
}

// A file of an older schema that can only be read has no entries, and that is not an error.
func TestEntriesOfAnOlderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	writeOldFile(t, path, 3)
	s, err := sqlite.OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.GetEntry(t.Context(), "a", "k"); !errors.Is(err, memory.ErrNotFound) {
		t.Error(err)
	}
	for e, err := range s.ListEntries(t.Context(), "") {
		t.Errorf("%+v, %v", e, err)
	}
}
