package builtin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
)

// object is the arguments of a call.
type object map[string]any

// place is a workspace with files; a name that ends in / is a directory.
func place(t *testing.T, files map[string]string) builtin.Host {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return builtin.Host{Workspace: dir, Env: os.Environ()}
}

func lookup(t *testing.T, h builtin.Host, name string) tool.Tool {
	t.Helper()
	tl, ok := builtin.Lookup(name, h)
	if !ok {
		t.Fatalf("there is no tool %s", name)
	}
	return tl
}

func raw(t *testing.T, args object) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// use calls a tool and returns what the model reads: the text of output alone, if there is nothing
// else.
func use(t *testing.T, h builtin.Host, name string, args object) string {
	t.Helper()
	r, err := lookup(t, h, name).Run(t.Context(), tool.Call{Args: raw(t, args)})
	if err != nil {
		return "error: " + err.Error()
	}
	var told map[string]string
	if json.Unmarshal([]byte(r.Text()), &told) == nil && len(told) == 1 {
		for key, text := range told {
			if key == "output" {
				return text
			}
			return "failed: " + text
		}
	}
	return r.Text()
}

func TestFiles(t *testing.T) {
	h := place(t, map[string]string{
		"a.txt": "one\ntwo\n", "dir/b": "b", "dir/.hidden": "", "dir/c/": "", "empty": "", "bin": "a\x00b", "long": strings.Repeat("ü", 3000) + "\nend",
	})
	for _, c := range []struct {
		tool string
		args object
		want string
	}{
		{"fs_cat", object{"path": "a.txt"}, "one\ntwo\n"},
		{"fs_cat.sh", object{"path": filepath.Join(h.Workspace, "a.txt")}, "one\ntwo\n"},
		{"fs_cat", object{"path": "none"}, "failed: No such file or path: none"},
		{"fs_cat", object{"path": "dir"}, "failed: dir: is a directory"},
		{"fs_cat", object{}, "error: the argument path is missing"},
		{"fs_read", object{"path": "a.txt"}, "1: one\n2: two\n"},
		{"fs_read", object{"path": "a.txt", "offset": 2}, "2: two\n"},
		{"fs_read", object{"path": "a.txt", "offset": "1", "limit": "1"}, "1: one\n(2 total lines. Use --offset 2 to read more.)\n"},
		{"fs_read", object{"path": "a.txt", "offset": 9}, "There is no line 9: the file has 2 lines.\n"},
		{"fs_read", object{"path": "a.txt", "offset": "x"}, `error: the argument offset must be a whole number, not "x"`},
		{"fs_read", object{"path": "dir"}, ".hidden\nb\nc/\n"},
		{"fs_read", object{"path": "none"}, "failed: No such file or path: none"},
		{"fs_read", object{"path": "bin"}, "failed: bin is not a text: it has 3 bytes, some of them zero"},
		{"fs_read", object{"path": "long", "limit": 1}, "1: " + strings.Repeat("ü", 2000) + "... (truncated)\n(2 total lines. Use --offset 2 to read more.)\n"},
		{"fs_ls", object{"path": "dir"}, "b\nc\n"},
		{"fs_ls", object{"path": "none"}, "failed: No such file or path: none"},
		{"fs_mkdir", object{"path": "new/er"}, "Directory created: new/er"},
		{"fs_mkdir", object{"path": "a.txt/x"}, "failed: a.txt/x: not a directory"},
		{"fs_write", object{"path": "new/f", "contents": "x\n\n"}, "The File contents were written to: new/f"},
		{"fs_cat", object{"path": "new/f"}, "x\n\n"},
		{"fs_write", object{"path": "new/f", "content": "no newline"}, "The File contents were written to: new/f"},
		{"fs_cat", object{"path": "new/f"}, "no newline"},
		{"fs_write", object{"path": "dir", "contents": ""}, "failed: dir: it is not a file"},
		{"fs_rm", object{"path": "new/f"}, "Path removed: new/f"},
		{"fs_rm", object{"path": "new/f"}, "failed: No such file or path: new/f"},
		{"fs_rm", object{"path": "new/er"}, "Path removed: new/er"},
		{"fs_rm", object{"path": "dir"}, "failed: dir: directory not empty"},
	} {
		if diff := cmp.Diff(c.want, use(t, h, c.tool, c.args)); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", c.tool, c.args, diff)
		}
	}
	if text := use(t, h, "fs_cat", object{"path": "empty"}); text != `"DONE"` {
		t.Errorf("an empty file: %s", text)
	}
}

