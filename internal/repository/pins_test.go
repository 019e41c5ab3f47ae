package repository_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What other people publish is named by its content, so that moving a tag or a branch changes nothing here: actions by a commit, images by
// a digest, programs that make a release by a sum.
func TestPins(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	files = append(files, "Dockerfile", "Makefile")
	for _, tt := range []struct{ what, use, pinned string }{
		{"an action", `^\s*(?:- )?uses:\s*(\S.*)$`, `^[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`},
		{"an image", `^FROM\s+(\S+)`, `^(scratch|[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64})$`},
		{"a program of a release", `^GORELEASER_SUM\s*:=\s*(.*)$`, `^h1:[\w+/]{43}=$`},
	} {
		use, pinned := regexp.MustCompile(tt.use), regexp.MustCompile(tt.pinned)
		found := 0
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			line := 0
			for l := range strings.Lines(string(text)) {
				line++
				m := use.FindStringSubmatch(strings.TrimRight(l, "\n"))
				if m == nil {
					continue
				}
				found++
				if !pinned.MatchString(m[1]) {
					t.Errorf("%s:%d: %s is %q, which is not bound to its content: want %s", file, line, tt.what, m[1], tt.pinned)
				}
			}
		}
		if found == 0 {
			t.Errorf("there is no %s", tt.what)
		}
	}
}
