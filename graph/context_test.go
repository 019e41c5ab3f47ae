package graph_test

import (
	"context"
	"strings"
	"testing"

	"raddle.dev/graph"
)

// What a node leaves running finds its own task in its context, over, however
// many steps have passed and whether it had looked before.
func TestAContextOutlivesItsNode(t *testing.T) {
	for _, early := range []bool{false, true} {
		var left context.Context
		leave := func(ctx context.Context, s graph.State) (graph.Update, error) {
			if counter.Get(s) == 0 {
				if left = ctx; early {
					graph.TaskPath(ctx)
				}
			} else if path := graph.TaskPath(left); path != "0.a.0" {
				t.Errorf("looked early: %v: the task is %q, not 0.a.0", early, path)
			} else if _, err := graph.Do(left, "late", func(context.Context) (int, error) { return 1, nil }); err == nil || !strings.Contains(err.Error(), "node a has returned") {
				t.Errorf("looked early: %v: a late effect gives %v", early, err)
			} else if graph.Attempt(left) != 1 || graph.TaskPath(ctx) == "0.a.0" {
				t.Errorf("looked early: %v: attempt %d, task %s", early, graph.Attempt(left), graph.TaskPath(ctx))
			}
			return inc(ctx, s)
		}
		g := compile(t, graph.Def{Name: "left", Keys: []graph.AnyKey{counter}, Start: []string{"a"},
			Nodes: []graph.Node{{Name: "a", Run: leave}, {Name: "b", Run: inc}, {Name: "c", Run: leave}},
			Edges: []graph.Edge{edge("a", "b"), edge("b", "c"), edge("c", graph.End)}})
		res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
		if err != nil || counter.Get(res.State) != 3 {
			t.Fatalf("%d steps, %v", counter.Get(res.State), err)
		}
	}
}

// However many siblings block, the others run: here each waits for all.
func TestSiblingsRunAtTheSameTime(t *testing.T) {
	const n = 100
	for _, topics := range []graph.Topic{0, graph.AllTopics} {
		arrived, all := make(chan struct{}, n), make(chan struct{})
		go func() {
			for range n {
				<-arrived
			}
			close(all)
		}()
		d := graph.Def{Name: "meet", Keys: []graph.AnyKey{counter}}
		for i := range n {
			name := "n" + string(rune('A'+i/26)) + string(rune('a'+i%26))
			d.Start = append(d.Start, name)
			d.Nodes = append(d.Nodes, graph.Node{Name: name, Run: func(context.Context, graph.State) (graph.Update, error) {
				arrived <- struct{}{}
				<-all
				return graph.Update{}, nil
			}})
			d.Edges = append(d.Edges, edge(name, graph.End))
		}
		r := &graph.Runner{Graph: compile(t, d)}
		for _, err := range r.Run(t.Context(), graph.Input{Topics: topics}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
