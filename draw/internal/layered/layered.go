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

// vertex is one place in a layer: a node, or a piece of an edge that passes the layer.
type vertex struct {
	node        int // index of the node, -1 for a piece of an edge
	edge        int // the edge of the piece
	left, right int // how far it reaches from its x to both sides
	height      int
	label       bool // the piece carries the label of its edge
	layer, pos  int
	x           int
}

// seg connects two vertices of neighbouring layers. A port of -1 or 1 says that the segment belongs to the left or
// right side of the node at that end, 0 that it ends at its top or bottom.
type seg struct {
	up, down         int
	upPort, downPort int
	light            bool // of an edge with the least weight
	conflict         bool // crosses the straight part of a long edge: not to be drawn straight itself
}

// layoutState is the layout while it is computed.
type layoutState struct {
	g        Graph
	reversed []bool // by edge: runs upwards
	loops    [][]int
	layerOf  []int // by node
	vs       []vertex
	chains   [][]int // by edge: its vertices from the upper node to the lower one
	side     []int   // by edge: the side at which a reversed edge leaves and enters, -1 left, 1 right
	segs     []seg
	ups      [][]int // by vertex: segments to the layer above
	downs    [][]int // by vertex: segments to the layer below
	layers   [][]int // vertices from left to right
	isLabel  []bool  // by layer: holds labels and no nodes
	top      []int   // by layer
	bottom   []int   // by layer
}

func newLayoutState(g Graph) *layoutState {
	s := &layoutState{
		g:        Graph{Nodes: make([]Node, len(g.Nodes)), Edges: g.Edges},
		reversed: make([]bool, len(g.Edges)),
		loops:    make([][]int, len(g.Nodes)),
		side:     make([]int, len(g.Edges)),
	}
	for i, n := range g.Nodes {
		n.W, n.H = roundUpToEven(n.W), roundUpToEven(n.H)
		n.Flat = min(n.Flat, n.W)
		s.g.Nodes[i] = n
	}
	for i, e := range g.Edges {
		if e.From == e.To {
			s.loops[e.From] = append(s.loops[e.From], i)
		}
	}
	return s
}

func roundUpToEven(n int) int { return n + n&1 }

// edgeNodes returns the upper and the lower node of an edge.
func (s *layoutState) edgeNodes(edge int) (upper, lower int) {
	e := s.g.Edges[edge]
	if s.reversed[edge] {
		return e.To, e.From
	}
	return e.From, e.To
}

func (s *layoutState) isLoop(edge int) bool { return s.g.Edges[edge].From == s.g.Edges[edge].To }

func (s *layoutState) edgeWeight(edge int) int { return max(1, s.g.Edges[edge].Weight) }

// addVertex puts a vertex at the end of its layer.
func (s *layoutState) addVertex(v vertex) int {
	id := len(s.vs)
	s.vs = append(s.vs, v)
	return id
}

// isPiece reports whether a vertex is a piece of an edge.
func (s *layoutState) isPiece(v int) bool { return s.vs[v].node < 0 }

// buildSegments builds the segments from the chains.
func (s *layoutState) buildSegments() {
	s.segs = s.segs[:0]
	s.ups = make([][]int, len(s.vs))
	s.downs = make([][]int, len(s.vs))
	for e, chain := range s.chains {
		for i := 1; i < len(chain); i++ {
			g := seg{up: chain[i-1], down: chain[i], light: s.edgeWeight(e) == 1}
			if s.vs[g.up].layer == s.vs[g.down].layer {
				continue // a bend next to its node
			}
			if i == 1 {
				g.upPort = s.side[e]
			}
			if i == len(chain)-1 {
				g.downPort = s.side[e]
			}
			s.downs[g.up] = append(s.downs[g.up], len(s.segs))
			s.ups[g.down] = append(s.ups[g.down], len(s.segs))
			s.segs = append(s.segs, g)
		}
	}
}

// numberVertices stores every vertex's place in its layer.
func (s *layoutState) numberVertices() {
	for _, layer := range s.layers {
		for i, v := range layer {
			s.vs[v].pos = i
		}
	}
}