func TestWriteKeepsModeAndLink(t *testing.T) {
	h := place(t, map[string]string{"run.sh": "old"})
	script, link := filepath.Join(h.Workspace, "run.sh"), filepath.Join(h.Workspace, "link")
	if err := os.Chmod(script, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("run.sh", link); err != nil {
		t.Fatal(err)
	}
	use(t, h, "fs_write", object{"path": "link", "contents": "new"})
	info, err := os.Lstat(script)
	if err != nil {
		t.Fatal(err)
	}
	to, err := os.Readlink(link)
	if err != nil || to != "run.sh" || info.Mode().Perm() != 0o750 {
		t.Errorf("link to %q, %v; mode %v", to, err, info.Mode())
	}
	if got := use(t, h, "fs_cat", object{"path": "run.sh"}); got != "new" {
		t.Errorf("got %q", got)
	}
	left, err := filepath.Glob(filepath.Join(h.Workspace, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestLongOutputKeepsBothEnds(t *testing.T) {
	h := place(t, map[string]string{"a": "begin" + strings.Repeat("ü", 1000) + "end"})
	h.Limit = 101
	got := use(t, h, "fs_cat", object{"path": "a"})
	if !strings.HasPrefix(got, "begin") || !strings.HasSuffix(got, "end") || !strings.Contains(got, "bytes left out") || len(got) > 150 || strings.Contains(got, "\uFFFD") {
		t.Errorf("got %q", got)
	}
}

func TestPatch(t *testing.T) {
	const text = "a\nb\nc\nd\nb\nc\nend"
	for name, c := range map[string]struct{ before, patch, after, failure string }{
		"one hunk":          {before: text, patch: "--- x\n+++ x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", after: "a\nB\nc\nd\nb\nc\nend"},
		"bare head":         {before: text, patch: "@@\n d\n-b\n", after: "a\nb\nc\nd\nc\nend"},
		"where it says":     {before: text, patch: "@@ -5,2 +5,2 @@\n-b\n+X\n c\n", after: "a\nb\nc\nd\nX\nc\nend"},
		"first in order":    {before: text, patch: "@@\n-b\n+X\n@@\n-b\n+Y\n", after: "a\nX\nc\nd\nY\nc\nend"},
		"last line":         {before: text, patch: "@@\n c\n-end\n+END", after: "a\nb\nc\nd\nb\nc\nEND"},
		"newline kept":      {before: "a\nb\n", patch: "@@\n-b\n+c", after: "a\nc\n"},
		"lost space":        {before: "a\n\nb\n", patch: "@@\n a\n\n-b\n+c\n", after: "a\n\nc\n"},
		"windows":           {before: "a\r\nb\r\n", patch: "@@\n a\n-b\n+c\n", after: "a\r\nc\r\n"},
		"removed dashes":    {before: "-- x\ny\n", patch: "@@\n--- x\n+z\n y\n", after: "z\ny\n"},
		"two files' names":  {before: text, patch: "@@\n-a\n--- y\n+++ y\n@@\n-d\n", after: "b\nc\nb\nc\nend"},
		"insertion":         {before: "a\nb\n", patch: "@@ -1,0 +2,1 @@\n+x\n", after: "a\nx\nb\n"},
		"insertion at end":  {before: "a\n", patch: "@@\n+x\n", after: "a\nx\n"},
		"no hunk":           {before: text, patch: "a\nb\n", failure: "f is unchanged: no patch: there is no line that begins with @@"},
		"empty hunk":        {before: text, patch: "@@\n", failure: "f is unchanged: the hunk in line 1 of the patch has no lines"},
		"no mark":           {before: text, patch: "@@\nfoo\n", failure: `f is unchanged: line 2 of the patch begins with neither a space, - nor +: "foo"`},
		"not there":         {before: text, patch: "@@\n-zzz\n", failure: `f is unchanged: hunk 1 (line 1 of the patch) does not fit: its first line is not in the file: "zzz"`},
		"other blanks":      {before: "\tx\ny\n", patch: "@@\n-  x\n", after: "y\n"},
		"a part fits":       {before: text, patch: "@@\n a\n-x\n", failure: `f is unchanged: hunk 1 (line 1 of the patch) does not fit: it agrees with the file from line 1 on, but line 2 is "b" where the patch has "x"`},
		"the file ends":     {before: "a\n", patch: "@@\n a\n b\n-c\n", failure: `f is unchanged: hunk 1 (line 1 of the patch) does not fit: it agrees with the file from line 1 on, but line 2 is the end of the file where the patch has "b"`},
		"out of order":      {before: text, patch: "@@\n-d\n@@\n-a\n", after: "b\nc\nb\nc\nend"},
		"the second is bad": {before: text, patch: "@@\n-a\n@@\n-zzz\n", failure: `f is unchanged: hunk 2 (line 3 of the patch) does not fit: its first line is not in the file: "zzz"`},
		"two places":        {before: text, patch: "@@\n-b\n+X\n", failure: `f is unchanged: hunk 1 (line 1 of the patch) fits in 2 places, at the lines 2, 5: add lines around it, or a heading (@@ with a line above), so that it fits in only one`},
	} {
		t.Run(name, func(t *testing.T) {
			h := place(t, map[string]string{"f": c.before})
			got := use(t, h, "fs_patch", object{"path": "f", "contents": c.patch})
			if c.failure != "" {
				c.after = c.before
				if got != "failed: "+c.failure {
					t.Errorf("got  %s\nwant failed: %s", got, c.failure)
				}
			} else if !strings.HasPrefix(got, "Applied ") {
				t.Errorf("got %s", got)
			}
			if diff := cmp.Diff(c.after, use(t, h, "fs_cat", object{"path": "f"})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzPatch checks that a patch never breaks, and that a text without a hunk's
// lines stays as it is.
func FuzzPatch(f *testing.F) {
	f.Add("a\nb", "@@\n-a\n+c\n")
	f.Add("a\r\n", "@@ -1 +1 @@\n a\n+b")
	f.Add("", "@@ -99,0 +1 @@\n+x")
	f.Fuzz(func(t *testing.T, text, patch string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		tl, _ := builtin.Lookup("fs_patch", builtin.Host{Workspace: dir})
		args, err := json.Marshal(object{"path": "f", "contents": patch})
		if err != nil {
			t.Skip("this is no text")
		}
		r, err := tl.Run(t.Context(), tool.Call{Args: args})
		if err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(filepath.Join(dir, "f"))
		if err != nil && (r.Error || !errors.Is(err, os.ErrNotExist)) { // a patch may remove the file
			t.Fatal(err)
		}
		if r.Error && string(after) != text {
			t.Errorf("the patch failed and changed %q to %q", text, after)
		}
	})
}

func TestPreview(t *testing.T) {
	h := place(t, map[string]string{"f": "a\nb\n"})
	preview := func(name string, args object) string { return builtin.Preview(h, tool.Call{Args: raw(t, args)}, name) }
	want := "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
	for _, got := range []string{
		preview("fs_write", object{"path": "f", "content": "a\nc\n"}),
		preview("fs_patch", object{"path": "f", "contents": "@@\n-b\n+c\n"}),
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if got := preview("fs_write", object{"path": "new", "contents": "x\n"}); !strings.Contains(got, "+x\n") {
		t.Errorf("a new file: %q", got)
	}
	for _, got := range []string{
		preview("fs_cat", object{"path": "f"}), preview("fs_patch", object{"path": "f", "contents": "?"}), preview("fs_write", object{}),
	} {
		if got != "" {
			t.Errorf("got %q", got)
		}
	}
}

func TestGlob(t *testing.T) {
	h := place(t, map[string]string{
		"old.go": "", "src/new.go": "", "src/deep/mid.ts": "", "src/deep/x.tsx": "", ".git/config.go": "", "node_modules/m.go": "", "src/node_modules/n.go": "",
	})
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, name := range []string{"old.go", "src/deep/mid.ts", "src/deep/x.tsx", "src/new.go"} {
		if err := os.Chtimes(filepath.Join(h.Workspace, name), base, base.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("src", filepath.Join(h.Workspace, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args object
		want string
	}{
		{object{"pattern": "*.go"}, "src/new.go\nold.go\n"},
		{object{"pattern": "*.{ts,tsx}"}, "src/deep/x.tsx\nsrc/deep/mid.ts\n"},
		{object{"pattern": "src/*.go"}, "src/new.go\n"},
		{object{"pattern": "**/*.go"}, "src/new.go\nold.go\n"},
		{object{"pattern": "./src/**/*.ts*"}, "src/deep/x.tsx\nsrc/deep/mid.ts\n"},
		{object{"pattern": filepath.Join(h.Workspace, "src/*.go")}, "src/new.go\n"},
		{object{"pattern": "deep/*.ts", "path": "src"}, "src/deep/mid.ts\n"},
		{object{"pattern": "*.go", "path": "link"}, "link/new.go\n"},
		{object{"pattern": "*.rs"}, "No files found"},
		{object{"pattern": "["}, `failed: "[" is not a pattern: a bracket or a brace is not closed`},
		{object{"pattern": "*", "path": "none"}, "failed: No such file or path: none"},
	} {
		if got := use(t, h, "fs_glob", c.args); got != c.want {
			t.Errorf("%v: got %q, want %q", c.args, got, c.want)
		}
	}
	for i := range 120 {
		if err := os.WriteFile(filepath.Join(h.Workspace, fmt.Sprintf("many%d.md", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := strings.Split(use(t, h, "fs_glob", object{"pattern": "*.md"}), "\n")
	if len(got) != 102 || !strings.Contains(got[100], "the newest 100 of 120 files") {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-2:])
	}
}

func TestGrep(t *testing.T) {
	h := place(t, map[string]string{
		"a.ts": "foo\nbar foo\n", "b/c.tsx": "xfoo", "d.go": "foo", "x.min.js": "foo", "build/e.go": "foo", "bin": "foo\x00", "package-lock.json": "foo",
		"wide": strings.Repeat("foo", 1000), "many": strings.Repeat("hit\n", 60),
	})
	for _, c := range []struct {
		args object
		want string
	}{
		{object{"pattern": "^fo+$"}, "a.ts:1:foo\nd.go:1:foo\n"},
		{object{"pattern": "foo", "include": "*.{ts,tsx}"}, "a.ts:1:foo\na.ts:2:bar foo\nb/c.tsx:1:xfoo\n"},
		{object{"pattern": "foo", "path": "b"}, "b/c.tsx:1:xfoo\n"},
		{object{"pattern": "foo", "path": "d.go"}, "d.go:1:foo\n"},
		{object{"pattern": "foo", "path": "x.min.js"}, "x.min.js:1:foo\n"},
		{object{"pattern": "foo", "path": "wide"}, "wide:1:" + strings.Repeat("foo", 1000)[:2000] + "... (truncated)\n"},
		{object{"pattern": "none"}, "No matches found"},
		{object{"pattern": "("}, "failed: the pattern is not a regular expression: error parsing regexp: missing closing ): `(`"},
		{object{"pattern": "x", "path": "none"}, "failed: No such file or path: none"},
	} {
		if got := use(t, h, "fs_grep", c.args); got != c.want {
			t.Errorf("%v: got %q, want %q", c.args, got, c.want)
		}
	}
	got := strings.Split(use(t, h, "fs_grep", object{"pattern": "hit"}), "\n")
	if len(got) != 52 || got[50] != "(the first 50 lines; there are more: narrow the search)" {
		t.Errorf("%d lines: %q", len(got), got[len(got)-2:])
	}
}

func TestTouches(t *testing.T) {
	h := place(t, nil)
	h.Env = []string{"EMAIL_SMTP_ADDR=smtps://mail.example.com", "EMAIL_SMTP_USER=a@b.c", "EMAIL_SMTP_PASS=x"}
	for _, c := range []struct {
		tool string
		args object
		want tool.Touch
	}{
		{"fs_cat", object{"path": "x"}, tool.Touch{Reads: []string{"x"}}},
		{"fs_glob", object{"pattern": "x"}, tool.Touch{Reads: []string{"."}}},
		{"fs_grep", object{"pattern": "x", "path": "/y"}, tool.Touch{Reads: []string{"/y"}}},
		{"fs_rm", object{"path": "x"}, tool.Touch{Writes: []string{"x"}}},
		{"fs_patch", object{"path": "x", "content": ""}, tool.Touch{Reads: []string{"x"}, Writes: []string{"x"}}},
		{"fs_edit", object{"path": "x", "old_string": "a", "new_string": "b"}, tool.Touch{Reads: []string{"x"}, Writes: []string{"x"}}},
		{"apply_patch", object{"patch": "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** Delete File: .git/config\n*** End Patch"}, tool.Touch{Reads: []string{"a", "b", ".git/config"}, Writes: []string{"a", "b", ".git/config"}}},
		{"apply_patch", object{"patch": "--- a/x\n+++ b/y\n@@\n-a\n+b\n"}, tool.Touch{Reads: []string{"x", "y"}, Writes: []string{"x", "y"}}},
		{"apply_patch", object{"patch": "nothing"}, tool.Touch{}},
		{"execute_command", object{"command": "ls; rm x"}, tool.Touch{Commands: []string{"ls; rm x"}}},
		{"execute_py_code", object{"code": "print('a')"}, tool.Touch{Commands: []string{`python3 -c 'print('\''a'\'')'`}}},
		{"fetch_url_via_curl", object{"url": "https://u:p@example.com:8443/x"}, tool.Touch{Network: []string{"example.com:8443"}}},
		{"search_wikipedia", object{"query": "x"}, tool.Touch{Network: []string{"en.wikipedia.org"}}},
		{"send_mail", object{"recipient": "x", "subject": "y", "body": "z"}, tool.Touch{Network: []string{"mail.example.com:465"}}},
		{"get_current_time", object{}, tool.Touch{}},
	} {
		got, err := lookup(t, h, c.tool).Touches(raw(t, c.args))
		if err != nil {
			t.Errorf("%s: %v", c.tool, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.tool, diff)
		}
	}
	for name, args := range map[string]object{"fs_cat": {"path": ""}, "fs_rm": {"path": "a\x00b"}, "fetch_url_via_curl": {"url": "file:///etc/passwd"}, "execute_command": {}} {
		if _, err := lookup(t, h, name).Touches(raw(t, args)); err == nil {
			t.Errorf("%s %v: no error", name, args)
		}
	}
}

func TestEveryToolIsComplete(t *testing.T) {
	names := builtin.ToolNames()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("not sorted, or twice: %v", names)
	}
	for _, name := range names {
		tl := lookup(t, builtin.Host{}, name+".py")
		var schema struct {
			Type       string
			Properties map[string]struct{ Type, Description string }
			Required   []string
		}
		if err := json.Unmarshal(tl.Schema, &schema); err != nil || schema.Type != "object" || schema.Required == nil {
			t.Errorf("%s: %v in %s", name, err, tl.Schema)
		}
		for key, p := range schema.Properties {
			if p.Description == "" || p.Type == "" {
				t.Errorf("%s: %s says nothing of itself", name, key)
			}
		}
		if tl.Name != name || tl.Description == "" || tl.Touches == nil || tl.Run == nil {
			t.Errorf("%s is not complete", name)
		}
	}
	if _, ok := builtin.Lookup("none.sh", builtin.Host{}); ok {
		t.Error("there is a tool none")
	}
}
