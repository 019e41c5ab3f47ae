package edit

import (
	"strings"
	"testing"
)

// apply applies a patch of one file.
func apply(file, patch string) (string, []string, error) {
	files, err := Parse(patch)
	if err != nil {
		return "", nil, err
	}
	var hunks []*Hunk
	for _, f := range files {
		hunks = append(hunks, f.Hunks...)
	}
	r, err := Apply(file, hunks)
	return r.Text, r.Notes, err
}

const (
	twice = "def a():\n    x = 1\n\ndef b():\n    x = 1\n"
	three = "a\nb\nc\nd\nb\nc\nend"
)

// Each patch changes the file as it says, or is refused with a reason ("!" and a part of it). notes is a part of what else the result says.
func TestApply(t *testing.T) {
	for name, c := range map[string]struct{ file, patch, want, notes string }{
		"one hunk":                            {three, "--- x\n+++ x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\nd\nb\nc\nend", ""},
		"a bare head":                         {three, "@@\n d\n-b\n", "a\nb\nc\nd\nc\nend", ""},
		"where its number says":               {three, "@@ -5,2 +5,2 @@\n-b\n+X\n c\n", "a\nb\nc\nd\nX\nc\nend", ""},
		"as many hunks as places":             {three, "@@\n-b\n+X\n@@\n-b\n+Y\n", "a\nX\nc\nd\nY\nc\nend", ""},
		"the last line, without an end":       {three, "@@\n c\n-end\n+END", "a\nb\nc\nd\nb\nc\nEND", ""},
		"the last line keeps its end":         {"a\nb\n", "@@\n-b\n+c", "a\nc\n", ""},
		"a lost blank":                        {"a\n\nb\n", "@@\n a\n\n-b\n+c\n", "a\n\nc\n", ""},
		"windows":                             {"a\r\nb\r\n", "@@\n a\n-b\n+c\n", "a\r\nc\r\n", ""},
		"a patch of windows":                  {"a\nb\n", "@@\r\n a\r\n-b\r\n+c\r\n", "a\nc\n", ""},
		"mixed line ends stay":                {"a\r\nb\nc\r\nd\n", "@@\n a\n-b\n+B\n+B2\n c\n", "a\r\nB\nB2\nc\r\nd\n", ""},
		"old line ends":                       {"a\rb\rc\r", "@@\n a\n-b\n+B\n", "a\rB\rc\r", ""},
		"a mark of the byte order":            {"\ufeffa\nb\n", "@@\n-a\n+A\n b\n", "\ufeffA\nb\n", ""},
		"a mark in the patch":                 {"a\nb\n", "\ufeff@@\n-a\n+A\n", "A\nb\n", ""},
		"removed dashes":                      {"-- x\ny\n", "@@\n--- x\n+z\n y\n", "z\ny\n", ""},
		"an insertion by its number":          {"a\nb\n", "@@ -1,0 +2,1 @@\n+x\n", "a\nx\nb\n", ""},
		"an insertion at the beginning":       {"a\nb\n", "@@ -0,0 +1 @@\n+x\n", "x\na\nb\n", ""},
		"an insertion without a place":        {"a\n", "@@\n+x\n", "a\nx\n", "added at the end"},
		"an insertion into an empty file":     {"", "@@ -0,0 +1,2 @@\n+x\n+y\n", "x\ny\n", ""},
		"an insertion after a last open line": {"a", "@@\n a\n+b\n", "a\nb", ""},
		"a heading chooses the function":      {twice, "@@ def b():\n-    x = 1\n+    x = 2\n", "def a():\n    x = 1\n\ndef b():\n    x = 2\n", ""},
		"a heading and only additions":        {twice, "@@ def a():\n+    y = 1\n", "def a():\n    y = 1\n    x = 1\n\ndef b():\n    x = 1\n", ""},
		"a heading that the hunk repeats":     {twice, "@@ def b():\n def b():\n-    x = 1\n+    x = 2\n", "def a():\n    x = 1\n\ndef b():\n    x = 2\n", ""},
		"two headings":                        {"class A:\n  def f():\n    1\nclass B:\n  def f():\n    1\n", "@@ class B:\n@@   def f():\n-    1\n+    2\n", "class A:\n  def f():\n    1\nclass B:\n  def f():\n    2\n", ""},
		"a heading that is not there":         {twice, "@@ def c():\n-    x = 1\n+    x = 2\n", `!its heading "def c():" is not a line of the file`, ""},
		"a heading below which it is not":     {"def a():\n    x = 1\ndef b():\n    y = 1\n", "@@ def b():\n-    x = 1\n+    x = 2\n", `!not below its heading "def b():"`, ""},
		"a heading that is there twice":       {"if x:\n    y()\nif x:\n    y()\n", "@@ if x:\n-    y()\n+    z()\n", "!fits in 2 places, at the lines 2, 4", ""},
		"two places":                          {"a\nx\nb\na\nx\nc\n", "a\n@@\n a\n-x\n+Y\n", "!hunk 1 (line 2 of the patch) fits in 2 places, at the lines 1, 4", ""},
		"two places, and a hunk before":       {"x\nm\nx\n", "@@\n-m\n+M\n@@\n-x\n+X\n", "x\nM\nX\n", ""},
		"two places at the same distance":     {"x\nm\nx\n", "@@ -2 +2 @@\n-x\n+X\n", "!fits in 2 places", ""},
		"a wrong number":                      {"a\nb\nc\n", "@@ -90,2 +90,2 @@\n b\n-c\n+C\n", "a\nb\nC\n", ""},
		"hunks in another order":              {three, "@@\n-d\n+D\n@@\n-a\n+A\n", "A\nb\nc\nD\nb\nc\nend", ""},
		"trailing blanks":                     {"a  \nb\t\nc\n", "@@\n a\n-b\n+B\n c\n", "a  \nB\nc\n", "other blanks at the ends of lines"},
		"tabs for blanks":                     {"func f() {\n\tif x {\n\t\ty()\n\t}\n}\n", "@@\n func f() {\n     if x {\n-        y()\n+        z()\n+        w()\n     }\n", "func f() {\n\tif x {\n\t\tz()\n\t\tw()\n\t}\n}\n", "other blanks"},
		"blanks for tabs, deeper":             {"\tif x {\n\t\ty()\n\t}\n", "@@\n     if x {\n         y()\n+        if z {\n+            w()\n+        }\n     }\n", "\tif x {\n\t\ty()\n\t\tif z {\n\t\t\tw()\n\t\t}\n\t}\n", "other blanks"},
		"another indentation":                 {"        a\n        b\n", "@@\n     a\n-    b\n+    c\n", "        a\n        c\n", "other blanks"},
		"typographic quotes in the file":      {"say “hi” – it’s\n", "@@\n-say \"hi\" - it's\n+say \"ho\"\n", "say \"ho\"\n", "other quotes or dashes"},
		"typographic quotes in the patch":     {"say \"hi\"\nb\n", "@@\n say “hi”\n-b\n+c\n", "say \"hi\"\nc\n", "other quotes or dashes"},
		"an exact place before a similar one": {"a \nx\na\nx\n", "@@\n a\n-x\n+y\n", "a \nx\na\ny\n", ""},
		"latin-1 elsewhere":                   {"\xe9\na\n", "@@\n-a\n+b\n", "\xe9\nb\n", ""},
		"the last line end is added":          {"a\nb", "@@\n a\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n", ""},
		"the last line end is removed":        {"a\nb\n", "@@\n a\n-b\n+b\n\\ No newline at end of file\n", "a\nb", ""},
		"no last line end on both sides":      {"a\nb", "@@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n", "a\nc", ""},
		"a fence":                             {"a\nb\n", "Here it is:\n```diff\n@@\n a\n-b\n+c\n```\nDone.\n", "a\nc\n", ""},
		"a fence in the text":                 {"```\na\n```\n", "@@\n ```\n-a\n+b\n ```\n", "```\nb\n```\n", ""},
		"git's lines":                         {"a\n", "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "b\n", ""},
		"an envelope":                         {twice, "*** Begin Patch\n*** Update File: x.py\n@@ def b():\n-    x = 1\n+    x = 2\n*** End Patch\n", "def a():\n    x = 1\n\ndef b():\n    x = 2\n", ""},
		"an envelope without a head":          {"a\nb\n", "*** Begin Patch\n*** Update File: x\n a\n-b\n+c\n*** End Patch", "a\nc\n", ""},
		"an envelope at the end of the file":  {"x\na\nx\n", "*** Begin Patch\n*** Update File: x\n@@\n-x\n+y\n*** End of File\n*** End Patch", "x\na\ny\n", ""},
		"not at the end of the file":          {"x\na\n", "*** Begin Patch\n*** Update File: x\n@@\n-x\n+y\n*** End of File\n*** End Patch", "!but not at its end", ""},
		"a block":                             {"a\nb\nc\n", "x.txt\n<<<<<<< SEARCH\nb\n=======\nB\n>>>>>>> REPLACE\n", "a\nB\nc\n", ""},
		"a block in a fence":                  {"a\nb\nc\n", "x.txt\n```\n<<<<<<< SEARCH\nb\n=======\nB\nB2\n>>>>>>> REPLACE\n```\n", "a\nB\nB2\nc\n", ""},
		"a block that fits twice":             {"a\nb\na\n", "<<<<<<< SEARCH\na\n=======\nA\n>>>>>>> REPLACE\n", "!the block in line 1 of the patch fits in 2 places, at the lines 1, 3", ""},
		"a block without an end":              {"a\n", "<<<<<<< SEARCH\na\n=======\nA\n", "!has no end", ""},
		"a block that deletes":                {"a\nb\nc\n", "<<<<<<< SEARCH\nb\n=======\n>>>>>>> REPLACE\n", "a\nc\n", ""},
		"applied twice":                       {"a\nB\nc\n", "@@\n a\n-b\n+B\n c\n", "!line 2 is \"B\" where the patch has \"b\"", ""},
		"no hunk":                             {three, "a\nb\n", "!no patch: there is no line that begins with @@", ""},
		"an empty hunk":                       {three, "@@\n", "!the hunk in line 1 of the patch has no lines", ""},
		"only context":                        {three, "@@\n a\n b\n", "!changes nothing", ""},
		"no mark":                             {three, "@@\nfoo\n", `!line 2 of the patch begins with neither a space, - nor +: "foo"`, ""},
		"not there":                           {three, "@@\n-zzz\n", `!hunk 1 (line 1 of the patch) does not fit: its first line is not in the file: "zzz"`, ""},
		"a part fits":                         {three, "@@\n a\n-x\n", `!it agrees with the file from line 1 on, but line 2 is "b" where the patch has "x"`, ""},
		"the file ends":                       {"a\n", "@@\n a\n b\n-c\n", `!line 2 is the end of the file where the patch has "b"`, ""},
		"the second is bad":                   {three, "@@\n-a\n@@\n-zzz\n", `!hunk 2 (line 3 of the patch) does not fit`, ""},
		"two hunks for one place":             {"a\nb\n", "@@\n-a\n+A\n@@\n-a\n+Z\n", "!is changed by another hunk|are changed by another hunk", ""},
		"indentation that cannot be told":     {"\ta\n  a\n    b\n", "@@\n a\n a\n-b\n+c\n", "!indented in a way", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, notes, err := apply(c.file, c.patch)
			if reason, refused := strings.CutPrefix(c.want, "!"); refused {
				found := false
				for r := range strings.SplitSeq(reason, "|") {
					found = found || err != nil && strings.Contains(err.Error(), r)
				}
				if !found {
					t.Errorf("%q, %v, want an error with %q", got, err, reason)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%q, %v\nwant %q", got, err, c.want)
			}
			if said := strings.Join(notes, "; "); !strings.Contains(said, c.notes) || c.notes == "" && said != "" {
				t.Errorf("the notes are %q, want %q", said, c.notes)
			}
		})
	}
}

// A patch of several files says what it does with each.
func TestParseFiles(t *testing.T) {
	files, err := Parse("*** Begin Patch\n*** Add File: new/a.txt\n+one\n+\n+two\n*** Update File: b.txt\n*** Move to: c.txt\n@@\n-x\n+y\n*** Delete File: old.txt\n*** End Patch\n")
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	if a := files[0]; a.Do != Add || a.Path != "new/a.txt" || a.Text != "one\n\ntwo\n" {
		t.Errorf("%+v", a)
	}
	if b := files[1]; b.Do != Update || b.Path != "b.txt" || b.MoveTo != "c.txt" || len(b.Hunks) != 1 {
		t.Errorf("%+v", b)
	}
	if d := files[2]; d.Do != Delete || d.Path != "old.txt" {
		t.Errorf("%+v", d)
	}
	files, err = Parse("diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\ndiff --git a/o b/o\n--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n--- a/m\t2026-01-01\n+++ b/m\t2026-01-02\n@@ -1 +1 @@\n-m\n+M\n")
	if err != nil || len(files) != 3 || files[0].Do != Add || files[0].Text != "a\nb" || files[1].Do != Delete || files[1].Path != "o" || files[2].Path != "m" || len(files[2].Hunks) != 1 {
		t.Errorf("%+v, %v", files, err)
	}
	for patch, want := range map[string]string{
		"*** Begin Patch\n*** End Patch\n":                           "is not followed by",
		"*** Begin Patch\n*** Update File: a\n*** End Patch\n":       "no change of a",
		"*** Begin Patch\n*** Add File: a\n-x\n*** End Patch\n":      "begin with +",
		"*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch\n":   "nothing follows",
		"*** Begin Patch\n*** Update File:\n@@\n-x\n*** End Patch\n": "names no file",
		"--- /dev/null\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n":              "has a line that is not new",
	} {
		if _, err := Parse(patch); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", patch, err, want)
		}
	}
}

