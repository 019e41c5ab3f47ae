package graph_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"raddle.dev/graph"
)

// A node is a function: a test calls it with a state of writes, and reads what it
// writes.
func ExampleNewState() {
	words, longest := graph.Append[string]("words"), graph.Last[string]("longest")
	node := func(_ context.Context, s graph.State) (graph.Update, error) {
		best := ""
		for _, w := range words.Get(s) {
			if len(w) > len(best) {
				best = w
			}
		}
		return graph.Put(longest.Set(best)), nil
	}

	s, err := graph.NewState(words.Set([]string{"warp", "weft", "heddle"}))
	if err != nil {
		log.Fatal(err)
	}
	u, err := node(context.Background(), s)
	if err != nil {
		log.Fatal(err)
	}
	v, ok := longest.WrittenValue(u.Writes[0])
	fmt.Println(v, ok, len(u.Goto))
	// Output:
	// heddle true 0
}

// With Debug a run finds the node that modifies what it has read: here it sorts a
// list in place, which a concurrent node may read at the same time.
func Example_debug() {
	words := graph.Append[string]("words")
	g, err := graph.Compile(graph.Def{
		Name: "sort", Keys: []graph.AnyKey{words}, Start: []string{"upper"},
		Nodes: []graph.Node{{Name: "upper", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			list := words.Get(s) // slices.Clone(words.Get(s)) would be right
			list[0] = strings.ToUpper(list[0])
			return graph.Put(words.Reset(list)), nil
		}}},
		Edges: []graph.Edge{graph.NewEdge("upper", graph.End)},
	})
	if err != nil {
		log.Fatal(err)
	}
	in := graph.Input{Set: []graph.Write{words.Set([]string{"warp", "weft"})}}
	_, err = (&graph.Runner{Graph: g, Debug: true}).Invoke(context.Background(), in)
	var m *graph.ModifiedError
	fmt.Println(errors.As(err, &m), m.Keys)
	// Output:
	// true [words]
}

// What could be written and not read again is refused before anything runs.
func ExampleJSONCodec() {
	type note struct {
		Text  string
		Extra any
	}
	compile := func(k graph.AnyKey) error {
		_, err := graph.Compile(graph.Def{
			Name: "notes", Keys: []graph.AnyKey{k}, Start: []string{"n"},
			Nodes: []graph.Node{{Name: "n", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }}},
			Edges: []graph.Edge{graph.NewEdge("n", graph.End)},
		})
		return err
	}
	notes := graph.Append[note]("notes")
	var fault *graph.TypeError
	if errors.As(compile(notes), &fault) {
		fmt.Println(fault.Path, fault.Reason)
	}
	fmt.Println(compile(notes.WithCodec(graph.JSONCodec[[]note]())))
	// Output:
	// note.Extra is any: JSON would bring it back as another type (an int64 as a float64)
	// <nil>
}

// A Before hook hands a context to the node and its children, and gets how the
// attempt ended: that is what the span of a trace needs.
func ExampleSetup() {
	type span struct{}
	trace := graph.Hooks{Before: func(ctx context.Context, i graph.Info, _ graph.State) (graph.Setup, error) {
		above, _ := ctx.Value(span{}).(string)
		here := above + "/" + i.Node
		fmt.Println("begin", here)
		return graph.Setup{
			Context: context.WithValue(ctx, span{}, here),
			End:     func(err error) { fmt.Println("end", here, err) },
		}, nil
	}}
	idle := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	inner, err := graph.Compile(graph.Def{
		Name: "inner", Start: []string{"draft"}, Hooks: []graph.Hooks{trace},
		Nodes: []graph.Node{{Name: "draft", Run: idle}}, Edges: []graph.Edge{graph.NewEdge("draft", graph.End)},
	})
	if err != nil {
		log.Fatal(err)
	}
	g, err := graph.Compile(graph.Def{
		Name: "outer", Start: []string{"write"}, Hooks: []graph.Hooks{trace},
		Nodes: []graph.Node{{Name: "write", Graph: inner}}, Edges: []graph.Edge{graph.NewEdge("write", graph.End)},
	})
	if err != nil {
		log.Fatal(err)
	}
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{})
	fmt.Println(res.Status, err)
	// Output:
	// begin /write
	// begin /write/draft
	// end /write/draft <nil>
	// end /write <nil>
	// done <nil>
}

// A thread is deleted with all its records.
func ExampleDelete() {
	name := graph.Last[string]("name")
	g, err := graph.Compile(graph.Def{
		Name: "hello", Keys: []graph.AnyKey{name}, Start: []string{"greet"},
		Nodes: []graph.Node{{Name: "greet", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }}},
		Edges: []graph.Edge{graph.NewEdge("greet", graph.End)},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, store := context.Background(), graph.NewMemory()
	if _, err := (&graph.Runner{Graph: g, Store: store}).Invoke(ctx, graph.Input{Thread: "t1", Set: []graph.Write{name.Set("Ada")}}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(graph.Delete(ctx, store, "t1"))
	_, err = graph.Inspect(ctx, store, "t1", 0)
	fmt.Println(errors.Is(err, graph.ErrNoThread))
	// Output:
	// <nil>
	// true
}
