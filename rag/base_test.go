package rag

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/rag/load"
)

func openBase(t *testing.T, path string, o Options) *Base {
	t.Helper()
	b, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func withModel(m Embedder, dir string) Options {
	return Options{Model: "test:words", ChunkSize: 40, Load: load.Options{Dir: dir},
		Embedder: func(string) (Embedder, error) { return m, nil }}
}

func build(t *testing.T, b *Base, sources ...string) Report {
	t.Helper()
	r, err := b.Build(t.Context(), sources, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func paths(t *testing.T, b *Base, query string, top int) (names []string) {
	t.Helper()
	hits, err := b.Search(t.Context(), query, SearchOptions{TopK: top})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		names = append(names, filepath.Base(h.Path))
	}
	return names
}

var animals = map[string]string{
	"docs/a.md":    "The zebra grazes on the plain.\n\nThe lion sleeps.",
	"docs/b.md":    "A whale swims in the sea.",
	"docs/sub/c.d": "Foxes run through the wood.",
}

func TestKeywordBase(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, animals)
	b := openBase(t, filepath.Join(dir, "kb.db"), Options{ChunkSize: 40, Load: load.Options{Dir: dir}})
	if _, err := b.Search(t.Context(), "zebra", SearchOptions{}); !errors.Is(err, ErrNotBuilt) {
		t.Fatalf("search before the build: %v", err)
	}
	r := build(t, b, "docs")
	if r.Documents != 3 || r.Chunks != 4 || r.Added != 3 || !r.Changed || len(r.Problems) > 0 {
		t.Errorf("report %+v", r)
	}
	if diff := cmp.Diff([]string{"c.d"}, paths(t, b, "running fox", 5)); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
	hits, err := b.Search(t.Context(), "lions", SearchOptions{TopK: 1})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "docs/a.md")
	if want := "[Source: " + path + "]\nThe lion sleeps."; FormatContext(hits) != want || hits[0].Chunk != 1 {
		t.Errorf("context %q, want %q", FormatContext(hits), want)
	}
	if diff := cmp.Diff([]string{path}, SourcePaths(hits)); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if got := paths(t, b, "of the", 5); len(got) > 0 {
		t.Errorf("stop words find %v", got)
	}
	if r := build(t, b, "docs"); r.Changed || r.Added+r.Removed > 0 {
		t.Errorf("nothing has changed: %+v", r)
	}
	s, err := b.Status(t.Context())
	if err != nil || s.Builds != 1 || s.Documents != 3 || s.Chunks != 4 || s.Model != Keyword || s.Pending != 0 {
		t.Errorf("status %+v, %v", s, err)
	}
}

func TestOnlyNewChunksAreEmbedded(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, animals)
	m := &wordModel{dims: 64}
	b := openBase(t, filepath.Join(dir, "kb.db"), withModel(m, dir))
	if r := build(t, b, "docs"); r.Embedded != 4 || len(m.asked()) != 4 {
		t.Errorf("report %+v", r)
	}
	if diff := cmp.Diff([]string{"b.md"}, paths(t, b, "whale swims", 1)); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
	testfile.WriteFiles(t, dir, map[string]string{"docs/a.md": "The zebra grazes on the plain.\n\nThe tiger hunts at night now."})
	r := build(t, b, "docs")
	if diff := cmp.Diff([]string{"The tiger hunts at night now."}, m.asked()); diff != "" {
		t.Errorf("embedded (-want +got):\n%s", diff)
	}
	if r.Added != 1 || r.Removed != 1 || r.Embedded != 1 || r.Chunks != 4 {
		t.Errorf("report %+v", r)
	}
	if got := paths(t, b, "lion", 1); len(got) == 1 && got[0] == "a.md" {
		hits, _ := b.Search(t.Context(), "lion", SearchOptions{TopK: 1})
		if strings.Contains(hits[0].Text, "lion") {
			t.Errorf("the old text is still found: %v", hits)
		}
	}
	if err := os.Remove(filepath.Join(dir, "docs/b.md")); err != nil {
		t.Fatal(err)
	}
	if r := build(t, b, "docs"); r.Removed != 1 || r.Embedded != 0 || r.Documents != 2 {
		t.Errorf("report %+v", r)
	}
}

// TestManySmallBuilds crosses the merging of segments and compares with a base that was built at once.
func TestManySmallBuilds(t *testing.T) {
	dir := t.TempDir()
	b := openBase(t, filepath.Join(dir, "kb.db"), Options{ChunkSize: 60, Load: load.Options{Dir: dir}})
	for i := range 2*segmentsKept + 5 {
		testfile.WriteFiles(t, dir, map[string]string{
			"docs/same.md":                       fmt.Sprintf("The report of round %d mentions apples.", i),
			fmt.Sprintf("docs/%02d.md", (i*7)%9): fmt.Sprintf("Apples and %d pears, also of round %d.", i, i),
		})
		build(t, b, "docs")
	}
	once := openBase(t, filepath.Join(dir, "once.db"), Options{ChunkSize: 60, Load: load.Options{Dir: dir}})
	build(t, once, "docs")
	for _, q := range []string{"apples", "round 28 pears", "round 3", "report"} {
		got, err1 := b.Search(t.Context(), q, SearchOptions{TopK: 20})
		want, err2 := once.Search(t.Context(), q, SearchOptions{TopK: 20})
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-built at once +built step by step):\n%s", q, diff)
		}
	}
}

