package bundle

import (
	"os"
	"path/filepath"
	"testing"
)

// A directory holds an unchanged copy if it has exactly the files that were written there, and only regular ones.
func TestUnchangedCopies(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string) error{
		"changed": func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("name: mine\n"), 0o600)
		},
		"added": func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, ".env"), []byte("A=b\n"), 0o600)
		},
		"missing": func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, "tools.sh")) },
		"a link": func(_ *testing.T, dir string) error {
			tools := filepath.Join(dir, "tools.sh")
			if err := os.Remove(tools); err != nil {
				return err
			}
			return os.Symlink("config.yaml", tools)
		},
		"a directory": func(_ *testing.T, dir string) error {
			tools := filepath.Join(dir, "tools.sh")
			if err := os.Remove(tools); err != nil {
				return err
			}
			return os.Mkdir(tools, 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := Install(dir, Options{Agents: []string{"coder"}}); err != nil {
				t.Fatal(err)
			}
			if !IsUnchanged(dir, "coder") {
				t.Fatal("a new copy counts as changed")
			}
			if err := change(t, filepath.Join(dir, "coder")); err != nil {
				t.Fatal(err)
			}
			if IsUnchanged(dir, "coder") {
				t.Error("the copy counts as unchanged")
			}
		})
	}
	if IsUnchanged(t.TempDir(), "coder") || IsUnchanged(t.TempDir(), "mine") {
		t.Error("what is not there counts as an unchanged copy")
	}
}

// What was unpacked is completed if something is missing, and is at the same place.
func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	place, err := Unpack(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(place, "coder")); err != nil {
		t.Fatal(err)
	}
	again, err := Unpack(dir)
	if err != nil || again != place {
		t.Errorf("%s %v", again, err)
	}
	for _, unit := range unitNames() {
		if _, err := os.Stat(filepath.Join(place, unit)); err != nil {
			t.Error(err)
		}
	}
}
