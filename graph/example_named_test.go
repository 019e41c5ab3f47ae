package graph_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"raddle.dev/graph"
)

// Two children of one task work at the same time, and both ask. The run waits with
// both questions; each child gets its own answer.
func ExampleCallChild() {
	told := graph.Last[string]("told")
	news := graph.Append[string]("news")
	reporter, err := graph.Compile(graph.Def{Name: "reporter", Keys: []graph.AnyKey{told}, Start: []string{"ask"},
		Nodes: []graph.Node{{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			answer, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "What is new?"})
			return graph.Put(told.Set(answer)), err
		}}},
		Edges: []graph.Edge{{From: []string{"ask"}, To: []string{graph.End}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	team := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		names := []string{"alice", "bob"}
		said, errs := make([]string, len(names)), make([]error, len(names))
		var wg sync.WaitGroup
		for i, name := range names {
			wg.Go(func() {
				var child graph.Child
				if child, errs[i] = graph.CallChild(ctx, name, "reporter"); errs[i] == nil {
					said[i] = name + ": " + told.Get(child.State)
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return graph.Update{}, err
		}
		return graph.Put(news.Set(said)), nil
	}
	g, err := graph.Compile(graph.Def{Name: "paper", Keys: []graph.AnyKey{news}, Start: []string{"team"},
		Nodes: []graph.Node{{Name: "team", Run: team, Children: map[string]graph.ChildGraph{"reporter": {Graph: reporter}}}},
		Edges: []graph.Edge{{From: []string{"team"}, To: []string{graph.End}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, r := context.Background(), &graph.Runner{Graph: g, Store: graph.NewMemory()}
	res, _ := r.Invoke(ctx, graph.Input{Thread: "t"})
	for _, q := range res.Questions {
		fmt.Println(q.ID, q.Prompt)
	}
	res, _ = r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: "team/bob/ask", Value: "rain"}}})
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: "team/alice/ask", Value: "sun"}}})
	fmt.Println(res.Status, news.Get(res.State), err)
	// Output:
	// team/alice/ask What is new?
	// team/bob/ask What is new?
	// done [alice: sun bob: rain] <nil>
}
