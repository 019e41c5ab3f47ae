package history_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// The examples travel in the history of one small graph: a draft is written, reviewed and printed.

var story = graph.Append[string]("story")

// newspaper returns the graph.
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
		Edges: []graph.Edge{graph.NewEdge("write", "review"), graph.NewEdge("review", "print"), graph.NewEdge("print", graph.End)},
	})
	if err != nil {
		panic(err)
	}
	return g
}

// asking returns a graph whose only node asks a person.
func asking() *graph.Graph {
	g, err := graph.Compile(graph.Def{
		Name: "asking", Start: []string{"review"},
		Nodes: []graph.Node{{Name: "review", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Interrupt[bool](ctx, graph.Ask{Prompt: "Send it?"})
			return graph.Update{}, err
		}}},
		Edges: []graph.Edge{graph.NewEdge("review", graph.End)},
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
	st := journal.NewMemory()
	r := &graph.Runner{Graph: newspaper(), Store: st}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "monday"}); err != nil {
		fmt.Println(err)
		return
	}
	for c, err := range history.Checkpoints(ctx, st, "monday") {
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
	st := journal.NewMemory()
	r := &graph.Runner{Graph: newspaper(), Store: st}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "monday"}); err != nil {
		fmt.Println(err)
		return
	}
	if err := history.Fork(ctx, st, "monday", 2, "tuesday"); err != nil { // behind the step of "write"
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
	st := journal.NewMemory()
	if _, err := (&graph.Runner{Graph: newspaper(), Store: st}).Invoke(ctx, graph.Input{Thread: "monday"}); err != nil {
		fmt.Println(err)
		return
	}
	changes, err := history.Diff(ctx, st, journal.Point{Thread: "monday", Seq: 2}, journal.Point{Thread: "monday", Seq: 3})
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
	st := journal.NewMemory()
	r := &graph.Runner{Graph: newspaper(), Store: st}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "monday", Set: []graph.Write{story.Set([]string{"an idea"})}}); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := r.Edit(ctx, "monday", story.Set([]string{"a note"})); err != nil {
		fmt.Println(err)
		return
	}
	written, err := history.Blame(ctx, st, "monday", "story")
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
	st := journal.NewMemory()
	if _, err := (&graph.Runner{Graph: newspaper(), Store: st}).Invoke(ctx, graph.Input{Thread: "monday"}); err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range []struct {
		from string
		at   int64
		into string
	}{{"monday", 2, "tuesday"}, {"monday", 3, "wednesday"}, {"tuesday", 0, "thursday"}} {
		if err := history.Fork(ctx, st, f.from, f.at, f.into); err != nil {
			fmt.Println(err)
			return
		}
	}
	roots, err := history.Lineage(ctx, st, "")
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

// A journal can be read without the graph that wrote it.
func ExampleInspect() {
	ctx, store := context.Background(), journal.NewMemory()
	if _, err := (&graph.Runner{Graph: newspaper(), Store: store}).Invoke(ctx, graph.Input{Thread: "t1"}); err != nil {
		fmt.Println(err)
		return
	}
	snap, err := history.Inspect(ctx, store, "t1", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %s = %s\n", snap.Status, snap.Values[0].Key, snap.Values[0].Parts[0])
	for e, err := range history.Entries(ctx, store, "t1") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.Seq, e.Kind, e.Next)
	}
	// Output:
	// done: story = ["a draft"]
	// 5 end []
	// 4 step []
	// 3 step [print]
	// 2 step [review]
	// 1 start [write]
}

// Threads are listed without reading what they hold.
func ExampleDescribe() {
	ctx := context.Background()
	r := &graph.Runner{Graph: asking(), Store: journal.NewMemory()}
	for _, in := range []graph.Input{{Thread: "monday", Ahead: []graph.Answer{{Value: true}}}, {Thread: "tuesday"}} {
		if _, err := r.Invoke(ctx, in); err != nil {
			fmt.Println(err)
		}
	}
	for t, err := range r.Store.Threads(ctx, "") {
		if err != nil {
			fmt.Println(err)
			return
		}
		info, err := history.Describe(t)
		fmt.Println(info.Thread, info.Status, len(info.Questions), err)
	}
	// Output:
	// tuesday waiting 1 <nil>
	// monday done 0 <nil>
}

// Prune shortens a thread. Its state, and what a resume needs, stay.
func ExamplePrune() {
	ctx := context.Background()
	r := &graph.Runner{Graph: newspaper(), Store: journal.NewMemory()}
	for range 3 {
		if _, err := r.Invoke(ctx, graph.Input{Thread: "t1"}); err != nil {
			fmt.Println(err)
		}
	}
	first, err := history.Prune(ctx, r.Store, "t1", history.Keep{})
	fmt.Println("begins at record", first, err)
	s, err := r.State(ctx, "t1", 0)
	fmt.Println(story.Get(s), err)

	fmt.Println(r.Store.Prune(ctx, "t1", 1<<62)) // beyond its head: all of it
	_, err = r.State(ctx, "t1", 0)
	fmt.Println(err)
	// Output:
	// begins at record 16 <nil>
	// [a draft reviewed: a draft printed a draft reviewed: a draft printed a draft reviewed: a draft printed] <nil>
	// <nil>
	// journal: no such thread: t1
}

// Abandon ends a run that is no longer wanted. Its thread can have other runs.
func ExampleAbandon() {
	ctx, store := context.Background(), journal.NewMemory()
	r := &graph.Runner{Graph: asking(), Store: store}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "t1"}); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := history.Abandon(ctx, store, "t1", "the customer has left"); err != nil {
		fmt.Println(err)
		return
	}
	s, err := history.Inspect(ctx, store, "t1", 0)
	fmt.Println(s.Status, s.Reason, err)
	// Output: abandoned the customer has left <nil>
}

// A thread is deleted with all its records.
func ExampleDelete() {
	ctx, store := context.Background(), journal.NewMemory()
	if _, err := (&graph.Runner{Graph: newspaper(), Store: store}).Invoke(ctx, graph.Input{Thread: "t1"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(history.Delete(ctx, store, "t1"))
	_, err := history.Inspect(ctx, store, "t1", 0)
	fmt.Println(errors.Is(err, journal.ErrNoThread))
	// Output:
	// <nil>
	// true
}