func TestReplace(t *testing.T) {
	for name, c := range map[string]struct {
		file, old, now, want string
		all                  bool
	}{
		"a part of a line":         {"let x = 1;\n", "x = 1", "y = 2", "let y = 2;\n", false},
		"several lines":            {"a\nb\nc\n", "a\nb\n", "A\n", "A\nc\n", false},
		"across line ends":         {"a\r\nb\r\nc\r\n", "a\nb", "A\nB\nC", "A\r\nB\r\nC\r\nc\r\n", false},
		"mixed ends":               {"a\r\nb\nc\r\n", "b", "B", "a\r\nB\nc\r\n", false},
		"the end of the file":      {"a\nb", "b", "c", "a\nc", false},
		"the last line end":        {"a\nb\n", "b\n", "", "a\n", false},
		"everything":               {"a\n", "a\n", "b\n", "b\n", false},
		"twice":                    {"a\nb\na\n", "a", "x", "!in 2 places, at the lines 1, 3", false},
		"all":                      {"a\nb\na\n", "a", "xx", "xx\nb\nxx\n", true},
		"all in one line":          {"a a\n", "a", "b", "b b\n", true},
		"all, over lines":          {"a\nb\na\n", "a\n", "x\ny\n", "x\ny\nb\nx\ny\n", true},
		"nothing":                  {"a\n", "z", "y", "!the old text is not in the file", false},
		"the same":                 {"a\n", "a", "a", "!are the same", false},
		"an empty old text":        {"a\n", "", "b", "!the old text is empty", false},
		"an empty file":            {"", "", "b\n", "b\n", false},
		"other blanks":             {"\tif x {\n\t\ty()\n\t}\n", "    if x {\n        y()\n", "    if x {\n        z()\n", "\tif x {\n\t\tz()\n\t}\n", false},
		"other quotes":             {"it’s\n", "it's", "its", "its\n", false},
		"other blanks, all":        {"a  \na  \n", "a\nb", "x", "!is not in the file", true},
		"a mark of the byte order": {"\ufeffa\n", "a", "b", "\ufeffb\n", false},
	} {
		r, err := Replace(c.file, c.old, c.now, c.all)
		if reason, refused := strings.CutPrefix(c.want, "!"); refused {
			if err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %q, %v, want an error with %q", name, r.Text, err, reason)
			}
			continue
		}
		if err != nil || r.Text != c.want {
			t.Errorf("%s: %q, %v, want %q", name, r.Text, err, c.want)
		}
	}
}

