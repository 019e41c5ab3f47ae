package rag

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/llmtest"
	"raddle.dev/llm"
	"raddle.dev/llm/openai"
	"raddle.dev/rag/load"
)

// A reader is a server in the shape of OpenAI's that finds the capitalised words of a passage, each related to the next one.
type reader struct {
	url string

	mu       sync.Mutex
	passages []string
	answer   func(passage string) (text string, status int) // nil: as described
}

func newReader(t testing.TB) *reader {
	t.Helper()
	r := &reader{}
	s := httptest.NewServer(llmtest.OpenAI().Handler(func(body []byte) (llmtest.Turn, int) {
		var request struct {
			Temperature *float64
			Messages    []struct{ Content string }
		}
		if err := json.Unmarshal(body, &request); err != nil || request.Temperature == nil || *request.Temperature != 0 {
			return llmtest.Turn{Text: "temperature 0 is wanted"}, http.StatusBadRequest
		}
		_, passage, _ := strings.Cut(request.Messages[0].Content, "Passage:\n")
		r.mu.Lock()
		r.passages = append(r.passages, passage)
		answer := r.answer
		r.mu.Unlock()
		if answer == nil {
			answer = capitals
		}
		text, status := answer(passage)
		return llmtest.Turn{Text: text}, status
	}))
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

var capital = regexp.MustCompile(`[A-Z][a-z]+(?: [A-Z][a-z]+)*`)

// capitals is the answer to a passage.
func capitals(passage string) (string, int) {
	said := map[string]any{"entities": []any{}, "relationships": []any{}}
	var entities, relations []any
	names := capital.FindAllString(passage, -1)
	for i, name := range names {
		entities = append(entities, map[string]any{"name": name, "type": "thing", "description": "It is in: " + passage})
		if i > 0 {
			relations = append(relations, map[string]any{"from": names[i-1], "to": name, "type": "next", "weight": 0.5})
		}
	}
	if len(names) > 0 {
		said["entities"], said["relationships"] = entities, relations
	}
	text, _ := json.Marshal(said)
	return "```json\n" + string(text) + "\n```", http.StatusOK
}

// asked returns the passages since the last call, sorted.
func (r *reader) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	passages := r.passages
	r.passages = nil
	slices.Sort(passages)
	return passages
}

