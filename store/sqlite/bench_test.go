package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/store/sqlite"
)

// batch has n records of about 150 bytes each.
func batch(n int) []graph.Record {
	l := make([]graph.Record, n)
	for i := range l {
		l[i] = graph.Record{Kind: graph.KindStep, Time: 1_760_000_000_000_000, Head: bytes.Repeat([]byte("h"), 50), Data: bytes.Repeat([]byte("d"), 100)}
	}
	return l
}

// filled is a store with so many threads, the last of which has n records.
func filled(b *testing.B, threads, n int) (s *sqlite.Store, last string) {
	s = open(b, filepath.Join(b.TempDir(), "runs.db"))
	for i := range threads {
		last = fmt.Sprintf("run-%05d", i)
		if err := s.Append(b.Context(), last, 0, batch(1)); err != nil {
			b.Fatal(err)
		}
	}
	for after := 1; after < n; after += 100 {
		if err := s.Append(b.Context(), last, int64(after), batch(min(100, n-after))); err != nil {
			b.Fatal(err)
		}
	}
	return s, last
}

func BenchmarkAppend1(b *testing.B)   { benchmarkAppend(b, 1) }
func BenchmarkAppend10(b *testing.B)  { benchmarkAppend(b, 10) }
func BenchmarkAppend100(b *testing.B) { benchmarkAppend(b, 100) }

func benchmarkAppend(b *testing.B, n int) {
	s, thread := filled(b, 1000, 1)
	recs, head, ctx := batch(n), int64(1), context.Background()
	stop := cpuTime(b)
	for b.Loop() {
		if err := s.Append(ctx, thread, head, recs); err != nil {
			b.Fatal(err)
		}
		head += int64(n)
	}
	stop()
}

// BenchmarkAppendNew begins a thread with each record.
func BenchmarkAppendNew(b *testing.B) {
	s, _ := filled(b, 1000, 1)
	recs, ctx, i := batch(1), context.Background(), 0
	stop := cpuTime(b)
	for b.Loop() {
		if err := s.Append(ctx, fmt.Sprintf("new-%08d", i), 0, recs); err != nil {
			b.Fatal(err)
		}
		i++
	}
	stop()
}

func BenchmarkRead1(b *testing.B)   { benchmarkRead(b, graph.Range{Newest: true, Limit: 1}, 1) }
func BenchmarkRead10k(b *testing.B) { benchmarkRead(b, graph.Range{}, 10_000) }

func benchmarkRead(b *testing.B, r graph.Range, want int) {
	s, thread := filled(b, 100, 10_000)
	stop := cpuTime(b)
	for b.Loop() {
		n := 0
		for _, err := range s.Read(context.Background(), thread, r) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != want {
			b.Fatalf("%d records, want %d", n, want)
		}
	}
	stop()
}

func BenchmarkThreads10k(b *testing.B) { benchmarkThreads(b, 10_000) }
func BenchmarkThreads20(b *testing.B)  { benchmarkThreads(b, 20) }

func benchmarkThreads(b *testing.B, want int) {
	s, _ := filled(b, 10_000, 1)
	stop := cpuTime(b)
	for b.Loop() {
		n := 0
		for _, err := range s.Threads(context.Background(), "run-") {
			if err != nil {
				b.Fatal(err)
			}
			if n++; n == want {
				break
			}
		}
		if n != want {
			b.Fatalf("%d threads, want %d", n, want)
		}
	}
	stop()
}

// BenchmarkOpen opens and closes a file that exists.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "runs.db")
	if err := open(b, path).Close(); err != nil {
		b.Fatal(err)
	}
	stop := cpuTime(b)
	for b.Loop() {
		s, err := sqlite.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	stop()
}
