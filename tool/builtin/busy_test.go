package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/base/edit"
)

// saveFiles writes the files of a workspace, and readFiles reads two of them.
func saveFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(text)
	}
	return files
}

// What a person saves between the reading of a file and its replacement stays, whatever the call does; the other files are as they were.
func TestChangedAtTheSameMoment(t *testing.T) {
	t.Parallel()
	const first = "*** Begin Patch\n*** Update File: a\n@@\n-a\n+A\n"
	for name, patch := range map[string]string{
		"update": "*** Update File: b\n@@\n-b\n+B\n", "delete": "*** Delete File: b\n", "move": "*** Update File: b\n*** Move to: z\n", "change and move": "*** Update File: b\n*** Move to: z\n@@\n-b\n+B\n",
		"add": "*** Add File: n\n+n\n", "target": "*** Update File: c\n*** Move to: n\n",
	} {
		h := Host{Workspace: t.TempDir()}
		saveFiles(t, h.Workspace, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n"})
		edits, err := h.planEdits(first+patch+"*** End Patch", "")
		if err != nil {
			t.Fatal(err)
		}
		saveFiles(t, h.Workspace, map[string]string{"b": "mine\n", "n": "mine\n"})
		r, err := h.carryOut(edits)
		if err != nil || !strings.Contains(r.Text(), "was changed by another program at this moment") || !strings.Contains(r.Text(), "the files before it are as they were") {
			t.Errorf("%s: %s, %v", name, r.Text(), err)
		}
		if files := readFiles(t, h.Workspace); len(files) != 4 || files["a"] != "a\n" || files["b"] != "mine\n" || files["c"] != "c\n" || files["n"] != "mine\n" {
			t.Errorf("%s: the files are %v", name, files)
		}
	}
}

// What a person saves after a call has changed a file stays, too, when the call takes its changes back.
func TestUndoLeavesForeignChanges(t *testing.T) {
	t.Parallel()
	h := Host{Workspace: t.TempDir()}
	saveFiles(t, h.Workspace, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n", "d": "d\n"})
	edits, err := h.planEdits("*** Begin Patch\n*** Update File: a\n@@\n-a\n+A\n*** Delete File: b\n*** Update File: c\n*** Move to: z\n@@\n-c\n+C\n*** Add File: n\n+n\n*** Update File: d\n@@\n-d\n+D\n*** End Patch", "")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := h.carryOut(edits); err != nil || r.Error {
		t.Fatal(r.Text(), err)
	}
	mine := map[string]string{"a": "mine\n", "b": "mine\n", "z": "mine\n", "n": "mine\n"}
	saveFiles(t, h.Workspace, mine)
	err = undoEdits(h, edits)
	files := readFiles(t, h.Workspace)
	for name, text := range mine {
		if files[name] != text || err == nil || !strings.Contains(err.Error(), name+": was changed by another program") {
			t.Errorf("%s is %q, and the error %v", name, files[name], err)
		}
	}
	if files["d"] != "d\n" {
		t.Errorf("d is %q", files["d"])
	}
}

// The sums of a file tell which lines of a later one differ.
func TestCompareSums(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after, lines string
		count                int
	}{
		"the same":             {"a\nb\n", "a\nb\n", "", 0},
		"one line":             {"a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nE\nf\n", "     3  c\n     4  d\n     5  E\n     6  f\n", 1},
		"two places":           {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "one\n2\n3\n4\n5\n6\n7\n8\nnine\n", "     1  one\n     2  2\n     3  3\n   ...\n     7  7\n     8  8\n     9  nine\n", 2},
		"an added line":        {"a\nb\n", "a\nx\nb\n", "     1  a\n     2  x\n     3  b\n", 1},
		"a removed line":       {"a\nb\nc\n", "a\nc\n", "     1  a\n     2  c\n", 1},
		"two removed, one new": {"a\nb\nc\nd\n", "a\nx\nd\n", "     1  a\n     2  x\n     3  d\n", 2},
		"other line ends":      {"a\nb\n", "a\r\nb\r\n", "", 0},
		"from nothing":         {"", "a", "     1  a\n", 1},
		"a mark":               {"\ufeffa\n", "a\n", "", 0},
	} {
		count, now := compareSums(edit.SumLines(c.before), c.after)
		if got := now.Lines(); count != c.count || got != c.lines {
			t.Errorf("%s: %d lines differ:\n%s\nwant %d:\n%s", name, count, got, c.count, c.lines)
		}
	}
}
