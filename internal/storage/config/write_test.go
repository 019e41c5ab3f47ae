package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/quick"

	"raddle.dev/internal/base/failure"
)

func TestSetValue(t *testing.T) {
	tests := map[string]struct{ before, key, value, after string }{
		"a new file":               {"", "model", "a:b", "model: a:b\n"},
		"only comments":            {"# mine", "model", "a:b", "# mine\nmodel: a:b\n"},
		"a plain value":            {"model: a:b # why\nstore: x\n", "model", "c:d", "model: c:d # why\nstore: x\n"},
		"a value in quotes":        {`model: "a\"b" # why`, "model", "c:d", "model: c:d # why"},
		"a value in single quotes": {"model:   'it''s'\n\n# end\n", "model", "c:d", "model:   c:d\n\n# end\n"},
		"wide characters before":   {"{model: ж, store: ж}\n", "store", "x", "{model: ж, store: x}\n"},
		"a value that needs them":  {"", "model", "yes: # no", "model: 'yes: # no'\n"},
		"two lines":                {"", "rag_template", "a\nb", "rag_template: \"a\\nb\"\n"},
		"a variable":               {"store: x\n", "model", "${MODEL}", "store: x\nmodel: ${MODEL}\n"},
		"after a mapping":          {"clients:\n  - type: ollama\n", "top_p", "0.5", "clients:\n  - type: ollama\ntop_p: 0.5\n"},
		"windows lines":            {"model: a:b\r\nstore: x\r\n", "model", "c", "model: c\r\nstore: x\r\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := writeConfig(t, test.before)
			path, err := SetValue(dir, test.key, test.value, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); string(got) != test.after {
				t.Errorf("%q, %v, want %q", got, err, test.after)
			}
		})
	}
}

func TestSetValueRefuses(t *testing.T) {
	tests := map[string]struct{ before, key, value, want string }{
		"a wrong value":  {"", "top_p", "2", "top_p: 2 is not between 0 and 1"},
		"an unknown key": {"", "modell", "x", `no key "modell"`},
		"a list":         {"", "clients", "x", `"clients" has more than one value`},
		"a broken file":  {"modle: x\n", "model", "x", `unknown key "modle"`},
		"a block":        {"rag_template: |\n  a\n", "rag_template", "b", "cannot change"},
		"an anchor":      {"model: &m x\nstore: *m\n", "model", "b", "cannot change"},
		"an alias":       {"store: &m x\nmodel: *m\n", "model", "b", "cannot change"},
		"a flow mapping": {"{store: x}\n", "model", "b", "cannot change"},
		"the end marked": {"store: x\n...\n", "model", "b", "cannot change"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := writeConfig(t, test.before)
			path, err := SetValue(dir, test.key, test.value, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
			var own *failure.Error
			var file *FileError
			if !errors.As(err, &own) && !errors.As(err, &file) {
				t.Errorf("the error has type %T", err)
			}
			if got, _ := os.ReadFile(path); string(got) != test.before {
				t.Errorf("the file is now %q", got)
			}
		})
	}
}

// Whatever is written is read again, or refused without a change.
func TestSetValueKeepsEveryText(t *testing.T) {
	dir := writeConfig(t, "# first\nmodel: old # second\nstore: 'memory:'\n")
	err := quick.Check(func(value string) bool {
		before, _ := os.ReadFile(filepath.Join(dir, FileName))
		_, err := SetValue(dir, "model", value, nil)
		after, _ := os.ReadFile(filepath.Join(dir, FileName))
		if err != nil {
			return string(before) == string(after)
		}
		c, err := Load(dir, nil)
		return err == nil && c.Model == value && c.Store == "memory:" && strings.HasPrefix(string(after), "# first\nmodel: ") && strings.Contains(string(after), " # second\n")
	}, nil)
	if err != nil {
		t.Error(err)
	}
}

func TestWritePrivate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "file")
	if err := WritePrivate(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || os.PathSeparator == '/' && info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skipf("no symbolic links: %v", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WritePrivate(link, []byte("two")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	info, _ := os.Lstat(link)
	if string(text) != "two" || err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%q, %v, %v", text, err, info.Mode())
	}
	if info, err := os.Stat(path); err != nil || os.PathSeparator == '/' && info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("files are left: %v", left)
	}
}

// Every setting with a default exists, so that a renamed key is noticed.
func TestDefaultsAreSettings(t *testing.T) {
	for key, value := range defaults {
		s, err := findSetting(key)
		if err != nil {
			t.Errorf("%s: %v", key, err)
		} else if err := s.set(&Config{}, value); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}