func TestLines(t *testing.T) {
	r, err := Replace("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "5\n", "five\nand a half\n", false)
	if want := "     3  3\n     4  4\n     5  five\n     6  and a half\n     7  6\n     8  7\n"; err != nil || r.Lines() != want {
		t.Errorf("%s, %v", r.Lines(), err)
	}
}

// Nothing panics, a patch that is applied is found in the file, and what it does not touch stays byte for byte.
func FuzzApply(f *testing.F) {
	f.Add(three, "@@\n-b\n+X\n@@\n-b\n+Y\n")
	f.Add(twice, "@@ def b():\n-    x = 1\n+    x = 2\n")
	f.Add("a\r\nb\rc", "*** Begin Patch\n*** Update File: x\n b\n-c\n+d\n*** End Patch")
	f.Add("\ufeffa\n", "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE")
	f.Fuzz(func(t *testing.T, file, patch string) {
		if got := splitText(file).String(); got != file {
			t.Fatalf("%q becomes %q", file, got)
		}
		got, _, err := apply(file, patch)
		if err == nil && got == file {
			t.Errorf("%q is applied to %q and changes nothing", patch, file)
		}
		r, err := Replace(file, patch, "Z\nZ", false)
		if err == nil && !strings.Contains(r.Text, "Z") {
			t.Errorf("%q", r.Text)
		}
		_ = r.Lines()
	})
}
