// Command nested asks a question three graphs deep, shows where it came from, and
// continues with the answer.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// Each graph has its own keys: the node passes values to the child, and takes
// from its state what the parent needs.
var (
	budget = graph.Last[int]("budget")      // of the trip
	plan   = graph.Append[string]("plan")   // of the trip
	left   = graph.Last[int]("left")        // of the lodging
	bed    = graph.Last[string]("bed")      // of the lodging
	offers = graph.Last[[]string]("offers") // of the booking
	choice = graph.Last[string]("choice")   // of the booking
)

// booking is the innermost graph: it looks for rooms and asks for one.
var booking = graph.Def{
	Name: "booking",
	Keys: []graph.AnyKey{left, offers, choice},
	Nodes: []graph.Node{
		{Name: "search", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			found := []string{"hostel"}
			if left.Get(s) > 100 {
				found = append(found, "hotel")
			}
			return graph.Put(offers.Set(found)), nil
		}},
		{Name: "choose", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			room, err := graph.Interrupt[string](ctx, graph.Ask{Kind: "select", Prompt: "Which room?", Options: offers.Get(s)})
			return graph.Put(choice.Set(room)), err
		}},
	},
	Edges: []graph.Edge{edge("search", "choose"), edge("choose", graph.End)},
	Start: []string{"search"},
}

// lodging is the graph in between. Its node book only runs a child.
func lodging(booking *graph.Graph) graph.Def {
	return graph.Def{
		Name: "lodging",
		Keys: []graph.AnyKey{left, bed},
		Nodes: []graph.Node{{
			Name:  "book",
			Graph: booking,
			In:    func(s graph.State) ([]graph.Write, error) { return []graph.Write{left.Set(left.Get(s))}, nil },
			Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
				return graph.Put(bed.Set("a bed in the " + choice.Get(c.State))), nil
			},
		}},
		Edges: []graph.Edge{edge("book", graph.End)},
		Start: []string{"book"},
	}
}

// trip is the root. Its node stay calls its child itself, with code around it.
func trip(lodging *graph.Graph) graph.Def {
	return graph.Def{
		Name: "trip",
		Keys: []graph.AnyKey{budget, plan},
		Nodes: []graph.Node{{
			Name:  "stay",
			Graph: lodging,
			Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
				const fare = 80
				child, err := graph.Call(ctx, left.Set(budget.Get(s)-fare))
				if err != nil {
					return graph.Update{}, err // an error too while the child waits for the answer
				}
				return graph.Put(plan.Set([]string{"the night train", bed.Get(child.State)})), nil
			},
		}},
		Edges: []graph.Edge{edge("stay", graph.End)},
		Start: []string{"stay"},
	}
}

func edge(from, to string) graph.Edge { return graph.Edge{From: []string{from}, To: []string{to}} }

// compile compiles the graphs from the inside out.
func compile() (*graph.Graph, error) {
	inner, err := graph.Compile(booking)
	if err != nil {
		return nil, err
	}
	middle, err := graph.Compile(lodging(inner))
	if err != nil {
		return nil, err
	}
	return graph.Compile(trip(middle))
}

func run(ctx context.Context) error {
	g, err := compile()
	if err != nil {
		return err
	}
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	var open []graph.Question
	in := graph.Input{Thread: "t", Set: []graph.Write{budget.Set(250)}, Topics: graph.TopicStep | graph.TopicQuestion}
	for ev, err := range r.Run(ctx, in) {
		if err != nil {
			return err
		}
		switch b := ev.Body.(type) {
		case graph.StepCommitted:
			fmt.Printf("step of %s%s\n", ev.Path, strings.Join(b.Nodes, ", "))
		case graph.QuestionAsked:
			fmt.Printf("%s%s asks: %s %q\n", ev.Path, b.Question.Node, b.Question.Prompt, b.Question.Options)
		case graph.RunEnded:
			fmt.Println("the run is", b.Result.Status)
			open = b.Result.Questions
		}
	}
	var answers []graph.Answer
	for _, q := range open {
		fmt.Println("answering", q.ID)
		answers = append(answers, graph.Answer{ID: q.ID, Value: q.Options[len(q.Options)-1]})
	}
	res, err := r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: answers})
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", res.Status, strings.Join(plan.Get(res.State), ", "))
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
