package graph_test

import (
	"context"
	"fmt"
	"slices"

	"raddle.dev/graph"
)

// The examples of this file travel in the history of one small graph: a draft is
// written, reviewed and printed.

var story = graph.Append[string]("story")

func newspaper() *graph.Graph {
	line := func(node, text string) graph.Node {
		return graph.Node{Name: node, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			if node == "review" {
				return graph.Put(story.Set([]string{"reviewed: " + story.Get(s)[0]})), nil
			}
			return graph.Put(story.Set([]string{text})), nil
		}}
	}
	g, err := graph.Compile(graph.Def{
		Name: "newspaper", Keys: []graph.AnyKey{story}, Start: []string{"write"},
		Nodes: []graph.Node{line("write", "a draft"), line("review", ""), line("print", "printed")},
		Edges: []graph.Edge{edge("write", "review"), edge("review", "print"), edge("print", graph.End)},
	})
	if err != nil {
		panic(err)
	}
	return g
}

// A point is a record of a thread. Checkpoints lists those worth going back to,
// newest first.
func ExampleCheckpoints() {
	ctx := context.Background()
	st := graph.NewMemory()
	r := &graph.Runner{Graph: newspaper(), Store: st}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "monday"}); err != nil {
		fmt.Println(err)
		return
	}
	for c, err := range graph.Checkpoints(ctx, st, "monday") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(c.Seq, c.Kind, "then", c.Next)
	}
	// Output:
	// 4 step then []
	// 3 step then [print]
	// 2 step then [review]
	// 1 start then [write]
}

// Editing an older point is a fork there and an edit of the copy. The original
// stays as it is.
func ExampleFork() {
	ctx := context.Background()
	st := graph.NewMemory()
	r := &graph.Runner{Graph: newspaper(), Store: st}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "monday"}); err != nil {
		fmt.Println(err)
		return
	}
	if err := graph.Fork(ctx, st, "monday", 2, "tuesday"); err != nil { // behind the step of "write"
		fmt.Println(err)
		return
	}
	if _, err := r.Edit(ctx, "tuesday", story.Reset([]string{"a better draft"})); err != nil {
		fmt.Println(err)
		return
	}
	res, err := r.InvokeResume(ctx, graph.Resume{Thread: "tuesday"})
	fmt.Println(story.Get(res.State), err)

	s, err := r.State(ctx, "monday", 0)
	fmt.Println(story.Get(s), err)
	// Output:
	// [a better draft reviewed: a better draft printed] <nil>
	// [a draft reviewed: a draft printed] <nil>
}

// Diff compares two points by what is stored, and needs no graph.
func ExampleDiff() {
	ctx := context.Background()
	st := graph.NewMemory()
	if _, err := (&graph.Runner{Graph: newspaper(), Store: st}).Invoke(ctx, graph.Input{Thread: "monday"}); err != nil {
		fmt.Println(err)
		return
	}
	changes, err := graph.Diff(ctx, st, graph.Point{Thread: "monday", Seq: 2}, graph.Point{Thread: "monday", Seq: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range changes {
		fmt.Printf("%s (%s): %s, now %s\n", c.Key, c.Tag, c.Was, c.Is)
	}
	// Output:
	// story ([]string): [["a draft"]], now [["a draft"] ["reviewed: a draft"]]
}

// Blame tells who wrote a key, newest first.
func ExampleBlame() {
	ctx := context.Background()
	st := graph.NewMemory()
	r := &graph.Runner{Graph: newspaper(), Store: st}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "monday", Set: []graph.Write{story.Set([]string{"an idea"})}}); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := r.Edit(ctx, "monday", story.Set([]string{"a note"})); err != nil {
		fmt.Println(err)
		return
	}
	written, err := graph.Blame(ctx, st, "monday", "story")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range written {
		fmt.Print(w.Seq, " ", w.Kind)
		for _, by := range w.Tasks {
			fmt.Print(" by ", by.Node)
		}
		fmt.Println()
	}
	// Output:
	// 6 edit
	// 4 step by print
	// 3 step by review
	// 2 step by write
	// 1 start
}

// Lineage is the tree of forks.
func ExampleLineage() {
	ctx := context.Background()
	st := graph.NewMemory()
	if _, err := (&graph.Runner{Graph: newspaper(), Store: st}).Invoke(ctx, graph.Input{Thread: "monday"}); err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range []struct {
		from string
		at   int64
		into string
	}{{"monday", 2, "tuesday"}, {"monday", 3, "wednesday"}, {"tuesday", 0, "thursday"}} {
		if err := graph.Fork(ctx, st, f.from, f.at, f.into); err != nil {
			fmt.Println(err)
			return
		}
	}
	roots, err := graph.Lineage(ctx, st, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	for todo := roots; len(todo) > 0; {
		b := todo[0]
		fmt.Println(b.Thread, b.Status, "from", b.From.Thread, b.From.Seq)
		todo = slices.Concat(b.Forks, todo[1:])
	}
	// Output:
	// monday done from  0
	// tuesday paused from monday 2
	// thursday paused from tuesday 1
	// wednesday paused from monday 3
}
