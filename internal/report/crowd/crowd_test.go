package crowd_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/draw"
	"raddle.dev/graph"
	"raddle.dev/internal/report/crowd"
)

// newFan returns a graph in which start leads to n workers, and they to a join.
func newFan(n int, kind func(i int) string) graph.Structure {
	s := graph.Structure{Name: "fan", Start: []string{"begin"}, Nodes: []graph.NodeInfo{{Name: "begin", Kind: "input"}}}
	for i := range n {
		name := fmt.Sprintf("w%d", i+1)
		s.Nodes = append(s.Nodes, graph.NodeInfo{Name: name, Kind: kind(i)})
		s.Edges = append(s.Edges, graph.EdgeInfo{From: "begin", To: name, Kind: graph.EdgeRoute, Label: name}, graph.EdgeInfo{From: name, To: "sum", Kind: graph.EdgeJoin, Join: 1})
	}
	s.Nodes = append(s.Nodes, graph.NodeInfo{Name: "sum", Kind: "llm"})
	s.Edges = append(s.Edges, graph.EdgeInfo{From: "sum", To: graph.End, Kind: graph.EdgePlain})
	return s
}

func isLLM(int) string { return "llm" }

// names returns the names of the nodes of a graph, and of those inside in parentheses.
func names(s *graph.Structure) string {
	var list []string
	for i := range s.Nodes {
		n := &s.Nodes[i]
		text := n.Name
		if n.Child != nil {
			text += " (" + names(n.Child) + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// Nodes with one kind and the same edges are one node, which says how many they are; a node of another kind, or with an edge more, is not one of them.
func TestAlike(t *testing.T) {
	fifty := newFan(50, isLLM)
	other := newFan(7, func(i int) string { return map[bool]string{true: "script", false: "llm"}[i == 3] })
	more := newFan(7, isLLM)
	more.Edges = append(more.Edges, graph.EdgeInfo{From: "w2", To: "sum", Kind: graph.EdgeError})
	ends := newFan(6, func(int) string { return "end" })
	for _, c := range []struct {
		name string
		s    graph.Structure
		view crowd.View
		want string
	}{
		{"fifty", fifty, crowd.View{}, "begin, w1 … w50, sum"},
		{"four", newFan(4, isLLM), crowd.View{}, "begin, w1, w2, w3, w4, sum"},
		{"another kind", other, crowd.View{}, "begin, w1 … w7, w4, sum"},
		{"an edge more", more, crowd.View{}, "begin, w1 … w7, w2, sum"},
		{"ends", ends, crowd.View{}, "begin, w1, w2, w3, w4, w5, w6, sum"},
		{"open", newFan(5, isLLM), crowd.View{Open: []string{"w1 … w5"}}, "begin, w1, w2, w3, w4, w5, sum"},
	} {
		folded, members := crowd.FoldGraph(c.s, c.view)
		if got := names(&folded); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if err := draw.WriteSVG(&bytes.Buffer{}, folded, draw.Options{Members: members}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	folded, members := crowd.FoldGraph(fifty, crowd.View{})
	if got := members["w1 … w50"]; len(got) != 50 || got[0] != "w1" || got[49] != "w50" {
		t.Errorf("the group has the members %q", got)
	}
	if len(folded.Edges) != 3 || folded.Nodes[1].Title != "50 × llm" {
		t.Errorf("the folded graph is %+v", folded)
	}
	if len(fifty.Nodes) != 52 || len(fifty.Edges) != 101 {
		t.Error("FoldGraph has changed its argument")
	}
}

// nest returns a graph whose only node runs the next one, so many levels deep, with a fan of unlike nodes in each.
func nest(depth, width int) graph.Structure {
	s := newFan(width, func(i int) string { return fmt.Sprintf("kind %d", i) })
	if depth > 0 {
		child := nest(depth-1, width)
		s.Nodes = append(s.Nodes, graph.NodeInfo{Name: "agent", Kind: "agent", Child: &child})
		s.Edges = append(s.Edges, graph.EdgeInfo{From: "begin", To: "agent", Kind: graph.EdgePlain})
	}
	return s
}

// Graphs inside of nodes are closed from the inside if there are too many nodes, except those that the view opens, and if the view closes them.
func TestInside(t *testing.T) {
	depthOf := func(s graph.Structure, v crowd.View) (depth int, members map[string][]string) {
		folded, members := crowd.FoldGraph(s, v)
		for at := &folded; ; depth++ {
			i := slices.IndexFunc(at.Nodes, func(n graph.NodeInfo) bool { return n.Name == "agent" })
			if i < 0 || at.Nodes[i].Child == nil {
				return depth, members
			}
			at = at.Nodes[i].Child
		}
	}
	small := nest(3, 3)
	large := nest(3, 18)
	for _, c := range []struct {
		name string
		s    graph.Structure
		view crowd.View
		want int
	}{
		{"small", small, crowd.View{}, 3},
		{"large", large, crowd.View{}, 1},
		{"huge", nest(3, 40), crowd.View{}, 0},
		{"large, one opened", large, crowd.View{Open: []string{"agent/agent"}}, 2},
		{"small, one closed", small, crowd.View{Closed: []string{"agent/agent"}}, 1},
		{"small, all closed", small, crowd.View{Closed: []string{"agent", "agent/agent"}}, 0},
	} {
		if got, _ := depthOf(c.s, c.view); got != c.want {
			t.Errorf("%s: %d levels are open, want %d", c.name, got, c.want)
		}
	}
	_, members := depthOf(small, crowd.View{Closed: []string{"agent"}})
	if got := members["agent"]; len(got) != 3*(3+2)+2 || !slices.Contains(got, "agent/agent/agent/w1") {
		t.Errorf("the closed node has the members %q", got)
	}
}

// Agents that a node may run under names are alike by what is inside, and a closed one keeps its name.
func TestNamed(t *testing.T) {
	s := graph.Structure{Start: []string{"lead"}, Nodes: []graph.NodeInfo{{Name: "lead", Kind: "agent", Child: &graph.Structure{Name: "lead", Nodes: []graph.NodeInfo{{Name: "model"}}},
		Children: map[string]graph.Structure{"worker": newFan(9, isLLM)}}}}
	folded, members := crowd.FoldGraph(s, crowd.View{})
	if in := folded.Nodes[0].Children["worker"]; names(&in) != "begin, w1 … w9, sum" || len(members["lead/worker/w1 … w9"]) != 9 {
		t.Errorf("inside is %s, with %v", names(&in), members)
	}
	if s.Nodes[0].Children["worker"].Nodes[1].Name != "w1" {
		t.Error("FoldGraph has changed its argument")
	}
	folded, members = crowd.FoldGraph(s, crowd.View{Closed: []string{"lead"}})
	if n := folded.Nodes[0]; n.Child != nil || n.Children != nil || len(members["lead"]) != 13 || members["lead"][0] != "lead/lead/model" {
		t.Errorf("closed, it is %+v with %q", n, members["lead"])
	}
}
