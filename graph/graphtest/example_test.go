package graphtest_test

import (
	"context"
	"fmt"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
)

// A test of a store of one's own is one line.
func ExampleTestStore() {
	// func TestStore(t *testing.T) {
	//	graphtest.TestStore(t, func(t *testing.T) graph.Store { return mystore.New() })
	// }
}

// Two runs with a Clock and IDs write the same journal.
func ExampleClock() {
	n := graph.Sum[int]("n")
	g, err := graph.Compile(graph.Def{
		Name: "count", Keys: []graph.AnyKey{n}, Start: []string{"one"},
		Nodes: []graph.Node{{Name: "one", Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(n.Set(1)), nil
		}}},
		Edges: []graph.Edge{{From: []string{"one"}, To: []string{graph.End}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		r := &graph.Runner{Graph: g, Store: graph.NewMemory(), Clock: &graphtest.Clock{Tick: time.Second}, IDs: graphtest.IDs("run")}
		res, err := r.Invoke(context.Background(), graph.Input{Thread: "t"})
		if err != nil {
			fmt.Println(err)
			return
		}
		for rec := range r.Store.Read(context.Background(), "t", graph.Range{Newest: true, Limit: 1}) {
			fmt.Println(res.Run, rec.Seq, rec.Kind, time.UnixMicro(rec.Time).UTC().Format(time.TimeOnly))
		}
	}
	// Output:
	// run-1 2 end 00:00:01
	// run-1 2 end 00:00:01
}
