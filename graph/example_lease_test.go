package graph_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"raddle.dev/graph"
)

// A second drive of a thread learns which process drives it, and can wait or take over.
func ExampleBusyError() {
	ctx := context.Background()
	begun, goOn := make(chan bool), make(chan bool)
	g, err := graph.Compile(graph.Def{Name: "slow", Start: []string{"work"}, Edges: []graph.Edge{anEdge("work", graph.End)},
		Nodes: []graph.Node{{Name: "work", Run: func(context.Context, graph.State) (graph.Update, error) {
			begun <- true
			<-goOn
			return graph.Update{}, nil
		}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &graph.Runner{Graph: g, Store: graph.NewMemory()}
	done := make(chan graph.Result)
	go func() {
		res, _ := r.Invoke(ctx, graph.Input{Thread: "t1"})
		done <- res
	}()
	<-begun
	_, err = r.InvokeResume(ctx, graph.Resume{Thread: "t1"})
	var busy *graph.BusyError
	if errors.As(err, &busy) {
		fmt.Println(busy.Status, busy.Lease.IsLive(), time.Until(busy.Lease.Until) < 15*time.Second)
	}
	goOn <- true
	fmt.Println((<-done).Status)
	// Output:
	// running true true
	// done
}

// The run continues without a node that does not look at its context.
func ExampleHungError() {
	g, err := graph.Compile(graph.Def{Name: "deaf", Start: []string{"call"}, Edges: []graph.Edge{anEdge("call", graph.End)},
		Nodes: []graph.Node{{Name: "call", Timeout: time.Millisecond, Run: func(context.Context, graph.State) (graph.Update, error) {
			select {} // a library that blocks
		}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &graph.Runner{Graph: g, HungAfter: 10 * time.Millisecond}
	res, err := r.Invoke(context.Background(), graph.Input{})
	var hung *graph.HungError
	fmt.Println(res.Status, errors.As(err, &hung), errors.Is(err, graph.ErrTimeout), res.Hung)
	// Output: failed true true [call]
}

// What reads records checks them; a store only keeps their checksums.
func ExampleRecords() {
	ctx := context.Background()
	was, damaged := graph.NewMemory(), graph.NewMemory()
	r := &graph.Runner{Graph: newspaper(), Store: was}
	_, err := r.Invoke(ctx, graph.Input{Thread: "monday"})
	var recs []graph.Record
	for rec, err := range graph.Records(ctx, was, "monday", graph.Range{Limit: 2}) {
		fmt.Println(rec.Seq, rec.Kind, err)
		recs = append(recs, rec)
	}
	recs[1].Time++
	err = errors.Join(err, damaged.Append(ctx, "monday", 0, recs))
	_, read := graph.Inspect(ctx, damaged, "monday", 0)
	fmt.Println(err, read)
	// Output:
	// 1 start <nil>
	// 2 step <nil>
	// <nil> record 2 of thread monday is damaged: its checksum does not match (step); restore the store from a copy, or fork the thread at record 1, before it
}
