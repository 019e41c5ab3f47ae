// Command cold-raddle runs one node on raddle, with SQLite and graph.yaml linked,
// and ends: the cost of a cold start.
package main

import (
	"context"
	"fmt"
	"os"

	_ "raddle.dev/flow" // what reads graph.yaml
	"raddle.dev/graph"
	"raddle.dev/store/sqlite"
)

func main() {
	count := graph.Last[int]("count")
	g, err := graph.Compile(graph.Def{Name: "cold", Keys: []graph.AnyKey{count}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
			_, err := fmt.Println("first")
			return graph.Put(count.Set(1)), err
		}}},
		Edges: []graph.Edge{{From: []string{"a"}, To: []string{graph.End}}}})
	if err == nil {
		_, err = (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{})
	}
	if len(os.Args) > 1 { // a file to keep the run in; without one, SQLite is linked only
		var st *sqlite.Store
		if st, err = sqlite.Open(os.Args[1]); err == nil {
			err = st.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
