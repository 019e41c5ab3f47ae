package graph_test

import (
	"context"
	"fmt"

	"raddle.dev/graph"
)

// The way through the package's documentation: write a graph, run it, pause and
// resume it, go back and try something else.
func Example_tour() {
	ctx, name := context.Background(), graph.Last[string]("name")
	g, err := graph.Compile(graph.Def{
		Name: "hello",
		Keys: []graph.AnyKey{name},
		Nodes: []graph.Node{{Name: "greet", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			return graph.Put(name.Set("hello " + name.Get(s))), nil
		}}},
		Edges: []graph.Edge{{From: []string{"greet"}, To: []string{graph.End}}},
		Start: []string{"greet"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &graph.Runner{Graph: g, Store: graph.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "t1", Set: []graph.Write{name.Set("ada")}})
	fmt.Println(res.Status, name.Get(res.State), err)

	in := graph.Input{Thread: "t2", Set: []graph.Write{name.Set("ada")}, Break: []graph.Break{{Node: "greet"}}}
	res, err = r.Invoke(ctx, in)
	fmt.Println(res.Status, name.Get(res.State), err)
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t2"})
	fmt.Println(res.Status, name.Get(res.State), err)

	for c, err := range graph.Checkpoints(ctx, r.Store, "t2") {
		fmt.Println(c.Seq, c.Kind, c.Next, err)
	}
	err = graph.Fork(ctx, r.Store, "t2", 1, "t3")
	if err == nil {
		_, err = r.Edit(ctx, "t3", name.Set("grace"))
	}
	if err == nil {
		res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t3"})
	}
	fmt.Println(res.Status, name.Get(res.State), err)
	// Output:
	// done hello ada <nil>
	// paused ada <nil>
	// done hello ada <nil>
	// 4 step [] <nil>
	// 1 start [greet] <nil>
	// done hello grace <nil>
}
