//go:build unix

package script

import (
	"path/filepath"
	"testing"

	"raddle.dev/internal/testkit/testfile"
)

// A .env that is behind a link which leads out of its directory, or that is not a file, has no variables.
func TestDotenvStaysInItsDirectory(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secrets")
	testfile.WriteFile(t, outside, "NAME=value\n")
	load := func(dir string) string {
		vars, _ := ReadDotenv(dir, filepath.Join(dir, ".env"))
		if got := vars["NAME"]; got != "" && got != "own" {
			t.Errorf("ReadDotenv: NAME is %q", got)
		}
		e := &environment{vars: map[string]string{}}
		e.loadDotenv(dir, filepath.Join(dir, ".env"), true)
		return e.vars["NAME"]
	}
	for _, way := range testfile.WaysOut() {
		dir := t.TempDir()
		way.Put(t, dir, ".env", outside)
		if got := load(dir); got != "" {
			t.Errorf("%s: NAME is %q", way.Name, got)
		}
	}
	for _, trap := range testfile.Traps() {
		dir := t.TempDir()
		trap.Put(t, filepath.Join(dir, ".env"))
		if got := load(dir); got != "" {
			t.Errorf("%s: NAME is %q", trap.Name, got)
		}
	}
	dir := t.TempDir()
	testfile.WriteFile(t, filepath.Join(dir, ".env"), "NAME=own\n")
	if got := load(dir); got != "own" {
		t.Errorf("a file of the directory: NAME is %q", got)
	}
}
