package graph_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"raddle.dev/graph"
)

// Nodes have the defaults of their graph for what they do not set.
func TestDefaults(t *testing.T) {
	tries := map[string]int{}
	log := graph.Append[string]("log")
	fails := func(name string) graph.Func {
		return func(ctx context.Context, _ graph.State) (graph.Update, error) {
			tries[name]++
			_, limited := ctx.Deadline()
			return graph.Update{}, fmt.Errorf("%s, with a time limit: %v", name, limited)
		}
	}
	sorry := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		var why []string
		for _, c := range graph.Causes(ctx) {
			why = append(why, c.Err.Error())
		}
		return graph.Put(log.Set(why)), nil
	}
	d := graph.Def{
		Name: "g", Keys: []graph.AnyKey{log}, Start: []string{"a", "b", "c"},
		Defaults: graph.Defaults{Retry: graph.Retry{Attempts: 3}, Timeout: time.Hour, OnError: "sorry"},
		Nodes: []graph.Node{
			{Name: "a", Run: fails("a")},
			{Name: "b", Run: fails("b"), Retry: graph.Retry{Attempts: 1}, Timeout: -1},
			{Name: "c", Run: fails("c"), OnError: graph.End},
			{Name: "sorry", Run: sorry, Routes: []string{graph.End}},
		},
		Edges: []graph.Edge{graph.NewEdge("a", graph.End), graph.NewEdge("b", graph.End), graph.NewEdge("c", graph.End), graph.NewEdge("sorry", graph.End)},
	}
	g, err := graph.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
	if err != nil || fmt.Sprint(tries) != "map[a:3 b:1 c:3]" {
		t.Errorf("%v, %v", tries, err)
	}
	if got := log.Get(res.State); fmt.Sprintf("%q", got) != `["a, with a time limit: true" "b, with a time limit: false"]` {
		t.Errorf("%q", got)
	}
	d.Defaults.OnError = "sory"
	if _, err := graph.Compile(d); err == nil {
		t.Error("a default names a node that does not exist")
	}
}
