// Package layered places the nodes of a directed graph in rows and finds a way for every edge between them.
//
// It follows the method of Sugiyama: cycles are opened, nodes get a layer, long edges are cut into one piece per
// layer, the order within each layer is chosen so that few edges cross, and only then are coordinates given
// (Brandes and Köpf, "Fast and simple horizontal coordinate assignment", with the block graph of the 2020 erratum).
// Edges that close a cycle leave and enter their nodes at the side; all others run from bottom to top.
//
// Everything is computed in whole units (pixels) and without ranging over maps, so the same graph gives the same
// picture on every machine. The package knows nothing of what the nodes mean.
package layered

import "fmt"

// Graph is the input of the layout. Edges flow from top to bottom; for another direction see [Layout.SwapAxes].
type Graph struct {
	Nodes []Node
	Edges []Edge
}

// Node is a box. Its width and height must not be negative; odd ones are rounded up, so that the middle is a whole
// unit.
type Node struct {
	W, H int
	// Flat is the width of the part of the top and of the bottom side at which edges may end. If 0, all edges end in
	// the middle.
	Flat int
}

// Edge connects two nodes by their index. An edge from a node to itself is a loop at its right side.
type Edge struct {
	From, To int
	// LabelW and LabelH are the size of the label, for which space is reserved. If both are 0, there is no label.
	LabelW, LabelH int
	// Weight says how important it is that the edge is short. 0 counts as 1.
	Weight int
}

// Point is a position; y grows downwards.
type Point struct{ X, Y int }

// Rect is a box from its top left corner.
type Rect struct{ X, Y, W, H int }

// Route is the path of one edge and the place of its label.
type Route struct {
	// Path is a chain of cubic Bézier curves: the start, then three points for each curve. The first and the last
	// point lie on the border of the boxes of the nodes.
	Path []Point
	// Label is the middle of the space reserved for the label; only meaningful for an edge with one.
	Label Point
}

// Layout is the result: one Rect for each node and one Route for each edge, in the order of the Graph, within a
// picture of W by H whose top left corner is (0, 0).
type Layout struct {
	W, H  int
	Nodes []Rect
	Edges []Route
}

// Distances between neighbours in a layer and between layers.
const (
	nodeGap   = 40 // between two nodes
	edgeGap   = 18 // between two edges, or between an edge and a node
	labelGap  = 12 // next to a label
	layerGap  = 46 // between two layers of nodes without labels between them
	aboveGap  = 18 // between nodes and the labels below them
	belowGap  = 30 // between labels and the nodes below them
	loopGap   = 26 // between a node or a loop and the next loop around it
	loopLabel = 2  // between a loop and its label
)

// maxPieces bounds the pieces into which long edges are cut, and with them memory and time.
const maxPieces = 200_000

// LayoutGraph computes the layout of g. It returns an error if an edge has an unknown end or the graph is too large.
func LayoutGraph(g Graph) (*Layout, error) {
	for i, e := range g.Edges {
		if min(e.From, e.To) < 0 || max(e.From, e.To) >= len(g.Nodes) {
			return nil, fmt.Errorf("layered: edge %d runs from %d to %d, but there are %d nodes", i, e.From, e.To, len(g.Nodes))
		}
	}
	s := newLayoutState(g)
	s.breakCycles()
	s.assignLayers()
	if err := s.cutEdges(); err != nil {
		return nil, err
	}
	s.orderLayers()
	s.bendBackEdges()
	s.placeAcross()
	s.placeDown()
	return s.buildLayout(), nil
}

// WithSwappedAxes returns g with widths and heights exchanged: lay it out, then call [Layout.SwapAxes] to get a picture
// that flows from left to right. The Flat of a node must already be that of its left and right side.
func (g Graph) WithSwappedAxes() Graph {
	t := Graph{Nodes: make([]Node, len(g.Nodes)), Edges: make([]Edge, len(g.Edges))}
	for i, n := range g.Nodes {
		t.Nodes[i] = Node{W: n.H, H: n.W, Flat: n.Flat}
	}
	for i, e := range g.Edges {
		e.LabelW, e.LabelH = e.LabelH, e.LabelW
		t.Edges[i] = e
	}
	return t
}

// SwapAxes exchanges x and y everywhere.
func (l *Layout) SwapAxes() {
	l.W, l.H = l.H, l.W
	for i, r := range l.Nodes {
		l.Nodes[i] = Rect{r.Y, r.X, r.H, r.W}
	}
	for i := range l.Edges {
		r := &l.Edges[i]
		r.Label = Point{r.Label.Y, r.Label.X}
		for j, p := range r.Path {
			r.Path[j] = Point{p.Y, p.X}
		}
	}
}
