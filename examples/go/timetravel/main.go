// Command timetravel goes back to a point of a finished run, changes what was
// known there, continues in a copy, and compares the two results.
package main

import (
	"context"
	"fmt"
	"log"
	"slices"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

var (
	weather = graph.Last[string]("weather")
	place   = graph.Last[string]("place")
	packed  = graph.Append[string]("packed")
)

func forecast(context.Context, graph.State) (graph.Update, error) {
	return graph.Put(weather.Set("rain")), nil
}

func choose(_ context.Context, s graph.State) (graph.Update, error) {
	if weather.Get(s) == "rain" {
		return graph.Put(place.Set("museum"), packed.Set([]string{"umbrella"})), nil
	}
	return graph.Put(place.Set("lake"), packed.Set([]string{"towel"})), nil
}

func pack(context.Context, graph.State) (graph.Update, error) {
	return graph.Put(packed.Set([]string{"sandwich"})), nil
}

var def = graph.Def{
	Name: "outing",
	Keys: []graph.AnyKey{weather, place, packed},
	Nodes: []graph.Node{
		{Name: "forecast", Run: forecast},
		{Name: "choose", Run: choose},
		{Name: "pack", Run: pack},
	},
	Edges: []graph.Edge{
		{From: []string{"forecast"}, To: []string{"choose"}},
		{From: []string{"choose"}, To: []string{"pack"}},
		{From: []string{"pack"}, To: []string{graph.End}},
	},
	Start: []string{"forecast"},
}

// findRecordBefore finds the checkpoint from which a node would run, and shows them all.
func findRecordBefore(ctx context.Context, st journal.Store, thread, node string) (at int64, err error) {
	for c, err := range history.Checkpoints(ctx, st, thread) { // newest first
		if err != nil {
			return 0, err
		}
		fmt.Printf("  record %d: %s, then %v\n", c.Seq, c.Kind, c.Next)
		if slices.Contains(c.Next, node) {
			at = c.Seq
		}
	}
	if at == 0 {
		return 0, fmt.Errorf("thread %s never came to node %s", thread, node)
	}
	return at, nil
}

// rewrite forks a thread before a node, edits the copy and lets it run to its end.
func rewrite(ctx context.Context, r *graph.Runner, from, into, node string, set ...graph.Write) (graph.Result, error) {
	at, err := findRecordBefore(ctx, r.Store, from, node)
	if err != nil {
		return graph.Result{}, err
	}
	fmt.Printf("%s is a copy of %s at record %d\n", into, from, at)
	if err := history.Fork(ctx, r.Store, from, at, into); err != nil {
		return graph.Result{}, err
	}
	if _, err := r.Edit(ctx, into, set...); err != nil {
		return graph.Result{}, err
	}
	return r.InvokeResume(ctx, graph.Resume{Thread: into})
}

func run(ctx context.Context) error {
	g, err := graph.Compile(def)
	if err != nil {
		return err
	}
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	wet, err := r.Invoke(ctx, graph.Input{Thread: "saturday"})
	if err != nil {
		return err
	}
	show(wet)
	dry, err := rewrite(ctx, r, "saturday", "sunday", "choose", weather.Set("sun"))
	if err != nil {
		return err
	}
	show(dry)
	changes, err := history.Diff(ctx, r.Store, journal.Point{Thread: "saturday"}, journal.Point{Thread: "sunday"})
	if err != nil {
		return err
	}
	for _, c := range changes { // the parts of a list are its writes, as they are stored
		fmt.Printf("  %s: %s, now %s\n", c.Key, c.Was, c.Is)
	}
	old, err := r.State(ctx, "saturday", 0)
	if err != nil {
		return err
	}
	fmt.Println("saturday still goes to the", place.Get(old))
	return nil
}

func show(res graph.Result) {
	fmt.Printf("%s: %s, %s, %v\n", res.Thread, weather.Get(res.State), place.Get(res.State), packed.Get(res.State))
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
