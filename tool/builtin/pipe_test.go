//go:build unix

package builtin_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe is not read: it may never end.
func TestPipesAreNotRead(t *testing.T) {
	h := place(t, map[string]string{"a": "x"})
	if err := syscall.Mkfifo(filepath.Join(h.Workspace, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fs_cat", "fs_read", "fs_patch"} {
		if got := use(t, h, name, object{"path": "pipe", "contents": "@@\n-x\n+y"}); !strings.Contains(got, "pipe: is not a regular file") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
