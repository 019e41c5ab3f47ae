// Command mapreduce counts the words of each chapter of a book in a separate
// task, gets the price of a word at the same time, and joins both to a quote.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"raddle.dev/graph"
)

// size is what one task finds out about its chapter.
type size struct {
	Title string
	Words int
}

var (
	chapters = graph.Last[[]string]("chapters")
	chapter  = graph.Last[string]("chapter") // only in overlays: the chapter of one task
	sizes    = graph.Append[size]("sizes")   // written by all tasks of one step
	cents    = graph.Last[float64]("cents")  // per word
	quote    = graph.Append[string]("quote") // lines
	rebate   = graph.Last[float64]("rebate") // share of the price
)

// split starts a task of count for each chapter. No other task sees its overlay,
// which is dropped when the task is done.
func split(_ context.Context, s graph.State) (graph.Update, error) {
	var u graph.Update
	for _, text := range chapters.Get(s) {
		u.Send = append(u.Send, graph.Send{To: "count", Overlay: []graph.Write{chapter.Set(text)}})
	}
	return u, nil
}

// count runs for all chapters at the same time. The results arrive in the order
// of the chapters, no matter which is counted first.
func count(_ context.Context, s graph.State) (graph.Update, error) {
	title, text, _ := strings.Cut(chapter.Get(s), ": ")
	return graph.Put(sizes.Set([]size{{title, len(strings.Fields(text))}})), nil
}

// price and discount take two steps, in which count takes one: the join waits.
func price(context.Context, graph.State) (graph.Update, error) {
	return graph.Put(cents.Set(12), rebate.Set(0.25)), nil
}

func discount(_ context.Context, s graph.State) (graph.Update, error) {
	return graph.Put(cents.Set(cents.Get(s) * (1 - rebate.Get(s)))), nil
}

// total runs once, after all tasks of count and after discount.
func total(_ context.Context, s graph.State) (graph.Update, error) {
	var lines []string
	words := 0
	for _, c := range sizes.Get(s) {
		lines = append(lines, fmt.Sprintf("%-12s %d words", c.Title, c.Words))
		words += c.Words
	}
	lines = append(lines, fmt.Sprintf("%d words at %.0f cents: %.2f", words, cents.Get(s), float64(words)*cents.Get(s)/100))
	return graph.Put(quote.Set(lines)), nil
}

var def = graph.Def{
	Name: "mapreduce",
	Keys: []graph.AnyKey{chapters, chapter, sizes, cents, rebate, quote},
	Nodes: []graph.Node{
		{Name: "split", Run: split, Routes: []string{"count"}},
		{Name: "count", Run: count},
		{Name: "price", Run: price},
		{Name: "discount", Run: discount},
		{Name: "total", Run: total},
	},
	Edges: []graph.Edge{
		{From: []string{"price"}, To: []string{"discount"}},
		{From: []string{"count", "discount"}, To: []string{"total"}}, // two sources: a join
		{From: []string{"total"}, To: []string{graph.End}},
	},
	Start:       []string{"split", "price"},
	Concurrency: 2, // tasks at the same time
}

func run(ctx context.Context) error {
	g, err := graph.Compile(def)
	if err != nil {
		return err
	}
	res, err := (&graph.Runner{Graph: g}).Invoke(ctx, graph.Input{Set: []graph.Write{chapters.Set([]string{
		"The harbour: It had rained since noon, and streets were empty.",
		"The letter: It did not name its sender.",
		"The end: Then the rain stopped.",
	})}})
	if err != nil {
		return err
	}
	for _, line := range quote.Get(res.State) {
		fmt.Println(line)
	}
	fmt.Printf("%s after %d steps; keys left: %s\n", res.Status, res.Steps, strings.Join(res.State.Keys(), " "))
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
