package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// Tasks of a step may wait for each other: each of them gets a goroutine.
func TestTasksOfAStepMeet(t *testing.T) {
	const tasks = 9
	for range 3 {
		var all sync.WaitGroup
		all.Add(tasks)
		meets := func(context.Context, graph.State) (graph.Update, error) {
			all.Done()
			all.Wait()
			return graph.Update{}, nil
		}
		d := graph.Def{Name: "g"}
		for i := range tasks {
			name := fmt.Sprint("n", i)
			d.Start = append(d.Start, name)
			d.Nodes = append(d.Nodes, graph.Node{Name: name, Run: meets})
			d.Edges = append(d.Edges, edge(name, graph.End))
		}
		res, err := (&graph.Runner{Graph: compile(t, d)}).Invoke(t.Context(), graph.Input{})
		is(t, graph.Done, res, err)
	}
}

// An answer given ahead that names a question, and cannot be its answer, opens the question with the reason; the one
// behind it is taken by another.
func TestAnAnswerGivenAheadOfAnotherKindOpensTheQuestion(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Start: []string{"a"}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)},
		Nodes: []graph.Node{{Name: "a", Run: asks(nil)}, {Name: "b", Run: asks(nil)}}})
	r := kept(g)
	res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Ahead: []graph.Answer{says("b", "two"), {ID: "a", Value: 7}}})
	if is(t, graph.Waiting, res, err); res.Questions[0].ID != "a" || !strings.Contains(res.Questions[0].Rejected, "it must be a string, not a number") {
		t.Fatalf("%+v", res.Questions)
	}
	res, err = resume(t, r, says("a", "one"))
	is(t, graph.Done, res, err)
}

// Two failing tasks of a step fail it together, whichever ends first.
func TestAllFailuresOfAStepAreReported(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Start: []string{"a", "b", "c"}, Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End), edge("c", graph.End)},
		Nodes: []graph.Node{{Name: "a", Run: fails("one")}, {Name: "b", Run: idle}, {Name: "c", Run: fails("two")}}})
	for _, st := range []journal.Store{nil, journal.NewMemory()} {
		_, err := (&graph.Runner{Graph: g, Store: st}).Invoke(t.Context(), graph.Input{Thread: thread})
		var ne *graph.NodeError
		if err == nil || !errors.As(err, &ne) || !strings.Contains(err.Error(), "one") && !strings.Contains(err.Error(), "two") {
			t.Error(err)
		}
	}
}