func TestAnotherModelEmbedsEverything(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, animals)
	path := filepath.Join(dir, "kb.db")
	first := openBase(t, path, withModel(&wordModel{dims: 8}, dir))
	build(t, first, "docs")
	m := &wordModel{dims: 16}
	o := withModel(m, dir)
	o.Model = "test:other"
	second := openBase(t, path, o)
	if r := build(t, second, "docs"); r.Embedded != 4 || r.Added != 3 || r.Removed != 3 {
		t.Errorf("report %+v", r)
	}
	s, err := second.Status(t.Context())
	if err != nil || s.Dimensions != 16 || s.Model != "test:other" {
		t.Errorf("status %+v, %v", s, err)
	}
}

// TestFailedBuildLeavesTheOldBase has the model fail half way, and finds what was embedded already in the next build.
func TestFailedBuildLeavesTheOldBase(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, animals)
	m := &wordModel{dims: 32}
	o := withModel(m, dir)
	o.Batch, o.Attempts = 1, 1
	b := openBase(t, filepath.Join(dir, "kb.db"), o)
	build(t, b, "docs")
	m.asked()
	testfile.WriteFiles(t, dir, map[string]string{"docs/a.md": "New text one of the zebra here.\n\nNew text two of the lion here."})
	calls := m.calls
	m.fail = func(call int) error {
		if call == calls+2 {
			return errors.New("out of order")
		}
		return nil
	}
	_, err := b.Build(t.Context(), []string{"docs"}, nil)
	if err == nil || !strings.Contains(err.Error(), "Failed to create embedding after 1 attempts: out of order") {
		t.Fatalf("error %v", err)
	}
	if got := paths(t, b, "grazes plain", 1); len(got) != 1 || got[0] != "a.md" {
		t.Errorf("the old base finds %v", got)
	}
	m.asked()
	if r := build(t, b, "docs"); r.Embedded != 1 || len(m.asked()) != 1 {
		t.Errorf("the second build: %+v", r)
	}
}

func TestEmbeddingIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &wordModel{dims: 4, fail: func(call int) error {
			if call < 3 {
				return errors.New("busy")
			}
			return nil
		}}
		start := time.Now()
		r := request{model: "m", texts: []string{"x"}, attempts: 3}
		if _, err := embedTexts(t.Context(), m, r); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		m.calls = 0
		r.attempts = 2
		_, err := embedTexts(t.Context(), m, r)
		if err == nil || err.Error() != "Failed to create embedding after 2 attempts: busy" {
			t.Errorf("error %v", err)
		}
		m.calls = 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := embedTexts(ctx, m, r); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

// fixed answers with the same vectors whatever is asked.
type fixed [][]float32

func (f fixed) Embed(context.Context, Purpose, []string) ([][]float32, error) { return f, nil }

func TestUnusableVectorsAreRefused(t *testing.T) {
	nan := float32(0)
	nan /= nan
	for name, answer := range map[string]fixed{
		"2 vectors came back for 1":          {{1}, {2}},
		"an empty vector":                    {{}},
		"of 2 dimensions came back where 3":  {{1, 2}},
		"holds no finite":                    {{1, nan, 2}},
		"0 vectors came back for 1 texts":    {},
		"of 4 dimensions came back where 3 ": {{1, 2, 3, 4}},
	} {
		_, err := embedTexts(t.Context(), answer, request{model: "m", texts: []string{"x"}, attempts: 1, dims: 3})
		var bad *VectorError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"other.yaml": "a: b", "garbage": "\x00\x01\x02"})
	for _, c := range []struct {
		path string
		o    Options
		want string
	}{
		{path: "other.yaml", want: "names no embedding_model"},
		{path: "garbage", want: "this is not a knowledge base"},
		{path: ".", want: "directory"},
		{path: "x", o: Options{ChunkSize: 10, ChunkOverlap: 10}, want: "chunk_overlap is 10: it must be less than chunk_size, which is 10"},
		{path: "x", o: Options{TopK: -1, Batch: -2}, want: "top_k is -1: it must be at least 1\nbatch_size is -2"},
	} {
		b, err := Open(filepath.Join(dir, c.path), c.o)
		if err == nil {
			b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.path, err, c.want)
		}
	}
}
