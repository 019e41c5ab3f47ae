package graph_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
)

// goroutine is the number of the calling goroutine.
func goroutine() string {
	var b [64]byte
	return strings.Fields(string(b[:runtime.Stack(b[:], false)]))[1]
}

// A quiet node runs on the reader's goroutine, and others do not.
func TestQuietNodesRunOnTheReadersGoroutine(t *testing.T) {
	settled(t, func(t *testing.T) {
		var at []string
		node := func(name string, quiet bool) graph.Node {
			return graph.Node{Name: name, Quiet: quiet, Run: func(context.Context, graph.State) (graph.Update, error) {
				at = append(at, goroutine())
				return graph.Update{}, nil
			}}
		}
		g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a"}, Nodes: []graph.Node{node("a", true), node("b", false), node("c", true)},
			Edges: []graph.Edge{edge("a", "b"), edge("b", "c"), edge("c", graph.End)}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, res, err := collect(kept(g).Run(ctx, graph.Input{Topics: graph.AllTopics}))
		is(t, graph.Done, res, err)
		if here := goroutine(); at[0] != here || at[1] == here || at[2] != here {
			t.Errorf("the reader is %s, the nodes ran on %v", here, at)
		}
	})
}

// What a quiet node emits all the same is delivered when it has returned, however much
// it is, in its order and between the events of its task.
func TestWhatQuietNodesEmit(t *testing.T) {
	settled(t, func(t *testing.T) {
		const many = 1000
		emit := func(ctx context.Context, _ graph.State) (graph.Update, error) {
			for i := range many {
				graph.Emit(ctx, i)
			}
			return graph.Update{}, nil
		}
		for _, siblings := range []int{0, 1} {
			nodes := []graph.Node{{Name: "a", Quiet: true, Run: emit}}
			for i := range siblings {
				nodes = append(nodes, graph.Node{Name: fmt.Sprint("b", i), Quiet: true, Run: emit})
			}
			next, started, done := map[string]int{}, 0, 0
			for e, err := range kept(parallel(t, nodes...)).Run(t.Context(), graph.Input{Topics: graph.AllTopics}) {
				if err != nil {
					t.Fatal(err)
				}
				switch b := e.Body.(type) {
				case graph.TaskStarted:
					started++
				case graph.ValueEmitted:
					if b.Value != next[e.Node] {
						t.Fatalf("%v, want %d", b.Value, next[e.Node])
					}
					next[e.Node]++
				case graph.TaskDone:
					if done++; next[e.Node] != many {
						t.Errorf("%d values of %s before its end", next[e.Node], e.Node)
					}
				}
			}
			if started != 1+siblings || done != 1+siblings {
				t.Errorf("%d tasks, %d ended", started, done)
			}
		}
	})
}

// A reader that leaves at the first value of a quiet node gets no other event, and the
// run is canceled behind the node.
func TestAReaderThatLeavesAQuietNode(t *testing.T) {
	settled(t, func(t *testing.T) {
		r := kept(parallel(t, graph.Node{Name: "a", Quiet: true, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			graph.Emit(ctx, 1)
			graph.Emit(ctx, 2)
			time.Sleep(time.Hour)
			return graph.Put(only.Set("a")), nil
		}}))
		for e := range r.Run(t.Context(), graph.Input{Thread: thread, Topics: graph.AllTopics}) {
			if b, ok := e.Body.(graph.ValueEmitted); ok {
				if b.Value != 1 {
					t.Error(b.Value)
				}
				break
			}
		}
		if s, err := graph.Inspect(t.Context(), r.Store, thread, 0); err != nil || s.Status != graph.Canceled {
			t.Error(s.Status, err)
		}
	})
}
