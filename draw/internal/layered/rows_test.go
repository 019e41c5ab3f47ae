package layered

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// someGraph returns a graph of a fixed seed with loops, cycles and several edges between the same nodes.
func someGraph(rng *rand.Rand) Graph {
	var g Graph
	n := 1 + rng.IntN(12)
	for range n {
		w := rng.IntN(120)
		g.Nodes = append(g.Nodes, Node{W: w, H: rng.IntN(80), Flat: rng.IntN(w + 1)})
	}
	for range rng.IntN(2 * n) {
		e := Edge{From: rng.IntN(n), To: rng.IntN(n), Weight: rng.IntN(3)}
		if rng.IntN(3) == 0 {
			e.LabelW = 1 + rng.IntN(60)
			e.LabelH = 1 + rng.IntN(20)
		}
		g.Edges = append(g.Edges, e)
	}
	return g
}

func TestRowsProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 4))
	for range 500 {
		g := someGraph(rng)
		r, err := LayoutRows(g)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range rowFaults(g, r) {
			t.Errorf("%+v\n%s", g, fault)
		}
		again, err := LayoutRows(g)
		if diff := cmp.Diff(r, again); diff != "" || err != nil {
			t.Fatalf("a second layout differs (%v):\n%s", err, diff)
		}
	}
}

// rowFaults lists what is wrong with rows.
func rowFaults(g Graph, r *Rows) (list []string) {
	fault := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	seen := make([]int, len(g.Nodes))
	passes := map[[2]int]int{} // by row and X
	for row, places := range r.Rows {
		left := 0 // the end of what stands before
		nodes := 0
		for i, p := range places {
			half := 0
			if p.Node < 0 {
				passes[[2]int{row, p.X}]++
			} else {
				half = roundUpToEven(g.Nodes[p.Node].W) / 2
				seen[p.Node]++
				nodes++
				if r.Row[p.Node] != row || r.X[p.Node] != p.X {
					fault("node %d is in row %d at %d, and said to be in row %d at %d", p.Node, row, p.X, r.Row[p.Node], r.X[p.Node])
				}
			}
			if i > 0 && p.X-half < left+edgeGap {
				fault("row %d: place %d at %d is too near to the one before", row, i, p.X)
			}
			left = p.X + half
		}
		if nodes == 0 {
			fault("row %d has no node", row)
		}
	}
	for i, times := range seen {
		if times != 1 {
			fault("node %d has %d places", i, times)
		}
	}
	for i, e := range g.Edges {
		chain := r.Chains[i]
		if r.Back[i] {
			if chain != nil {
				fault("edge %d is not laid out, and has the chain %v", i, chain)
			}
			continue
		}
		last := r.First[i] + len(chain) - 1
		if r.First[i] != r.Row[e.From] || last != r.Row[e.To] || last <= r.First[i] || chain[0] != r.X[e.From] ||
			chain[len(chain)-1] != r.X[e.To] {
			fault("edge %d (%+v) goes from row %d by %v", i, e, r.First[i], chain)
			continue
		}
		for j, x := range chain[1 : len(chain)-1] {
			passes[[2]int{r.First[i] + 1 + j, x}]--
		}
	}
	for at, n := range passes {
		if n != 0 {
			fault("row %d: %d places at %d without an edge", at[0], n, at[1])
		}
	}
	return append(list, backFaults(g, r)...)
}

// backFaults checks that exactly the edges that close a cycle are not laid out: without them there is none, and each of
// them leads back.
func backFaults(g Graph, r *Rows) (list []string) {
	n := len(g.Nodes)
	leads := make([][]bool, n)
	for i := range leads {
		leads[i] = make([]bool, n)
	}
	for i, e := range g.Edges {
		leads[e.From][e.To] = leads[e.From][e.To] || !r.Back[i]
	}
	for k := range n {
		for i := range n {
			for j := range n {
				leads[i][j] = leads[i][j] || leads[i][k] && leads[k][j]
			}
		}
	}
	for i := range n {
		if leads[i][i] {
			list = append(list, fmt.Sprintf("node %d is on a cycle", i))
		}
	}
	for i, e := range g.Edges {
		if r.Back[i] && e.From != e.To && !leads[e.To][e.From] {
			list = append(list, fmt.Sprintf("edge %d closes no cycle", i))
		}
	}
	return list
}

