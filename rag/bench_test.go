//go:build unix

package rag

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/rag/load"
)

// benchBytes is the size of the text that builds are measured with: the book and more text made of its words.
const benchBytes = 6 << 20

func benchFiles(b *testing.B, dir string, size, documents int) {
	b.Helper()
	book := opticks(b)
	text := babble(book, size-len(book), 11)
	for i := range documents {
		part := text[len(text)*i/documents : len(text)*(i+1)/documents]
		testfile.WriteFile(b, filepath.Join(dir, fmt.Sprintf("docs/%05d.txt", i)), strings.ToValidUTF8(part, ""))
	}
	testfile.WriteFile(b, filepath.Join(dir, "docs/opticks.txt"), book)
}

// BenchmarkBuild builds a base from six megabytes in 600 documents, then again with one document changed.
func BenchmarkBuild(b *testing.B) {
	for _, model := range []string{Keyword, "test:trigrams"} {
		b.Run(model, func(b *testing.B) {
			source := b.TempDir()
			benchFiles(b, source, benchBytes, 600)
			o := Options{Model: model, ChunkSize: 1000, ChunkOverlap: 50, Load: load.Options{Dir: source},
				Embedder: func(string) (Embedder, error) { return trigrams{dims: 384}, nil }}
			b.SetBytes(benchBytes)
			var again time.Duration
			n := 0
			for b.Loop() {
				base := benchBase(b, o)
				benchBuild(b, base)
				b.StopTimer()
				testfile.WriteFile(b, filepath.Join(source, "docs/00000.txt"), fmt.Sprintf("Another text, the %dth.", n))
				start := time.Now()
				benchBuild(b, base)
				again += time.Since(start)
				n++
				if err := base.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(again.Milliseconds())/float64(n), "ms/change")
		})
	}
}

// BenchmarkSearch searches among 100,000 chunks. The first search, which reads all vectors, is reported separately.
func BenchmarkSearch(b *testing.B) {
	for _, c := range []struct {
		model string
		dims  int
	}{{Keyword, 0}, {"test:trigrams", 384}, {"test:trigrams", 768}, {"test:trigrams", 1536}} {
		b.Run(fmt.Sprintf("%s-%d", c.model, c.dims), func(b *testing.B) {
			dir := b.TempDir()
			benchFiles(b, dir, 33<<20, 500)
			base := benchBase(b, Options{Model: c.model, ChunkSize: 500, Load: load.Options{Dir: dir}, Batch: 1000,
				Embedder: func(string) (Embedder, error) { return trigrams{dims: c.dims}, nil }})
			defer base.Close()
			report := benchBuild(b, base)
			all := questions(b)
			start := time.Now()
			benchSearch(b, base, all[0].text)
			first := time.Since(start)
			var took []time.Duration
			used := processorTime(b)
			for b.Loop() {
				start := time.Now()
				benchSearch(b, base, all[len(took)%len(all)].text)
				took = append(took, time.Since(start))
			}
			used = processorTime(b) - used
			slices.Sort(took)
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(report.Chunks), "chunks")
			b.ReportMetric(float64(first.Milliseconds()), "first-ms")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(used.Microseconds())/1000/float64(len(took)), "cpu-ms/op")
			b.ReportMetric(float64(m.HeapAlloc>>20), "heap-MB")
			if base.view == nil {
				b.Fatal("nothing was searched")
			}
		})
	}
}

// processorTime is what this process has used of all processors. Other programs do not add to it.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchBase(b *testing.B, o Options) *Base {
	b.Helper()
	base, err := Open(filepath.Join(b.TempDir(), "kb.db"), o)
	if err != nil {
		b.Fatal(err)
	}
	return base
}

func benchBuild(b *testing.B, base *Base) Report {
	b.Helper()
	r, err := base.Build(context.Background(), []string{"docs"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func benchSearch(b *testing.B, base *Base, query string) {
	b.Helper()
	if hits, err := base.Search(context.Background(), query, SearchOptions{}); err != nil || len(hits) == 0 {
		b.Fatalf("%q: %d hits, %v", query, len(hits), err)
	}
}
