package rag

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/rag/load"
)

func TestScoresAreFused(t *testing.T) {
	zero := 0.0
	for name, c := range map[string]struct {
		lists  []ranking[string]
		want   []string
		scores []float64
	}{
		"nothing": {nil, nil, []float64{}},
		"one ranking, from its floor": {[]ranking[string]{{weight: 3, ids: []string{"a", "b"}, scores: []float64{8, 2}, floor: &zero}},
			[]string{"a", "b"}, []float64{1, 0.25}},
		"one ranking, from its least": {[]ranking[string]{{weight: 3, ids: []string{"a", "b", "c"}, scores: []float64{8, 5, 4}}},
			[]string{"a", "b", "c"}, []float64{1, 0.25, 0}},
		"equal scores": {[]ranking[string]{{weight: 1, ids: []string{"a", "b"}, scores: []float64{0.3, 0.3}}}, []string{"a", "b"}, []float64{1, 1}},
		"an empty ranking counts": {[]ranking[string]{{weight: 3, ids: []string{"a"}, scores: []float64{0.3}}, {weight: 1}},
			[]string{"a"}, []float64{0.75}},
		"both together": {[]ranking[string]{
			{weight: 1, ids: []string{"a", "b", "c"}, scores: []float64{3, 2, 1}},
			{weight: 1, ids: []string{"c", "b"}, scores: []float64{4, 3}, floor: &zero},
		}, []string{"b", "a", "c"}, []float64{0.625, 0.5, 0.5}},
		"of equal ones the better rank": {[]ranking[string]{
			{weight: 1, ids: []string{"a", "b", "c"}, scores: []float64{3, 3, 1}},
			{weight: 1, ids: []string{"d"}, scores: []float64{4}, floor: &zero},
		}, []string{"a", "d", "b", "c"}, []float64{0.5, 0.5, 0.5, 0}},
	} {
		got, scores := fuseScores(c.lists...)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.scores, scores); diff != "" {
			t.Errorf("%s: scores (-want +got):\n%s", name, diff)
		}
	}
}

// TestHitsDoNotDependOnTheirNumber asks for more and more hits, in a base in which both rankings have far more than
// count: the first hits stay the same.
func TestHitsDoNotDependOnTheirNumber(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFile(t, filepath.Join(dir, "docs/opticks.txt"), opticks(t)[:200_000])
	b := openBase(t, filepath.Join(dir, "kb.db"), Options{Model: "test:trigrams", ChunkSize: 400, Load: load.Options{Dir: dir},
		Embedder: func(string) (Embedder, error) { return trigrams{dims: 64}, nil }})
	build(t, b, "docs")
	for _, q := range questions(t)[:12] {
		all := searchWith(t, b, q.text, 300, Weights{})
		if len(all) < 250 {
			t.Fatalf("%q has %d hits", q.text, len(all))
		}
		for _, top := range []int{1, 3, 10, 40, 100, 101, 150, 250} {
			if diff := cmp.Diff(all[:top], searchWith(t, b, q.text, top, Weights{})); diff != "" {
				t.Fatalf("%q: the first %d of %d hits differ from %d hits (-all +few):\n%s", q.text, top, len(all), top, diff)
			}
		}
	}
}

// countingModel counts the texts that are embedded.
type countingModel struct {
	Embedder
	texts int
}

func (m *countingModel) Embed(ctx context.Context, p Purpose, texts []string) ([][]float32, error) {
	m.texts += len(texts)
	return m.Embedder.Embed(ctx, p, texts)
}

func TestWeights(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, animals)
	m := &countingModel{Embedder: &wordModel{dims: 64}}
	o := withModel(m, dir)
	o.Fusion = Fusion{Weights: Weights{Words: 1}}
	b := openBase(t, filepath.Join(dir, "kb.db"), o)
	build(t, b, "docs")
	m.texts = 0
	if diff := cmp.Diff([]string{"b.md"}, paths(t, b, "whale", 3)); diff != "" || m.texts > 0 {
		t.Errorf("by words alone, with %d texts embedded (-want +got):\n%s", m.texts, diff)
	}
	if hits := searchWith(t, b, "whale", 3, Weights{Meaning: 1}); len(hits) == 0 || filepath.Base(hits[0].Path) != "b.md" || m.texts != 1 {
		t.Errorf("by meaning alone, with %d texts embedded: %v", m.texts, hits)
	}
	for _, c := range []struct {
		f    Fusion
		want string
	}{
		{Fusion{Method: "best"}, `the fusion "best" is unknown: it is one of ["scores" "ranks" "model"]`},
		{Fusion{Weights: Weights{Meaning: -1, Words: math.NaN(), Entities: math.Inf(1)}},
			"the weight of meaning is -1: it must be a number, at least 0\nthe weight of words is NaN: it must be a number, at least 0\n" +
				"the weight of entities is +Inf: it must be a number, at least 0"},
		{Fusion{Method: ByModel}, "this base has no reranker model"},
	} {
		_, err := b.Search(t.Context(), "whale", SearchOptions{Fusion: &c.f})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.f, err, c.want)
		}
	}
	if _, err := Open(filepath.Join(dir, "x.db"), Options{Fusion: Fusion{Method: "best"}}); err == nil {
		t.Error("a base opens with an unknown fusion")
	}
}

// backwards is a reranker that turns the order around, and keeps what it got.
type backwards struct{ got [][]string }

func (r *backwards) Rerank(_ context.Context, _ string, texts []string, top int) (order []int, err error) {
	r.got = append(r.got, texts)
	for i := range min(top, len(texts)) {
		order = append(order, len(texts)-1-i)
	}
	return order, nil
}

// TestRerankerGetsTheSameTexts reranks for one hit and for ten: the model gets the same texts, and chooses the same first.
func TestRerankerGetsTheSameTexts(t *testing.T) {
	dir := t.TempDir()
	for i := range 60 {
		testfile.WriteFiles(t, dir, map[string]string{fmt.Sprintf("docs/%02d.md", i): "A fox" + strings.Repeat(" runs", i)})
	}
	r := &backwards{}
	b := openBase(t, filepath.Join(dir, "kb.db"), Options{ChunkSize: 1000, RerankerModel: "test:backwards", Load: load.Options{Dir: dir},
		Reranker: func(string) (Reranker, error) { return r, nil }})
	build(t, b, "docs")
	one := paths(t, b, "fox", 1)
	ten := paths(t, b, "fox", 10)
	if len(r.got) != 2 || !slices.Equal(r.got[0], r.got[1]) || len(r.got[0]) != 25 {
		t.Errorf("the reranker got %q", r.got)
	}
	if len(one) != 1 || len(ten) != 10 || one[0] != ten[0] {
		t.Errorf("the first of one is %v, of ten %v", one, ten)
	}
}
