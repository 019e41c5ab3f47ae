package load

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
)

// read loads sources, and returns texts and problems by path below dir.
func read(t *testing.T, o Options, sources ...string) (texts, problems map[string]string) {
	t.Helper()
	texts, problems = map[string]string{}, map[string]string{}
	short := func(path string) string {
		if name, err := filepath.Rel(o.Dir, path); err == nil && !strings.HasPrefix(name, "..") && filepath.IsAbs(path) {
			return filepath.ToSlash(name)
		}
		return path
	}
	entries, bad, err := List(t.Context(), sources, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range bad {
		name := p.Path
		if name == "" {
			name = p.Source
		}
		problems[short(name)] = p.Err.Error()
	}
	for _, e := range entries {
		file, err := e.Read(t.Context())
		var doc Document
		if err == nil {
			doc, err = file.Text(t.Context())
		}
		if err != nil {
			problems[short(e.Path)] = err.Error()
			continue
		}
		texts[short(e.Path)] = doc.Text
	}
	return texts, problems
}

func TestFormats(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
		"a.txt":   "\ufeffone\r\ntwo",
		"b.md":    "# Title\n",
		"c.go":    "package c\n",
		"d.csv":   "name,age\nAnn,31\nBob,\n",
		"e.json":  `{"a":1,"b":[2]}`,
		"f.html":  "<html><head><title>News</title><style>x{}</style></head><body><h2>Big</h2><p>One <b>two</b></p><table><tr><th>A</th></tr><tr><td>1</td></tr></table></body></html>",
		"g.utf16": "\xff\xfeh\x00i\x00",
		"h.docx": string(makeDOCX(t, `<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Leave</w:t></w:r></w:p>
			<w:p><w:r><w:t xml:space="preserve">Thirty </w:t></w:r><w:r><w:t>days</w:t><w:tab/><w:t>a year.</w:t></w:r></w:p>
			<w:tbl><w:tr><w:tc><w:p><w:r><w:t>A</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>B</w:t></w:r></w:p></w:tc></w:tr></w:tbl>`)),
		"i.pdf": string(makePDF("The first page.", "The second page.")),
	})
	texts, problems := read(t, Options{Dir: dir, Env: []string{"PATH=" + t.TempDir()}}, ".")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	texts["i.pdf"] = strings.Join(strings.Fields(texts["i.pdf"]), " ")
	texts["f.html"] = strings.TrimSpace(texts["f.html"])
	want := map[string]string{
		"a.txt": "one\ntwo", "b.md": "# Title\n", "c.go": "package c\n",
		"d.csv":   "name: Ann\nage: 31\n\nname: Bob\n\n",
		"e.json":  "{\n \"a\": 1,\n \"b\": [\n  2\n ]\n}",
		"f.html":  "# News\n\n## Big\n\nOne **two**\n\n| A |\n|---|\n| 1 |",
		"g.utf16": "hi",
		"h.docx":  "## Leave\n\nThirty days a year.\n\n| A | B |\n",
		"i.pdf":   "The first page. The second page.",
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}

func TestLongWordsWarning(t *testing.T) {
	joined := strings.Repeat("Uploadingtostablemeansthatthepackagewillbetransferred. ", 5)
	for _, c := range []struct {
		text string
		want bool
	}{
		{joined, true},
		{strings.Repeat("Загрузкавстабильныйвыпускозначаетчтопакет ", 6), true},
		{joined + strings.Repeat("an ordinary sentence of words. ", 60), false},
		{joined[:60], false},
		{strings.Repeat("https://www.example.org/doc/manuals/best/practices/of/packages_of_others.html#1234 ", 20), false},
		{strings.Repeat("Rindfleischetikettierungsgesetz und andere Gesetze gelten hier in diesem Lande; ", 20), false},
		{strings.Repeat("這是沒有空格的文字這是沒有空格的文字這是沒有空格的文字", 50), false},
		{"", false},
	} {
		if got := longWordsWarning(c.text); (got != "") != c.want {
			t.Errorf("%.40s…: warning %q", c.text, got)
		}
	}
}

