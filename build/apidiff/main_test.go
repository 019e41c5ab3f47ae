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
	"go.mod": "module example.com/m\n\ngo 1.26\n",
	"docs/api.md": "# API\n\n## API\n\n| package | why |\n|---|---|\n| `a`, `a/b` | |\n| `gone` | |\n\n" +
		"## Others\n\n| package | why |\n|---|---|\n| `c` | |\n\n" +
		"## Names for the program only\n\n| name | why |\n|---|---|\n" +
		"| `a.Read` | needs `Box` |\n| `a.Host.Box` | |\n| `a/b.Call.Run` | |\n",
	"docs/renames.md": "| package | old | new |\n|---|---|---|\n| `a` | `Stop` | `Halt` |\n",
	"CHANGELOG.md":    "# Changes\n\n## Unreleased\n\n## 0.3.1 – 2027-02-01\n\n## 0.3.0 – 2027-01-01\n",
	"a/a.go": "package a\n\ntype T struct{ Name string }\n\nfunc (*T) Close() {}\n\nfunc Run(n int) {}\n\n" +
		"func Stop() {}\n\nfunc Read(n int) {}\n\ntype Host struct {\n\tBox int\n\tName string\n}\n",
	"a/b/b.go": "package b\n\ntype Reader interface{ Read() string }\n\n" +
		"type Call struct{}\n\nfunc (*Call) Run() {}\n",
	"gone/gone.go": "package gone\n",
	"c/c.go":       "package c\n\nfunc Free() {}\n",
}

// changedModule is what the next version has in place of it. Its page has no names for the program only: that of the
// older version counts.
var changedModule = map[string]string{
	"docs/api.md": "# API\n\n## API\n\n| package | why |\n|---|---|\n| `a`, `a/b`, `d` | |\n",
	"a/a.go": "package a\n\ntype T struct{ Name, Title string }\n\nfunc Run(n int, more ...string) {}\n\n" +
		"func Halt() {}\n\nfunc Read(n int, m int) {}\n\ntype Host struct{ Box string }\n",
	"a/b/b.go": "package b\n\ntype Reader interface{ Read() (string, error) }\n\ntype Call struct{}\n",
	"c/c.go":   "package c\n",
	"d/d.go":   "package d\n",
}

// changes are those between both.
const changes = `NO ROW   a: (*T).Close: removed
free     a: Host.Box: changed from int to string
NO ROW   a: Host.Name: removed
free     a: Read: changed from func(int) to func(int, int)
NO ROW   a: Run: changed from func(int) to func(int, ...string)
NO ROW   a: Stop: removed
added    a: Halt: added
added    a: T.Title: added
free     a/b: (*Call).Run: removed
NO ROW   a/b: Reader.Read: changed from func() string to func() (string, error)
NO ROW   gone: the package is no longer API
added    d: the package
`

func TestCompareVersions(t *testing.T) {
	before := writeModule(t, oldModule)
	const allRows = "| `a` | `T`, `Run`, `Host.Name` | |\n| `a` | `Stop` | `Halt` in v2 |\n" +
		"| `a/b` | `Reader.Read` | |\n| `gone` | | |\n"
	const someRows = "| `a` | `T.Close` | nothing |\n| `a/b` | `Reader` | `Reader` with an error |\n"
	changed := strings.ReplaceAll(changes, "NO ROW ", "changed")
	refused := strings.ReplaceAll(changes, "NO ROW ", "PATCH  ")
	for _, tt := range []struct {
		name, rows string // rows that the new version adds
		number     string // the section that its changelog adds
		found      findings
		want       string
	}{
		{"no rows", "", "", findings{missing: 6}, changes},
		{"some rows", someRows, "", findings{missing: 4},
			strings.NewReplacer("NO ROW   a: (*T)", "changed  a: (*T)", "NO ROW   a/b:", "changed  a/b:").Replace(changes)},
		{"all rows", allRows, "", findings{}, changed},
		{"rows of another package", "| `b` | `T`, `Run`, `Stop` | |\n", "", findings{missing: 6}, changes},
		{"a minor version", allRows, "0.4.0", findings{}, changed},
		{"a patch version", allRows, "0.3.2 – 2027-03-01", findings{inPatch: 6}, refused},
		{"a patch version without rows", "", "0.3.10", findings{inPatch: 6}, refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := maps.Clone(oldModule)
			maps.Copy(files, changedModule)
			files["docs/renames.md"] += tt.rows
			if tt.number != "" {
				files["CHANGELOG.md"] = strings.Replace(files["CHANGELOG.md"], "## 0.3.1", "## "+tt.number+"\n\n## 0.3.1", 1)
			}
			var out strings.Builder
			found, err := compareVersions(&out, before, writeModule(t, files))
			if err != nil || found != tt.found || out.String() != tt.want {
				t.Errorf("got %+v, %v:\n%s\nwant %+v:\n%s", found, err, out.String(), tt.found, tt.want)
			}
		})
	}
	if found, err := compareVersions(t.Output(), before, before); found != (findings{}) || err != nil {
		t.Errorf("a version and itself: %+v, %v", found, err)
	}
	_, err := compareVersions(t.Output(), before, writeModule(t, map[string]string{"docs/api.md": "# API\n"}))
	if err == nil || !strings.Contains(err.Error(), "lists no packages") {
		t.Errorf("a page without a list: %v", err)
	}
}

// TestAPIPageIsReadAlike reads the page that the test of the same name of internal/repository reads.
func TestAPIPageIsReadAlike(t *testing.T) {
	page, err := os.ReadFile("testdata/api.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/api.names")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, heading := range []string{apiTable, programsTable} {
		for _, name := range readNames(string(page), heading) {
			got.WriteString(heading + ": " + name + "\n")
		}
	}
	if got.String() != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), want)
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
	if out, err := script(); err == nil || !strings.Contains(out, "since v0.1.0:\n"+changes) || !strings.Contains(out, "6 of these changes") {
		t.Errorf("with a tag: %v\n%s", err, out)
	}
	writeFile(t, filepath.Join(repo, "docs/renames.md"), oldModule["docs/renames.md"]+"| `a` | `T`, `Run`, `Stop`, `Host` | `Halt` |\n| `a/b` | `Reader` | |\n| `gone` | | |\n")
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
