package rag

import (
	"path/filepath"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/rag/load"
)

// A base whose words an earlier version has indexed answers as before, and its next build adds the parts of names to
// the index: it reads no document again and asks no model.
func TestPartsOfNamesInAnOlderBase(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
		"docs/a.txt": "Use os.path.join for names.",
		"docs/b.txt": "Calls of getUserById are slow.",
	})
	b := openBase(t, filepath.Join(dir, "kb.db"), Options{Model: Keyword, Load: load.Options{Dir: dir}})
	build(t, b, "docs")
	const older = `UPDATE base SET settings = json_remove(settings, '$.name_parts'), builds = builds + 1; DELETE FROM posting WHERE token GLOB '/*'`
	if _, err := b.db.ExecContext(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	if got := paths(t, b, "path join", 3); len(got) > 0 {
		t.Fatalf("an older base finds parts of names: %v", got)
	}
	if got := paths(t, b, "os.path.join", 3); len(got) != 1 || got[0] != "a.txt" {
		t.Fatalf("an older base finds %v", got)
	}
	r := build(t, b, "docs")
	if !r.Changed || r.Documents != 2 {
		t.Errorf("the report of the build is %+v", r)
	}
	for query, want := range map[string]string{"path join": "a.txt", "os.path.join": "a.txt", "user id": "b.txt", "names": "a.txt"} {
		if got := paths(t, b, query, 3); len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %v, want %s", query, got, want)
		}
	}
	if r := build(t, b, "docs"); r.Changed {
		t.Error("the build after it changes the base again")
	}
}
