//go:build !peers

package bench

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"peers/praddle"
	"peers/work"
)

// storeKinds are the stores that keep runs, with the variables that name their servers.
var storeKinds = []struct {
	name, variable string
	saver          work.Saver
}{{"sqlite", "", work.SQLite}, {"postgres", "RADDLE_BENCH_POSTGRES", work.Postgres}, {"redis", "RADDLE_BENCH_REDIS", work.Redis}}

// eachStore runs a benchmark on each store whose server is named.
func eachStore(b *testing.B, f func(b *testing.B, e *work.Env)) {
	for _, k := range storeKinds {
		b.Run("store="+k.name, func(b *testing.B) {
			if k.variable != "" && os.Getenv(k.variable) == "" {
				b.Skip(k.variable + " is not set: use stores.sh")
			}
			e := &work.Env{Dir: b.TempDir(), Saver: k.saver}
			defer e.Close()
			f(b, e)
		})
	}
}

// BenchmarkStoreMessages is W4 of raddle on each store.
func BenchmarkStoreMessages(b *testing.B) {
	const steps = 200
	eachStore(b, func(b *testing.B, e *work.Env) {
		run, err := praddle.Peers()[0].Messages(e, steps)
		bench(b, steps, run, err)
	})
}

// BenchmarkStoreCkpt is W5 of raddle on each store.
func BenchmarkStoreCkpt(b *testing.B) {
	for _, c := range []struct {
		name           string
		steps, records int
	}{{"10KB", 200, 100}, {"1MB", 20, 10000}} {
		b.Run("state="+c.name, func(b *testing.B) {
			eachStore(b, func(b *testing.B, e *work.Env) {
				run, err := praddle.Peers()[0].Ckpt(e, c.steps, c.records)
				bench(b, c.steps, run, err)
			})
		})
	}
}

// BenchmarkW9Workers: one op is a run of 5 steps, each saved, made by one of several workers of this process.
func BenchmarkW9Workers(b *testing.B) {
	const steps = 5
	for _, workers := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			eachStore(b, func(b *testing.B, e *work.Env) {
				run, err := praddle.Runs(e, steps)
				if err != nil {
					b.Fatal(err)
				}
				size := func() int64 {
					if e.Size == nil {
						return e.DBBytes()
					}
					n, err := e.Size()
					if err != nil {
						b.Fatal(err)
					}
					return n
				}
				before, c0 := size(), cpu()
				jobs := make(chan bool)
				var wg sync.WaitGroup
				for range workers {
					wg.Go(func() {
						for range jobs {
							if err := run(); err != nil {
								b.Error(err)
							}
						}
					})
				}
				started := time.Now()
				b.ResetTimer()
				for range b.N {
					jobs <- true
				}
				close(jobs)
				wg.Wait()
				b.StopTimer()
				n := float64(b.N)
				b.ReportMetric(n/time.Since(started).Seconds(), "runs/s")
				b.ReportMetric(float64(cpu()-c0)/n/steps, "cpu-ns/step")
				if grown := size() - before; grown > 0 {
					b.ReportMetric(float64(grown)/n, "DB-B/run")
				}
			})
		})
	}
}
