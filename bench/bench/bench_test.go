// Package bench times the same workloads on every peer.
package bench

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"peers/work"
)

// cpu is the processor time this process has used: the machine is shared, and
// unlike the clock it does not count the time others hold the cores.
func cpu() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

// wchar is what this process has passed to write calls so far.
func wchar() (n int64) {
	b, _ := os.ReadFile("/proc/self/io")
	for _, l := range strings.Split(string(b), "\n") {
		if v, ok := strings.CutPrefix(l, "wchar: "); ok {
			n, _ = strconv.ParseInt(v, 10, 64)
		}
	}
	return n
}

// bench times run and reports costs per step.
func bench(b *testing.B, steps int, run work.Run, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	if err := run(); err != nil { // warm-up and correctness
		b.Fatal(err)
	}
	runtime.GC()
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	w0, c0 := wchar(), cpu()
	for b.Loop() {
		if err := run(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	c1 := cpu()
	runtime.ReadMemStats(&m1)
	n := float64(b.N * steps)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/step")
	b.ReportMetric(float64(c1-c0)/n, "cpu-ns/step")
	b.ReportMetric(float64(m1.Mallocs-m0.Mallocs)/n, "allocs/step")
	b.ReportMetric(float64(m1.TotalAlloc-m0.TotalAlloc)/n, "B/step")
	if w := wchar() - w0; w > int64(n) {
		b.ReportMetric(float64(w)/n, "written-B/step")
	}
	b.ReportMetric(0, "ns/op")
}

func each(b *testing.B, f func(b *testing.B, p work.Peer)) {
	for _, p := range peers() {
		b.Run("peer="+p.Name, func(b *testing.B) { f(b, p) })
	}
}

func BenchmarkW1Chain(b *testing.B) {
	for _, n := range []int{250, 500, 1000} {
		b.Run(fmt.Sprintf("steps=%d", n), func(b *testing.B) {
			each(b, func(b *testing.B, p work.Peer) {
				run, err := p.Chain(n)
				bench(b, n, run, err)
			})
		})
	}
}

func BenchmarkW2FanOut(b *testing.B) {
	for _, n := range []int{10, 100, 400} {
		b.Run(fmt.Sprintf("width=%d", n), func(b *testing.B) {
			each(b, func(b *testing.B, p work.Peer) {
				run, err := p.FanOut(n)
				bench(b, n+2, run, err)
			})
		})
	}
}

func BenchmarkW3Loop(b *testing.B) {
	for _, n := range []int{125, 500} {
		b.Run(fmt.Sprintf("iters=%d", n), func(b *testing.B) {
			each(b, func(b *testing.B, p work.Peer) {
				if p.Loop == nil {
					b.Skip()
				}
				run, err := p.Loop(n)
				bench(b, 2*n, run, err)
			})
		})
	}
}

var savers = map[string]work.Saver{"none": work.None, "mem": work.Memory, "sqlite": work.SQLite}

func BenchmarkW4Messages(b *testing.B) {
	for _, s := range []string{"none", "mem", "sqlite"} {
		for _, n := range []int{100, 200, 400} {
			b.Run(fmt.Sprintf("saver=%s/steps=%d", s, n), func(b *testing.B) {
				each(b, func(b *testing.B, p work.Peer) {
					if p.Messages == nil {
						b.Skip()
					}
					e := &work.Env{Dir: b.TempDir(), Saver: savers[s]}
					run, err := p.Messages(e, n)
					bench(b, n, run, err)
					e.Close()
					if s == "sqlite" {
						b.ReportMetric(float64(e.DBBytes())/float64((b.N+1)*n), "DB-B/step")
					}
				})
			})
		}
	}
}

func BenchmarkW5Ckpt(b *testing.B) {
	for _, c := range []struct {
		name           string
		steps, records int
	}{{"10KB", 200, 100}, {"1MB", 20, 10000}} {
		for _, s := range []string{"none", "mem", "sqlite"} {
			b.Run(fmt.Sprintf("state=%s/saver=%s", c.name, s), func(b *testing.B) {
				each(b, func(b *testing.B, p work.Peer) {
					if p.Ckpt == nil {
						b.Skip()
					}
					e := &work.Env{Dir: b.TempDir(), Saver: savers[s]}
					run, err := p.Ckpt(e, c.steps, c.records)
					bench(b, c.steps, run, err)
					e.Close()
					if s == "sqlite" {
						b.ReportMetric(float64(e.DBBytes())/float64((b.N+1)*c.steps), "DB-B/step")
					}
				})
			})
		}
	}
}

// BenchmarkW6Throughput: one op is 10000 runs of 5 nodes on 64 goroutines.
func BenchmarkW6Throughput(b *testing.B) {
	const runs, workers = 10000, 64
	each(b, func(b *testing.B, p work.Peer) {
		run, err := p.Short()
		bench(b, runs, func() error {
			var wg sync.WaitGroup
			errs := make(chan error, workers)
			for w := range workers {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for i := w; i < runs; i += workers {
						if err := run(); err != nil {
							errs <- err
							return
						}
					}
				}()
			}
			wg.Wait()
			close(errs)
			return <-errs
		}, err)
		b.ReportMetric(float64(runs*b.N)/b.Elapsed().Seconds(), "runs/s")
	})
}

func BenchmarkW7Interrupt(b *testing.B) {
	each(b, func(b *testing.B, p work.Peer) {
		if p.Interrupt == nil {
			b.Skip()
		}
		run, err := p.Interrupt()
		bench(b, 1, run, err)
	})
}
