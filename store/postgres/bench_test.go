//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/pgtest"
)

// BenchmarkExtraStep runs a graph of 100 supersteps without a model: a step is the engine and one
// append. It reports the time of a step, and what of it this process has computed.
func BenchmarkExtraStep(b *testing.B) {
	const steps = 100
	s := open(b, pgtest.NewDatabase(b))
	count := graph.Last[int]("count")
	g, err := graph.Compile(graph.Def{
		Name: "loop", Keys: []graph.AnyKey{count}, Start: []string{"add"},
		Nodes: []graph.Node{{Name: "add", Run: func(_ context.Context, st graph.State) (graph.Update, error) {
			return graph.Put(count.Set(count.Get(st) + 1)), nil
		}}},
		Edges: []graph.Edge{{From: []string{"add"}, Cases: map[string]string{"again": "add", "stop": graph.End}, Pick: func(st graph.State) ([]string, error) {
			if count.Get(st) < steps {
				return []string{"again"}, nil
			}
			return []string{"stop"}, nil
		}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	before := usedCPU(b)
	for b.Loop() {
		if _, err := (&graph.Runner{Graph: g, Store: s}).Invoke(context.Background(), graph.Input{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*steps), "µs/step")
	b.ReportMetric(float64((usedCPU(b)-before).Microseconds())/float64(b.N*steps), "cpu-µs/step")
}

// usedCPU returns for how long this process has computed.
func usedCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkExtraAppend1(b *testing.B)   { benchmarkAppend(b, 1) }
func BenchmarkExtraAppend100(b *testing.B) { benchmarkAppend(b, 100) }

func benchmarkAppend(b *testing.B, n int) {
	s := open(b, pgtest.NewDatabase(b))
	recs := newRecords("bench", 0, n)
	for after := int64(0); b.Loop(); after += int64(n) {
		if err := s.Append(context.Background(), "t", after, recs); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkExtraAppendStart begins a thread with each append, and BenchmarkExtraAppendEnd changes the status of one of
// 1,000 threads: both write the line of the thread.
func BenchmarkExtraAppendStart(b *testing.B) {
	s := open(b, pgtest.NewDatabase(b))
	recs := newRecords("bench", 0, 1)
	for i := 0; b.Loop(); i++ {
		if err := appendWithLine(s, i, 0, "running", recs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExtraAppendEnd(b *testing.B) {
	const threads = 1000
	s := open(b, pgtest.NewDatabase(b))
	recs := newRecords("bench", 0, 1)
	for i := range threads {
		if err := appendWithLine(s, i, 0, "running", recs); err != nil {
			b.Fatal(err)
		}
	}
	for i := threads; b.Loop(); i++ {
		if err := appendWithLine(s, i%threads, int64(i/threads), []string{"running", "done"}[i/threads%2], recs); err != nil {
			b.Fatal(err)
		}
	}
}

// appendWithLine appends records and a line to one of many threads.
func appendWithLine(s journal.Store, thread int, after int64, status string, recs []journal.Record) error {
	name := fmt.Sprintf("t%06d", thread)
	line := journal.Line{Thread: name, Order: name, Status: status, Label: "agent", Details: make([]byte, 200)}
	return s.Append(journal.WithLine(context.Background(), &line), name, after, recs)
}

// BenchmarkExtraOpenThread reads a thread of 50 records from its snapshot, as a resume does.
func BenchmarkExtraOpenThread(b *testing.B) {
	s := open(b, pgtest.NewDatabase(b))
	for i := range 100 {
		if err := s.Append(context.Background(), fmt.Sprint("t", i), 0, newRecords("bench", 0, 50)); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; b.Loop(); i++ {
		n := 0
		for _, err := range s.Read(context.Background(), fmt.Sprint("t", i%100), journal.Range{FromSnapshot: true}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 50 {
			b.Fatal(n)
		}
	}
}
