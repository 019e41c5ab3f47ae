// Command streams runs two nodes that emit text word by word at the same time.
// The words of one node arrive in order; how they mix with those of the other
// differs each time, so they are printed per node when the step is done. With
// -live each word is also printed as it arrives.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"strings"

	"raddle.dev/graph"
)

var text = graph.Append[string]("text")

// speaker makes a node that emits its words one by one, as a model does, and
// writes the whole text at its end. Emitted values are only for readers of the
// events: they are not in the state and not in the journal.
func speaker(name, words string) graph.Node {
	return graph.Node{Name: name, Kind: "speaker", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		for word := range strings.FieldsSeq(words) {
			graph.Emit(ctx, word)
		}
		return graph.Put(text.Set([]string{words})), nil
	}}
}

func count(_ context.Context, s graph.State) (graph.Update, error) {
	n := len(strings.Fields(strings.Join(text.Get(s), " ")))
	return graph.Update{Halt: &graph.Halt{Value: fmt.Sprintf("%d words from %d nodes", n, len(text.Get(s)))}}, nil
}

var def = graph.Def{
	Name: "streams",
	Keys: []graph.AnyKey{text},
	Nodes: []graph.Node{
		speaker("alto", "the rain it raineth every day"),
		speaker("tenor", "with hey ho the wind and the rain"),
		{Name: "count", Run: count},
	},
	Edges: []graph.Edge{
		{From: []string{"alto", "tenor"}, To: []string{"count"}},
		{From: []string{"count"}, To: []string{graph.End}},
	},
	Start: []string{"alto", "tenor"},
}

// A listener puts the words of a step together again, for each node.
type listener struct {
	live  bool
	words map[string][]string
}

func (l *listener) hear(ev graph.Event) {
	switch b := ev.Body.(type) {
	case graph.RunStarted:
		fmt.Println("graph", b.Graph)
	case graph.ValueEmitted:
		word := fmt.Sprint(b.Value)
		l.words[ev.Node] = append(l.words[ev.Node], word)
		if l.live {
			fmt.Printf("  event %d, %s: %s\n", ev.Seq, ev.Node, word)
		}
	case graph.StepCommitted:
		for _, node := range b.Nodes { // in the order of the definition
			for i, word := range l.words[node] {
				fmt.Printf("%s %d: %s\n", node, i+1, word)
			}
		}
		clear(l.words)
		fmt.Printf("step %d wrote %v\n", ev.Step, b.Keys)
	case graph.RunEnded:
		fmt.Printf("%s: %v\n", b.Result.Status, b.Result.Value)
	}
}

func run(ctx context.Context, live bool) error {
	g, err := graph.Compile(def)
	if err != nil {
		return err
	}
	l := &listener{live: live, words: map[string][]string{}}
	in := graph.Input{Topics: graph.TopicRun | graph.TopicStep | graph.TopicEmit} // other events are not built
	for ev, err := range (&graph.Runner{Graph: g}).Run(ctx, in) {
		if err != nil {
			return err // always the last
		}
		l.hear(ev)
	}
	return nil
}

func main() {
	live := flag.Bool("live", false, "print each word as it arrives")
	flag.Parse()
	if err := run(context.Background(), *live); err != nil {
		log.Fatal(err)
	}
}
