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
	"raddle.dev/graph/journal"
)

func TestHooksWrapTheNodeInOrder(t *testing.T) {
	var log []string
	named := func(name string) graph.Hooks {
		return graph.Hooks{
			Before: func(_ context.Context, i graph.Info, _ graph.State) (graph.Setup, error) {
				log = append(log, name+" before "+i.Node)
				return graph.Setup{}, nil
			},
			After: func(_ context.Context, _ graph.Info, _ graph.State, u graph.Update, err error) (graph.Update, error) {
				log = append(log, name+" after")
				return u, err
			},
			Error: func(_ context.Context, i graph.Info, err error) { log = append(log, name+" error") },
		}
	}
	n := graph.Sum[int]("n")
	g := compile(t, graph.Def{Name: "hooks", Keys: []graph.AnyKey{n}, Start: []string{"a"}, Hooks: []graph.Hooks{named("graph")},
		Nodes: []graph.Node{{Name: "a", Hooks: []graph.Hooks{named("node")}, Retry: graph.Retry{Attempts: 2}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			log = append(log, "run")
			if graph.Attempt(ctx) == 1 {
				return graph.Update{}, errors.New("first")
			}
			return graph.Put(n.Set(1)), nil
		}}}, Edges: []graph.Edge{edge("a", graph.End)}})
	if _, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{}); err != nil {
		t.Fatal(err)
	}
	attempt := []string{"graph before a", "node before a", "run", "node after", "graph after"}
	want := append(append(append([]string{}, attempt...), "graph error", "node error"), attempt...)
	if diff := cmp.Diff(want, log); diff != "" {
		t.Error(diff)
	}
}

func TestANodeHasTheInfoOfItsHooks(t *testing.T) {
	var hook, node, outer graph.Info
	child := compile(t, graph.Def{Name: "child", Start: []string{"in"}, Nodes: []graph.Node{{Name: "in", Kind: "work",
		Hooks: []graph.Hooks{{Before: func(_ context.Context, i graph.Info, _ graph.State) (graph.Setup, error) {
			hook = i
			return graph.Setup{}, nil
		}}},
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			node = graph.TaskInfo(ctx)
			return graph.Update{}, nil
		}}}, Edges: []graph.Edge{edge("in", graph.End)}})
	g := compile(t, graph.Def{Name: "parent", Start: []string{"out"}, Nodes: []graph.Node{{Name: "out", Graph: child, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		outer = graph.TaskInfo(ctx)
		_, err := graph.Call(ctx)
		return graph.Update{}, err
	}}}, Edges: []graph.Edge{edge("out", graph.End)}})
	if _, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{Run: "r1"}); err != nil {
		t.Fatal(err)
	}
	want := graph.Info{Run: "r1", Graph: "child", Path: "out/", Node: "in", Kind: "work", Step: node.Step, Attempt: 1, Tasks: 1}
	if node != want || hook != node || outer.Path != "" || outer.Node != "out" || outer.Run != "r1" {
		t.Errorf("the node is told %+v, its hook %+v, the node above %+v; want %+v", node, hook, outer, want)
	}
	if none := graph.TaskInfo(t.Context()); none != (graph.Info{}) {
		t.Errorf("outside a node: %+v", none)
	}
}

