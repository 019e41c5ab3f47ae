package graph_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"raddle.dev/graph"
)

// manyKeys is an open graph with a node that writes many keys, and one that reads one.
func manyKeys(t *testing.T, n int) *graph.Graph {
	return compile(t, graph.Def{Name: "many", Open: func(name string) graph.AnyKey { return graph.Dyn(name) }, Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Routes: []string{"b"}, Run: func(context.Context, graph.State) (graph.Update, error) {
			u := graph.Update{Goto: []string{"b"}}
			for i := range n {
				u.Writes = append(u.Writes, graph.Dyn(fmt.Sprint("k", i)).Set(int64(i)))
			}
			return u, nil
		}},
		{Name: "b", Routes: []string{graph.End}, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			if v, ok := s.Value(fmt.Sprint("k", n-1)); !ok || v != int64(n-1) {
				return graph.Update{}, fmt.Errorf("the last key is %v", v)
			}
			return graph.Update{}, errors.New("stop here")
		}},
	}})
}

// allocated is how many bytes a function allocates.
func allocated(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}

// A step that writes many new keys, and a resume that reads them, cost what the keys
// cost: the work is counted in bytes, which do not depend on the machine.
func TestManyKeysAreLinear(t *testing.T) {
	cost := map[int][2]float64{}
	const few, many = 2000, 16000
	for _, n := range []int{few, many} {
		r := &graph.Runner{Graph: manyKeys(t, n), Store: graph.NewMemory()}
		run := func(drive func() error) float64 {
			return allocated(func() {
				if err := drive(); err == nil || !strings.Contains(err.Error(), "stop here") {
					t.Fatal(err)
				}
			})
		}
		cost[n] = [2]float64{
			run(func() error { _, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); return err }),
			run(func() error { _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"}); return err }),
		}
	}
	for i, what := range []string{"the run", "the resume"} {
		if times := cost[many][i] / cost[few][i]; times > 2*many/few {
			t.Errorf("%s: %d times the keys allocate %.1f times the bytes", what, many/few, times)
		}
	}
}

// What makes the state larger than it may be is not kept, names the key, and can be
// repeated with a higher limit.
func TestTheStateHasALimit(t *testing.T) {
	size, fails := 0, true
	text := graph.Last[string]("text")
	log := graph.Append[string]("log")
	g := compile(t, graph.Def{Name: "g", Keys: []graph.AnyKey{text, log}, Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			return graph.Put(text.Set(strings.Repeat("x", size)), log.Set([]string{"one"})), nil
		}},
		{Name: "b", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			if got := len(text.Get(s)); got != size {
				return graph.Update{}, fmt.Errorf("%d bytes", got)
			}
			fails = false
			return graph.Put(text.Set("short")), nil // what makes it smaller is taken
		}},
	}, Edges: []graph.Edge{{From: []string{"a"}, To: []string{"b"}}, {From: []string{"b"}, To: []string{graph.End}}}})
	for _, size = range []int{900, 1100} {
		r := &graph.Runner{Graph: g, Store: graph.NewMemory(), MaxState: 1000}
		_, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
		var large *graph.StateSizeError
		if size < 1000 {
			if err != nil || fails {
				t.Fatalf("%v, %v", err, fails)
			}
			continue
		}
		var node *graph.NodeError
		if !errors.As(err, &large) || large.Key != "text" || large.Write < size || large.Limit != 1000 || large.Size <= size || !errors.As(err, &node) || node.Node != "a" {
			t.Fatalf("%v", err)
		}
		if _, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"}); !errors.As(err, &large) {
			t.Fatalf("resumed: %v", err)
		}
		r.MaxState = 0
		if _, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"}); err != nil {
			t.Errorf("without a limit: %v", err)
		}
	}
	// The first writes count, too.
	r := &graph.Runner{Graph: g, Store: graph.NewMemory(), MaxState: 1000}
	var large *graph.StateSizeError
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: []graph.Write{text.Set(strings.Repeat("x", 2000))}}); !errors.As(err, &large) {
		t.Errorf("first writes: %v", err)
	}
}