func (r *reader) answers(answer func(passage string) (string, int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func openAt(url string) func(context.Context, string) (llm.Model, error) {
	return func(_ context.Context, model string) (llm.Model, error) {
		return openai.New(openai.Config{Model: model, BaseURL: url, APIKey: "key"})
	}
}

func (r *reader) options(dir string) Options {
	return Options{ChunkSize: 60, Attempts: 1, Load: load.Options{Dir: dir},
		Extraction: Extraction{Model: "reader", Open: openAt(r.url)}}
}

var people = map[string]string{
	"docs/a.txt": "Ada wrote to Charles.\n\nCharles built the Analytical Engine in London.",
	"docs/b.txt": "London has a Science Museum where it stands.",
	"docs/c.txt": "nothing of note is here",
}

// graphOf is what a base knows of entities, without row ids.
func graphOf(t *testing.T, b *Base) (all []string) {
	t.Helper()
	names, places := map[int64]string{}, map[int64]string{}
	each(t, b, "SELECT id, name, '' FROM entity", func(id int64, name string, _ []byte) { names[id] = name })
	each(t, b, "SELECT c.id, d.path || ' ' || c.place, '' FROM chunk c JOIN document d ON d.id = c.document",
		func(id int64, place string, _ []byte) { places[id] = place })
	each(t, b, "SELECT relations, name || ' ' || type || ' ' || description, '' FROM entity ORDER BY id", func(n int64, text string, _ []byte) {
		all = append(all, fmt.Sprint(text, n))
	})
	each(t, b, "SELECT id, name, neighbours FROM entity ORDER BY id", func(_ int64, name string, data []byte) {
		near, err := unpackNeighbours(data)
		if err != nil {
			t.Error(err)
		}
		for _, n := range near {
			all = append(all, fmt.Sprint(name, " beside ", names[n.id], n.weight))
		}
	})
	each(t, b, "SELECT id, name, chunks FROM entity ORDER BY id", func(_ int64, name string, data []byte) {
		ids, err := unpackIDs(data)
		if err != nil {
			t.Error(err)
		}
		for _, id := range ids {
			all = append(all, name+" in "+places[id])
		}
	})
	var mentions []string
	each(t, b, "SELECT chunk, '', entities FROM mention", func(chunk int64, _ string, data []byte) {
		ids, err := unpackIDs(data)
		if err != nil {
			t.Error(err)
		}
		for _, id := range ids {
			mentions = append(mentions, places[chunk]+" mentions "+names[id])
		}
	})
	slices.Sort(mentions)
	return append(all, mentions...)
}

// each visits the rows of a query.
func each(t *testing.T, b *Base, query string, visit func(int64, string, []byte)) {
	t.Helper()
	rows, err := b.db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var text string
		var data []byte
		if err := rows.Scan(&id, &text, &data); err != nil {
			t.Fatal(err)
		}
		visit(id, text, data)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestEntitiesAreExtracted(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, people)
	r := newReader(t)
	b := openBase(t, filepath.Join(dir, "kb.db"), r.options(dir))
	report := build(t, b, "docs")
	if report.Asked != 4 || report.Missed != 0 || report.Entities != 5 || report.Relations != 4 {
		t.Errorf("report %+v", report)
	}
	s, err := b.Status(t.Context())
	if err != nil || s.Entities != 5 || s.Relations != 4 || s.ExtractorModel != "reader" {
		t.Errorf("status %+v, %v", s, err)
	}
	if got := r.asked(); len(got) != 4 {
		t.Errorf("asked %q", got)
	}
	if report := build(t, b, "docs"); report.Asked != 0 || report.Changed {
		t.Errorf("nothing has changed: %+v", report)
	}

	// Of a changed document only the new chunk is asked about, and what a removed one alone has said is gone.
	write(t, dir, map[string]string{"docs/a.txt": "Ada wrote to Charles.\n\nCharles ate a large dinner with Mary Somerville."})
	if report := build(t, b, "docs"); report.Asked != 1 || report.Entities != 5 || report.Relations != 3 {
		t.Errorf("report %+v", report)
	}
	if diff := cmp.Diff([]string{"Charles ate a large dinner with Mary Somerville."}, r.asked()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if err := os.Remove(filepath.Join(dir, "docs/b.txt")); err != nil {
		t.Fatal(err)
	}
	build(t, b, "docs")
	once := openBase(t, filepath.Join(dir, "once.db"), r.options(dir))
	build(t, once, "docs")
	if diff := cmp.Diff(graphOf(t, once), graphOf(t, b)); diff != "" {
		t.Errorf("entities (-built at once +step by step):\n%s", diff)
	}
	if got := graphOf(t, b); len(got) == 0 || strings.Contains(strings.Join(got, "\n"), "science museum") {
		t.Errorf("entities %q", got)
	}

	// The extractor can go and come back: what it has said is kept as long as the chunks are.
	r.asked()
	plain := openBase(t, filepath.Join(dir, "kb.db"), Options{ChunkSize: 60, Load: load.Options{Dir: dir}})
	if report := build(t, plain, "docs"); !report.Changed || report.Entities != 0 {
		t.Errorf("report %+v", report)
	}
	if report := build(t, b, "docs"); !report.Changed || report.Asked != 0 || report.Entities != 3 {
		t.Errorf("report %+v", report)
	}
}

func TestSearchByEntities(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, people)
	r := newReader(t)
	b := openBase(t, filepath.Join(dir, "kb.db"), r.options(dir))
	build(t, b, "docs")
	texts := func(b *Base, query string, top int) (all []string) {
		t.Helper()
		hits, err := b.Search(t.Context(), query, SearchOptions{TopK: top})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hits {
			all = append(all, h.Text)
		}
		return all
	}
	a1, a2, b1 := "Ada wrote to Charles.", "Charles built the Analytical Engine in London.", "London has a Science Museum where it stands."
	for _, c := range []struct {
		query string
		top   int
		want  []string
	}{
		{"What of ADA?", 5, []string{a1, a2}},                    // the words find the first alone, Charles is a relation away
		{"tell me of the science museum's", 5, []string{b1, a2}}, // named by a part of the query
		{"where does it stand", 5, []string{b1, a2}},             // nothing is named: from what the words find
		{"zebra", 5, nil},
		{"ada", 1, []string{a1}},
	} {
		if diff := cmp.Diff(c.want, texts(b, c.query, c.top)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.query, diff)
		}
	}
	for hops, want := range map[int][]string{0: {a1}, 1: {a1, a2}, 3: {a1, a2, b1}} {
		o := r.options(dir)
		o.Extraction.Hops = new(hops)
		far := openBase(t, filepath.Join(dir, "kb.db"), o)
		if report := build(t, far, "docs"); report.Asked != 0 {
			t.Errorf("another graph_hops asks %d times", report.Asked)
		}
		if diff := cmp.Diff(want, texts(far, "ada", 5)); diff != "" {
			t.Errorf("%d hops (-want +got):\n%s", hops, diff)
		}
	}
	// A reranker is given what the other rankings have found.
	o := r.options(dir)
	o.RerankerModel, o.Reranker = "same", func(string) (Reranker, error) { return sameOrder{}, nil }
	ranked := openBase(t, filepath.Join(dir, "kb.db"), o)
	build(t, ranked, "docs")
	if diff := cmp.Diff([]string{a1}, texts(ranked, "ada", 5)); diff != "" {
		t.Errorf("reranked (-want +got):\n%s", diff)
	}
}

// sameOrder leaves texts as they are.
type sameOrder struct{}

func (sameOrder) Rerank(_ context.Context, _ string, texts []string, _ int) (order []int, err error) {
	for i := range texts {
		order = append(order, i)
	}
	return order, nil
}

// TestHybridSearchHasThreeRankings has a chunk that only entities find beside those that vectors and words find.
func TestHybridSearchHasThreeRankings(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, people)
	r := newReader(t)
	o := r.options(dir)
	o.Model, o.Embedder = "test:words", func(string) (Embedder, error) { return &wordModel{dims: 256}, nil }
	b := openBase(t, filepath.Join(dir, "kb.db"), o)
	if report := build(t, b, "docs"); report.Embedded != 4 || report.Asked != 4 {
		t.Errorf("report %+v", report)
	}
	hits, err := b.Search(t.Context(), "Ada", SearchOptions{TopK: 2})
	if err != nil || len(hits) != 2 {
		t.Fatalf("%v, %v", hits, err)
	}
	const first = (1.125 + 1 + 0.9) / 5
	if got := hits[0].Score; got < first-1e-9 || got > first+1e-9 || hits[0].Text != "Ada wrote to Charles." {
		t.Errorf("first hit %+v, want score %v", hits[0], first)
	}
}

