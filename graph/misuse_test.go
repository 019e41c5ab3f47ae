package graph_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

func wantError(t *testing.T, what string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) || strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: %v; want %q", what, err, p)
		}
	}
}

func TestRunnersWithoutAGraphFail(t *testing.T) {
	ctx := t.Context()
	for name, g := range map[string]*graph.Graph{"nil": nil, "zero": {}} {
		r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
		res, err := r.Invoke(ctx, graph.Input{})
		wantError(t, name+" Invoke", err, "make one with Compile", "no Graph")
		if res.Status != graph.NotStarted {
			t.Errorf("%s: status %v", name, res.Status)
		}
		_, err = r.InvokeResume(ctx, graph.Resume{Thread: "t"})
		wantError(t, name+" InvokeResume", err, "no Graph")
		for what, stream := range map[string]iter.Seq2[graph.Event, error]{
			" Run":    r.Run(ctx, graph.Input{Topics: graph.AllTopics}),
			" Resume": r.Resume(ctx, graph.Resume{Thread: "t"}),
		} {
			yielded := 0
			for ev, err := range stream {
				yielded++
				wantError(t, name+what, err, "no Graph")
				if ev.Body != nil {
					t.Errorf("%s%s: event %v", name, what, ev)
				}
			}
			if yielded != 1 {
				t.Errorf("%s%s yields %d times, want the error once", name, what, yielded)
			}
		}
		_, err = r.State(ctx, "t", 0)
		wantError(t, name+" State", err, "no Graph")
		_, err = r.Edit(ctx, "t", graph.Last[int]("n").Set(1))
		wantError(t, name+" Edit", err, "no Graph")
		_, err = r.EditNext(ctx, "t", []string{"a"})
		wantError(t, name+" EditNext", err, "no Graph")
		wantError(t, name+" CheckAnswers", r.CheckAnswers(ctx, "t"), "no Graph")
	}
}

func TestCompileRefusesGraphsThatWereNotCompiled(t *testing.T) {
	for _, n := range []graph.Node{{Name: "a", Graph: &graph.Graph{}}, {Name: "a", Run: idle, Graph: &graph.Graph{}}, {Name: "a", Run: idle, Children: map[string]graph.ChildGraph{"kid": {Graph: &graph.Graph{}}}}} {
		_, err := graph.Compile(graph.Def{Name: "g", Start: []string{"a"}, Nodes: []graph.Node{n}, Edges: []graph.Edge{edge("a", graph.End)}})
		wantError(t, "Compile", err, `node "a" was not made by Compile`)
	}
}

func TestFunctionsWithoutAStoreFail(t *testing.T) {
	ctx := t.Context()
	_, inspect := history.Inspect(ctx, nil, "t", 0)
	_, prune := history.Prune(ctx, nil, "t", history.Keep{})
	_, abandon := history.Abandon(ctx, nil, "t", "")
	_, lineage := history.Lineage(ctx, nil, "")
	_, diff := history.Diff(ctx, nil, journal.Point{Thread: "t"}, journal.Point{Thread: "u"})
	_, blame := history.Blame(ctx, nil, "t", "k")
	for name, err := range map[string]error{"Fork": history.Fork(ctx, nil, "t", 0, "u"), "Abandon": abandon, "Delete": history.Delete(ctx, nil, "t"),
		"Inspect": inspect, "Prune": prune, "Lineage": lineage, "Diff": diff, "Blame": blame} {
		wantError(t, name, err, "the Store is nil")
	}
	for _, err := range history.Entries(ctx, nil, "t") {
		wantError(t, "History", err, "the Store is nil")
	}
	for _, err := range history.Checkpoints(ctx, nil, "t") {
		wantError(t, "Checkpoints", err, "the Store is nil")
	}
}

func TestARunThatDidNotStartIsReported(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	k := graph.Last[int]("k")
	g := compile(t, graph.Def{Name: "g", Keys: []graph.AnyKey{k}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: asks(nil)}}, Edges: []graph.Edge{edge("a", graph.End)}})
	r := kept(g)
	res, err := r.Invoke(ended, graph.Input{Thread: thread})
	if !errors.Is(err, context.Canceled) || res.Status != graph.NotStarted || res.Status.String() != "not-started" {
		t.Errorf("status %v, error %v", res.Status, err)
	}
	res, err = r.Invoke(t.Context(), graph.Input{Thread: thread, Set: []graph.Write{graph.Last[string]("other").Set("x")}})
	if err == nil || res.Status != graph.NotStarted {
		t.Errorf("status %v, error %v", res.Status, err)
	}
	if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "nowhere"}); !errors.Is(err, journal.ErrNoThread) || res.Status != graph.NotStarted {
		t.Errorf("status %v, error %v", res.Status, err)
	}
	if res, err = start(t, r); err != nil || res.Status != graph.Waiting {
		t.Fatalf("status %v, error %v", res.Status, err)
	}
	if res, err = start(t, r); err == nil || res.Status != graph.NotStarted {
		t.Errorf("a thread that is not free: status %v, error %v", res.Status, err)
	}
}

