//go:build unix

package cloudkey

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program is not run if others may write the file that names it.
func TestProcessOfOthers(t *testing.T) {
	h := newHome(t, map[string]string{".aws/config": "[default]\ncredential_process = touch taken\n"})
	if err := os.Chmod(filepath.Join(h.dir, ".aws", "config"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := h.open().Keys(t.Context(), func(...string) {}); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("%v", err)
	}
}
