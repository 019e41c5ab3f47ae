package journal_test

import (
	"context"
	"errors"
	"fmt"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// What reads records checks them; a store only keeps their checksums.
func ExampleRecords() {
	ctx := context.Background()
	was, damaged := journal.NewMemory(), journal.NewMemory()
	g, err := graph.Compile(graph.Def{
		Name: "print", Start: []string{"print"}, Edges: []graph.Edge{graph.NewEdge("print", graph.End)},
		Nodes: []graph.Node{{Name: "print", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = (&graph.Runner{Graph: g, Store: was}).Invoke(ctx, graph.Input{Thread: "monday"})
	var recs []journal.Record
	for rec, err := range journal.Records(ctx, was, "monday", journal.Range{Limit: 2}) {
		fmt.Println(rec.Seq, rec.Kind, err)
		recs = append(recs, rec)
	}
	recs[1].Time++
	err = errors.Join(err, damaged.Append(ctx, "monday", 0, recs))
	_, read := history.Inspect(ctx, damaged, "monday", 0)
	fmt.Println(err, read)
	// Output:
	// 1 start <nil>
	// 2 step <nil>
	// <nil> record 2 of thread monday is damaged: its checksum does not match (step); restore the store from a copy, or fork the thread at record 1, before it
}
