package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// A trip books three things, one after the other. If one of them cannot be booked, those before it are cancelled in
// reverse, each once, also if the process is killed meanwhile. To cancel what was never booked must do no harm: a
// process may die between the booking and its record.
func Example_saga() {
	booked := graph.Append[string]("booked")
	step := func(name string, book func(context.Context) (string, error)) graph.Node {
		return graph.Node{Name: name, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Do(ctx, "book", book)
			return graph.Put(booked.Set([]string{name})), err
		}}
	}
	ok := func(context.Context) (string, error) { return "booked", nil }
	full := func(context.Context) (string, error) { return "", errors.New("the plane is full") }
	undo := map[string]func(){
		"hotel": func() { fmt.Println("cancel the hotel") },
		"car":   func() { fmt.Println("cancel the car") },
	}
	trip, err := graph.Compile(graph.Def{
		Name: "trip",
		Keys: []graph.AnyKey{booked},
		Nodes: []graph.Node{
			step("hotel", ok),
			step("car", ok),
			step("flight", full),
			{Name: "undo", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
				for _, name := range slices.Backward(booked.Get(s)) {
					_, err := graph.Do(ctx, name, func(context.Context) (bool, error) { undo[name](); return true, nil })
					if err != nil {
						return graph.Update{}, err
					}
				}
				return graph.Update{}, nil
			}},
		},
		Edges: []graph.Edge{
			graph.NewEdge("hotel", "car"),
			graph.NewEdge("car", "flight"),
			graph.NewEdge("flight", graph.End),
		},
		Start:   []string{"hotel"},
		Finally: "undo",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := graph.Runner{Graph: trip, Store: journal.NewMemory()}
	res, err := r.Invoke(context.Background(), graph.Input{})
	fmt.Println(res.Status)
	fmt.Println(err)
	// Output:
	// cancel the car
	// cancel the hotel
	// cleaned-up
	// node flight (step 2, attempt 1): the plane is full; then node undo has run
}
