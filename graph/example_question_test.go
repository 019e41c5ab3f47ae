package graph_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// A node that fails because of an answer gets the same answer when the run is resumed: answers are
// recorded. It asks under another name after a failure, so that the person is asked again.
func ExampleFailureCount() {
	ask := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		name := fmt.Sprint("age ", graph.FailureCount(ctx))
		age, err := graph.Interrupt[int](ctx, graph.Ask{Name: name, Prompt: "How old are you?"})
		switch {
		case err != nil:
			return graph.Update{}, err
		case age < 0:
			return graph.Update{}, errors.New("an age is at least 0")
		}
		fmt.Println("age", age)
		return graph.Update{}, nil
	}
	g := sound(graph.Def{Name: "form", Nodes: []graph.Node{aNode("ask", ask)}, Edges: []graph.Edge{anEdge("ask", graph.End)}, Start: []string{"ask"}})
	ctx, r := context.Background(), &graph.Runner{Graph: g, Store: journal.NewMemory()}
	_, _ = r.Invoke(ctx, graph.Input{Thread: "t"})
	res, _ := r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: []graph.Answer{{Value: -1}}})
	fmt.Println(res.Status)
	res, _ = r.InvokeResume(ctx, graph.Resume{Thread: "t"})
	fmt.Println(res.Status, res.Questions[0].Prompt)
	res, err := r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: []graph.Answer{{Value: 36}}})
	fmt.Println(res.Status, err)
	// Output:
	// failed
	// waiting How old are you?
	// age 36
	// done <nil>
}

// A person who answers need not write the whole path of a question.
func ExampleQuestion_NamedBy() {
	q := graph.Question{ID: "team[2]/bob/ask#2"}
	for _, word := range []string{"team[2]/bob/ask#2", "ask", "bob/ask", "bob", "team", "alice"} {
		far, ok := q.NamedBy(word)
		fmt.Println(word, far, ok)
	}
	// Output:
	// team[2]/bob/ask#2 0 true
	// ask 1 true
	// bob/ask 1 true
	// bob 2 true
	// team 3 true
	// alice 0 false
}

// An id begins with the time, so ids in the order of their bytes are in the order of their times.
func ExampleNewID() {
	now := time.Date(2026, 3, 2, 10, 12, 44, 0, time.UTC)
	first, second := graph.NewID(now), graph.NewID(now.Add(time.Millisecond))
	fmt.Println(len(first), first[:9], second[:9], first < second)
	// Output: 14 1kjq0jcb0 1kjq0jcb1 true
}
