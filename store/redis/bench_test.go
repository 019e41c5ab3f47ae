package redis_test

import (
	"fmt"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
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

// BenchmarkAppend appends a record to a thread, without a line; BenchmarkAppendStart begins a thread with each append,
// and BenchmarkAppendEnd changes the status of one of 1,000 threads: both write the line of the thread.
func BenchmarkAppend(b *testing.B) {
	s := open(b, redistest.Start(b).URL)
	recs := records("bench", 1)
	for after := int64(0); b.Loop(); after++ {
		if err := s.Append(b.Context(), "t", after, recs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendStart(b *testing.B) {
	s := open(b, redistest.Start(b).URL)
	for i := 0; b.Loop(); i++ {
		appendWithLine(b, s, i, 0, "running")
	}
}

func BenchmarkAppendEnd(b *testing.B) {
	const threads = 1000
	s := open(b, redistest.Start(b).URL)
	for i := range threads {
		appendWithLine(b, s, i, 0, "running")
	}
	for i := threads; b.Loop(); i++ {
		appendWithLine(b, s, i%threads, int64(i/threads), []string{"running", "done"}[i/threads%2])
	}
}

// appendWithLine appends a record and a line to one of many threads.
func appendWithLine(b *testing.B, s journal.Store, thread int, after int64, status string) {
	b.Helper()
	name := fmt.Sprintf("t%06d", thread)
	line := journal.Line{Thread: name, Order: name, Status: status, Label: "agent", Details: make([]byte, 200)}
	if err := s.Append(journal.WithLine(b.Context(), &line), name, after, records("bench", 1)); err != nil {
		b.Fatal(err)
	}
}
