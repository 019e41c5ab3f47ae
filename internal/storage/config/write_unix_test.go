//go:build unix

package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"raddle.dev/internal/testkit/testfile"
)

// What is not a regular file stays what it is, also behind a link: a rename would replace a device of the machine. The
// traps that are devices are left out, because a fault would do just that.
func TestWritePrivateLeavesWhatIsNoFile(t *testing.T) {
	tried := 0
	for _, trap := range testfile.Traps() {
		if !slices.Contains([]string{"pipe", "link to a pipe", "directory", "socket"}, trap.Name) {
			continue
		}
		tried++
		path := filepath.Join(t.TempDir(), "config.yaml")
		trap.Put(t, path)
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := WritePrivate(path, []byte("a")); err == nil {
			t.Errorf("%s: it was written", trap.Name)
		}
		if after, err := os.Stat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s: it has changed: %v", trap.Name, err)
		}
	}
	if tried != 4 {
		t.Errorf("%d traps were tried", tried)
	}
}
