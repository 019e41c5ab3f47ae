package rag

import (
	"cmp"
	"slices"
)

// The weights of the rankings when they are fused.
const (
	vectorWeight  = 1.125
	keywordWeight = 1.0
	entityWeight  = 0.9
)

// fuseRankings joins rankings by reciprocal rank: the entry at rank r of a ranking gets weight / (2*top + r). It
// returns the best top entries with their scores, best first; of equal entries the first seen comes first.
func fuseRankings[T comparable](top int, lists ...ranking[T]) ([]T, []float64) {
	scores := map[T]float64{}
	var order []T
	for _, l := range lists {
		for i, id := range l.ids {
			if _, seen := scores[id]; !seen {
				order = append(order, id)
			}
			scores[id] += l.weight / float64(2*top+i+1)
		}
	}
	slices.SortStableFunc(order, func(a, b T) int { return cmp.Compare(scores[b], scores[a]) })
	order = order[:min(top, len(order))]
	best := make([]float64, len(order))
	for i, id := range order {
		best[i] = scores[id]
	}
	return order, best
}

// A ranking is a list of ids, best first, with its weight.
type ranking[T comparable] struct {
	weight float64
	ids    []T
}
