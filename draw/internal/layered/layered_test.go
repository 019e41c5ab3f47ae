package layered

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// anyGraph draws a graph with loops, cycles, several edges between the same nodes, and labels.
func anyGraph(t *rapid.T) Graph {
	var g Graph
	size := rapid.IntRange(0, 130)
	for range rapid.IntRange(1, 14).Draw(t, "nodes") {
		w := size.Draw(t, "w")
		g.Nodes = append(g.Nodes, Node{W: w, H: size.Draw(t, "h"), Flat: rapid.IntRange(0, w).Draw(t, "flat")})
	}
	node := rapid.IntRange(0, len(g.Nodes)-1)
	for range rapid.IntRange(0, 30).Draw(t, "edges") {
		e := Edge{From: node.Draw(t, "from"), To: node.Draw(t, "to"), Weight: rapid.IntRange(0, 3).Draw(t, "weight")}
		if rapid.Bool().Draw(t, "labelled") {
			e.LabelW, e.LabelH = rapid.IntRange(1, 90).Draw(t, "labelW"), rapid.IntRange(1, 40).Draw(t, "labelH")
		}
		g.Edges = append(g.Edges, e)
	}
	return g
}

func TestPlaceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGraph(t)
		if rapid.Bool().Draw(t, "right") {
			g = g.WithSwappedAxes()
		}
		l, err := LayoutGraph(g)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faults(g, l) {
			t.Error(fault)
		}
		again, err := LayoutGraph(g)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(l, again); d != "" {
			t.Errorf("a second layout differs (-first +second):\n%s", d)
		}
	})
}

// faults lists what is wrong with a layout.
func faults(g Graph, l *Layout) (list []string) {
	fault := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	whole := Rect{0, 0, l.W, l.H}
	for i, r := range l.Nodes {
		if n := g.Nodes[i]; r.W != roundUpToEven(n.W) || r.H != roundUpToEven(n.H) {
			fault("node %d: size %dx%d, want %dx%d", i, r.W, r.H, n.W, n.H)
		}
		if !within(r, whole) {
			fault("node %d at %v is not within the picture %v", i, r, whole)
		}
		for j := range i {
			if overlap(r, l.Nodes[j]) {
				fault("nodes %d and %d overlap: %v, %v", j, i, l.Nodes[j], r)
			}
		}
	}
	labels := labelBoxes(g, l)
	for i, r := range labels {
		if !within(r, whole) {
			fault("label %d at %v is not within the picture %v", i, r, whole)
		}
		for j, n := range l.Nodes {
			if overlap(r, n) {
				fault("label %d at %v overlaps node %d at %v", i, r, j, n)
			}
		}
		for j := range i {
			if overlap(r, labels[j]) {
				fault("labels %d and %d overlap: %v, %v", j, i, labels[j], r)
			}
		}
	}
	for i, r := range l.Edges {
		list = append(list, routeFaults(g, l, i, r.Path)...)
		for j, label := range labels {
			nested := isLoop(g.Edges[i]) && isLoop(g.Edges[j]) // a low node has no room for loops around a label
			if j != i && !nested && slices.ContainsFunc(sampled(r.Path), func(p Point) bool { return inside(p, label) }) {
				fault("edge %d runs through the label %v of edge %d", i, label, j)
			}
		}
	}
	return list
}

// routeFaults lists what is wrong with the route of an edge.
func routeFaults(g Graph, l *Layout, i int, path []Point) (list []string) {
	fault := func(format string, args ...any) {
		list = append(list, fmt.Sprintf("edge %d (%d to %d): ", i, g.Edges[i].From, g.Edges[i].To)+fmt.Sprintf(format, args...))
	}
	if len(path) < 4 || len(path)%3 != 1 {
		fault("a path of %d points is not a chain of curves", len(path))
		return list
	}
	from, to := l.Nodes[g.Edges[i].From], l.Nodes[g.Edges[i].To]
	if !onBorder(path[0], from) {
		fault("starts at %v, not at its node %v", path[0], from)
	}
	if last := path[len(path)-1]; !onBorder(last, to) {
		fault("ends at %v, not at its node %v", last, to)
	}
	for _, p := range sampled(path) {
		if p.X < 0 || p.X > l.W || p.Y < 0 || p.Y > l.H {
			fault("leaves the picture at %v", p)
			break
		}
		for j, n := range l.Nodes {
			if inside(p, n) {
				fault("runs through node %d %v at %v", j, n, p)
				return list
			}
		}
	}
	return list
}