// TestChunksOfEntities ranks chunks by their best entity, then by how many of those that are named they mention.
func TestChunksOfEntities(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"docs/1.txt": "only Ada is here", "docs/2.txt": "only Zoe is here", "docs/3.txt": "Ada with Zoe here", "docs/4.txt": "Zoe with Mary here",
		"docs/5.txt": "Mary is alone", "docs/6.txt": "Kate knows nobody",
	})
	b := openBase(t, filepath.Join(dir, "kb.db"), newReader(t).options(dir))
	build(t, b, "docs")
	for _, c := range []struct {
		query string
		top   int
		want  []string
	}{
		{"ada zoe", 9, []string{"3", "1", "2", "4", "5"}}, // Mary is half as near
		{"ada zoe", 2, []string{"3", "1"}},
		{"zoe", 1, []string{"2"}},
		{"zoe", 5, []string{"2", "3", "4", "1", "5"}},
		{"mary kate", 4, []string{"4", "5", "6", "2"}},
	} {
		var got []string
		err := b.read(t.Context(), func(tx *sql.Tx) error {
			v, err := b.current(t.Context(), tx)
			if err != nil {
				return err
			}
			ids, err := v.byEntities(t.Context(), tx, lookup{query: c.query, top: c.top}, nil)
			for _, i := range ids {
				h, _ := readHit(t.Context(), tx, v.ids[i])
				got = append(got, strings.TrimSuffix(filepath.Base(h.Path), ".txt"))
			}
			return err
		})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q, %d: %v, %v, want %v", c.query, c.top, got, err, c.want)
		}
	}
}

