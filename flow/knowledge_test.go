package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"raddle.dev/flow/check"
	"raddle.dev/graph"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/llm"
	"raddle.dev/llm/openai"
	"raddle.dev/rag"
	"raddle.dev/tool"
)

// What a node leaves out is asked for after the yes, and kept: a later run opens
// the base as it was built.
func TestWhatIsLeftOutIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	writeCaseFile(t, dir, "graph.yaml", "name: g\nstart: kb\nnodes:\n  kb: {type: rag, documents: [d.md], state_updates: {c: \"{{output.context}}\"}, next: e}\n  e: {type: end}\n")
	writeCaseFile(t, dir, "d.md", "The zebra grazes.\n")
	var asked []string
	r := Retrieval{
		Confirm: func(q string) (bool, error) { asked = append(asked, q); return true, nil },
		Ask: func(q, usual string) (string, error) {
			asked = append(asked, q+usual)
			if strings.HasPrefix(q, "Chunk size") {
				return "400", nil
			}
			return usual, nil
		},
	}
	for range 2 {
		a, err := Load(dir, Host{Retrieval: r})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		hits, err := a.bases["kb"].Search(context.Background(), "zebra", rag.SearchOptions{})
		if err != nil || len(hits) != 1 {
			t.Errorf("%v, %v", hits, err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"Initialize RAG knowledge base for rag node 'kb'?", "Embedding model, as CLIENT:MODEL, or keyword to search by words alone:keyword",
		"Chunk size, in bytes:1000", "Chunk overlap, in bytes:20"}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	text, err := os.ReadFile(filepath.Join(dir, "kb.yaml"))
	if err != nil || !strings.Contains(string(text), "chunk_size: 400\n") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestHostSettingsSpecifyHowToBuild builds a base without anyone to ask from what the node and the host's settings say together.
func TestHostSettingsSpecifyHowToBuild(t *testing.T) {
	size, overlap := 300, 10
	for _, c := range []struct {
		fields string
		host   Retrieval
		built  bool
	}{
		{"chunk_size: 200, chunk_overlap: 0", Retrieval{Model: rag.Keyword}, true},
		{"embedding_model: keyword", Retrieval{ChunkSize: &size, ChunkOverlap: &overlap}, true},
		{"chunk_size: 200", Retrieval{Model: rag.Keyword, ChunkOverlap: &overlap}, true},
		{"chunk_size: 200, chunk_overlap: 0", Retrieval{}, false},
		{"embedding_model: keyword, chunk_size: 200", Retrieval{ChunkSize: &size}, false},
	} {
		dir := t.TempDir()
		writeCaseFile(t, dir, "graph.yaml", "name: g\nstart: kb\nnodes:\n  kb: {type: rag, documents: [d.md], "+c.fields+", next: e}\n  e: {type: end}\n")
		writeCaseFile(t, dir, "d.md", "The zebra grazes.\n")
		_, _, err := prepared(t, dir, Host{Retrieval: c.host})
		if c.built != (err == nil) || err != nil && !strings.Contains(err.Error(), "does not fully specify") {
			t.Errorf("%s with %+v: %v", c.fields, c.host, err)
		}
	}
}

// entityServer plays a provider whose model knows two things of a handbook.
type entityServer struct {
	url string

	mu      sync.Mutex
	prompts []string
	status  int // of its answers; 0: good ones
}

func newEntityServer(t *testing.T) *entityServer {
	t.Helper()
	s := &entityServer{}
	inner := httptest.NewServer(llmtest.OpenAI().NewHandler(func(body []byte) (llmtest.Turn, int) {
		var request struct{ Messages []struct{ Content string } }
		if err := json.Unmarshal(body, &request); err != nil {
			return llmtest.Turn{Text: err.Error()}, http.StatusBadRequest
		}
		prompt := request.Messages[0].Content
		s.mu.Lock()
		defer s.mu.Unlock()
		s.prompts = append(s.prompts, prompt)
		switch {
		case s.status != 0:
			return llmtest.Turn{Text: "no"}, s.status
		case strings.Contains(prompt, "Zephyr team"):
			return llmtest.Turn{Text: "```json\n" + `{"entities":[{"name":"Zephyr team","type":"organization"},{"name":"Kim","type":"person","description":"leads it"}],
				"relationships":[{"from":"Kim","to":"Zephyr team","type":"LEADS"}]}` + "\n```"}, http.StatusOK
		case strings.Contains(prompt, "Kim"):
			return llmtest.Turn{Text: `{"entities":[{"name":"KIM","type":"person"},{"name":"Oslo","type":"location"}],"relationships":[]}`}, http.StatusOK
		}
		return llmtest.Turn{Text: "nothing to say"}, http.StatusOK
	}))
	t.Cleanup(inner.Close)
	s.url = inner.URL
	return s
}

func (s *entityServer) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	prompts := s.prompts
	s.prompts = nil
	slices.Sort(prompts)
	return prompts
}

func (s *entityServer) fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// Known implements [Models].
func (s *entityServer) IsKnown(_, id string) bool { return strings.HasPrefix(id, "local:") }

// Facts implements [Models].
func (s *entityServer) Facts(string, string) ModelFacts { return ModelFacts{} }

// Open implements [Models].
func (s *entityServer) Open(_ context.Context, _, id string) (llm.Model, error) {
	return openai.New(openai.Config{Model: id, Endpoint: llm.Endpoint{BaseURL: s.url, APIKey: "a-key"}})
}

var staff = map[string]string{
	"docs/teams.md":  "The Zephyr team is led by Kim.",
	"docs/travel.md": "Kim books every hotel in Oslo herself.",
	"docs/other.md":  "Lunch is at noon. The door code is 493817.",
}

func staffAgent(t *testing.T, node string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range staff {
		writeCaseFile(t, dir, name, text)
	}
	writeCaseFile(t, dir, "graph.yaml", "name: g\nstart: kb\nnodes:\n  kb: {type: rag, documents: [docs], embedding_model: keyword, chunk_size: 200, chunk_overlap: 0, "+node+
		"state_updates: {c: \"{{output.context}}\"}, next: e}\n  e: {type: end, output: \"{{c}}\"}\n")
	return dir
}

// prepared loads an agent and opens its bases, and returns what that told.
func prepared(t *testing.T, dir string, h Host) (a *Agent, told string, err error) {
	t.Helper()
	var lines []string
	h.Retrieval.Notify = func(line string) { lines = append(lines, line) }
	a, err = Load(dir, h)
	if err != nil {
		t.Fatal(err)
	}
	err = a.Prepare(t.Context())
	t.Cleanup(func() { _ = a.Close() })
	return a, strings.Join(lines, "\n"), err
}

func runAgent(t *testing.T, a *Agent, prompt string) string {
	t.Helper()
	g, err := a.CompileGraph()
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), a.Input(prompt))
	if err != nil || res.Status != graph.Done {
		t.Fatalf("%v, %v", res.Status, err)
	}
	return OutcomeOf(res).Output
}

