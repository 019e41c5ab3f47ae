package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testneed"
)

// library is an agent with documents and an embedding model on a server of the test.
const library = `
-- .config/raddle/config.yaml --
clients:
  - type: openai-compatible
    name: local
    api_base: SERVER/v1
-- agent/graph.yaml --
name: library
start: find
nodes:
  find:
    type: rag
    documents: [SOURCE]
    embedding_model: local:counts
    chunk_size: 100
    chunk_overlap: 0
    top_k: 1
    batch_size: 8
    state_updates: {passages: "{{output.context}}"}
    next: done
  done: {type: end, output: "{{passages}}"}
`

// An embeddings server speaks OpenAI's protocol and records the requests. A vector counts letters.
type embeddings struct {
	*httptest.Server
	mu     sync.Mutex
	texts  []string
	behave func(w http.ResponseWriter, r *http.Request) (done bool) // nil: it works normally
}

func newEmbeddings(t *testing.T) *embeddings {
	s := &embeddings{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		behave := s.behave
		s.mu.Unlock()
		if behave != nil && behave(w, r) {
			return
		}
		s.mu.Lock()
		s.texts = append(s.texts, body.Input...)
		s.mu.Unlock()
		type datum struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var reply struct {
			Data []datum `json:"data"`
		}
		for i, text := range body.Input {
			v := make([]float32, 26)
			for _, c := range strings.ToLower(text) {
				if c >= 'a' && c <= 'z' {
					v[c-'a']++
				}
			}
			v[0]++
			reply.Data = append(reply.Data, datum{i, v})
		}
		if err := json.NewEncoder(w).Encode(reply); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *embeddings) set(behave func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave = behave
}

// sent returns what was embedded since the last call, sorted.
func (s *embeddings) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	texts := s.texts
	s.texts = nil
	slices.Sort(texts)
	return texts
}

func (s *embeddings) shelf(t *testing.T, source string) *workplace {
	t.Helper()
	return newWorkplace(t, strings.NewReplacer("SERVER", s.URL, "SOURCE", source).Replace(library))
}

