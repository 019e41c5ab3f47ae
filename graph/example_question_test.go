package graph_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
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

// A question is answered while another task of the same step works. Without a Handle the answer would have to wait for that task.
func ExampleHandle() {
	answered := make(chan struct{})
	slow := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		select {
		case <-answered:
			return graph.Update{}, nil
		case <-ctx.Done():
			return graph.Update{}, ctx.Err()
		}
	}
	ask := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		side, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "Which side?", Options: []string{"left", "right"}})
		if err == nil {
			fmt.Println("the node got", side)
		}
		return graph.Update{}, err
	}
	g := sound(graph.Def{
		Name:  "walk",
		Nodes: []graph.Node{aNode("slow", slow), aNode("ask", ask)},
		Edges: []graph.Edge{anEdge("slow", graph.End), anEdge("ask", graph.End)},
		Start: []string{"slow", "ask"},
	})
	var handle graph.Handle
	go func() {
		defer close(answered)
		for {
			open, err := handle.Answer(graph.Answer{ID: "ask", Value: "left"})
			if errors.Is(err, graph.ErrNotDriven) || errors.As(err, new(*graph.AnswerError)) {
				time.Sleep(time.Millisecond) // it is not asked yet
				continue
			}
			fmt.Println("still open:", len(open), err)
			return
		}
	}()
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(context.Background(), graph.Input{Handle: &handle})
	fmt.Println(res.Status, err)
	// Output:
	// still open: 0 <nil>
	// the node got left
	// done <nil>
}

// A person who answers need not write the whole path of a question.
func ExampleQuestion_NamedBy() {
	q := graph.Question{ID: "team[2]/bob/ask#2"}
	for _, word := range []string{"team[2]/bob/ask#2", "ask", "bob/ask", "bob", "team", "alice"} {
		distance, ok := q.NamedBy(word)
		fmt.Println(word, distance, ok)
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
	// Output: 20 1kjq0jcb0 1kjq0jcb1 true
}

// A run that sleeps needs no process: any process may resume it, at its time or later.
func ExampleSleep() {
	remind := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		if err := graph.Sleep(ctx, 48*time.Hour); err != nil {
			return graph.Update{}, err
		}
		fmt.Println("two days have passed")
		return graph.Update{}, nil
	}
	g := sound(graph.Def{
		Name:  "reminder",
		Nodes: []graph.Node{aNode("remind", remind)},
		Edges: []graph.Edge{anEdge("remind", graph.End)},
		Start: []string{"remind"},
	})
	ctx := context.Background()
	clock := &graphtest.Clock{}
	r := &graph.Runner{Graph: g, Store: journal.NewMemory(), Clock: clock}
	res, _ := r.Invoke(ctx, graph.Input{Thread: "t"})
	fmt.Println(res.Status, res.Due.Format(time.DateTime))
	res, _ = r.InvokeResume(ctx, graph.Resume{Thread: "t"})
	fmt.Println(res.Status)
	_ = clock.Wait(ctx, 48*time.Hour) // here the time passes at once
	res, _ = r.InvokeResume(ctx, graph.Resume{Thread: "t"})
	fmt.Println(res.Status)
	// Output:
	// waiting 2026-01-03 00:00:00
	// waiting
	// two days have passed
	// done
}
