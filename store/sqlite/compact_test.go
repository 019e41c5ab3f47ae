package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// What was deleted is given back, what was not is as it was, and the file goes on.
func TestCompact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s, other := open(t, path), open(t, path)
	var names []string
	for i := range 200 {
		names = append(names, fmt.Sprint("t", i))
		if err := s.Append(t.Context(), names[i], 0, batch(200)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(t.Context(), append(names[:190:190], "no such thread")...); err != nil {
		t.Fatal(err)
	}
	before, after, err := s.Compact(t.Context())
	if err != nil || before < 6<<20 || after > 1<<20 {
		t.Errorf("%d bytes before, %d after, %v", before, after, err)
	}
	size := int64(0)
	for _, p := range []string{path, path + "-wal"} {
		if i, err := os.Stat(p); err == nil {
			size += i.Size()
		}
	}
	if size != after {
		t.Errorf("file and log have %d bytes, not %d", size, after)
	}
	for i, name := range names {
		want := 200
		if i < 190 {
			want = 0
		}
		if n := count(t, other, name); n != want {
			t.Errorf("%s has %d records, want %d", name, n, want)
		}
	}
	if err := other.Append(t.Context(), names[199], 200, batch(3)); err != nil {
		t.Error(err)
	}
	if before, after, err = s.Compact(t.Context()); err != nil || after > before {
		t.Errorf("again: %d bytes before, %d after, %v", before, after, err)
	}
	if n := count(t, s, names[199]); n != 203 {
		t.Errorf("%d records, want 203", n)
	}
}
