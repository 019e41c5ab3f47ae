package layered

import (
	"cmp"
	"slices"
)

// bendBackEdges puts a further piece of every edge that runs upwards next to its lower and its upper node: there it
// bends into the side of the node.
func (s *layoutState) bendBackEdges() {
	beside := make(map[int]*[4][]int) // by node vertex: left ups, left downs, right ups, right downs (edges)
	for e, chain := range s.chains {
		if !s.reversed[e] {
			continue
		}
		for i, v := range []int{chain[0], chain[len(chain)-1]} {
			if beside[v] == nil {
				beside[v] = new([4][]int)
			}
			slot := &beside[v][s.side[e]+1+(1-i)] // the chain leads down from the upper node, up from the lower
			*slot = append(*slot, e)
		}
	}
	if len(beside) == 0 {
		return
	}
	for l, layer := range s.layers {
		s.layers[l] = s.withBends(layer, beside)
	}
	s.buildSegments()
	s.numberVertices()
}

// withBends returns a layer with the bends next to its nodes. Of several bends at one side the one whose edge leads
// to the node's own side is the nearest, so that they do not cross.
func (s *layoutState) withBends(layer []int, beside map[int]*[4][]int) []int {
	var wide []int
	for _, v := range layer {
		b := beside[v]
		if b == nil {
			wide = append(wide, v)
			continue
		}
		for _, slot := range []int{1, 0} {
			wide = append(wide, s.addBends(v, b[slot], slot == 0)...)
		}
		wide = append(wide, v)
		for _, slot := range []int{2, 3} {
			wide = append(wide, s.addBends(v, b[slot], slot == 2)...)
		}
	}
	return wide
}

// addBends adds one bend next to v for each edge, in the order of the edges in the layer from which they come (if ups,
// the layer above v, else below).
func (s *layoutState) addBends(v int, edges []int, ups bool) []int {
	neighbour := func(e int) int {
		if ups {
			return s.chains[e][len(s.chains[e])-2]
		}
		return s.chains[e][1]
	}
	slices.SortStableFunc(edges, func(a, b int) int {
		return cmp.Compare(s.vs[neighbour(a)].pos, s.vs[neighbour(b)].pos)
	})
	var ids []int
	for _, e := range edges {
		id := s.addVertex(vertex{node: -1, edge: e, layer: s.vs[v].layer})
		at := 1
		if ups {
			at = len(s.chains[e]) - 1
		}
		s.chains[e] = slices.Insert(s.chains[e], at, id)
		ids = append(ids, id)
	}
	return ids
}