func TestHooksReplaceInputResultAndError(t *testing.T) {
	in, out := graph.Last[string]("in"), graph.Last[string]("out")
	ran := 0
	node := graph.Node{Name: "a", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
		ran++
		if in.Get(s) == "fail" {
			return graph.Update{}, errors.New("broken")
		}
		return graph.Put(out.Set("ran on " + in.Get(s))), nil
	}}
	for _, c := range []struct {
		name  string
		hooks graph.Hooks
		in    string
		want  string
		runs  int
	}{
		{"input", graph.Hooks{Before: func(context.Context, graph.Info, graph.State) (graph.Setup, error) {
			return graph.Setup{See: []graph.Write{in.Set("other")}}, nil
		}}, "x", "ran on other", 1},
		{"result", graph.Hooks{Before: func(context.Context, graph.Info, graph.State) (graph.Setup, error) {
			u := graph.Put(out.Set("not run"))
			return graph.Setup{Result: &u}, nil
		}}, "x", "not run", 0},
		{"error", graph.Hooks{After: func(_ context.Context, _ graph.Info, _ graph.State, u graph.Update, err error) (graph.Update, error) {
			if err != nil {
				return graph.Put(out.Set("recovered from " + err.Error())), nil
			}
			return u, nil
		}}, "fail", "recovered from broken", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran = 0
			n := node
			n.Hooks = []graph.Hooks{c.hooks}
			g := compile(t, graph.Def{Name: "h", Keys: []graph.AnyKey{in, out}, Start: []string{"a"}, Nodes: []graph.Node{n}, Edges: []graph.Edge{edge("a", graph.End)}})
			res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{Set: []graph.Write{in.Set(c.in)}})
			if err != nil || out.Get(res.State) != c.want || ran != c.runs {
				t.Errorf("out %q, %d runs, %v", out.Get(res.State), ran, err)
			}
			if c.name == "input" && in.Get(res.State) != "x" {
				t.Errorf("what a hook showed one attempt got into the state: %q", in.Get(res.State))
			}
		})
	}
}

func TestHooksAreNotCalledForAQuestion(t *testing.T) {
	told := 0
	g := compile(t, graph.Def{Name: "q", Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Retry: graph.Retry{Attempts: 3}, Hooks: []graph.Hooks{{
		After: func(_ context.Context, _ graph.Info, _ graph.State, u graph.Update, err error) (graph.Update, error) {
			told++
			return u, err
		},
		Error: func(context.Context, graph.Info, error) { told++ },
	}}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "?"})
		return graph.Update{}, err
	}}}, Edges: []graph.Edge{edge("a", graph.End)}})
	res, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{})
	if err != nil || res.Status != graph.Waiting || told != 0 {
		t.Errorf("%v, %v, told %d times", res.Status, err, told)
	}
}

func TestAPanicInAHookIsAnErrorOfItsNode(t *testing.T) {
	nop := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, errors.New("x") }
	for name, h := range map[string]graph.Hooks{
		"before": {Before: func(context.Context, graph.Info, graph.State) (graph.Setup, error) { panic("hook") }},
		"after": {After: func(context.Context, graph.Info, graph.State, graph.Update, error) (graph.Update, error) {
			panic("hook")
		}},
		"error": {Error: func(context.Context, graph.Info, error) { panic("hook") }},
	} {
		g := compile(t, graph.Def{Name: "p", Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Hooks: []graph.Hooks{h}, Run: nop}}, Edges: []graph.Edge{edge("a", graph.End)}})
		_, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
		var ne *graph.NodeError
		if !errors.As(err, &ne) || !strings.Contains(err.Error(), "hook") || ne.Stack == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type spanKey struct{}