// TestUselessAnswers tells of them once, goes on, and never asks again.
func TestUselessAnswers(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, people)
	r := newReader(t)
	r.answers(func(passage string) (string, int) {
		if strings.Contains(passage, "Science") {
			return "I would rather not.", http.StatusOK
		}
		if strings.Contains(passage, "nothing") {
			return "the content filter was triggered", http.StatusBadRequest
		}
		return capitals(passage)
	})
	b := openBase(t, filepath.Join(dir, "kb.db"), r.options(dir))
	var missed []string
	var last Progress
	report, err := b.Build(t.Context(), []string{"docs"}, func(p Progress) {
		if p.Missed != nil {
			missed = append(missed, filepath.Base(p.Path)+": "+p.Missed.Error())
		}
		last = p
	})
	slices.Sort(missed)
	if err != nil || report.Asked != 4 || report.Missed != 2 || len(missed) != 2 || last.Asked != 4 || last.ToAsk != 4 {
		t.Fatalf("report %+v, %v, missed %q, last %+v", report, err, missed, last)
	}
	if !strings.HasPrefix(missed[0], "b.txt: the answer is not a JSON object") || !strings.Contains(missed[1], "c.txt: bad request (400)") {
		t.Errorf("missed %q", missed)
	}
	r.asked()
	if report := build(t, b, "docs"); report.Asked != 0 || report.Changed || len(r.asked()) != 0 {
		t.Errorf("asked again: %+v", report)
	}
}

// TestPassingFailures leave a chunk without entities until the next build.
func TestPassingFailures(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, people)
	r := newReader(t)
	r.answers(func(passage string) (string, int) {
		if strings.Contains(passage, "Science") {
			return "later", http.StatusServiceUnavailable
		}
		return capitals(passage)
	})
	b := openBase(t, filepath.Join(dir, "kb.db"), r.options(dir))
	if report := build(t, b, "docs"); report.Asked != 4 || report.Missed != 1 || report.Entities != 4 {
		t.Errorf("report %+v", report)
	}
	if report := build(t, b, "docs"); report.Asked != 1 || report.Missed != 1 || report.Changed {
		t.Errorf("report %+v", report)
	}
	r.answers(nil)
	if report := build(t, b, "docs"); report.Asked != 1 || report.Missed != 0 || !report.Changed || report.Entities != 5 {
		t.Errorf("report %+v", report)
	}
	if report := build(t, b, "docs"); report.Asked != 0 || report.Changed {
		t.Errorf("report %+v", report)
	}
}

