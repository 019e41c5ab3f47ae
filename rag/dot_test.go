package rag

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDot(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 3, 7, 8, 31, 32, 33, 63, 64, 100, 384, 1000, 1536} {
		a, b := make([]float32, n), make([]float32, n+1)[1:] // not aligned
		want := 0.0
		for i := range a {
			a[i], b[i] = random.Float32()-0.5, random.Float32()-0.5
			want += float64(a[i]) * float64(b[i])
		}
		for name, f := range map[string]func(a, b []float32) float32{"dot": dot, "dotPlain": dotPlain} {
			if got := float64(f(a, b)); math.Abs(got-want) > 1e-4 {
				t.Errorf("%s of %d numbers is %g, want %g", name, n, got, want)
			}
		}
	}
}

func BenchmarkDot(b *testing.B) {
	v, w := make([]float32, 768), make([]float32, 768)
	for name, f := range map[string]func(a, b []float32) float32{"dot": dot, "dotPlain": dotPlain} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f(v, w)
			}
		})
	}
}
