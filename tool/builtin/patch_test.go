package builtin_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
)

// contents returns the files of a workspace.
func contents(t *testing.T, h builtin.Host) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(h.Workspace, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(h.Workspace, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A patch of several files changes all of them, or none.
func TestApplyPatch(t *testing.T) {
	before := map[string]string{"a": "one\ntwo\n", "b": "b\n", "locked": "x\n", "dir/c": "c\n"}
	const add = "*** Add File: new/n\n+n\n"
	for name, c := range map[string]struct {
		patch, says string
		after       map[string]string // differences; "-": the file is gone
	}{
		"all kinds": {
			"*** Begin Patch\n*** Update File: a\n@@ one\n-two\n+2\n" + add + "*** Delete File: b\n*** Update File: dir/c\n*** Move to: moved/d\n@@\n-c\n+C\n*** End Patch",
			"Applied 1 hunk to a.\n     1  one\n     2  2\nMade new/n\nRemoved b\nApplied 1 hunk to dir/c.\n     1  C\nMoved dir/c to moved/d",
			map[string]string{"a": "one\n2\n", "new/n": "n\n", "b": "-", "dir/c": "-", "moved/d": "C\n"},
		},
		"only moved":              {"*** Begin Patch\n*** Update File: a\n*** Move to: z\n*** End Patch", "Moved a to z", map[string]string{"a": "-", "z": "one\ntwo\n"}},
		"a diff of two files":     {"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+1\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", "Applied 1 hunk to a.\n     1  1\n     2  two\nRemoved b", map[string]string{"a": "1\ntwo\n", "b": "-"}},
		"the second does not fit": {"*** Begin Patch\n*** Update File: a\n@@\n-one\n+1\n*** Update File: b\n@@\n-x\n*** End Patch", `failed: No file is changed: b: hunk 1 (line 7 of the patch) does not fit: its first line is not in the file: "x"`, nil},
		"the last is locked":      {"*** Begin Patch\n*** Update File: a\n@@\n-one\n+1\n" + add + "*** Delete File: b\n*** Update File: dir/c\n*** Move to: d\n@@\n-c\n+C\n*** Update File: locked\n@@\n-x\n+y\n*** End Patch", "failed: locked: is read-only: change its mode first if that is meant; the files before it are as they were", nil},
		"a file that exists":      {"*** Begin Patch\n*** Add File: a\n+x\n*** End Patch", "failed: No file is changed: a: the patch makes this file, and it exists", nil},
		"a file that is missing":  {"*** Begin Patch\n*** Update File: z\n@@\n-x\n+y\n*** End Patch", "failed: No file is changed: z: there is no such file", nil},
		"a target that exists":    {"*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch", "failed: No file is changed: a: it cannot be moved to b: that file exists", nil},
		"one file twice":          {"*** Begin Patch\n*** Update File: a\n@@\n-one\n+1\n*** Update File: ./a\n@@\n-two\n+2\n*** End Patch", "failed: No file is changed: ./a: the patch has this file twice", nil},
		"more than is removed":    {"--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "failed: No file is changed: a: the patch removes the file, and the file has other lines than the patch says", nil},
		"no patch":                {"change it", "failed: No file is changed: no patch: there is no line that begins with @@", nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := place(t, before)
			if err := os.Chmod(filepath.Join(h.Workspace, "locked"), 0o444); err != nil {
				t.Fatal(err)
			}
			if got := use(t, h, "apply_patch", object{"input": c.patch}); !strings.HasPrefix(got, c.says) {
				t.Errorf("it says %s\nwant %s", got, c.says)
			}
			want := map[string]string{}
			for _, files := range []map[string]string{before, c.after} {
				for name, text := range files {
					if want[name] = text; text == "-" {
						delete(want, name)
					}
				}
			}
			if d := cmp.Diff(want, contents(t, h)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// Every file of a patch is in the changes of its result.
func TestApplyPatchChanges(t *testing.T) {
	h := place(t, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n"})
	r, err := lookup(t, h, "apply_patch").Run(t.Context(), tool.Call{Args: raw(t, object{"patch": "*** Begin Patch\n*** Update File: a\n@@\n-a\n+A\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n@@\n-c\n+C\n*** Add File: e\n+e\n*** End Patch"})})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range r.Changes {
		got = append(got, string(c.Kind)+" "+filepath.Base(c.Path))
	}
	if want := []string{"changed a", "removed b", "removed c", "created d", "created e"}; !cmp.Equal(want, got) {
		t.Errorf("the changes are %q, want %q", got, want)
	}
}

// fs_patch changes the file that it names, and no other one.
func TestPatchOfOneFile(t *testing.T) {
	for name, c := range map[string]struct{ patch, says, after string }{
		"a file is removed":  {"--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n", "Removed f", ""},
		"an envelope":        {"*** Begin Patch\n*** Update File: src/f\n@@ a\n-b\n+B\n*** End Patch", "Applied 1 hunk to f.\n     1  a\n     2  B", "a\nB\n"},
		"blocks":             {"f\n<<<<<<< SEARCH\na\n=======\nA\n>>>>>>> REPLACE\n\nf\n<<<<<<< SEARCH\nb\n=======\nB\n>>>>>>> REPLACE\n", "Applied 2 hunks to f.", "A\nB\n"},
		"trailing blanks":    {"@@\n a  \n-b\n+B\n", "Applied 1 hunk to f. Not exactly: hunk 1 (line 1 of the patch) was found with other blanks at the ends of lines.", "a\nB\n"},
		"two files":          {"--- a/f\n+++ b/f\n@@\n-a\n+A\n--- a/g\n+++ b/g\n@@\n-b\n+B\n", "failed: f is unchanged: the patch changes several files, such as f and g, and this tool only one: use apply_patch", "a\nb\n"},
		"a new file that is": {"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", "failed: f is unchanged: the patch makes this file, and it exists", "a\nb\n"},
		"the last line end":  {"@@\n a\n-b\n+b\n\\ No newline at end of file\n", "Applied 1 hunk to f.", "a\nb"},
		"a move":             {"*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@\n-a\n+A\n*** End Patch", "failed: f is unchanged: the patch moves the file: use apply_patch", "a\nb\n"},
		"it is already so":   {"@@\n a\n-b\n+b\n", "failed: f is unchanged: the patch changes nothing: the file is already as it says", "a\nb\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := place(t, map[string]string{"f": "a\nb\n"})
			if got := use(t, h, "fs_patch", object{"path": "f", "contents": c.patch}); !strings.HasPrefix(got, c.says) {
				t.Errorf("it says %s\nwant %s", got, c.says)
			}
			if got := contents(t, h)["f"]; got != c.after {
				t.Errorf("the file is %q, want %q", got, c.after)
			}
		})
	}
	h := place(t, nil)
	if got := use(t, h, "fs_patch", object{"path": "n", "contents": "--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+x\n+y\n"}); got != "Made n" || contents(t, h)["n"] != "x\ny\n" {
		t.Errorf("a new file: %s, %q", got, contents(t, h))
	}
	if got := use(t, h, "fs_patch", object{"path": "zz", "contents": "@@\n-x\n+y\n"}); got != "failed: No such file or path: zz" {
		t.Errorf("no file: %s", got)
	}
}

func TestEdit(t *testing.T) {
	h := place(t, map[string]string{"f": "a\nb\na\n", "locked": "x\n", "crlf": "a\r\nb\r\n"})
	if err := os.Chmod(filepath.Join(h.Workspace, "locked"), 0o444); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args object
		want string
	}{
		{object{"path": "f", "old": "a", "new": "x"}, "failed: f is unchanged: the old text is in 2 places, at the lines 1, 3: add text around it so that it is in only one, or replace all"},
		{object{"path": "f", "old": "z", "new": "x"}, `failed: f is unchanged: the old text is not in the file: its first line is not in the file: "z"`},
		{object{"path": "f", "old_string": "b\n", "new_string": "B\nC\n"}, "Changed f.\n     1  a\n     2  B\n     3  C\n     4  a"},
		{object{"path": "f", "old": "a", "new": "x", "all": true}, "Changed f.\n     1  x\n     2  B\n     3  C\n     4  x"},
		{object{"path": "f", "old": "x", "new": "y", "replace_all": "maybe"}, "error: the argument all must be true or false, not \"maybe\""},
		{object{"path": "crlf", "old": "a\nb", "new": "c"}, "Changed crlf.\n     1  c"},
		{object{"path": "locked", "old": "x", "new": "y"}, "failed: locked: is read-only: change its mode first if that is meant"},
		{object{"path": "none", "old": "x", "new": "y"}, "failed: No such file or path: none"},
	} {
		if got := use(t, h, "fs_edit", c.args); got != c.want {
			t.Errorf("%v: %s\nwant %s", c.args, got, c.want)
		}
	}
	want := map[string]string{"f": "x\nB\nC\nx\n", "locked": "x\n", "crlf": "c\r\n"}
	if d := cmp.Diff(want, contents(t, h)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := use(t, h, "fs_write", object{"path": "locked", "contents": "y"}); !strings.Contains(got, "is read-only") {
		t.Errorf("fs_write: %s", got)
	}
	preview := builtin.Preview(h, tool.Call{Args: raw(t, object{"path": "f", "old": "B", "new": "b"})}, "fs_edit")
	if !strings.Contains(preview, "-B\n+b\n") {
		t.Errorf("the preview is %s", preview)
	}
	preview = builtin.Preview(h, tool.Call{Args: raw(t, object{"patch": "*** Begin Patch\n*** Update File: f\n@@\n-B\n+b\n*** Delete File: crlf\n*** End Patch"})}, "apply_patch")
	if !strings.Contains(preview, "-B\n+b\n") || !strings.Contains(preview, "-c") {
		t.Errorf("the preview is %s", preview)
	}
}
