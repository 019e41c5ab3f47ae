package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestEmbeddingServerInTrouble has a server fail in all ways while a base is updated. The old base answers.
func TestEmbeddingServerInTrouble(t *testing.T) {
	s := newEmbeddings(t)
	w := s.shelf(t, "docs")
	w.write("agent/docs/a.md", "A quiet quokka.")
	w.write("agent/docs/b.md", "Before.")
	if r := w.run("rag", "build", "./agent"); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	once := func(status int) func(http.ResponseWriter, *http.Request) bool {
		var asked atomic.Bool
		return func(w http.ResponseWriter, _ *http.Request) bool {
			if asked.Swap(true) {
				return false
			}
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(status)
			return true
		}
	}
	answer := func(status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	for i, c := range []struct {
		name   string
		behave func(http.ResponseWriter, *http.Request) bool
		code   int
		want   string
	}{
		{"a rate limit", once(429), 0, "1 of 2 documents had changed"},
		{"a failure", once(500), 0, "1 of 2 documents had changed"},
		{"failures", answer(500, "out of order"), 1, "Failed to create embedding after 2 attempts"},
		{"a wrong key", answer(401, `{"error":{"message":"no such key"}}`), 4, "no such key; no API key was sent: set "},
		{"no JSON", answer(200, "<html>"), 1, "not the JSON that was expected"},
		{"too few vectors", answer(200, `{"data":[]}`), 1, "0 vectors came back for 1 texts"},
		{"short vectors", answer(200, `{"data":[{"index":0,"embedding":[1,2]}]}`), 1, "2 dimensions came back where 26 are expected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.write("agent/docs/b.md", fmt.Sprintf("Version %d.", i))
			s.set(c.behave)
			r := w.run("rag", "build", "./agent")
			s.set(nil)
			if r.code != c.code || !strings.Contains(r.err, c.want) {
				t.Errorf("exit code %d, want %d and %q\n%s", r.code, c.code, c.want, r.err)
			}
			if r := w.run("rag", "search", "./agent", "quiet quokka", "--top", "1"); !strings.Contains(r.out, "A quiet quokka.") {
				t.Errorf("the base does not answer\n%s%s", r.out, r.err)
			}
		})
	}
}

// TestSilentEmbeddingServer searches the old base while a build waits, and then stops the build.
func TestSilentEmbeddingServer(t *testing.T) {
	s := newEmbeddings(t)
	w := s.shelf(t, "docs")
	w.write("agent/docs/a.md", "A quiet quokka.")
	if r := w.run("rag", "build", "./agent"); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	w.write("agent/docs/b.md", "More.")
	asked, first := make(chan struct{}), atomic.Bool{}
	s.set(func(_ http.ResponseWriter, r *http.Request) bool {
		if !first.Swap(true) {
			close(asked)
			<-r.Context().Done()
			return true
		}
		return false
	})
	cmd := w.command("rag", "build", "./agent")
	told := newConsole()
	cmd.Stderr = told
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	search := func() {
		t.Helper()
		if r := w.run("rag", "search", "./agent", "quokka", "--top", "1"); !strings.Contains(r.out, "A quiet quokka.") {
			t.Errorf("the base does not answer\n%s%s", r.out, r.err)
		}
	}
	search()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := wait(t, cmd); code != 130 || !strings.Contains(told.String(), "the next build continues it") {
		t.Errorf("exit code %d\n%s", code, told)
	}
	search()
}

// TestTroubledDocuments has files of all kinds that are not documents next to one that is.
func TestTroubledDocuments(t *testing.T) {
	s := newEmbeddings(t)
	site := httptest.NewServer(http.NotFoundHandler())
	defer site.Close()
	w := s.shelf(t, "docs, empty, missing.md, \""+site.URL+"/gone\"")
	w.write("agent/docs/good.md", "A good document.")
	w.write("agent/docs/binary.dat", "\x7fELF\x00\x00\x01")
	w.write("agent/docs/latin.txt", "one\ncaf\xe9")
	w.write("agent/docs/broken.pdf", "%PDF-1.4\n1 0 obj\n")
	docx, err := os.ReadFile("../../examples/handbook/documents/safety.docx")
	if err != nil {
		t.Fatal(err)
	}
	w.write("agent/docs/cut.docx", string(docx[:len(docx)/2]))
	docs := filepath.Join(w.dir, "agent", "docs")
	for _, err := range []error{
		os.Mkdir(filepath.Join(w.dir, "agent", "empty"), 0o755),
		os.Symlink("..", filepath.Join(docs, "loop")),
		os.WriteFile(filepath.Join(docs, "huge.txt"), nil, 0o644),
		os.Truncate(filepath.Join(docs, "huge.txt"), 200<<20),
		exec.CommandContext(t.Context(), "mkfifo", filepath.Join(docs, "pipe.md")).Run(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r := w.run("rag", "build", "./agent")
	if r.code != 0 {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	for _, want := range []string{
		"docs/binary.dat: a binary file", "docs/latin.txt: not valid UTF-8 (byte 0xe9 in line 2), so it is read as Latin-1", "docs/broken.pdf: a broken PDF",
		"docs/cut.docx: a broken DOCX", "docs/loop/docs: a symbolic link that leads back", "docs/huge.txt: too large: 200.0 MB", "docs/pipe.md: a pipe, not a file",
		"empty: no documents found here", "missing.md: no documents found here", site.URL + "/gone: the server answers 404",
	} {
		if !strings.Contains(r.err, want) {
			t.Errorf("nothing says %q", want)
		}
	}
	if t.Failed() || strings.Contains(r.err, "find.db") {
		t.Errorf("what there is, without the base itself:\n%s", r.err)
	}
	if r := w.run("rag", "search", "./agent", "good document"); !strings.Contains(r.out, "A good document.") {
		t.Errorf("the good one is not found\n%s%s", r.out, r.err)
	}
}

// TestPagesAreReadAgain changes a page between builds. A run does not read it again.
func TestPagesAreReadAgain(t *testing.T) {
	var text atomic.Value
	text.Store("An old otter.")
	var asked atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/docs/":
			_, _ = io.WriteString(w, `<a href="page">a page</a> <a href="/outside">outside</a>`)
		case "/docs/page":
			_, _ = fmt.Fprintf(w, `<p>%s</p><a href="./">back</a>`, text.Load())
		default:
			t.Errorf("%s was asked for", r.URL)
		}
	}))
	defer site.Close()
	w := newEmbeddings(t).shelf(t, `"`+site.URL+`/docs/**"`)
	for i, want := range []string{"An old otter.", "A new newt."} {
		text.Store(want)
		if r := w.run("rag", "build", "./agent"); r.code != 0 || asked.Swap(0) != 2 {
			t.Errorf("build %d: exit code %d\n%s", i, r.code, r.err)
		}
		if r := w.run("run", "./agent", want); !strings.Contains(r.out, want) || asked.Swap(0) != 0 {
			t.Errorf("run %d: exit code %d\n%s%s", i, r.code, r.out, r.err)
		}
	}
	site.Close()
	if r := w.run("rag", "build", "./agent"); r.code != 3 || !strings.Contains(r.err, "connection refused") {
		t.Errorf("without the site: exit code %d\n%s", r.code, r.err)
	}
	if r := w.run("rag", "search", "./agent", "newt"); !strings.Contains(r.out, "A new newt.") {
		t.Errorf("the old base does not answer\n%s%s", r.out, r.err)
	}
}