func TestHistoryIsReadable(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Start: []string{"a"}, Edges: []graph.Edge{edge("a", graph.End)}, Nodes: []graph.Node{{Name: "a",
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.DoEffect(ctx, graph.Effect{Name: "pay", Key: "k1", InDoubt: graph.DoubtAsk}, func(context.Context) (int, error) { return 1, nil })
			if err == nil {
				_, err = graph.Interrupt[bool](ctx, graph.Ask{Prompt: "ok?"})
			}
			return graph.Update{}, err
		}}}})
	r := kept(g)
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, r, graph.Answer{ID: "a", Value: true}); err != nil {
		t.Fatal(err)
	}
	seen := map[journal.Kind]string{}
	for e, err := range history.Entries(t.Context(), r.Store, thread) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(e.What, "\x00") {
			t.Errorf("%v: %q", e.Kind, e.What)
		}
		seen[e.Kind] = e.What + "|" + e.ID
	}
	for kind, want := range map[journal.Kind]string{
		journal.KindIntent: "0.a.0 pay =k1|0.a.0\x00pay\x00=k1", journal.KindEffect: "0.a.0 pay =k1|0.a.0\x00pay\x00=k1", journal.KindAnswer: "0.a.0 0|",
	} {
		if seen[kind] != want {
			t.Errorf("%v: %q, want %q", kind, seen[kind], want)
		}
	}
}

// askGraph is a node "b" that asks, in a child of node "sub", next to a named child.
func askGraph(t *testing.T) *graph.Graph {
	t.Helper()
	child := compile(t, graph.Def{Name: "child", Start: []string{"b"}, Nodes: []graph.Node{{Name: "b", Run: asks(nil)}}, Edges: []graph.Edge{edge("b", graph.End)}})
	return compile(t, graph.Def{Name: "g", Start: []string{"review"}, Edges: []graph.Edge{edge("review", "sub"), edge("sub", graph.End)},
		Nodes: []graph.Node{{Name: "review", Run: asks(nil)}, {Name: "sub", Graph: child}}})
}

func TestTheOneOpenQuestionNeedsNoID(t *testing.T) {
	r := kept(askGraph(t))
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	if err := r.CheckAnswers(t.Context(), thread, graph.Answer{Value: "x"}); err != nil {
		t.Error(err)
	}
	if _, err := resume(t, r, graph.Answer{Value: "x"}, graph.Answer{ID: "review", Value: "y"}); err == nil || !strings.Contains(err.Error(), "answered twice") {
		t.Errorf("error %v", err)
	}
	res, err := resume(t, r, graph.Answer{Value: "x"})
	if err != nil || res.Status != graph.Waiting || res.Questions[0].ID != "sub/b" {
		t.Fatalf("%v %v %v", res.Status, res.Questions, err)
	}
	if res, err = resume(t, r, graph.Answer{Value: "x"}); err != nil || res.Status != graph.Done {
		t.Fatalf("%v %v", res.Status, err)
	}
	both := compile(t, graph.Def{Name: "two", Start: []string{"a", "b"}, Nodes: []graph.Node{{Name: "a", Run: asks(nil)}, {Name: "b", Run: asks(nil)}}, Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)}})
	r = kept(both)
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	_, err = resume(t, r, graph.Answer{Value: "x"})
	wantError(t, "two are open", err, "names no question, and 2 are open", "a, b")
}

func TestAnEffectWithAResultOfAnotherType(t *testing.T) {
	var n any = "text"
	node := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		var err error
		if _, isText := n.(string); isText {
			_, err = graph.Do(ctx, "e", func(context.Context) (string, error) { return "text", nil })
		} else {
			_, err = graph.Do(ctx, "e", func(context.Context) (int, error) { return 1, nil })
		}
		if err == nil {
			_, err = graph.Interrupt[string](ctx, graph.Ask{Prompt: "well?"})
		}
		return graph.Update{}, err
	}
	r := kept(parallel(t, graph.Node{Name: "n", Run: node}))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	n = 1
	_, err = resume(t, r, says("", "go"))
	if err == nil || !strings.Contains(err.Error(), `effect "e": its recorded result cannot be read`) {
		t.Error(err)
	}
}

// Without an effect that runs, a call outside of one has a key of its own, each time another one.
func TestEffectKeyWithoutAnEffect(t *testing.T) {
	var keys []string
	g := parallel(t, graph.Node{Name: "n", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		keys = append(keys, graph.EffectKey(ctx), graph.EffectKey(ctx))
		return graph.Update{}, nil
	}})
	res, err := start(t, kept(g))
	if is(t, graph.Done, res, err); keys[0] == "" || keys[0] == keys[1] {
		t.Errorf("%q", keys)
	}
	if key := graph.EffectKey(t.Context()); key != "" {
		t.Errorf("outside of a node: %q", key)
	}
}
