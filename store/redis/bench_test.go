package redis_test

import (
	"testing"

	"raddle.dev/graph"
	"raddle.dev/internal/testkit/redistest"
)

// BenchmarkSuperstep runs a graph of one node b.N times: each round is the step of one run.
func BenchmarkSuperstep(b *testing.B) {
	r := &graph.Runner{Graph: countTo(b, b.N, nil), Store: open(b, redistest.Start(b).URL)}
	b.ReportAllocs()
	b.ResetTimer()
	res, err := r.Invoke(b.Context(), graph.Input{Thread: "t"})
	if err != nil || res.Status != graph.Done {
		b.Fatalf("%v: %v", res.Status, err)
	}
}
