package edit

import (
	"strings"
	"testing"
)

// A file has a sum for each line, and none if it has too many.
func TestSumLines(t *testing.T) {
	t.Parallel()
	if a, b := SplitSums(SumLines("a\nb\r\n")), SplitSums(SumLines("a\nb")); a != b || strings.Count(a, "\n") != 2 {
		t.Errorf("%q and %q", a, b)
	}
	if sums := SumLines(strings.Repeat("\n", mostSums+1)); sums != "" {
		t.Errorf("the sums of a long file have %d characters", len(sums))
	}
}

// What cannot be shown whole says so.
func TestShowsAll(t *testing.T) {
	t.Parallel()
	for file, all := range map[string]bool{"a\nb\n": true, strings.Repeat("x\n", mostShown+10): false, strings.Repeat("x", longestLine+1): false} {
		if r := ShowRegions(file, []Region{{0, len(splitText(file).lines)}}); r.ShowsAll() != all {
			t.Errorf("%d bytes: shows all: %v", len(file), r.ShowsAll())
		}
	}
}

// Every change is recognized in the file that it has made, and in no other one.
func TestUndo(t *testing.T) {
	t.Parallel()
	const file = "one\ntwo\n\nthree\nfour"
	for name, change := range map[string][2]string{
		"a line": {"two", "2"}, "lines": {"two\n\nthree", "2\n3"}, "an added line": {"two\n", "two\nmore\n"}, "removed lines": {"two\n\n", ""}, "a part of a line": {"hree", "HREE"},
	} {
		r, err := Replace(file, change[0], change[1], false)
		if err != nil {
			t.Fatal(err)
		}
		was := func(text string) bool { return text == file }
		if !UndoReplace(r.Text, change[0], change[1], false, was) {
			t.Errorf("%s: not recognized", name)
		}
		if UndoReplace(r.Text+"\nmore", change[0], change[1], false, was) || UndoReplace(file, change[0], change[1], false, was) {
			t.Errorf("%s: recognized in another file", name)
		}
	}
	for name, patch := range map[string]string{
		"a line": "@@\n one\n-two\n+2\n", "removed": "@@\n one\n-two\n", "added": "@@ two\n+more\n", "two hunks": "@@\n-one\n+1\n@@\n-four\n+4\n+5\n", "the last line end": "@@\n-four\n\\ No newline at end of file\n+four\n",
		"numbers": "@@ -1,2 +1,1 @@\n one\n-two\n@@ -4,1 +3,2 @@\n three\n+3b\n",
	} {
		files, err := Parse(patch)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Apply(file, files[0].Hunks)
		if err != nil {
			t.Fatal(err)
		}
		was := func(text string) bool { return text == file }
		if !UndoHunks(r.Text, files[0].Hunks, was) {
			t.Errorf("%s: not recognized in %q", name, r.Text)
		}
		if UndoHunks(r.Text+"\nmore", files[0].Hunks, was) || UndoHunks(file, files[0].Hunks, was) {
			t.Errorf("%s: recognized in another file", name)
		}
	}
}
