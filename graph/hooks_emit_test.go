package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
)

// heard collects what hooks of several nodes hear.
type heard struct {
	mu    sync.Mutex
	lines []string
}

// by returns a hook that notes what it hears under a name.
func (h *heard) by(name string) graph.Hooks {
	return graph.Hooks{Emit: func(_ context.Context, i graph.Info, v any) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lines = append(h.lines, fmt.Sprintf("%s: %s%s says %v", name, i.Path, i.Node, v))
	}}
}

// emits is a node that emits values.
func emits(name string, values ...any) graph.Node {
	return graph.Node{Name: name, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		if !graph.IsEmitEnabled(ctx) {
			return graph.Update{}, nil
		}
		for _, v := range values {
			graph.Emit(ctx, v)
		}
		return graph.Update{}, nil
	}}
}

func TestHooksHearWhatIsEmittedAtAndBelowTheirNode(t *testing.T) {
	for _, topics := range []graph.Topic{0, graph.TopicEmit, graph.AllTopics | graph.TopicPhase} {
		var h heard
		deep := compile(t, graph.Def{Name: "deep", Start: []string{"c"}, Nodes: []graph.Node{emits("c", 3)}, Edges: []graph.Edge{edge("c", graph.End)}})
		b := emits("b", 1, 2)
		b.Hooks = []graph.Hooks{h.by("b")}
		child := compile(t, graph.Def{Name: "child", Start: []string{"b"}, Nodes: []graph.Node{b, {Name: "d", Graph: deep}}, Edges: []graph.Edge{edge("b", "d"), edge("d", graph.End)}})
		g := compile(t, graph.Def{Name: "g", Start: []string{"before"}, Hooks: []graph.Hooks{h.by("graph")}, Nodes: []graph.Node{
			emits("before", 0), {Name: "a", Graph: child, Hooks: []graph.Hooks{h.by("a")}},
		}, Edges: []graph.Edge{edge("before", "a"), edge("a", graph.End)}})
		emitted := 0
		for e, err := range (&graph.Runner{Graph: g}).Run(t.Context(), graph.Input{Topics: topics}) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := e.Body.(graph.ValueEmitted); ok {
				emitted++
			}
		}
		want := []string{
			"graph: before says 0",
			"b: a/b says 1", "a: a/b says 1", "graph: a/b says 1",
			"b: a/b says 2", "a: a/b says 2", "graph: a/b says 2",
			"a: a/d/c says 3", "graph: a/d/c says 3",
		}
		if diff := cmp.Diff(want, h.lines); diff != "" {
			t.Errorf("topics %d:\n%s", topics, diff)
		}
		if read := map[bool]int{true: 4}[topics&graph.TopicEmit != 0]; emitted != read {
			t.Errorf("topics %d: %d values were read", topics, emitted)
		}
	}
}

func TestHooksOfANodeHearItsNamedChildren(t *testing.T) {
	var h heard
	child := compile(t, graph.Def{Name: "child", Start: []string{"b"}, Nodes: []graph.Node{emits("b", "x")}, Edges: []graph.Edge{edge("b", graph.End)}})
	g := parallel(t, graph.Node{Name: "a", Hooks: []graph.Hooks{h.by("a")}, Children: map[string]graph.ChildGraph{"kind": {Graph: child}},
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.CallChild(ctx, "one", "kind")
			return graph.Update{}, err
		}})
	if _, err := (&graph.Runner{Graph: g, Store: graph.NewMemory()}).Invoke(t.Context(), graph.Input{}); err != nil {
		t.Fatal(err)
	}
	if len(h.lines) != 1 || !strings.HasSuffix(h.lines[0], "b says x") {
		t.Error(h.lines)
	}
}

func TestAPanicOfAHookThatListensFailsItsNode(t *testing.T) {
	for _, beside := range []bool{false, true} {
		n := graph.Node{Name: "a", Hooks: []graph.Hooks{{Emit: func(context.Context, graph.Info, any) { panic("in the hook") }}},
			Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if !beside {
					graph.Emit(ctx, 1)
					return graph.Update{}, nil
				}
				done := make(chan struct{})
				go func() { defer close(done); graph.Emit(ctx, 1) }()
				<-done
				return graph.Update{}, nil
			}}
		_, err := (&graph.Runner{Graph: parallel(t, n)}).Invoke(t.Context(), graph.Input{})
		var ne *graph.NodeError
		if !errors.As(err, &ne) || ne.Stack == nil || !strings.Contains(err.Error(), "Hooks.Emit of node a") {
			t.Errorf("beside %v: %v", beside, err)
		}
	}
}

func TestAHookThatListensMayEmit(t *testing.T) {
	n := emits("a", "value")
	n.Hooks = []graph.Hooks{{Emit: func(ctx context.Context, _ graph.Info, v any) { graph.Emit(ctx, fmt.Sprint("heard ", v)) }}}
	var got []any
	for e, err := range (&graph.Runner{Graph: parallel(t, n)}).Run(t.Context(), graph.Input{Topics: graph.TopicEmit}) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(graph.ValueEmitted); ok {
			got = append(got, b.Value)
		}
	}
	if diff := cmp.Diff([]any{"heard value", "value"}, got); diff != "" {
		t.Error(diff)
	}
}