func TestTroubledDocuments(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
		"good.txt":      "good",
		"binary.dat":    "\x7fELF\x00\x00",
		"koi8.txt":      "one\n\xf0\xd2\xc9\xd7\xc5\xd4",
		"broken.pdf":    "%PDF-1.4\nnothing follows",
		"false.pdf":     "hello",
		"cut.pdf":       string(makePDF("text"))[:300],
		"broken.docx":   "PK\x03\x04",
		"links/x.txt":   "x",
		"image.docx":    string(makeDOCX(t, "<w:p><w:r>")),
		"inner/sub.txt": "sub",
	})
	for _, name := range []string{"inner/pipe.txt", "pipe.txt"} {
		if err := exec.CommandContext(t.Context(), "mkfifo", filepath.Join(dir, name)).Run(); err != nil {
			t.Fatal(err)
		}
	}
	huge, err := os.Create(filepath.Join(dir, "huge.txt"))
	if err == nil {
		err = errors.Join(huge.Truncate(200<<20), huge.Close()) // without blocks on the disk
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "empty"), 0o755)
	}
	if err == nil {
		err = os.Symlink("..", filepath.Join(dir, "links", "up"))
	}
	if err == nil {
		err = os.Symlink("nowhere", filepath.Join(dir, "links", "dead"))
	}
	if err != nil {
		t.Fatal(err)
	}
	texts, problems := read(t, Options{Dir: dir, Env: []string{"PATH=" + t.TempDir()}}, ".", "pipe.txt", "empty", "missing.txt", "*.nothing", "bad[.txt")
	if diff := cmp.Diff(map[string]string{"good.txt": "good", "links/x.txt": "x", "inner/sub.txt": "sub"}, texts); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"binary.dat": "a binary file", "koi8.txt": "byte 0xf0 in line 2, nor Latin-1", "broken.pdf": "a broken PDF", "false.pdf": "a broken PDF",
		"cut.pdf": "a broken PDF", "broken.docx": "a broken DOCX", "image.docx": "a broken DOCX", "huge.txt": "too large: 200.0 MB",
		"pipe.txt": "a pipe, not a file", "inner/pipe.txt": "a pipe, not a file", "links/up": "the loop is left out", "links/dead": "leads nowhere", "empty": ErrNoDocuments.Error(), "missing.txt": ErrNoDocuments.Error(),
		"*.nothing": ErrNoDocuments.Error(), "bad[.txt": "this pattern cannot be read",
	} {
		if !strings.Contains(problems[name], want) {
			t.Errorf("%s: problem %q, want %q", name, problems[name], want)
		}
		delete(problems, name)
	}
	if len(problems) > 0 {
		t.Errorf("more problems: %v", problems)
	}
}

func TestSourcesThatLeaveTheDirectory(t *testing.T) {
	_, _, err := List(t.Context(), []string{"../secret.md", "a/../../b", "pdf:../x", "", "a..b/c"}, Options{Dir: t.TempDir(),
		Loaders: map[string]string{"pdf": "cat $1"}})
	const rule = " (a relative path begins at the agent's directory and must not contain `..`: put the documents there, or write the absolute path)"
	want := "Invalid document path: '../secret.md'" + rule + "\nInvalid document path: 'a/../../b'" + rule + "\nInvalid document path: 'pdf:../x'" + rule +
		"\nInvalid document path: '' (it is empty: name a file, a folder or a pattern)"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestEachDocumentOnce(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"docs/a.md": "a", "docs/.hidden": "h", "docs/.git/config": "no", "docs/base.db": "skipped"})
	testfile.WriteFiles(t, home, map[string]string{"notes.txt": "n"})
	o := Options{Dir: dir, Env: []string{"HOME=" + home}, Skip: []string{filepath.Join(dir, "docs/base.db")}}
	texts, problems := read(t, o, "docs/a.md", "docs", filepath.Join(dir, "docs", "a.md"), "~/notes.txt")
	want := map[string]string{"docs/a.md": "a", "docs/.hidden": "h", filepath.Join(home, "notes.txt"): "n"}
	if diff := cmp.Diff(want, texts); diff != "" || len(problems) > 0 {
		t.Errorf("texts (-want +got):\n%s\nproblems: %v", diff, problems)
	}
}

func TestLoaders(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"a file.foo": "foo", "b.bar": "bar", "c.bad": "x", "d.none": "y",
		"list.json": `[{"path":"one","contents":"first","metadata":{"page":1}},{"contents":"second"}]`})
	o := Options{Dir: dir, Env: os.Environ(), Loaders: map[string]string{
		"foo":  `sh -c 'printf "read %s" "$(cat "$0")"' $1`, // $0 is that of sh
		"bar":  `sh copy.sh $1 $2`,
		"bad":  `sh -c 'echo went wrong >&2; exit 3'`,
		"none": `sh -c true $1 $2`,
		"list": "cat $1",
	}}
	testfile.WriteFiles(t, dir, map[string]string{"copy.sh": `printf noise; cat "$1" "$1" > "$2"`})
	texts, problems := read(t, o, "*.foo", "*.bar", "*.bad", "*.none", "list:list.json")
	want := map[string]string{"a file.foo": "read foo", "b.bar": "barbar", "one": "first", "list:list.json#2": "second"}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	for name, part := range map[string]string{"c.bad": "went wrong", "d.none": "it wrote no file at $2"} {
		if !strings.Contains(problems[name], part) {
			t.Errorf("%s: problem %q, want %q", name, problems[name], part)
		}
	}
}