// A context that Before passes on reaches the node, the After hooks and the nodes
// of a child; End is called however the attempt ends.
func TestBeforePassesAContextOn(t *testing.T) {
	k := graph.Last[string]("k")
	var log []string
	span := func(name string) graph.Hooks {
		return graph.Hooks{Before: func(ctx context.Context, i graph.Info, _ graph.State) (graph.Setup, error) {
			above, _ := ctx.Value(spanKey{}).(string)
			at := above + "/" + name + ":" + i.Node
			return graph.Setup{Context: context.WithValue(ctx, spanKey{}, at), End: func(err error) {
				log = append(log, fmt.Sprintf("%s %v", at, err))
			}}, nil
		}, After: func(ctx context.Context, _ graph.Info, _ graph.State, u graph.Update, err error) (graph.Update, error) {
			for _, w := range u.Writes {
				v, ok := k.WrittenValue(w)
				log = append(log, fmt.Sprintf("%s wrote %q %v %v", ctx.Value(spanKey{}), v, ok, w.Value()))
			}
			return u, err
		}}
	}
	child := compile(t, graph.Def{Name: "child", Keys: []graph.AnyKey{k}, Hooks: []graph.Hooks{span("child")}, Start: []string{"in"}, Edges: []graph.Edge{edge("in", graph.End)},
		Nodes: []graph.Node{{Name: "in", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			v, err := graph.Do(ctx, "d", func(ctx context.Context) (string, error) { return ctx.Value(spanKey{}).(string), nil })
			return graph.Put(k.Set(v)), err
		}}}})
	g := compile(t, graph.Def{Name: "g", Keys: []graph.AnyKey{k}, Hooks: []graph.Hooks{span("graph"), span("second")}, Start: []string{"sub"}, Edges: []graph.Edge{edge("sub", "ask"), edge("ask", "bang"), edge("bang", graph.End)},
		Nodes: []graph.Node{{Name: "sub", Graph: child}, {Name: "ask", Run: asks(nil)}, {Name: "bang", OnError: graph.End, Run: func(context.Context, graph.State) (graph.Update, error) { panic("oops") }}}})
	r := kept(g)
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, r, graph.Answer{Value: "x"}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`/graph:sub/second:sub/child:in wrote "/graph:sub/second:sub/child:in" true /graph:sub/second:sub/child:in`,
		"/graph:sub/second:sub/child:in <nil>", "/graph:sub/second:sub <nil>", "/graph:sub <nil>",
		"/graph:ask/second:ask " + graph.ErrWaiting.Error(), "/graph:ask " + graph.ErrWaiting.Error(),
		"/graph:ask/second:ask <nil>", "/graph:ask <nil>",
		"/graph:bang/second:bang graph: the node panicked", "/graph:bang graph: the node panicked",
	}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Error(diff)
	}
}

func TestBeforeMustPassOnItsOwnContext(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Start: []string{"a"}, Edges: []graph.Edge{edge("a", graph.End)}, Nodes: []graph.Node{{Name: "a", Run: idle}},
		Hooks: []graph.Hooks{{Before: func(context.Context, graph.Info, graph.State) (graph.Setup, error) {
			return graph.Setup{Context: context.Background()}, nil
		}}}})
	_, err := start(t, kept(g))
	wantError(t, "another context", err, "hook before node a", "was not made from the context")
}

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
	if _, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{}); err != nil {
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

// A hook of the graph around the node is heard as well as one of the node, and its panic fails the node too.
func TestAPanicOfAHookOfTheGraphFailsTheNode(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Start: []string{"a"}, Edges: []graph.Edge{edge("a", graph.End)}, Nodes: []graph.Node{emits("a", 1)},
		Hooks: []graph.Hooks{{Emit: func(context.Context, graph.Info, any) { panic("in the hook") }}}})
	_, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
	var ne *graph.NodeError
	if !errors.As(err, &ne) || ne.Stack == nil || !strings.Contains(err.Error(), "Hooks.Emit of node a") {
		t.Error(err)
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

// The end of an attempt whose child has paused reaches its hooks as such.
func TestHooksHearOfAPause(t *testing.T) {
	child := parallel(t, graph.Node{Name: "one", Run: idle})
	var ends []error
	hooks := graph.Hooks{Before: func(context.Context, graph.Info, graph.State) (graph.Setup, error) {
		return graph.Setup{End: func(err error) { ends = append(ends, err) }}, nil
	}}
	g := parallel(t, graph.Node{Name: "n", Graph: child, Hooks: []graph.Hooks{hooks}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Call(ctx)
		if err != nil {
			err = fmt.Errorf("the child has stopped: %w", err)
		}
		return graph.Update{}, err
	}})
	r := kept(g)
	res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Break: []graph.Break{{Node: "n/one"}}})
	is(t, graph.Paused, res, err)
	res, err = resume(t, r)
	is(t, graph.Done, res, err)
	if len(ends) != 2 || ends[0] != graph.ErrPaused || ends[1] != nil {
		t.Errorf("%v", ends)
	}
}
