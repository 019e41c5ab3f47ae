package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// askedGraph returns a graph that asks at its second node, which has a name, and a branch.
func askedGraph(t *testing.T, name, second, doc string) *graph.Graph {
	t.Helper()
	done := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	inner, err := graph.Compile(graph.Def{Name: "inner", Start: []string{"leaf"}, Nodes: []graph.Node{{Name: "leaf", Kind: "work", Run: done}}, Edges: []graph.Edge{graph.NewEdge("leaf", graph.End)}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.Compile(graph.Def{
		Name: name, Keys: []graph.AnyKey{graph.Append[string]("list"), graph.Sum[int]("sum")}, Start: []string{"first"},
		Nodes: []graph.Node{
			{Name: "first", Kind: "work", Title: "The first", Doc: doc, Run: done},
			{Name: second, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "on?"})
				return graph.Update{}, err
			}},
			{Name: "below", Graph: inner},
		},
		Edges: []graph.Edge{
			{From: []string{"first"}, Cases: map[string]string{"yes": second}, Pick: func(graph.State) ([]string, error) { return []string{"yes"}, nil }},
			graph.NewEdge(second, "below"), graph.NewEdge("below", graph.End),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The journal has the structure of the graph that a run works with, wherever it is read: after the start, a snapshot, a prune, a
// fork, a further run of the thread, and a resume with another graph; and it has it for each of these moments.
func TestStructureIsInTheJournal(t *testing.T) {
	ctx := t.Context()
	st := journal.NewMemory()
	was, is := askedGraph(t, "g", "second", "what it does"), askedGraph(t, "g", "other", "")
	shapeOf := func(thread string, at int64) string {
		t.Helper()
		snap, err := history.Inspect(ctx, st, thread, at)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(snap.Structure)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	textOf := func(g *graph.Graph) string {
		b, err := json.Marshal(g.Structure())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	r := &graph.Runner{Graph: was, Store: st}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "t", Meta: []byte("m")}); err != nil {
		t.Fatal(err)
	}
	head := func() int64 {
		snap, err := history.Inspect(ctx, st, "t", 0)
		if err != nil {
			t.Fatal(err)
		}
		return snap.Head
	}
	waiting := head()
	expect := func(what, got string, g *graph.Graph) {
		t.Helper()
		if got != textOf(g) {
			t.Errorf("%s: the structure is %s, want %s", what, got, textOf(g))
		}
	}
	expect("the start", shapeOf("t", 1), was)
	expect("the question", shapeOf("t", 0), was)
	if err := history.Fork(ctx, st, "t", waiting, "fork"); err != nil {
		t.Fatal(err)
	}
	expect("a fork", shapeOf("fork", 0), was)
	// A second node with another name, which the run has not reached in the fork of its start.
	if err := history.Fork(ctx, st, "t", 1, "early"); err != nil {
		t.Fatal(err)
	}
	other := &graph.Runner{Graph: is, Store: st}
	if _, err := other.InvokeResume(ctx, graph.Resume{Thread: "early", AcceptChanges: true, Meta: []byte("n")}); err != nil {
		t.Fatal(err)
	}
	expect("a fork, before it continued", shapeOf("early", 1), was)
	expect("a resume with another graph", shapeOf("early", 0), is)
	if snap, err := history.Inspect(ctx, st, "early", 0); err != nil || string(snap.Meta) != "n" {
		t.Errorf("the meta is %q, %v; want that of the resume", snap.Meta, err)
	}
	if err := history.WriteSnapshot(ctx, st, "early"); err != nil {
		t.Fatal(err)
	}
	if _, err := history.Prune(ctx, st, "early", history.Keep{}); err != nil {
		t.Fatal(err)
	}
	expect("a pruned thread", shapeOf("early", 0), is)
	if _, err := r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: []graph.Answer{{Value: "yes"}}}); err != nil {
		t.Fatal(err)
	}
	ended := head()
	if _, err := r.Invoke(ctx, graph.Input{Thread: "t"}); err != nil {
		t.Fatal(err)
	}
	expect("a second run", shapeOf("t", 0), was)
	sizes := map[journal.Kind][]int{}
	for rec, err := range journal.Records(ctx, st, "t", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kind == journal.KindStart || rec.Kind == journal.KindClaim {
			sizes[rec.Kind] = append(sizes[rec.Kind], len(rec.Data))
		}
		if again, err := journal.RewriteRecord("t", rec, func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "what it does", "***")) }); err != nil {
			t.Error(err)
		} else if strings.Contains(string(again.Data), "what it does") {
			t.Errorf("a text stayed in record %d: %q", rec.Seq, again.Data)
		}
	}
	if starts := sizes[journal.KindStart]; len(starts) != 2 || starts[0] < len(textOf(was)) || starts[1] > 40 {
		t.Errorf("starts have %v bytes: the second must not repeat the structure", starts)
	}
	if claims := sizes[journal.KindClaim]; len(claims) != 1 || claims[0] != 0 {
		t.Errorf("claims have %v bytes, although nothing has changed", claims)
	}
	_ = ended
}

// A structure is bounded: of a large graph, first the descriptions are left out, then the children.
func TestStructureIsBounded(t *testing.T) {
	const bound = 128 << 10
	done := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	build := func(nodes, doc int, child *graph.Graph) *graph.Graph {
		d := graph.Def{Name: "large", Start: []string{"n0"}}
		for i := range nodes {
			n := graph.Node{Name: fmt.Sprintf("n%d", i), Doc: strings.Repeat("d", doc), Run: done}
			if child != nil {
				n.Run, n.Graph = nil, child
			}
			to := fmt.Sprintf("n%d", i+1)
			if i == nodes-1 {
				to = graph.End
			}
			d.Nodes, d.Edges = append(d.Nodes, n), append(d.Edges, graph.NewEdge(n.Name, to))
		}
		g, err := graph.Compile(d)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for name, c := range map[string]struct {
		g     *graph.Graph
		nodes int
		doc   bool
		child bool
	}{
		"small":          {build(3, 10, build(2, 5, nil)), 3, true, true},
		"long texts":     {build(50, 10_000, build(2, 5, nil)), 50, false, true},
		"many children":  {build(300, 10, build(50, 5, nil)), 300, false, false},
		"far too large":  {build(20_000, 0, nil), 0, false, false},
		"exactly enough": {build(100, 10, nil), 100, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			st := journal.NewMemory()
			if _, err := (&graph.Runner{Graph: c.g, Store: st}).Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
				t.Fatal(err)
			}
			snap, err := history.Inspect(t.Context(), st, "t", 1)
			if err != nil {
				t.Fatal(err)
			}
			for rec, err := range journal.Records(t.Context(), st, "t", journal.Range{UpTo: 1}) {
				if err != nil || len(rec.Data) > bound+100 {
					t.Errorf("the start has %d bytes, %v", len(rec.Data), err)
				}
			}
			if c.nodes == 0 {
				if snap.Structure != nil {
					t.Errorf("it has %d nodes", len(snap.Structure.Nodes))
				}
				return
			}
			if s := snap.Structure; s == nil || len(s.Nodes) != c.nodes || (s.Nodes[0].Doc != "") != c.doc || (s.Nodes[0].Child != nil) != c.child {
				t.Errorf("%+v", s)
			}
		})
	}
}
