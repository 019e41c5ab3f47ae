package sqlite_test

import (
	"path/filepath"
	"slices"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/store/sqlite"
)

func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	graphtest.TestStore(t, func(t *testing.T) graph.Store { return open(t, filepath.Join(t.TempDir(), "runs.db")) })
}

func TestDurable(t *testing.T) {
	graphtest.TestDurable(t, func(t *testing.T, place string) graph.Store { return open(t, filepath.Join(place, "runs.db")) })
}

// TestAnyName: SQLite keeps names that are no text elsewhere.
func TestAnyName(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "runs.db"))
	names := []string{"\xff\xff", "\xff", "b\x00c", "b\x00", "b", "a\xffb", ""}
	for _, name := range names {
		if err := s.Append(t.Context(), name, 0, batch(1)); err != nil {
			t.Fatal(err)
		}
	}
	for prefix, want := range map[string][]string{"": names, "\xff": names[:2], "b\x00": names[2:4], "a\xff": names[5:6]} {
		var got []string
		for info, err := range s.Threads(t.Context(), prefix) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, info.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("Threads(%q): %q, want %q", prefix, got, want)
		}
	}
}