// A question finds the passage about what another passage leads to.
func TestNodeSearchesByEntities(t *testing.T) {
	s := newEntityServer(t)
	dir := staffAgent(t, `extractor_model: "local:reader", extractor_prompt: "List what is in <__CHUNK__>", driver: duckdb, `)
	a, told, err := prepared(t, dir, Host{Models: s, Redactor: NewRedactor("493817")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"List what is in <" + staff["docs/travel.md"] + ">", "List what is in <Lunch is at noon. The door code is [redacted].>",
		"List what is in <" + staff["docs/teams.md"] + ">"}
	if got := s.asked(); !slices.Equal(got, want) {
		t.Errorf("asked %q", got)
	}
	for _, line := range []string{
		"Extractor model: local:reader", "`driver: duckdb` has no effect", "from 3 new parts of documents: as many calls", "other.md: no entities from a part of it: the answer is not",
		"✓ Extracted 3 entities and 1 relations after 3 calls; 1 of them failed.",
	} {
		if !strings.Contains(told, line) {
			t.Errorf("not told: %s\n%s", line, told)
		}
	}
	if out := runAgent(t, a, "Who leads the Zephyr team?"); !strings.Contains(out, "Zephyr team is led") || !strings.Contains(out, "every hotel in Oslo") {
		t.Errorf("found %q", out)
	}
	_, told, err = prepared(t, dir, Host{Models: s})
	if err != nil || told != "" || len(s.asked()) != 0 {
		t.Errorf("a second run: %v, told %q", err, told)
	}
	writeCaseFile(t, dir, "docs/other.md", "Lunch is at one.")
	if _, told, err = prepared(t, dir, Host{Models: s}); err != nil || !strings.Contains(told, "1 of 3 documents had changed") || len(s.asked()) != 1 {
		t.Errorf("a changed document: %v, told %q", err, told)
	}
}

// The host's extractor serves where no node names one, also for an agent's own documents.
func TestExtractorOfTheHost(t *testing.T) {
	s := newEntityServer(t)
	dir := t.TempDir()
	writeCaseFile(t, dir, "docs/teams.md", staff["docs/teams.md"])
	writeCaseFile(t, dir, "config.yaml", "name: c\nmodel: local:talker\ndocuments: [docs]\nembedding_model: keyword\n")
	h := Host{Models: s, Retrieval: Retrieval{ExtractorModel: "local:reader"}}
	if _, told, err := prepared(t, dir, h); err != nil || len(s.asked()) != 1 || !strings.Contains(told, "Extracted 2 entities and 1 relations after 1 calls.") {
		t.Errorf("%v, told %q", err, told)
	}
	text, err := os.ReadFile(filepath.Join(dir, "rag.yaml"))
	if err != nil || !strings.Contains(string(text), "extractor_model: local:reader") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestExtractorFailures(t *testing.T) {
	s := newEntityServer(t)
	dir := staffAgent(t, `extractor_model: "local:reader", `)
	s.fail(http.StatusUnauthorized)
	_, _, err := prepared(t, dir, Host{Models: s})
	if err == nil || !strings.Contains(err.Error(), "extractor model local:reader: authentication failed (401)") || check.FileExists(filepath.Join(dir, "kb.yaml")) {
		t.Errorf("a wrong key: %v", err)
	}
	unknown := staffAgent(t, `extractor_model: "elsewhere:reader", `)
	a, _, err := prepared(t, unknown, Host{Models: s})
	if err == nil || !strings.Contains(err.Error(), "extractor model elsewhere:reader: there is no such model") {
		t.Errorf("an unknown model: %v", err)
	}
	if !slices.ContainsFunc(a.Findings, func(f strictyaml.Finding) bool {
		return f.Severity == strictyaml.SeverityWarning && f.Message == "rag node references unknown model 'elsewhere:reader'" && f.Pos.Line == 4
	}) {
		t.Errorf("findings %v", a.Findings)
	}

	// A base that exists answers as before in a run; a request to bring it up to date reports that it
	// is not.
	s.fail(0)
	if _, _, err := prepared(t, dir, Host{Models: s}); err != nil {
		t.Fatal(err)
	}
	s.fail(http.StatusUnauthorized)
	writeCaseFile(t, dir, "docs/other.md", "Lunch is at one.")
	a, told, err := prepared(t, dir, Host{Models: s})
	if err != nil || !strings.Contains(told, "stays as it was: ") || !strings.Contains(told, "(401)") {
		t.Errorf("%v, told %q", err, told)
	}
	if out := runAgent(t, a, "lunch"); !strings.Contains(out, "at noon") {
		t.Errorf("found %q", out)
	}
	if _, _, err := prepared(t, dir, Host{Models: s, Retrieval: Retrieval{Renew: true}}); err == nil || !strings.Contains(err.Error(), "(401)") {
		t.Errorf("an update: %v", err)
	}
}

// The settings of a base that exists count until it is built again.
func TestRebuilding(t *testing.T) {
	s := newEntityServer(t)
	dir := staffAgent(t, "")
	if _, _, err := prepared(t, dir, Host{Models: s}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "graph.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	writeCaseFile(t, dir, "graph.yaml", strings.Replace(string(text), "chunk_size: 200", `chunk_size: 300, top_k: 2, extractor_model: "local:reader"`, 1))
	a, told, err := prepared(t, dir, Host{Models: s, Retrieval: Retrieval{Renew: true}})
	want := []string{"chunk_size is 300, and was 200", "top_k is 2, and was 5", "extractor_model is local:reader, and was none"}
	if got := a.BaseFiles()[0].Differs; err != nil || !slices.Equal(got, want) || !strings.Contains(told, "is up to date") || len(s.asked()) != 0 {
		t.Errorf("%v, differs %q, told %q", err, got, told)
	}
	a, told, err = prepared(t, dir, Host{Models: s, Retrieval: Retrieval{Renew: true, Rebuild: true}})
	if got := a.BaseFiles()[0].Differs; err != nil || got != nil || !strings.Contains(told, "Extracted 3 entities") || len(s.asked()) != 3 {
		t.Errorf("%v, differs %q, told %q", err, got, told)
	}

	// The base knows better than the file that names it.
	writeCaseFile(t, dir, "kb.yaml", "base: kb.db\nembedding_model: keyword\nchunk_size: 200\nchunk_overlap: 0\ntop_k: 5\ndocument_paths: [docs]\n")
	a, told, err = prepared(t, dir, Host{Models: s})
	if got := a.BaseFiles()[0].Differs; err != nil || got != nil || told != "" || len(s.asked()) != 0 {
		t.Errorf("%v, differs %q, told %q", err, got, told)
	}
	// Another program's base is not written over.
	foreign := "embedding_model: x:y\nchunk_size: 100\nchunk_overlap: 0\ntop_k: 1\n"
	writeCaseFile(t, dir, "kb.yaml", foreign)
	_, _, err = prepared(t, dir, Host{Models: s, Retrieval: Retrieval{Rebuild: true}})
	if left, _ := os.ReadFile(filepath.Join(dir, "kb.yaml")); err == nil || !strings.Contains(err.Error(), "move it away") || string(left) != foreign {
		t.Errorf("%v\n%s", err, left)
	}
}

// The tool that searches the documents is offered only where they are used.
func TestDocumentsThatAreNotUsedOfferNoSearch(t *testing.T) {
	offers := func(model string, h Host) bool {
		dir := filepath.Join(t.TempDir(), "agent")
		writeCaseFile(t, dir, "config.yaml", "name: a\ndocuments: [a.txt]\n"+model)
		writeCaseFile(t, dir, "a.txt", "hi")
		h.Model = "m:x"
		a, err := Load(dir, h)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(a.AvailableTools(), func(t tool.Tool) bool { return t.Name == "rag__query" })
	}
	if offers("", Host{}) {
		t.Error("no embedding model is set, and the search is offered")
	}
	confirm := func(string) (bool, error) { return true, nil }
	if !offers("embedding_model: keyword\n", Host{}) || !offers("", Host{Retrieval: Retrieval{Model: "m:e"}}) || !offers("", Host{Retrieval: Retrieval{Confirm: confirm}}) {
		t.Error("the documents are used, and the search is not offered")
	}
}

// What a base could not read is said at each start. A start tries it again: of local documents always, of pages only what failed, and less and less often.
func TestUnreadDocumentsAreSaidAtEachStart(t *testing.T) {
	var up atomic.Bool
	var fetched atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetched.Add(1)
		if !up.Load() && r.URL.Path == "/down" {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, "The page "+r.URL.Path)
	}))
	defer s.Close()
	dir := t.TempDir()
	writeCaseFile(t, dir, "config.yaml", fmt.Sprintf("name: c\nmodel: local:talker\ndocuments: [d.md, missing.md, %s/up, %s/down]\nembedding_model: keyword\n", s.URL, s.URL))
	writeCaseFile(t, dir, "d.md", "The zebra grazes.\n")
	start := func(renew bool) (told string, fetches int64) {
		t.Helper()
		before := fetched.Load()
		_, told, err := prepared(t, dir, Host{Models: newEntityServer(t), Retrieval: Retrieval{Renew: renew}})
		if err != nil {
			t.Fatal(err)
		}
		return told, fetched.Load() - before
	}
	says := func(told string, want ...string) {
		t.Helper()
		for _, text := range want {
			if !strings.Contains(told, text) {
				t.Errorf("told %q, want %q", told, text)
			}
		}
	}
	told, fetches := start(false)
	if says(told, "/down: the server answers 503", "missing.md: no documents found here"); fetches != 2 {
		t.Errorf("the build fetched %d pages", fetches)
	}
	told, fetches = start(false) // it is tried again at once
	if says(told, "/down: the server answers 503", "missing.md: no documents found here"); fetches != 1 {
		t.Errorf("the second start fetched %d pages", fetches)
	}
	told, fetches = start(false) // and then after a minute
	if says(told, "could not be read for the knowledge base 'rag': "+s.URL+"/down: the server answers 503", "missing.md: no documents found here"); fetches != 0 {
		t.Errorf("the third start fetched %d pages", fetches)
	}
	up.Store(true)
	writeCaseFile(t, dir, "missing.md", "The lion rests.\n")
	told, fetches = start(true) // on request all is looked at
	if says(told, "2 of 4 documents had changed"); fetches != 2 || strings.Contains(told, "⚠️") {
		t.Errorf("%d pages, told %q", fetches, told)
	}
	if told, fetches = start(false); told != "" || fetches != 0 {
		t.Errorf("%d pages, told %q", fetches, told)
	}
}
