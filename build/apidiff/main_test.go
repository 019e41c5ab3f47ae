package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// oldModule are the files of a small module, by their names.
var oldModule = map[string]string{
	"go.mod":          "module example.com/m\n\ngo 1.26\n",
	"docs/api.md":     "# API\n\n## API\n\n| package | why |\n|---|---|\n| `a`, `a/b` | |\n| `gone` | |\n\n## Others\n\n| package | why |\n|---|---|\n| `c` | |\n",
	"docs/renames.md": "| package | old | new |\n|---|---|---|\n| `a` | `Stop` | `Halt` |\n",
	"a/a.go":          "package a\n\ntype T struct{ Name string }\n\nfunc (*T) Close() {}\n\nfunc Run(n int) {}\n\nfunc Stop() {}\n",
	"a/b/b.go":        "package b\n\ntype Reader interface{ Read() string }\n",
	"gone/gone.go":    "package gone\n",
	"c/c.go":          "package c\n\nfunc Free() {}\n",
}

// changedModule is what the next version has in place of it.
var changedModule = map[string]string{
	"docs/api.md": "# API\n\n## API\n\n| package | why |\n|---|---|\n| `a`, `a/b`, `d` | |\n",
	"a/a.go":      "package a\n\ntype T struct{ Name, Title string }\n\nfunc Run(n int, more ...string) {}\n\nfunc Halt() {}\n",
	"a/b/b.go":    "package b\n\ntype Reader interface{ Read() (string, error) }\n",
	"c/c.go":      "package c\n",
	"d/d.go":      "package d\n",
}

// changes are those between both.
const changes = `NO ROW   a: (*T).Close: removed
NO ROW   a: Run: changed from func(int) to func(int, ...string)
NO ROW   a: Stop: removed
added    a: Halt: added
added    a: T.Title: added
NO ROW   a/b: Reader.Read: changed from func() string to func() (string, error)
NO ROW   gone: the package is no longer API
added    d: the package
`

func TestCompareVersions(t *testing.T) {
	before := writeModule(t, oldModule)
	for _, tt := range []struct {
		name, rows string // rows that the new version adds
		missing    int
		want       string
	}{
		{"no rows", "", 5, changes},
		{"some rows", "| `a` | `T.Close` | nothing |\n| `a/b` | `Reader` | `Reader` with an error |\n", 3,
			strings.NewReplacer("NO ROW   a: (*T)", "changed  a: (*T)", "NO ROW   a/b:", "changed  a/b:").Replace(changes)},
		{"all rows", "| `a` | `T`, `Run` | |\n| `a` | `Stop` | `Halt` in v2 |\n| `a/b` | `Reader.Read` | |\n| `gone` | | |\n", 0,
			strings.ReplaceAll(changes, "NO ROW ", "changed")},
		{"rows of another package", "| `b` | `T`, `Run`, `Stop` | |\n", 5, changes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := maps.Clone(oldModule)
			maps.Copy(files, changedModule)
			files["docs/renames.md"] += tt.rows
			var out strings.Builder
			missing, err := compareVersions(&out, before, writeModule(t, files))
			if err != nil || missing != tt.missing || out.String() != tt.want {
				t.Errorf("got %d without a row, %v:\n%s\nwant %d:\n%s", missing, err, out.String(), tt.missing, tt.want)
			}
		})
	}
	if missing, err := compareVersions(t.Output(), before, before); missing > 0 || err != nil {
		t.Errorf("a version and itself: %d, %v", missing, err)
	}
	if _, err := compareVersions(t.Output(), before, writeModule(t, map[string]string{"docs/api.md": "# API\n"})); err == nil || !strings.Contains(err.Error(), "lists no packages") {
		t.Errorf("a page without a list: %v", err)
	}
}

// The script of CI compares with the newest tag, and passes without one.
func TestScript(t *testing.T) {
	repo := writeModule(t, oldModule)
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "tag.gpgSign=false"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	script := func() (string, error) {
		out, err := exec.Command("../../.ci/apidiff", repo).CombinedOutput()
		return string(out), err
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "--no-gpg-sign", "-m", "first")
	if out, err := script(); err != nil || !strings.Contains(out, "there is no tag of a version") {
		t.Errorf("without a tag: %v\n%s", err, out)
	}
	git("tag", "v0.1.0")
	git("tag", "other")
	for name, text := range changedModule {
		writeFile(t, filepath.Join(repo, name), text)
	}
	if out, err := script(); err == nil || !strings.Contains(out, "since v0.1.0:\n"+changes) || !strings.Contains(out, "5 of these changes") {
		t.Errorf("with a tag: %v\n%s", err, out)
	}
	writeFile(t, filepath.Join(repo, "docs/renames.md"), oldModule["docs/renames.md"]+"| `a` | `T`, `Run`, `Stop` | `Halt` |\n| `a/b` | `Reader` | |\n| `gone` | | |\n")
	if out, err := script(); err != nil || strings.Contains(out, "NO ROW") {
		t.Errorf("with rows: %v\n%s", err, out)
	}
}

// writeModule writes files into a new directory.
func writeModule(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		writeFile(t, filepath.Join(dir, name), text)
	}
	return dir
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
