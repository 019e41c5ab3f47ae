package cli_test

import (
	"encoding/json"
	"fmt"
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

	"raddle.dev/internal/testneed"
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
	if err := os.CopyFS(filepath.Join(w.dir, "handbook"), os.DirFS("../../examples/handbook")); err != nil {
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

// TestKilledBuildGoesOn kills builds at several moments, and compares with one that was left alone.
func TestKilledBuildGoesOn(t *testing.T) {
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
		text, err := os.ReadFile(filepath.Join("../../examples/handbook/documents", name))
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
