// Package testfile writes the files that tests need.
package testfile

import (
	"os"
	"path/filepath"
	"testing"
)

// WriteFile writes a file, and the directories around it that are missing.
func WriteFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// WriteFiles writes files below a directory. Their names have slashes on every system.
func WriteFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		WriteFile(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
}
