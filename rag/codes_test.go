package rag

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"raddle.dev/rag/keyword"
)

// clouds are vectors of length one around some centres, as those of texts are. Some of their numbers are much larger than others.
func clouds(n, dims int, seed uint64) [][]float32 {
	random := rand.New(rand.NewPCG(seed, 5))
	centres := make([][]float32, 20)
	for i := range centres {
		centres[i] = make([]float32, dims)
		for j := range centres[i] {
			centres[i][j] = float32(random.NormFloat64())
			if j%97 == 0 {
				centres[i][j] = 6
			}
		}
	}
	all := make([][]float32, n)
	for i := range all {
		all[i] = make([]float32, dims)
		for j := range all[i] {
			all[i][j] = centres[i%len(centres)][j] + 0.8*float32(random.NormFloat64())
		}
		normalizeVector(all[i])
	}
	return all
}

// TestCodesLoseNoResult compares what codes find with what a comparison of all vectors does.
func TestCodesLoseNoResult(t *testing.T) {
	for _, dims := range []int{1, 2, 31, 32, 100, 384, 1536} {
		const n = 3000
		all := clouds(n, dims, uint64(dims))
		all[7], all[8] = make([]float32, dims), slices.Clone(all[9]) // nothing, and the same twice
		c := newCodes(n, dims)
		for i, v := range all {
			c.setVector(i, v)
		}
		for round, q := range clouds(20, dims, 77) {
			top := 1 + 10*round
			want := keyword.NewBest(top, nil)
			for i, v := range all {
				if s := dotProduct(q, v); s > 0 {
					want.Add(keyword.Match{Text: uint32(i), Score: float64(s)})
				}
			}
			found := map[uint32]bool{}
			for _, g := range c.nearestVectors(q, top, nil) {
				found[g.at] = true
				if truth := dotProduct(q, all[g.at]); math.Abs(float64(truth-g.value)) > float64(g.error) {
					t.Errorf("%d dimensions: %g is guessed to be %g ± %g", dims, truth, g.value, g.error)
				}
			}
			for _, m := range want.SortMatches() {
				if !found[m.Text] {
					t.Errorf("%d dimensions, top %d: vector %d with %g is lost", dims, top, m.Text, m.Score)
				}
			}
			if spare := len(found) - top; dims >= 384 && spare > 10+top/2 {
				t.Errorf("%d dimensions, top %d: %d vectors must be read", dims, top, len(found))
			}
		}
	}
}

// BenchmarkCodes searches among 100,000 vectors without a file.
func BenchmarkCodes(b *testing.B) {
	for _, dims := range []int{384, 1536} {
		b.Run(fmt.Sprint(dims), func(b *testing.B) {
			const n = 100_000
			some := clouds(2000, dims, 3)
			c := newCodes(n, dims)
			for i := range n {
				c.setVector(i, some[i%len(some)])
			}
			q := clouds(50, dims, 9)
			for i := 0; b.Loop(); i++ {
				c.nearestVectors(q[i%len(q)], 5, nil)
			}
		})
	}
}
