package rag

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/rag/load"
)

func TestEntitiesAreExtracted(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, people)
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
	testfile.WriteFiles(t, dir, map[string]string{"docs/a.txt": "Ada wrote to Charles.\n\nCharles ate a large dinner with Mary Somerville."})
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
	testfile.WriteFiles(t, dir, people)
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
	// A reranker gets the chunks that the other rankings have found.
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

// TestHybridSearchHasThreeRankings has a chunk that only entities find, in addition to those that vectors and words find.
func TestHybridSearchHasThreeRankings(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, people)
	r := newReader(t)
	o := r.options(dir)
	o.Model, o.Embedder = "test:words", func(string) (Embedder, error) { return &wordModel{dims: 256}, nil }
	b := openBase(t, filepath.Join(dir, "kb.db"), o)
	if report := build(t, b, "docs"); report.Embedded != 4 || report.Asked != 4 {
		t.Errorf("report %+v", report)
	}
	for method, first := range map[Method]float64{ByScores: 1, ByRanks: (1.125 + 1 + 0.9) / 5} {
		hits, err := b.Search(t.Context(), "Ada", SearchOptions{TopK: 2, Fusion: &Fusion{Method: method}})
		if err != nil || len(hits) != 2 {
			t.Fatalf("%v, %v", hits, err)
		}
		if got := hits[0].Score; got < first-1e-9 || got > first+1e-9 || hits[0].Text != "Ada wrote to Charles." {
			t.Errorf("%s: first hit %+v, want score %v", method, hits[0], first)
		}
	}
}

// TestChunksOfEntities ranks chunks by their best entity, then by how many of those that are named they mention.
func TestChunksOfEntities(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
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
		err := b.runReadOnly(t.Context(), func(tx *sql.Tx) error {
			v, err := b.currentView(t.Context(), tx)
			if err != nil {
				return err
			}
			ids, err := v.rankByEntities(t.Context(), tx, lookup{query: c.query, top: c.top, fusion: Fusion{Method: ByRanks}}, nil)
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

func TestPromptsAndSecrets(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"docs/a.txt": "The token is hunter22."})
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
