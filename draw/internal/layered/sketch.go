package layered

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
			g := seg{up: chain[i-1], down: chain[i]}
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