func isLoop(e Edge) bool { return e.From == e.To }

// labelBoxes returns the boxes of the labels, empty ones for edges without.
func labelBoxes(g Graph, l *Layout) []Rect {
	boxes := make([]Rect, len(g.Edges))
	for i, e := range g.Edges {
		if e.LabelW > 0 {
			at := l.Edges[i].Label
			boxes[i] = Rect{at.X - e.LabelW/2, at.Y - e.LabelH/2, e.LabelW, e.LabelH}
		}
	}
	return boxes
}

func within(r, in Rect) bool {
	return r.X >= in.X && r.Y >= in.Y && r.X+r.W <= in.X+in.W && r.Y+r.H <= in.Y+in.H
}

func overlap(a, b Rect) bool {
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

func inside(p Point, r Rect) bool {
	return p.X > r.X && p.X < r.X+r.W && p.Y > r.Y && p.Y < r.Y+r.H
}

func onBorder(p Point, r Rect) bool {
	level := p.X >= r.X && p.X <= r.X+r.W && (p.Y == r.Y || p.Y == r.Y+r.H)
	upright := p.Y >= r.Y && p.Y <= r.Y+r.H && (p.X == r.X || p.X == r.X+r.W)
	return level || upright
}

// sampled returns points all along a path.
func sampled(path []Point) []Point {
	const steps = 24
	var out []Point
	for i := 0; i+3 < len(path); i += 3 {
		a, b, c, d := path[i], path[i+1], path[i+2], path[i+3]
		for j := range steps + 1 {
			t := float64(j) / steps
			out = append(out, Point{int(evalBezier(a.X, b.X, c.X, d.X, t)), int(evalBezier(a.Y, b.Y, c.Y, d.Y, t))})
		}
	}
	return out
}

func TestPlaceFlow(t *testing.T) {
	box := Node{W: 100, H: 50, Flat: 60}
	tests := []struct {
		name  string
		nodes int
		edges []Edge
		// above lists pairs of which the first stands above the second.
		above [][2]int
	}{
		{"chain", 3, []Edge{{From: 0, To: 1}, {From: 1, To: 2}}, [][2]int{{0, 1}, {1, 2}}},
		{"cycle", 3, []Edge{{From: 0, To: 1}, {From: 1, To: 2}, {From: 2, To: 0}}, [][2]int{{0, 1}, {1, 2}}},
		{"diamond", 4, []Edge{{From: 0, To: 1}, {From: 0, To: 2}, {From: 1, To: 3}, {From: 2, To: 3}},
			[][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}}},
		{"short cut", 3, []Edge{{From: 0, To: 1}, {From: 1, To: 2}, {From: 0, To: 2, LabelW: 40, LabelH: 16}}, [][2]int{{0, 1}, {1, 2}}},
		{"late source", 5, []Edge{{From: 0, To: 1}, {From: 1, To: 2}, {From: 2, To: 3}, {From: 4, To: 3}}, [][2]int{{1, 4}, {4, 3}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := Graph{Edges: tt.edges}
			for range tt.nodes {
				g.Nodes = append(g.Nodes, box)
			}
			l, err := LayoutGraph(g)
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range faults(g, l) {
				t.Error(fault)
			}
			for _, p := range tt.above {
				if a, b := l.Nodes[p[0]], l.Nodes[p[1]]; a.Y+a.H >= b.Y {
					t.Errorf("node %d (%v) is not above node %d (%v)", p[0], a, p[1], b)
				}
			}
		})
	}
}

