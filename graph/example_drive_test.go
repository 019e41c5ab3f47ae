package graph_test

import (
	"context"
	"fmt"
	"time"

	"raddle.dev/graph"
)

// The examples of this file steer a run from outside: by what one drive of it is
// given, and by an edit between two drives.

// Set folds writes into the state when a run continues: new input, or a correction.
// What is recorded stays as it is.
func ExampleResume() {
	ctx := context.Background()
	r := &graph.Runner{Graph: newspaper(), Store: graph.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "monday", Break: []graph.Break{{Node: "review"}}})
	fmt.Println(res.Status, story.Get(res.State), err)
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "monday", Set: []graph.Write{story.Reset([]string{"another draft"})}})
	fmt.Println(res.Status, story.Get(res.State), err)
	// Output:
	// paused [a draft] <nil>
	// done [another draft reviewed: another draft printed] <nil>
}

// Breaks hold for one drive, and need nothing in the graph. The next drive continues
// from there, with breaks of its own or none.
func ExampleBreak() {
	ctx := context.Background()
	r := &graph.Runner{Graph: newspaper(), Store: graph.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "monday", Break: []graph.Break{{Node: "review"}, {Node: "print"}}})
	fmt.Println(res.Status, res.Breaks, err)
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "monday", Break: []graph.Break{{Node: "review", After: true}}})
	fmt.Println(res.Status, res.Breaks, err)
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "monday"})
	fmt.Println(res.Status, res.Breaks, err)
	// Output:
	// paused [{review false}] <nil>
	// paused [{review true}] <nil>
	// done [] <nil>
}

// A pause lets the current step finish. Grace bounds that: when it has passed
// the tasks are cancelled, and run again on resume.
func Example_pauseWithGrace() {
	ctx, pause := context.Background(), make(chan struct{})
	slow := true
	g := sound(graph.Def{
		Name: "slow", Keys: []graph.AnyKey{story}, Start: []string{"write"},
		Nodes: []graph.Node{{Name: "write", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			if slow {
				close(pause)
				<-ctx.Done() // longer than a person waits
				return graph.Update{}, ctx.Err()
			}
			return graph.Put(story.Set([]string{"a draft"})), nil
		}}},
		Edges: []graph.Edge{anEdge("write", graph.End)},
	})
	r := &graph.Runner{Graph: g, Store: graph.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "t1", Pause: pause, Grace: time.Millisecond})
	fmt.Println(res.Status, story.Get(res.State), err)
	slow = false
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t1"})
	fmt.Println(res.Status, story.Get(res.State), err)
	// Output:
	// paused [] <nil>
	// done [a draft] <nil>
}

// EditNext changes the state between two drives and says which nodes run next.
func ExampleRunner_EditNext() {
	ctx := context.Background()
	r := &graph.Runner{Graph: newspaper(), Store: graph.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "monday", Break: []graph.Break{{Node: "review"}}})
	fmt.Println(res.Status, err)
	if _, err := r.EditNext(ctx, "monday", []string{"print"}, story.Set([]string{"reviewed by hand"})); err != nil {
		fmt.Println(err)
		return
	}
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "monday"})
	fmt.Println(res.Status, story.Get(res.State), err)
	// Output:
	// paused <nil>
	// done [a draft reviewed by hand printed] <nil>
}

// Each committed step tells its record: a reader can fork there while the run goes
// on.
func ExampleStepCommitted() {
	ctx, st := context.Background(), graph.NewMemory()
	r := &graph.Runner{Graph: newspaper(), Store: st}
	for ev, err := range r.Run(ctx, graph.Input{Thread: "monday", Topics: graph.TopicStep}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if b, ok := ev.Body.(graph.StepCommitted); ok && b.Nodes[0] == "write" {
			if err := graph.Fork(ctx, st, "monday", b.Seq, "another"); err != nil {
				fmt.Println(err)
			}
		}
	}
	res, err := r.InvokeResume(ctx, graph.Resume{Thread: "another", Set: []graph.Write{story.Reset([]string{"its own draft"})}})
	fmt.Println(res.Status, story.Get(res.State), err)
	// Output:
	// done [its own draft reviewed: its own draft printed] <nil>
}

// First writes to a thread when it begins, before what the caller sets; to a child
// when its node calls it. A later run of the thread finds what is there.
func ExampleDef_first() {
	ctx := context.Background()
	g := sound(graph.Def{
		Name: "first", Keys: []graph.AnyKey{story}, Start: []string{"write"},
		First: []graph.Write{story.Set([]string{"once upon a time"})},
		Nodes: []graph.Node{aLine("write", story, "there was a graph")},
		Edges: []graph.Edge{anEdge("write", graph.End)},
	})
	r := &graph.Runner{Graph: g, Store: graph.NewMemory()}
	for range 2 {
		res, err := r.Invoke(ctx, graph.Input{Thread: "tale"})
		fmt.Printf("%q %v\n", story.Get(res.State), err)
	}
	// Output:
	// ["once upon a time" "there was a graph"] <nil>
	// ["once upon a time" "there was a graph" "there was a graph"] <nil>
}
