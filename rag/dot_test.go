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
		if got := float64(dotProduct(a, b)); math.Abs(got-want) > 1e-4 {
			t.Errorf("the product of %d numbers is %g, want %g", n, got, want)
		}
	}
}

func TestDotOfCodes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for n := lanes; n <= 4096; n += lanes {
		a, b := make([]int16, n), make([]int8, n+1)[1:] // not aligned
		want := 0
		for i := range a {
			a[i], b[i] = int16(random.IntN(1<<12)-1<<11), int8(random.IntN(255)-most)
			want += int(a[i]) * int(b[i])
		}
		for name, f := range map[string]func([]int16, []int8) int32{"dotCodes": dotCodes, "dotPlain": dotPlain} {
			if got := int(f(a, b)); got != want {
				t.Errorf("%s of %d codes is %d, want %d", name, n, got, want)
			}
		}
	}
}

func BenchmarkDot(b *testing.B) {
	v, w := make([]int16, 1536), make([]int8, 1536)
	for name, f := range map[string]func([]int16, []int8) int32{"dotCodes": dotCodes, "dotPlain": dotPlain} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f(v, w)
			}
		})
	}
}