// TestWhatEveryChunkWouldMeet stops a build of many chunks after few calls.
func TestWhatEveryChunkWouldMeet(t *testing.T) {
	dir := t.TempDir()
	for i := range 200 {
		write(t, dir, map[string]string{fmt.Sprintf("docs/%03d.txt", i): fmt.Sprintf("Text %d is short.", i)})
	}
	for name, c := range map[string]struct {
		answer func(string) (string, int)
		open   func(context.Context, string) (llm.Model, error)
		want   string
		most   int
	}{
		"key":           {answer: func(string) (string, int) { return "wrong key", 401 }, want: "extractor model reader: authentication failed (401)", most: 2 * DefaultCalls},
		"model":         {answer: func(string) (string, int) { return "no such model", 404 }, want: "bad request (404)", most: 2 * DefaultCalls},
		"never JSON":    {answer: func(string) (string, int) { return "Hello!", 200 }, want: "it has failed 10 times in a row, the last time with: the answer is not", most: giveUp + DefaultCalls},
		"server down":   {answer: func(string) (string, int) { return "down", 503 }, want: "it has failed 10 times in a row", most: giveUp + DefaultCalls},
		"cannot open":   {open: func(context.Context, string) (llm.Model, error) { return nil, errors.New("no client") }, want: "extractor model reader: no client"},
		"no way to one": {open: nil, want: "there is no way to it"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(t)
			o := r.options(dir)
			if c.answer == nil {
				o.Extraction.Open = c.open
			}
			r.answers(c.answer)
			b := openBase(t, filepath.Join(t.TempDir(), "kb.db"), o)
			_, err := b.Build(t.Context(), []string{"docs"}, nil)
			var stopped *ExtractError
			if !errors.As(err, &stopped) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if n := len(r.asked()); n > c.most {
				t.Errorf("%d calls, at most %d are in order", n, c.most)
			}
			if s, err := b.Status(t.Context()); err != nil || s.Builds != 0 {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

func TestExtractionIsCancelled(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, people)
	r := newReader(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	release := make(chan struct{})
	r.answers(func(string) (string, int) {
		cancel()
		<-release
		return "", 500
	})
	b := openBase(t, filepath.Join(dir, "kb.db"), r.options(dir))
	_, err := b.Build(ctx, []string{"docs"}, nil)
	close(release)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestPromptsAndSecrets(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"docs/a.txt": "The token is hunter22."})
	r := newReader(t)
	o := r.options(dir)
	o.Extraction.Prompt = "Passage:\n<" + ChunkMark + "|" + ChunkMark + ">"
	o.Extraction.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter22", "[redacted]") }
	build(t, openBase(t, filepath.Join(dir, "kb.db"), o), "docs")
	if diff := cmp.Diff([]string{"<The token is [redacted].|The token is [redacted].>"}, r.asked()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	o.Extraction.Prompt = "no mark"
	o.Extraction.Hops = new(-1)
	if b, err := Open(filepath.Join(dir, "x.db"), o); err == nil || !strings.Contains(err.Error(), "extractor_prompt does not contain __CHUNK__") ||
		!strings.Contains(err.Error(), "graph_hops is -1") {
		t.Errorf("%v, %v", b, err)
	}
}

// TestFileOfVersionOne opens a base as it was written before there were entities.
func TestFileOfVersionOne(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, people)
	path := filepath.Join(dir, "kb.db")
	writeVersionOne(t, path, filepath.Join(dir, "docs/a.txt"))
	r := newReader(t)
	old := openBase(t, path, Options{})
	s, err := old.Status(t.Context())
	if err != nil || s.Chunks != 1 || s.Entities != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	if diff := cmp.Diff([]string{"a.txt"}, paths(t, old, "analytical", 3)); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
	b := openBase(t, path, r.options(dir))
	if report := build(t, b, "docs"); report.Asked != 4 || report.Entities != 5 {
		t.Errorf("report %+v", report)
	}
}

func writeVersionOne(t *testing.T, path, document string) {
	t.Helper()
	db, err := openFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"DROP TABLE mention", "DROP TABLE entity", "DROP INDEX chunk_extract", "ALTER TABLE chunk DROP COLUMN extract",
		"ALTER TABLE document DROP COLUMN extracted", "DROP TABLE extract", "PRAGMA user_version = 1",
		`INSERT INTO base VALUES (1, '{"model":"keyword","chunk_size":60,"chunk_overlap":0,"top_k":5,"sources":["docs"]}', 1)`,
		"INSERT INTO document VALUES (1, '" + document + "', 'docs', 'h', '1 60 0 keyword', '{}', 0, 1)",
		"INSERT INTO chunk VALUES (1, 1, 0, 4, NULL, 'Charles built the Analytical Engine.')",
		"INSERT INTO posting VALUES ('analyt', 1, x'0101')",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRefreshKeepsToTheFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, people)
	path := filepath.Join(dir, "kb.db")
	r := newReader(t)
	b := openBase(t, path, r.options(dir))
	if _, err := b.Refresh(t.Context(), nil); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("error %v", err)
	}
	build(t, b, "docs")
	r.asked()
	other := openBase(t, path, Options{ChunkSize: 20, Load: load.Options{Dir: dir}, Extraction: Extraction{Open: openAt(r.url)}})
	write(t, dir, map[string]string{"docs/d.txt": "Mary was a friend."})
	report, err := other.Refresh(t.Context(), nil)
	if err != nil || report.Added != 1 || report.Asked != 1 || report.Chunks != 5 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestRefreshLeavesAStoppedRebuild stops a build with another size and another extractor, refreshes, and goes on with it.
func TestRefreshLeavesAStoppedRebuild(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, people)
	r := newReader(t)
	path := filepath.Join(dir, "kb.db")
	first := openBase(t, path, r.options(dir))
	build(t, first, "docs")
	for _, c := range []struct {
		name   string
		change func(*Options)
		stop   string // the first passage that is not answered; it is the last that is asked about
		asked  int    // when the build goes on
	}{
		{"another extractor", func(o *Options) { o.Extraction.Model = "other" }, "nothing", 2}, // this passage and the new document
		{"another size", func(o *Options) { o.ChunkSize = 30 }, "where", 1},                    // the rest is known
	} {
		o := r.options(dir)
		o.Extraction.Calls = 1
		c.change(&o)
		r.answers(func(passage string) (string, int) {
			if strings.HasPrefix(passage, c.stop) {
				return "no", http.StatusUnauthorized
			}
			return capitals(passage)
		})
		other := openBase(t, path, o)
		if _, err := other.Build(t.Context(), []string{"docs"}, nil); err == nil {
			t.Errorf("%s: the build was not stopped", c.name)
		}
		r.answers(nil)
		write(t, dir, map[string]string{"docs/0.txt": "For " + c.name + "."})
		if report, err := first.Refresh(t.Context(), nil); err != nil || !report.Changed || report.Asked != 1 || report.Entities != 6 {
			t.Errorf("%s: refreshed %+v, %v", c.name, report, err)
		}
		r.asked()
		if report := build(t, other, "docs"); report.Asked != c.asked || !report.Changed {
			t.Errorf("%s: the build went on with %+v, asked %q", c.name, report, r.asked())
		}
		build(t, first, "docs")
	}
}

const killedChunks = 60

func killedOptions(dir, url string) Options {
	return Options{ChunkSize: 80, Load: load.Options{Dir: dir}, Extraction: Extraction{Model: "reader", Open: openAt(url)}}
}

// extractIfTold is the child of TestKilledExtraction where it is told so.
func extractIfTold() {
	dir, url := os.Getenv("RAG_TEST_EXTRACT"), os.Getenv("RAG_TEST_URL")
	if dir == "" {
		return
	}
	b, err := Open(filepath.Join(dir, "kb.db"), killedOptions(dir, url))
	if err == nil {
		_, err = b.Build(context.Background(), []string{"docs"}, func(p Progress) { fmt.Println("asked", p.Asked) })
	}
	fmt.Println("end", err)
	os.Exit(0)
}

// TestKilledExtraction kills a build while the model is asked, twice. No answer that was kept is asked for again.
func TestKilledExtraction(t *testing.T) {
	dir := t.TempDir()
	for i := range killedChunks {
		write(t, dir, map[string]string{fmt.Sprintf("docs/%02d.txt", i): fmt.Sprintf("Person%s met City%s.", letters2(i), letters2(i%7))})
	}
	r := newReader(t)
	kept := map[string]bool{}
	for _, at := range []int{20, 20} {
		hold := make(chan struct{})
		answered := map[string]bool{} // by passage: a call of the process that was killed before may come late
		r.answers(func(passage string) (string, int) {
			r.mu.Lock()
			late := len(answered) == at && !answered[passage]
			if !late {
				answered[passage] = true
			}
			r.mu.Unlock()
			if late {
				<-hold // until the process is dead
			}
			return capitals(passage)
		})
		killExtraction(t, dir, r.url, at)
		close(hold)
		asked := r.asked()
		for _, passage := range asked {
			if kept[passage] {
				t.Errorf("%q was asked about again", passage)
			}
		}
		for _, passage := range keptIn(t, dir) {
			kept[passage] = true
		}
		if len(kept) == 0 {
			t.Fatal("nothing was kept")
		}
	}
	if len(kept) != 40 {
		t.Errorf("%d answers were kept, want 40", len(kept))
	}
	r.answers(nil)
	b := openBase(t, filepath.Join(dir, "kb.db"), killedOptions(dir, r.url))
	if report := build(t, b, "docs"); report.Asked != killedChunks-40 {
		t.Errorf("report %+v", report)
	}
	whole := openBase(t, filepath.Join(dir, "whole.db"), killedOptions(dir, r.url))
	build(t, whole, "docs")
	if diff := cmp.Diff(graphOf(t, whole), graphOf(t, b)); diff != "" {
		t.Errorf("entities (-whole +killed):\n%s", diff)
	}
}

func letters2(i int) string { return string(rune('a'+i/10)) + string(rune('a'+i%10)) }

// keptIn are the texts that a base has answers for.
func keptIn(t *testing.T, dir string) (texts []string) {
	t.Helper()
	b := openBase(t, filepath.Join(dir, "kb.db"), Options{})
	rows, err := b.db.Query("SELECT text FROM chunk WHERE extract IS NOT NULL")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return texts
}

// killExtraction starts a build in a process of its own and kills it when so many answers are kept.
func killExtraction(t *testing.T, dir, url string, at int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "RAG_TEST_EXTRACT="+dir, "RAG_TEST_URL="+url)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "end") {
			t.Fatalf("the build ended before answer %d: %s", at, lines.Text())
		}
		if lines.Text() == fmt.Sprint("asked ", at) {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // its error is the kill
}
