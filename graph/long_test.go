package graph_test

import (
	"context"
	"runtime"
	"testing"

	"raddle.dev/graph"
)

// weighing counts the bytes that a store is given.
type weighing struct {
	graph.Store
	bytes, records int
}

func (w *weighing) Append(ctx context.Context, thread string, after int64, recs []graph.Record) error {
	for _, r := range recs {
		w.bytes += len(r.Head) + len(r.Data)
	}
	w.records += len(recs)
	return w.Store.Append(ctx, thread, after, recs)
}

// forgetting keeps what a reader may start at and what follows it, so that what
// is left in memory is the engine's own.
type forgetting struct{ weighing }

func (f *forgetting) Append(ctx context.Context, thread string, after int64, recs []graph.Record) error {
	if err := f.weighing.Append(ctx, thread, after, recs); err != nil {
		return err
	}
	if recs[len(recs)-1].Kind == graph.KindSnapshot {
		return f.Prune(ctx, thread, after+int64(len(recs)))
	}
	return nil
}

// A run of 100,000 journaled steps needs no more memory at its end than at its
// beginning, and its journal grows with the steps, not faster.
func TestALongRunIsFlatInMemoryAndLinearInBytes(t *testing.T) {
	const steps = 100_000
	bytesOf := func(n int) int {
		w := &forgetting{weighing{Store: graph.NewMemory()}}
		res, err := (&graph.Runner{Graph: loopOf(t, n), Store: w}).Invoke(t.Context(), graph.Input{})
		if err != nil || res.Status != graph.Done || res.Steps != n {
			t.Fatalf("%v after %d steps, %v", res.Status, res.Steps, err)
		}
		return w.bytes
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	small := bytesOf(steps / 10)
	before := heap()
	large := bytesOf(steps)
	if after := heap(); after > before+(4<<20) {
		t.Errorf("the heap grew from %d to %d bytes over the run", before, after)
	}
	if ratio := float64(large) / float64(small); ratio > 11 { // numbers have more digits
		t.Errorf("%d steps wrote %d bytes, %d steps wrote %d: %.2f times as much", steps/10, small, steps, large, ratio)
	}
	t.Logf("%.1f bytes a step", float64(large)/steps)
}

// A conversation of n messages costs bytes in proportion to n, not to n².
func TestAGrowingListIsStoredOnce(t *testing.T) {
	bytesOf := func(n int) int {
		w := &weighing{Store: graph.NewMemory()}
		if _, err := (&graph.Runner{Graph: messagesOf(t, n), Store: w}).Invoke(t.Context(), graph.Input{}); err != nil {
			t.Fatal(err)
		}
		return w.bytes
	}
	small, large := bytesOf(1000), bytesOf(4000)
	if ratio := float64(large) / float64(small); ratio > 5.5 {
		t.Errorf("1000 messages wrote %d bytes, 4000 wrote %d: %.2f times as much", small, large, ratio)
	}
}
