package graphtest_test

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
)

// Two runs with a Clock and IDs of their own write the same journal.
func Example() {
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
	var journals [2][]journal.Record
	for i := range journals {
		r := &graph.Runner{Graph: g, Store: journal.NewMemory(), Clock: &graphtest.Clock{Tick: time.Second}, IDs: graphtest.IDs("run")}
		res, err := r.Invoke(context.Background(), graph.Input{Thread: "t"})
		fmt.Println(res.Run, res.Status, err)
		for rec := range r.Store.Read(context.Background(), "t", journal.Range{}) {
			journals[i] = append(journals[i], rec)
		}
	}
	fmt.Println("equal:", reflect.DeepEqual(journals[0], journals[1]))
	// Output:
	// run-1 done <nil>
	// run-1 done <nil>
	// equal: true
}