func TestRowsOfSmallGraphs(t *testing.T) {
	for _, tt := range []struct {
		nodes       int
		edges, want string
	}{
		{0, "", ""},
		{3, "", "0 1 2"},
		{3, "0>1 1>2", "0 | 1 | 2"},
		{3, "0>1 0>2", "0 | 1 2"},
		{3, "0>1 1>2 0>2", "0 | 1 - | 2"},
		{2, "0>1 1>0", "0 | 1"},
		{3, "2>1 1>0", "2 | 1 | 0"},
		{2, "0>0", "0 1"},
		{2, "0>1 0>1", "0 | 1"},
		{5, "0>1 1>2 2>3 4>3", "0 | 1 | 2 4 | 3"},
		{4, "1>3 0>2 0>3", "0 1 | 2 3"},
	} {
		g := Graph{Nodes: make([]Node, tt.nodes)}
		for e := range strings.FieldsSeq(tt.edges) {
			var edge Edge
			if _, err := fmt.Sscanf(e, "%d>%d", &edge.From, &edge.To); err != nil {
				t.Fatal(err)
			}
			g.Edges = append(g.Edges, edge)
		}
		r, err := LayoutRows(g)
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		for _, row := range r.Rows {
			var names []string
			for _, p := range row {
				names = append(names, strings.Replace(fmt.Sprint(p.Node), "-1", "-", 1))
			}
			rows = append(rows, strings.Join(names, " "))
		}
		if got := strings.Join(rows, " | "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.edges, got, tt.want)
		}
	}
}

func TestRowsErrors(t *testing.T) {
	for _, e := range []Edge{{From: -1}, {To: -1}, {From: 2}, {To: 2}} {
		g := Graph{Nodes: make([]Node, 2), Edges: []Edge{{}, e}}
		want := fmt.Sprintf("layered: edge 1 runs from %d to %d, but there are 2 nodes", e.From, e.To)
		if _, err := LayoutRows(g); err == nil || err.Error() != want {
			t.Errorf("rows: %v, want %s", err, want)
		}
		if _, err := LayoutGraph(g); err == nil || err.Error() != want {
			t.Errorf("graph: %v, want %s", err, want)
		}
	}
	g := Graph{Nodes: make([]Node, 700)}
	for i := 1; i < len(g.Nodes); i++ {
		g.Edges = append(g.Edges, Edge{From: i - 1, To: i}, Edge{From: 0, To: i})
	}
	if _, err := LayoutRows(g); err == nil || !strings.Contains(err.Error(), "too many to lay out") {
		t.Errorf("244 thousand pieces: %v", err)
	}
}

// A layout with exchanged axes is as good as one from top to bottom, and flows to the right.
func TestSwappedAxes(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 15))
	for range 200 {
		g := someGraph(rng)
		for i := range g.Nodes {
			g.Nodes[i].Flat = min(g.Nodes[i].Flat, g.Nodes[i].H) // of the left and right side
		}
		if diff := cmp.Diff(g, g.WithSwappedAxes().WithSwappedAxes(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		l, err := LayoutGraph(g.WithSwappedAxes())
		if err != nil {
			t.Fatal(err)
		}
		l.SwapAxes()
		for _, fault := range faults(g, l) {
			t.Errorf("%+v\n%s", g, fault)
		}
		r, err := LayoutRows(g)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range g.Edges {
			if from, to := l.Nodes[e.From], l.Nodes[e.To]; !r.Back[i] && from.X+from.W >= to.X {
				t.Errorf("%+v\nedge %d from %v to %v does not flow to the right", g, i, from, to)
			}
		}
	}
}
