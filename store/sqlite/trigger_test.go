package sqlite_test

import (
	"path/filepath"
	"testing"

	"raddle.dev/graph/journal"
)

// TestTriggersOfAnOlderFile: a file of schema 6, and each one before it, gets triggers.
func TestTriggersOfAnOlderFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path)
	if err := s.Append(t.Context(), "a", 0, batch(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, "DROP TABLE tick; DROP TABLE starter; PRAGMA user_version=6")
	s = open(t, path)
	if _, err := s.PutTrigger(t.Context(), journal.Trigger{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	list, _, err := s.ListTriggers(t.Context())
	if err != nil || len(list) != 1 || count(t, s, "a") != 1 {
		t.Errorf("the triggers are %+v (%v)", list, err)
	}
}