// TestOnlyWhatChangedIsEmbedded edits documents between builds and runs.
func TestOnlyWhatChangedIsEmbedded(t *testing.T) {
	s := newEmbeddings(t)
	w := s.shelf(t, "docs")
	for i := range 20 {
		w.write(fmt.Sprintf("agent/docs/%02d.md", i), fmt.Sprintf("The first part of %d.\n\n%s", i, strings.Repeat("Second. ", 12)+fmt.Sprint(i)))
	}
	if r := w.run("run", "./agent", "the first part of 7"); r.code != 0 || len(s.sent()) != 41 {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	w.write("agent/docs/07.md", "Zebras are here now.\n\n"+strings.Repeat("Second. ", 12)+"7")
	if r := w.run("rag", "build", "./agent"); r.code != 0 || !strings.Contains(r.err, "1 of 20 documents had changed") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	if diff := cmp.Diff([]string{"Zebras are here now."}, s.sent()); diff != "" {
		t.Errorf("a build has sent (-want +got):\n%s", diff)
	}
	w.write("agent/docs/08.md", "Walruses.")
	r := w.run("run", "./agent", "zebras now")
	if diff := cmp.Diff([]string{"Walruses.", "zebras now"}, s.sent()); diff != "" {
		t.Errorf("a run has sent (-want +got):\n%s", diff)
	}
	if want := "[Source: " + filepath.Join(w.dir, "agent/docs/07.md") + "]\nZebras are here now.\n"; r.out != want {
		t.Errorf("output %q, want %q", r.out, want)
	}
	if r := w.run("rag", "build", "./agent"); r.code != 0 || len(s.sent()) > 0 || !strings.Contains(r.err, "up to date: 20 documents") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}

// TestHandbook runs the example, changes a document, and runs it again.
func TestHandbook(t *testing.T) {
	w := newWorkplace(t, "")
	if err := os.CopyFS(filepath.Join(w.dir, "handbook"), os.DirFS("../../../examples/handbook")); err != nil {
		t.Fatal(err)
	}
	const question = "How long is the notice period?"
	r := w.run("run", "./handbook", question)
	if r.code != 0 || !strings.Contains(r.out, "Four weeks") || !strings.Contains(r.out, `handbook/documents/leave.md"]`) {
		t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	for query, source := range map[string]string{"a burn": "safety.docx", "35 cents a kilometre": "expenses.pdf", "Sunday shift": "hours.html"} {
		if r := w.run("rag", "search", "./handbook", query, "--top", "1"); !strings.Contains(r.out, source) {
			t.Errorf("%s is found in\n%s%s", query, r.out, r.err)
		}
	}
	w.write("handbook/documents/leave.md", w.read("handbook/documents/leave.md")+"\n\nA sabbatical is possible after ten years.\n")
	r = w.run("run", "./handbook", question)
	if r.code != 0 || strings.Count(r.err, "Load ") != 1 || !strings.Contains(r.err, "leave.md [3/4]") {
		t.Errorf("the second run: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := w.run("rag", "search", "./handbook", "sabbatical", "--top", "1"); !strings.Contains(r.out, "after ten years") {
		t.Errorf("the new text is not found\n%s", r.out)
	}
}

// TestKilledBuildContinues kills builds at several moments, and compares with one that was left alone.
func TestKilledBuildContinues(t *testing.T) {
	t.Parallel()
	s := newEmbeddings(t)
	killed, whole := s.shelf(t, "docs"), s.shelf(t, "docs")
	const documents = 400
	for i := range documents {
		text := fmt.Sprintf("Document %d tells of %c.\n\n%sThe second part of %d.", i, 'a'+i%26, strings.Repeat("More words. ", 6), i)
		killed.write(fmt.Sprintf("agent/docs/%03d.md", i), text)
		whole.write(fmt.Sprintf("agent/docs/%03d.md", i), text)
	}
	const kills, inFlight = 3, 4 * 8
	for range kills {
		killed.killWhileEmbedding(s)
	}
	if r := killed.run("rag", "build", "./agent"); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	sent := s.sent()
	if distinct := len(slices.Compact(slices.Clone(sent))); distinct != 2*documents || len(sent) > distinct+kills*inFlight {
		t.Errorf("%d texts were sent, %d different ones", len(sent), distinct)
	}
	if r := whole.run("rag", "build", "./agent"); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	for _, query := range []string{"document 123", "the second part of 7", "tells of q"} {
		a := killed.run("rag", "search", "./agent", query, "--top", "900", "--output", "json")
		b := whole.run("rag", "search", "./agent", query, "--top", "900", "--output", "json")
		got, want := strings.ReplaceAll(a.out, killed.dir, ""), strings.ReplaceAll(b.out, whole.dir, "")
		if got != want || strings.Count(got, `"source"`) < documents {
			t.Errorf("%s: %d bytes of hits where a whole build gives %d\n%s", query, len(got), len(want), a.err)
		}
	}
}

// killWhileEmbedding starts a build and kills it when the server has received some batches.
func (w *workplace) killWhileEmbedding(s *embeddings) {
	w.t.Helper()
	reached := make(chan struct{})
	var asked atomic.Int32
	s.set(func(http.ResponseWriter, *http.Request) bool {
		if asked.Add(1) == 17 {
			close(reached)
		}
		return false
	})
	defer s.set(nil)
	cmd := w.command("rag", "build", "./agent")
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	select {
	case <-reached:
	case <-time.After(patience):
		w.t.Error("the build does not embed")
	}
	if err := cmd.Process.Kill(); err != nil {
		w.t.Fatal(err)
	}
	wait(w.t, cmd)
}

// TestEveryKindOfDocument finds one word in a file of each kind.
func TestEveryKindOfDocument(t *testing.T) {
	testneed.RequirePrograms(t, "git")
	w := newEmbeddings(t).shelf(t, `docs, "git:repository", "notes:all"`)
	w.write("agent/graph.yaml", strings.Replace(w.read("agent/graph.yaml"), "local:counts", "keyword", 1))
	w.write(".config/raddle/config.yaml", `document_loaders:
  shout: sh -c 'tr a-z A-Z < "$0"' $1
  copy: cp $1 $2
  notes: sh -c 'echo "[{\"path\":\"note-1\",\"contents\":\"The heron waits.\"},{\"path\":\"note-2\",\"contents\":\"Nothing.\"}]"'
`)
	for name, text := range map[string]string{
		"docs/plain.txt": "The badger digs.", "docs/page.md": "# Title\n\nThe stoat runs.", "docs/page.html": "<nav>no</nav><p>The <b>marten</b> climbs.</p>",
		"docs/table.csv": "animal,food\nlynx,hares\n", "docs/data.json": `{"animal":"ermine"}`, "docs/code.go": "package zoo\n\n// Weasel hunts.\nfunc Weasel() {}\n",
		"docs/page.shout": "the vole hides", "docs/page.copy": "The shrew eats.", "repository/README.md": "The dormouse sleeps.", "repository/untracked.md": "The mole.",
	} {
		w.write("agent/"+name, text)
	}
	for _, name := range []string{"expenses.pdf", "safety.docx"} {
		text, err := os.ReadFile(filepath.Join("../../../examples/handbook/documents", name))
		if err != nil {
			t.Fatal(err)
		}
		w.write("agent/docs/"+name, string(text))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "README.md"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", filepath.Join(w.dir, "agent/repository")}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if r := w.run("rag", "build", "./agent"); r.code != 0 || strings.Contains(r.err, "⚠️") {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	for query, source := range map[string]string{
		"badger": "plain.txt", "stoat": "page.md", "marten": "page.html", "lynx": "table.csv", "ermine": "data.json", "weasel": "code.go",
		"vole": "page.shout", "shrew": "page.copy", "dormouse": "README.md", "heron": "note-1", "kilometre": "expenses.pdf", "flour": "safety.docx", "mole": "",
	} {
		r := w.run("rag", "search", "./agent", query, "--top", "1")
		if r.code != 0 || !strings.Contains(r.out, source) || (r.out == "") != (source == "") {
			t.Errorf("%s is found in %q, want %q\n%s", query, r.out, source, r.err)
		}
	}
}

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
	docx, err := os.ReadFile("../../../examples/handbook/documents/safety.docx")
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
