package sqlitefile_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/base/sqlitefile"
)

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b.db")
	if err := sqlitefile.Create(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sqlitefile.Create(path); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "text" {
		t.Errorf("the file has become %q, %v", got, err)
	}
	if err := sqlitefile.Create(dir); err == nil || !strings.Contains(err.Error(), "this is not a file") {
		t.Errorf("of a directory: %v", err)
	}
}

func TestFormatURI(t *testing.T) {
	got := sqlitefile.FormatURI("/a b/c?d#e%", url.Values{"_txlock": {"immediate"}})
	if want := "file:///a%20b/c%3Fd%23e%25?_txlock=immediate"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