func TestPlaceChainIsStraight(t *testing.T) {
	g := Graph{Nodes: []Node{{W: 20, H: 20}, {W: 101, H: 51}, {W: 60, H: 30}}, Edges: []Edge{{From: 0, To: 1}, {From: 1, To: 2}}}
	l, err := LayoutGraph(g)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range l.Edges {
		for _, p := range r.Path {
			if p.X != r.Path[0].X {
				t.Errorf("edge %d is not straight: %v", i, r.Path)
				break
			}
		}
	}
}

func TestPlaceBackEdgeUsesSides(t *testing.T) {
	g := Graph{Nodes: []Node{{W: 100, H: 50}, {W: 100, H: 50}}, Edges: []Edge{{From: 0, To: 1}, {From: 1, To: 0}}}
	l, err := LayoutGraph(g)
	if err != nil {
		t.Fatal(err)
	}
	path := l.Edges[1].Path
	for i, end := range []Point{path[len(path)-1], path[0]} {
		r := l.Nodes[i]
		if end.X != r.X+r.W || end.Y <= r.Y || end.Y >= r.Y+r.H {
			t.Errorf("the edge back touches node %d %v at %v, want its right side", i, r, end)
		}
	}
}

func TestPlaceErrors(t *testing.T) {
	if _, err := LayoutGraph(Graph{Nodes: make([]Node, 2), Edges: []Edge{{From: 0, To: 2}}}); err == nil {
		t.Error("an edge to an unknown node: no error")
	}
	g := Graph{Nodes: make([]Node, 3000)}
	for i := range g.Nodes {
		if i > 0 {
			g.Edges = append(g.Edges, Edge{From: i - 1, To: i}, Edge{From: 0, To: i})
		}
	}
	if _, err := LayoutGraph(g); err == nil {
		t.Error("4.5 million pieces: no error")
	}
}

func TestPlaceEmpty(t *testing.T) {
	l, err := LayoutGraph(Graph{})
	if err != nil {
		t.Fatal(err)
	}
	if l.W != 0 || l.H != 0 {
		t.Errorf("an empty graph takes %d x %d", l.W, l.H)
	}
}

func TestInversions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(-3, 9)
		var keys [][2]int
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			keys = append(keys, [2]int{n.Draw(t, "up"), n.Draw(t, "down")})
		}
		want := 0
		for i, a := range keys {
			for _, b := range keys[:i] {
				if (a[0]-b[0])*(a[1]-b[1]) < 0 {
					want++
				}
			}
		}
		if got := countInversions(keys); got != want {
			t.Errorf("%d crossings, want %d", got, want)
		}
	})
}

func TestApart(t *testing.T) {
	tests := []struct {
		name  string
		wants []targetPosition
		step  int
		want  []int
	}{
		{"free", []targetPosition{{0, 1}, {20, 1}}, 10, []int{0, 20}},
		{"pushed apart", []targetPosition{{0, 1}, {0, 1}}, 10, []int{-5, 5}},
		{"the heavy one stays", []targetPosition{{0, 100}, {0, 1}}, 10, []int{0, 10}},
		{"in a row", []targetPosition{{5, 1}, {5, 1}, {5, 1}}, 4, []int{1, 5, 9}},
		{"out of order", []targetPosition{{10, 1}, {0, 1}}, 0, []int{5, 5}},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, separatePositions(tt.wants, tt.step)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

func BenchmarkPlace(b *testing.B) {
	var g Graph
	for i := range 200 {
		g.Nodes = append(g.Nodes, Node{W: 100, H: 50, Flat: 60})
		if i > 0 {
			g.Edges = append(g.Edges, Edge{From: i / 2, To: i}, Edge{From: i, To: i * i % 200, LabelW: 40, LabelH: 16})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := LayoutGraph(g); err != nil {
			b.Fatal(err)
		}
	}
}
