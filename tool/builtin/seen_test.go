package builtin_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
)

// A reader makes calls as a conversation that knows what its results have said about files.
type reader struct {
	t     *testing.T
	h     builtin.Host
	known map[string]tool.SeenFile
	// redact is what redacts results; nil: nothing does.
	redact func(string) string
}

func newReader(t *testing.T, files map[string]string) *reader {
	return &reader{t: t, h: place(t, files), known: map[string]tool.SeenFile{}}
}

// use makes a call and returns what the model reads.
func (r *reader) use(name string, args object, repeat bool) string {
	r.t.Helper()
	seen := func(path string) *tool.SeenFile {
		if f, ok := r.known[path]; ok {
			return &f
		}
		return nil
	}
	result, err := lookup(r.t, r.h, name).Run(r.t.Context(), tool.Call{Args: raw(r.t, args), Seen: seen, Repeat: repeat})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range result.Seen {
		if r.redact != nil {
			f = f.Redact(r.redact)
		}
		var back tool.SeenFile // as the journal has it
		text, err := json.Marshal(f)
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		r.known[f.Path] = back
	}
	var said map[string]string
	_ = json.Unmarshal([]byte(result.Text()), &said) // otherwise it stays empty
	return said["output"] + said["tool_call_error"]
}

// write saves a file as a person does.
func (r *reader) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.h.Workspace, name)
	before, _ := os.Stat(path)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
	if before != nil { // a clock that is not exact must not hide it
		when := before.ModTime().Add(time.Second)
		if err := os.Chtimes(path, when, when); err != nil {
			r.t.Fatal(err)
		}
	}
}

const (
	changedNothing = "The call changed nothing. "
	onePatch       = "*** Begin Patch\n*** Update File: a\n@@\n-b\n+B\n*** End Patch"
)

