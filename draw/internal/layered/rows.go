package layered

import "fmt"

// A Place is one place in a row: a node, or the point at which a long edge passes the row.
type Place struct {
	Node int // -1: an edge passes
	X    int // of its middle
}

// Rows is a layout for drawings that are made of characters: nodes in rows, and where edges pass.
type Rows struct {
	Rows   [][]Place // from top to bottom, each from left to right
	Chains [][]int   // by edge: the X of each row from the upper node to the lower one; nil if the edge is not laid out
	First  []int     // by edge: the row of the upper node
	Back   []bool    // by edge: it closes a cycle, or is a loop, and is not laid out
	Row    []int     // by node
	X      []int     // by node
}

// LayoutRows places the nodes of g in rows. Heights and labels do not matter.
func LayoutRows(g Graph) (*Rows, error) {
	for i, e := range g.Edges {
		if min(e.From, e.To) < 0 || max(e.From, e.To) >= len(g.Nodes) {
			return nil, fmt.Errorf("layered: edge %d runs from %d to %d, but there are %d nodes", i, e.From, e.To, len(g.Nodes))
		}
	}
	whole := newLayoutState(g)
	whole.breakCycles()
	r := &Rows{Chains: make([][]int, len(g.Edges)), First: make([]int, len(g.Edges)), Back: make([]bool, len(g.Edges))}
	down := Graph{Nodes: g.Nodes}
	var index []int
	for i, e := range g.Edges {
		if r.Back[i] = whole.reversed[i] || e.From == e.To; !r.Back[i] {
			down.Edges = append(down.Edges, Edge{From: e.From, To: e.To, Weight: e.Weight})
			index = append(index, i)
		}
	}
	s := newLayoutState(down)
	s.breakCycles()
	s.assignLayers()
	clear(s.isLabel)
	for i, n := range s.g.Nodes {
		s.addVertex(vertex{node: i, edge: -1, left: n.W / 2, right: n.W / 2, layer: s.layerOf[i]})
	}
	s.chains = make([][]int, len(down.Edges))
	for e := range down.Edges {
		from := down.Edges[e].From
		to := down.Edges[e].To
		chain := []int{from}
		for l := s.layerOf[from] + 1; l < s.layerOf[to]; l++ {
			chain = append(chain, s.addVertex(vertex{node: -1, edge: e, layer: l}))
		}
		if s.chains[e] = append(chain, to); len(s.vs) > maxPieces {
			return nil, fmt.Errorf("layered: the graph makes more than %d pieces, too many to lay out", maxPieces)
		}
	}
	s.buildSegments()
	s.chooseFirstOrder()
	s.numberVertices()
	s.reduceCrossings()
	s.tryGivenOrder()
	s.placeAcross()
	r.Row = make([]int, len(g.Nodes))
	r.X = make([]int, len(g.Nodes))
	for l, layer := range s.layers {
		var row []Place
		for _, v := range layer {
			row = append(row, Place{Node: s.vs[v].node, X: s.vs[v].x})
			if n := s.vs[v].node; n >= 0 {
				r.Row[n], r.X[n] = l, s.vs[v].x
			}
		}
		r.Rows = append(r.Rows, row)
	}
	for e, chain := range s.chains {
		for _, v := range chain {
			r.Chains[index[e]] = append(r.Chains[index[e]], s.vs[v].x)
		}
		r.First[index[e]] = s.layerOf[down.Edges[e].From]
	}
	return r, nil
}
