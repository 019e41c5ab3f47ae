package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"raddle.dev/internal/base/stats"
	"raddle.dev/rag"
)

// A Setting is a way to search.
type Setting struct {
	Name   string
	Fusion rag.Fusion
}

// A Figure is a mean over all questions, with the borders of its 95 % interval.
type Figure struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A Result says how well the searches with one setting have found what they should. All figures but Gain are between
// zero and one.
type Result struct {
	Setting string `json:"setting"`
	// First is the share of the questions whose first passage is one that should be found.
	First Figure `json:"first"`
	// Recall is the mean share of what should be found that is among the first k passages.
	Recall Figure `json:"recall"`
	// MRR is the mean of 1/r, where r is the place of the first passage that should be found; zero if it is not among
	// the first k.
	MRR Figure `json:"mrr"`
	// NDCG also counts the places of the other passages that should be found.
	NDCG Figure `json:"ndcg"`
	// Gain is how much larger MRR is than with the first setting, question by question: if its interval holds zero, the
	// questions do not tell the two apart.
	Gain Figure `json:"gain"`
}

// A Searcher is a knowledge base.
type Searcher interface {
	Search(ctx context.Context, query string, o rag.SearchOptions) ([]rag.Hit, error)
}

// Compare asks all questions with each setting, for k passages each. It is deterministic: the same hits give the same
// intervals.
func Compare(ctx context.Context, base Searcher, questions []Question, settings []Setting, k int) ([]Result, error) {
	var results []Result
	var first []float64 // MRR of each question with the first setting
	for _, s := range settings {
		table := make([]scores, len(questions))
		for i, q := range questions {
			hits, err := base.Search(ctx, q.Text, rag.SearchOptions{TopK: k, Fusion: &s.Fusion})
			if err != nil {
				return nil, fmt.Errorf("%s, question %q: %w", s.Name, q.Text, err)
			}
			table[i] = scoreHits(&q, hits, k)
		}
		column := func(of func(scores) float64) []float64 {
			list := make([]float64, len(table))
			for i, each := range table {
				list[i] = of(each)
			}
			return list
		}
		ranks := column(func(s scores) float64 { return s.rank })
		if first == nil {
			first = ranks
		}
		results = append(results, Result{
			Setting: s.Name,
			First:   Figure(stats.MeanOf(column(func(s scores) float64 { return s.first }))),
			Recall:  Figure(stats.MeanOf(column(func(s scores) float64 { return s.recall }))),
			MRR:     Figure(stats.MeanOf(ranks)),
			NDCG:    Figure(stats.MeanOf(column(func(s scores) float64 { return s.gain }))),
			Gain:    Figure(stats.Differ(ranks, first).Interval),
		})
	}
	return results, nil
}

// scores are those of one question.
type scores struct{ first, recall, rank, gain float64 }

// scoreHits compares what a search has found with what it should find.
func scoreHits(q *Question, hits []rag.Hit, k int) (s scores) {
	found := map[int]bool{}
	for i, h := range hits[:min(k, len(hits))] {
		target := q.findTarget(h)
		if target < 0 || found[target] {
			continue
		}
		if len(found) == 0 {
			s.rank = 1 / float64(i+1)
		}
		if i == 0 {
			s.first = 1
		}
		found[target] = true
		s.gain += 1 / math.Log2(float64(i+2))
	}
	ideal := 0.0
	for i := range min(k, q.targets()) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	s.gain /= ideal
	s.recall = float64(len(found)) / float64(q.targets())
	return s
}

// An Embedder asks another one for each query once, so that settings can be compared at the price of one. It is safe
// for concurrent use if the other one is.
type Embedder struct {
	Model rag.Embedder

	mu    sync.Mutex
	known map[string][]float32
}

// Embed implements [rag.Embedder].
func (e *Embedder) Embed(ctx context.Context, purpose rag.Purpose, texts []string) ([][]float32, error) {
	if purpose != rag.ForQuery {
		return e.Model.Embed(ctx, purpose, texts)
	}
	var missing []string
	e.mu.Lock()
	for _, text := range texts {
		if e.known[text] == nil && !slices.Contains(missing, text) {
			missing = append(missing, text)
		}
	}
	e.mu.Unlock()
	if len(missing) > 0 {
		vectors, err := e.Model.Embed(ctx, purpose, missing)
		if err != nil || len(vectors) != len(missing) {
			return vectors, err
		}
		e.mu.Lock()
		if e.known == nil {
			e.known = map[string][]float32{}
		}
		for i, text := range missing {
			e.known[text] = slices.Clone(vectors[i])
		}
		e.mu.Unlock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([][]float32, len(texts))
	for i, text := range texts {
		all[i] = slices.Clone(e.known[text]) // callers normalize their vectors
	}
	return all, nil
}

// CommonSettings are the ways to search that are worth comparing in a base with settings s: first own, what its file
// says, then each ranking alone, both together with several weights, reciprocal ranks, and the reranker if there is
// one.
func CommonSettings(s rag.Settings, own rag.Fusion) []Setting {
	settings := []Setting{{"as set", own}, {"words", rag.Fusion{Method: rag.ByScores, Weights: rag.Weights{Words: 1}}}}
	if s.Dimensions > 0 {
		settings = append(settings, Setting{"meaning", rag.Fusion{Method: rag.ByScores, Weights: rag.Weights{Meaning: 1}}})
		for _, tenths := range []int{3, 5, 6, 7, 8} {
			w := rag.Weights{Meaning: float64(tenths) / 10, Words: float64(10-tenths) / 10}
			if s.ExtractorModel != "" {
				w.Entities = rag.DefaultWeights.Entities
			}
			settings = append(settings, Setting{fmt.Sprintf("meaning %.1f, words %.1f", w.Meaning, w.Words), rag.Fusion{Method: rag.ByScores, Weights: w}})
		}
	}
	if s.Dimensions > 0 || s.ExtractorModel != "" {
		settings = append(settings, Setting{"ranks", rag.Fusion{Method: rag.ByRanks}})
	}
	if s.RerankerModel != "" {
		settings = append(settings, Setting{"model", rag.Fusion{Method: rag.ByModel}})
	}
	return settings
}