// A call that changes a file needs that the conversation knows it as it is. Every line is a call, or "person: " and what a person saves as the file a.
func TestStaleWrites(t *testing.T) {
	t.Parallel()
	edit := object{"path": "a", "old": "b", "new": "B"}
	type step struct {
		tool string
		args object
		says string // the beginning of what the model reads
	}
	read := step{"fs_read", object{"path": "a"}, ""}
	person := func(text string) step { return step{"", object{"text": text}, ""} }
	unread := changedNothing + "You have not read a: read it first, with fs_read or fs_cat, then repeat the call."
	changed := func(lines, then string) string {
		return changedNothing + "a has changed since you read it: " + lines + "\n" + then
	}
	const repeat, again = "Repeat the call if it is still right.", "Read it again, then repeat the call with what is right now."
	for name, c := range map[string]struct {
		steps []step
		want  string // the file a at the end; "-": it is gone
	}{
		"a new file":                   {[]step{{"fs_write", object{"path": "new/x", "contents": "x"}, "The File"}}, "a\nb\nc\n"},
		"never read, written":          {[]step{{"fs_write", object{"path": "a", "contents": "x"}, unread}}, "a\nb\nc\n"},
		"never read, edited":           {[]step{{"fs_edit", edit, unread}}, "a\nb\nc\n"},
		"never read, no place":         {[]step{{"fs_edit", object{"path": "a", "old": "z", "new": ""}, unread}}, "a\nb\nc\n"},
		"never read, patched":          {[]step{{"fs_patch", object{"path": "a", "contents": "@@\n-b\n+B\n"}, unread}}, "a\nb\nc\n"},
		"never read, a patch of files": {[]step{{"apply_patch", object{"patch": onePatch}, unread}}, "a\nb\nc\n"},
		"never read, removed":          {[]step{{"fs_rm", object{"path": "a"}, unread}}, "a\nb\nc\n"},
		"never read, removed by patch": {[]step{{"apply_patch", object{"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}, unread}}, "a\nb\nc\n"},
		"never read, moved":            {[]step{{"apply_patch", object{"patch": "*** Begin Patch\n*** Update File: a\n*** Move to: z\n*** End Patch"}, unread}}, "a\nb\nc\n"},
		"never read, the same":         {[]step{{"fs_write", object{"path": "a", "contents": "a\nb\nc\n"}, "The File"}}, "a\nb\nc\n"},
		"never read, empty":            {[]step{person(""), {"fs_write", object{"path": "a", "contents": "x"}, "The File"}}, "x"},
		"only found by a search":       {[]step{{"fs_grep", object{"pattern": "b", "path": "a"}, "a:2:b"}, {"fs_edit", edit, unread}}, "a\nb\nc\n"},
		"only listed":                  {[]step{{"fs_read", object{"path": "."}, "a\n"}, {"fs_edit", edit, unread}}, "a\nb\nc\n"},
		"read":                         {[]step{read, {"fs_write", object{"path": "a", "contents": "x"}, "The File"}}, "x"},
		"read by another tool":         {[]step{{"fs_cat", object{"path": "./a"}, "a\nb"}, {"fs_edit", edit, "Changed a."}}, "a\nB\nc\n"},
		"read in part":                 {[]step{{"fs_read", object{"path": "a", "offset": 3, "limit": 1}, "3: c"}, {"fs_edit", edit, "Changed a."}}, "a\nB\nc\n"},
		"removed":                      {[]step{read, {"fs_rm", object{"path": "a"}, "Path removed"}}, "-"},
		"twice in a row":               {[]step{read, {"fs_edit", edit, "Changed a."}, {"fs_edit", object{"path": "a", "old": "B", "new": "C"}, "Changed a."}, {"fs_write", object{"path": "a", "contents": "x"}, "The File"}}, "x"},
		"written, then edited":         {[]step{read, {"fs_write", object{"path": "a", "contents": "b\n"}, "The File"}, {"apply_patch", object{"patch": onePatch}, "Applied 1 hunk"}}, "B\n"},
		"a person was there: edit":     {[]step{read, person("a\nb\nmine\n"), {"fs_edit", edit, changed("1 line differs. It has now:\n     1  a\n     2  b\n     3  mine", repeat)}, {"fs_edit", edit, "Changed a."}}, "a\nB\nmine\n"},
		"a person was there: patch":    {[]step{read, person("a\nb\nmine\n"), {"apply_patch", object{"patch": onePatch}, changed("1 line differs. It has now:", "")[:60]}, {"apply_patch", object{"patch": onePatch}, "Applied"}}, "a\nB\nmine\n"},
		"a person was there: write":    {[]step{read, person("a\nb\nmine\n"), {"fs_write", object{"path": "a", "contents": "x"}, changed("1 line differs. It has now:\n     1  a\n     2  b\n     3  mine", again)}, {"fs_write", object{"path": "a", "contents": "x"}, changedNothing}}, "a\nb\nmine\n"},
		"a person was there: remove":   {[]step{read, person("mine\n"), {"fs_rm", object{"path": "a"}, changedNothing + "a has changed since you read it: 3 lines differ."}, read, {"fs_rm", object{"path": "a"}, "Path removed"}}, "-"},
		"a person was there three times": {[]step{read, person("a\nb\n1\n"), {"fs_edit", edit, changedNothing}, person("a\nb\n1\n2\n"), {"fs_edit", edit, changedNothing}, person("a\nb\n1\n2\n3\n"), {"fs_edit", edit, changedNothing}, {"fs_edit", edit, "Changed a."}},
			"a\nB\n1\n2\n3\n"},
		"a person removed it":        {[]step{read, person("-"), {"fs_edit", edit, "No such file"}, {"fs_write", object{"path": "a", "contents": "x"}, "The File"}}, "x"},
		"removed and made again":     {[]step{read, {"fs_rm", object{"path": "a"}, "Path"}, person("mine\n"), {"fs_write", object{"path": "a", "contents": "x"}, changedNothing}}, "mine\n"},
		"only line ends":             {[]step{read, person("a\r\nb\r\nc\r\n"), {"fs_edit", edit, changedNothing + "a has changed since you read it: only line ends or other marks that are not shown. Repeat"}, {"fs_edit", edit, "Changed a."}}, "a\r\nB\r\nc\r\n"},
		"more than can be shown":     {[]step{read, person(strings.Repeat("mine\n", 100)), {"fs_edit", object{"path": "a", "old": "z", "new": "B"}, changedNothing}, {"fs_edit", object{"path": "a", "old": "z", "new": "C"}, changedNothing}}, strings.Repeat("mine\n", 100)},
		"a binary file can be known": {[]step{person("a\x00"), {"fs_read", object{"path": "a"}, "a is not a text"}, {"fs_write", object{"path": "a", "contents": "x"}, "The File"}}, "x"},
		"changed, of a binary file":  {[]step{person("a\x00"), read, person("b\x00"), {"fs_write", object{"path": "a", "contents": "x"}, changedNothing + "a has changed since you read it. Read it again"}}, "b\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, map[string]string{"a": "a\nb\nc\n"})
			for i, s := range c.steps {
				switch {
				case s.tool == "" && s.args["text"] == "-":
					if err := os.Remove(filepath.Join(r.h.Workspace, "a")); err != nil {
						t.Fatal(err)
					}
				case s.tool == "":
					r.write("a", s.args["text"].(string))
				default:
					if got := r.use(s.tool, s.args, false); !strings.HasPrefix(got, s.says) {
						t.Errorf("step %d, %s: %s\nwant %s", i+1, s.tool, got, s.says)
					}
				}
			}
			got, err := os.ReadFile(filepath.Join(r.h.Workspace, "a"))
			if c.want == "-" && os.IsNotExist(err) {
				return
			}
			if string(got) != c.want {
				t.Errorf("the file is %q, want %q", got, c.want)
			}
		})
	}
}

// Every file of a patch that the conversation does not know is named at once, and none is changed.
func TestStalePatchOfFiles(t *testing.T) {
	t.Parallel()
	r := newReader(t, map[string]string{"a": "a\nb\n", "b": "b\n", "c": "c\n"})
	r.use("fs_read", object{"path": "a"}, false)
	r.use("fs_read", object{"path": "c"}, false)
	r.write("a", "a\nb\nmine\n")
	patch := object{"patch": "*** Begin Patch\n*** Update File: c\n@@\n-c\n+C\n*** Update File: a\n@@\n-b\n+B\n*** Delete File: b\n*** End Patch"}
	before := contents(t, r.h)
	got := r.use("apply_patch", patch, false)
	if !strings.Contains(got, "a has changed") || !strings.Contains(got, "You have not read b") || cmp.Diff(before, contents(t, r.h)) != "" {
		t.Errorf("it says %s", got)
	}
	r.use("fs_read", object{"path": "b"}, false)
	if got := r.use("apply_patch", patch, false); !strings.HasPrefix(got, "Applied") {
		t.Errorf("then it says %s", got)
	}
	if d := cmp.Diff(map[string]string{"a": "a\nB\nmine\n", "c": "C\n"}, contents(t, r.h)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A call that was interrupted is made again: what the first try did is recognized, and the rest is done.
func TestRepeatedEdits(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a": "one\ntwo\nthree\n", "b": "b\n", "c": "c\n", "d": "d\n", "e": "e\n"}
	patch := object{"patch": "*** Begin Patch\n*** Update File: a\n@@\n one\n-two\n+2\n*** Add File: n\n+n\n*** Delete File: b\n*** Update File: c\n*** Move to: z\n@@\n-c\n+C\n*** Update File: d\n*** Move to: y\n*** Update File: e\n@@\n-e\n+E\n*** End Patch"}
	all := map[string]string{"a": "one\n2\nthree\n", "n": "n\n", "z": "C\n", "y": "d\n", "e": "E\n"}
	for name, c := range map[string]struct {
		tool string
		args object
		by   map[string]string // what the first try has done; "-": it removed the file
		want map[string]string
	}{
		"nothing":               {"apply_patch", patch, nil, all},
		"the first":             {"apply_patch", patch, map[string]string{"a": all["a"]}, all},
		"and the second":        {"apply_patch", patch, map[string]string{"a": all["a"], "n": "n\n"}, all},
		"and the third":         {"apply_patch", patch, map[string]string{"a": all["a"], "n": "n\n", "b": "-"}, all},
		"a half move":           {"apply_patch", patch, map[string]string{"a": all["a"], "n": "n\n", "b": "-", "c": "-", "z": "c\n"}, all},
		"a whole move":          {"apply_patch", patch, map[string]string{"a": all["a"], "n": "n\n", "b": "-", "c": "-", "z": "C\n"}, all},
		"a move only":           {"apply_patch", patch, map[string]string{"a": all["a"], "n": "n\n", "b": "-", "c": "-", "z": "C\n", "d": "-", "y": "d\n"}, all},
		"all":                   {"apply_patch", patch, map[string]string{"a": all["a"], "n": "n\n", "b": "-", "c": "-", "z": "C\n", "d": "-", "y": "d\n", "e": "E\n"}, all},
		"fs_edit":               {"fs_edit", object{"path": "a", "old": "two", "new": "2"}, map[string]string{"a": all["a"]}, map[string]string{"a": all["a"], "b": "b\n", "c": "c\n", "d": "d\n", "e": "e\n"}},
		"fs_edit that adds":     {"fs_edit", object{"path": "a", "old": "one\n", "new": "one\none\n"}, map[string]string{"a": "one\none\ntwo\nthree\n"}, map[string]string{"a": "one\none\ntwo\nthree\n", "b": "b\n", "c": "c\n", "d": "d\n", "e": "e\n"}},
		"fs_edit that removes":  {"fs_edit", object{"path": "a", "old": "two\n", "new": ""}, map[string]string{"a": "one\nthree\n"}, map[string]string{"a": "one\nthree\n", "b": "b\n", "c": "c\n", "d": "d\n", "e": "e\n"}},
		"fs_patch":              {"fs_patch", object{"path": "a", "contents": "@@ -2,0 +3 @@\n+more\n"}, map[string]string{"a": "one\ntwo\nmore\nthree\n"}, map[string]string{"a": "one\ntwo\nmore\nthree\n", "b": "b\n", "c": "c\n", "d": "d\n", "e": "e\n"}},
		"fs_write":              {"fs_write", object{"path": "a", "contents": "x"}, map[string]string{"a": "x"}, map[string]string{"a": "x", "b": "b\n", "c": "c\n", "d": "d\n", "e": "e\n"}},
		"a person was there":    {"fs_edit", object{"path": "a", "old": "two", "new": "2"}, map[string]string{"a": "one\n2\nthree\nmine\n"}, map[string]string{"a": "one\n2\nthree\nmine\n", "b": "b\n", "c": "c\n", "d": "d\n", "e": "e\n"}},
		"a person made another": {"apply_patch", patch, map[string]string{"n": "mine\n"}, map[string]string{"a": files["a"], "n": "mine\n", "b": "b\n", "c": "c\n", "d": "d\n", "e": "e\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, files)
			for name := range files {
				r.use("fs_read", object{"path": name}, false)
			}
			for name, text := range c.by {
				if text == "-" {
					if err := os.Remove(filepath.Join(r.h.Workspace, name)); err != nil {
						t.Fatal(err)
					}
					continue
				}
				r.write(name, text)
			}
			got := r.use(c.tool, c.args, true)
			if d := cmp.Diff(c.want, contents(t, r.h)); d != "" {
				t.Errorf("it says %s, and the files are (-want +got):\n%s", got, d)
			}
			if refused := strings.HasPrefix(got, changedNothing) || strings.HasPrefix(got, "No file is changed"); refused != strings.HasPrefix(name, "a person") {
				t.Errorf("it says %s", got)
			}
		})
	}
}

// A file with a secret is known without sums of its content, and one that rules do not let tools read is not shown.
func TestSeenSecrets(t *testing.T) {
	t.Parallel()
	r := newReader(t, map[string]string{"a": "KEY=hunter2\nb\n"})
	r.redact = func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") }
	r.use("fs_read", object{"path": "a"}, false)
	for _, f := range r.known {
		if f.Hash != "" || f.Lines != "" || f.Stamp == "" {
			t.Errorf("a file with a secret is known by %+v", f)
		}
	}
	if got := r.use("fs_edit", object{"path": "a", "old": "b", "new": "B"}, false); !strings.HasPrefix(got, "Changed a.") {
		t.Errorf("it says %s", got)
	}
	r.write("a", "KEY=hunter3\nB\n")
	if got := r.use("fs_edit", object{"path": "a", "old": "B", "new": "C"}, false); got != changedNothing+"a has changed since you read it. Read it again, then repeat the call with what is right now." {
		t.Errorf("it says %s", got)
	}

	r = newReader(t, nil)
	r.use("fs_write", object{"path": "a", "contents": "x\n"}, false)
	r.write("a", "x\nmine\n")
	r.h.Hidden = func(string) func(string) bool { return func(path string) bool { return filepath.Base(path) == "a" } }
	if got := r.use("fs_write", object{"path": "a", "contents": "y\n"}, false); !strings.HasPrefix(got, changedNothing) || strings.Contains(got, "mine") {
		t.Errorf("it says %s", got)
	}
}

// A link and the file that it leads to are one file; the removal of a link loses nothing.
func TestSeenThroughLinks(t *testing.T) {
	t.Parallel()
	r := newReader(t, map[string]string{"real/a": "b\n"})
	if err := os.Symlink(filepath.Join("real", "a"), filepath.Join(r.h.Workspace, "link")); err != nil {
		t.Skip("this system makes no links: ", err)
	}
	r.use("fs_read", object{"path": "link"}, false)
	if got := r.use("fs_edit", object{"path": "real/a", "old": "b", "new": "B"}, false); !strings.HasPrefix(got, "Changed") {
		t.Errorf("it says %s", got)
	}
	r.known = map[string]tool.SeenFile{}
	if got := r.use("fs_write", object{"path": "link", "contents": "x"}, false); !strings.HasPrefix(got, changedNothing) {
		t.Errorf("it says %s", got)
	}
	if got := r.use("fs_rm", object{"path": "link"}, false); !strings.HasPrefix(got, "Path removed") {
		t.Errorf("it says %s", got)
	}
}

// A file that cannot be read is not replaced.
func TestOptionalUnreadableFileStays(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" || os.Getuid() == 0 {
		t.Skip("this user reads every file")
	}
	r := newReader(t, map[string]string{"a": "mine\n"})
	if err := os.Chmod(filepath.Join(r.h.Workspace, "a"), 0o200); err != nil {
		t.Fatal(err)
	}
	if got := r.use("fs_write", object{"path": "a", "contents": "x"}, false); !strings.Contains(got, "permission denied") {
		t.Errorf("it says %s", got)
	}
}
