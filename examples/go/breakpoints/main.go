// Command breakpoints stops a loop before and after some of its nodes, shows the
// state at each stop, and continues.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

var (
	guess = graph.Last[float64]("guess")
	worse = graph.Last[float64]("error") // how far guess² is from 2
)

// improve and measure are Newton's way to the square root of two.
func improve(_ context.Context, s graph.State) (graph.Update, error) {
	x := guess.Get(s)
	return graph.Put(guess.Set((x + 2/x) / 2)), nil
}

func measure(_ context.Context, s graph.State) (graph.Update, error) {
	x := guess.Get(s)
	return graph.Put(worse.Set(x*x - 2)), nil
}

func enough(s graph.State) ([]string, error) {
	if worse.Get(s) < 0.01 {
		return []string{"close"}, nil
	}
	return []string{"far"}, nil
}

func report(_ context.Context, s graph.State) (graph.Update, error) {
	return graph.Update{Halt: &graph.Halt{Value: fmt.Sprintf("about %.3f", guess.Get(s))}}, nil
}

// A stop before a node sees what the node will see; a stop after it sees what it
// has written. Each visit of the loop stops again.
var def = graph.Def{
	Name: "root",
	Keys: []graph.AnyKey{guess, worse},
	Nodes: []graph.Node{
		{Name: "improve", Run: improve, BreakAfter: true},
		{Name: "measure", Run: measure},
		{Name: "report", Run: report, BreakBefore: true},
	},
	Edges: []graph.Edge{
		{From: []string{"improve"}, To: []string{"measure"}},
		{From: []string{"measure"}, Pick: enough, Cases: map[string]string{"far": "improve", "close": "report"}},
		{From: []string{"report"}, To: []string{graph.End}},
	},
	Start:     []string{"improve"},
	MaxVisits: 10,
}

// printStop shows where a run has stopped and the state there.
func printStop(res graph.Result) {
	for _, b := range res.Breaks {
		if b.After {
			fmt.Print("after ", b.Node)
		} else {
			fmt.Print("before ", b.Node)
		}
	}
	var values []string
	for _, name := range res.State.Keys() {
		v, _ := res.State.Value(name)
		values = append(values, fmt.Sprintf("%s %.4f", name, v))
	}
	fmt.Println(":", strings.Join(values, ", "))
}

func run(ctx context.Context) error {
	g, err := graph.Compile(def)
	if err != nil {
		return err
	}
	// The stops are in the store: another process could continue the run as well.
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "t", Set: []graph.Write{guess.Set(1)}})
	for err == nil && res.Status == graph.Paused {
		printStop(res)
		res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t"})
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s: %v\n", res.Status, res.Value)
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
