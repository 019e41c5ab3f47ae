package rag

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Fusion says how a search joins its rankings: by meaning, by words, and by entities. The zero value: with the
// reranker of the base if it has one, else [ByScores] with [DefaultWeights].
type Fusion struct {
	// Method is empty or one of the constants.
	Method Method
	// Weights are those of the rankings; the zero value: [DefaultWeights]. ByModel only leaves out rankings whose
	// weight is zero, and ByRanks has weights of its own.
	Weights Weights
}

// A Method joins rankings.
type Method string

const (
	// ByScores adds the normalized scores of the first hundred chunks of each ranking, times their weights. The order
	// does not depend on how many hits a search returns.
	ByScores Method = "scores"
	// ByRanks is reciprocal rank fusion as the Loki family has it, with its weights 1.125 for meaning, 1 for words and
	// 0.9 for entities: the order depends on how many hits a search returns.
	ByRanks Method = "ranks"
	// ByModel lets the reranker of the base order what the rankings by meaning and by words found.
	ByModel Method = "model"
)

// Methods are the names of all methods.
var Methods = []Method{ByScores, ByRanks, ByModel}

// Weights say how much each ranking counts. Only their relations matter. A search leaves out a ranking whose weight is
// zero: without Meaning it calls no embedding model.
type Weights struct {
	Meaning  float64 `json:"meaning"`
	Words    float64 `json:"words"`
	Entities float64 `json:"entities"`
}

// DefaultWeights are the weights of searches that set none. What they were measured on is in docs/decisions.md (159).
var DefaultWeights = Weights{
	Meaning:  0.6,
	Words:    0.4,
	Entities: 0.2,
}

// rankWeights are the weights of ByRanks.
var rankWeights = Weights{
	Meaning:  1.125,
	Words:    1,
	Entities: 0.9,
}

// Validate reports all mistakes of f: an unknown method, and weights that are no shares.
func (f Fusion) Validate() error {
	var problems []error
	if f.Method != "" && !slices.Contains(Methods, f.Method) {
		problems = append(problems, fmt.Errorf("the fusion %q is unknown: it is one of %q", f.Method, Methods))
	}
	w := f.Weights
	for _, each := range []struct {
		name  string
		value float64
	}{{"meaning", w.Meaning}, {"words", w.Words}, {"entities", w.Entities}} {
		if !(each.value >= 0) || math.IsInf(each.value, 0) {
			problems = append(problems, fmt.Errorf("the weight of %s is %v: it must be a number, at least 0", each.name, each.value))
		}
	}
	return errors.Join(problems...)
}

// resolve returns f with the values that apply in a base with these settings.
func (f Fusion) resolve(s Settings) Fusion {
	if f.Method == "" {
		f.Method = ByScores
		if s.RerankerModel != "" {
			f.Method = ByModel
		}
	}
	switch {
	case f.Method == ByRanks:
		f.Weights = rankWeights
	case f.Weights == Weights{}:
		f.Weights = DefaultWeights
	}
	return f
}

const (
	// fusionDepth is how many entries of each ranking give scores, whatever the number of hits that a search returns.
	fusionDepth = 100
	// entityDepth is how many entities a search begins at, and how many chunks it takes from them.
	entityDepth = 10
	// rerankDepth is how many chunks of each ranking a reranker gets at least.
	rerankDepth = 25
)

// A ranking is a list of ids, best first, with its weight.
type ranking[T comparable] struct {
	weight float64
	ids    []T
	scores []float64 // of the ids, descending
	floor  *float64  // the score that counts nothing; nil: the least of the first fusionDepth
}

// fuseRanks joins rankings by reciprocal rank: the entry at rank r of a ranking gets weight / (2*top + r). It returns
// all entries with their scores, best first; of equal entries the first seen comes first.
func fuseRanks[T comparable](top int, lists ...ranking[T]) ([]T, []float64) {
	return joinRankings(lists, func(l ranking[T], i int) float64 { return 1 / float64(2*top+i+1) }, func(a, b T) int { return 0 })
}

// fuseScores joins rankings by their scores. It stretches those of the first fusionDepth entries of a ranking to the
// numbers from zero to one; entries behind them count nothing, and come last. A prefix of the result does not depend on
// how long the rankings are beyond this depth. The entry that is first in all rankings has one. Of equal entries the one
// with the better rank comes first.
func fuseScores[T comparable](lists ...ranking[T]) ([]T, []float64) {
	best := map[T]int{}
	for _, l := range lists {
		for i, id := range l.ids {
			if rank, seen := best[id]; !seen || i < rank {
				best[id] = i
			}
		}
	}
	total := 0.0
	for _, l := range lists {
		total += l.weight
	}
	return joinRankings(lists, func(l ranking[T], i int) float64 { return l.shareAt(i) / total },
		func(a, b T) int { return cmp.Compare(best[a], best[b]) })
}

// shareAt returns the normalized score of the i-th entry, between zero and one.
func (l ranking[T]) shareAt(i int) float64 {
	if i >= fusionDepth {
		return 0
	}
	least := l.scores[min(len(l.scores), fusionDepth)-1]
	if l.floor != nil {
		least = *l.floor
	}
	if l.scores[0] <= least {
		return 1 // the only score
	}
	return (l.scores[i] - least) / (l.scores[0] - least)
}

// joinRankings adds the weighted shares of all entries, and orders them: by their sums, then by tie, then as they were
// first seen.
func joinRankings[T comparable](lists []ranking[T], share func(l ranking[T], i int) float64, tie func(a, b T) int) ([]T, []float64) {
	sums := map[T]float64{}
	var order []T
	for _, l := range lists {
		for i, id := range l.ids {
			if _, seen := sums[id]; !seen {
				order = append(order, id)
			}
			sums[id] += l.weight * share(l, i)
		}
	}
	slices.SortStableFunc(order, func(a, b T) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), tie(a, b)) })
	scores := make([]float64, len(order))
	for i, id := range order {
		scores[i] = sums[id]
	}
	return order, scores
}