func TestHashChangesWithTheLoader(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"a.foo": "x"})
	hash := func(command string) string {
		entries, _, err := List(t.Context(), []string{"a.foo"}, Options{Dir: dir, Loaders: map[string]string{"foo": command}})
		if err != nil {
			t.Fatal(err)
		}
		f, err := entries[0].Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return f.Hash
	}
	if a, b := hash(""), hash("cat $1"); a == b || a != hash("") {
		t.Errorf("hashes %s and %s", a, b)
	}
}

func TestGit(t *testing.T) {
	testneed.RequirePrograms(t, "git")
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	testfile.WriteFiles(t, repo, map[string]string{"docs/a.md": "tracked", ".gitignore": "*.log\n", "x.log": "ignored"})
	if err := os.Symlink("/etc/passwd", filepath.Join(repo, "link")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", repo}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	texts, problems := read(t, Options{Dir: dir, Env: os.Environ()}, "git:repo")
	want := map[string]string{"repo/docs/a.md": "tracked", "repo/.gitignore": "*.log\n"}
	if diff := cmp.Diff(want, texts); diff != "" || len(problems) > 0 {
		t.Errorf("texts (-want +got):\n%s\nproblems: %v", diff, problems)
	}
	l := lister{ctx: t.Context(), o: &Options{Dir: dir, Env: os.Environ()}, seen: map[string]bool{}}
	l.listRepository(sourceSpec{source: "clone", kind: kindRepository, at: "file://" + repo})
	if len(l.entries) != 2 || len(l.problems) > 0 || l.entries[1].Path != "file://"+repo+"/docs/a.md" || string(l.entries[1].data) != "tracked" {
		t.Errorf("entries %+v, problems %v", l.entries, l.problems)
	}
	_, problems = read(t, Options{Dir: dir, Env: os.Environ()}, "git:docs")
	if !strings.Contains(problems["git:docs"], "git -C") {
		t.Errorf("problems %v", problems)
	}
	for source, is := range map[string]bool{"https://h/a.git": true, "git@h:a": true, "ssh://h/a": true, "https://h/a": false, "x.git": false} {
		if isRepository(source) != is {
			t.Errorf("%s: repository %t", source, !is)
		}
	}
}

// TestDocumentsThatGo has a file and a folder change between being found and being read.
func TestDocumentsThatGo(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"gone.txt": "x", "now-a-folder.txt": "x", "stays.txt": "x"})
	entries, _, err := List(t.Context(), []string{"."}, Options{Dir: dir})
	if err == nil {
		err = errors.Join(os.Remove(filepath.Join(dir, "gone.txt")), os.Remove(filepath.Join(dir, "now-a-folder.txt")),
			os.Mkdir(filepath.Join(dir, "now-a-folder.txt"), 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"it was deleted after it had been found", "a folder, not a file", ""} {
		_, err := entries[i].Read(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", entries[i].Path, err, want)
		}
	}
}

func TestEncodings(t *testing.T) {
	for _, c := range []struct{ name, data, want, note string }{
		{"UTF-8", "caf\u00e9\r\n", "caf\u00e9\n", ""},
		{"one bad byte in ASCII", "# Title\n\nsome text \xff and more\n", "# Title\n\nsome text \u00ff and more\n", "byte 0xff in line 3"},
		{"one bad byte in UTF-8", "\u017c\u00f3\u0142w \xff", "\u017c\u00f3\u0142w \ufffd", "1 bytes, the first of them 0xff in line 1"},
		{"Latin-1", "le caf\xe9 est tr\xe8s bon\r\n", "le caf\u00e9 est tr\u00e8s bon\n", "read as Latin-1"},
		{"Windows-1252", "\x93quoted\x94 \x96 10 \x80", "\u201cquoted\u201d \u2013 10 \u20ac", "read as Latin-1"},
		{"UTF-16", "\xfe\xff\x00h\x00i\xd8\x3d\xde\x00", "hi\U0001f600", ""},
		{"half of UTF-16", "\xff\xfeh\x00\x3d\xd8", "h\ufffd", ""},
	} {
		got, note, err := plainText([]byte(c.data))
		if got != c.want || err != nil || c.note == "" && note != "" || !strings.Contains(note, c.note) {
			t.Errorf("%s: text %q, note %q, error %v, want %q with %q", c.name, got, note, err, c.want, c.note)
		}
	}
	for _, data := range []string{"\x01\x02\x03\x9f\x04", strings.Repeat("\xd0\xd2\xc9 ", 10), "text\x00text"} {
		if got, _, err := plainText([]byte(data)); err == nil {
			t.Errorf("%q is read as %q", data, got)
		}
	}
	page, _, err := pageSource([]byte("<meta charset=\"iso-8859-2\"><p>\xf3\xb3w"))
	if err != nil || !strings.HasSuffix(page, "\u00f3\u0142w") {
		t.Errorf("page %q, error %v", page, err)
	}
}
