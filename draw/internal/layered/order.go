package layered

import (
	"cmp"
	"slices"
)

// sweeps is how often the layers are ordered from each of two initial orders, half of them downwards.
const sweeps = 16

// orderLayers chooses the order within each layer: first with all edges at the top and bottom of their nodes, then,
// when it is known at which side the edges that run upwards have the shorter way, with these at the sides.
func (s *layoutState) orderLayers() {
	s.buildSegments()
	s.chooseFirstOrder()
	s.numberVertices()
	s.reduceCrossings()
	s.tryGivenOrder()
	if s.chooseSides() {
		s.buildSegments()
		s.reduceCrossings()
	}
}

// chooseFirstOrder walks down from the first nodes and gives every vertex the next place in its layer.
func (s *layoutState) chooseFirstOrder() {
	s.layers = make([][]int, len(s.isLabel))
	roots := make([]int, len(s.vs))
	for v := range roots {
		roots[v] = v
	}
	slices.SortStableFunc(roots, func(a, b int) int { return cmp.Compare(s.vs[a].layer, s.vs[b].layer) })
	seen := make([]bool, len(s.vs))
	var stack []int
	for _, root := range roots {
		stack = append(stack[:0], root)
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if seen[v] {
				continue
			}
			seen[v] = true
			l := s.vs[v].layer
			s.layers[l] = append(s.layers[l], v)
			for i := range s.downs[v] {
				stack = append(stack, s.segs[s.downs[v][len(s.downs[v])-1-i]].down)
			}
		}
	}
}

// tryGivenOrder tries the order in which the nodes are given, if the first order did not avoid all crossings.
func (s *layoutState) tryGivenOrder() {
	fewest := s.countCrossings()
	if fewest == 0 {
		return
	}
	best := s.copyOrder()
	for _, layer := range s.layers {
		slices.Sort(layer)
	}
	s.numberVertices()
	s.reduceCrossings()
	if s.countCrossings() >= fewest {
		s.layers = best
		s.numberVertices()
	}
}

// reduceCrossings sorts the layers up and down by the middle of their neighbours and keeps the best order found.
func (s *layoutState) reduceCrossings() {
	best := s.copyOrder()
	fewest := s.countCrossings()
	for i := 0; i < sweeps && fewest > 0; i++ {
		down := i%2 == 0
		mirror := i%4 >= 2
		for j := 1; j < len(s.layers); j++ {
			l := j
			if !down {
				l = len(s.layers) - 1 - j
			}
			s.sortLayer(l, down, mirror)
		}
		s.swapNeighbours()
		if n := s.countCrossings(); n < fewest {
			best = s.copyOrder()
			fewest = n
		}
	}
	s.layers = best
	s.numberVertices()
}

func (s *layoutState) copyOrder() [][]int {
	c := make([][]int, len(s.layers))
	for i, l := range s.layers {
		c[i] = slices.Clone(l)
	}
	return c
}

// upKey and downKey say where a segment ends in the order of its upper and of its lower layer.
func (s *layoutState) upKey(g int) int   { return 4*s.vs[s.segs[g].up].pos + s.segs[g].upPort }
func (s *layoutState) downKey(g int) int { return 4*s.vs[s.segs[g].down].pos + s.segs[g].downPort }

// sortLayer sorts the vertices of a layer that have neighbours in the layer before; the others keep their places.
// With mirror, equal vertices change their order, which leads out of a dead end.
func (s *layoutState) sortLayer(l int, down, mirror bool) {
	type item struct {
		v      int
		middle float64
	}
	layer := s.layers[l]
	var movable []item
	fixed := make([]bool, len(layer))
	for i, v := range layer {
		sum := 0
		segs := s.downs[v]
		if down {
			segs = s.ups[v]
		}
		for _, g := range segs {
			if down {
				sum += s.upKey(g) - s.segs[g].downPort
			} else {
				sum += s.downKey(g) - s.segs[g].upPort
			}
		}
		if len(segs) == 0 {
			fixed[i] = true
			continue
		}
		movable = append(movable, item{v, float64(sum) / float64(len(segs))})
	}
	if mirror {
		slices.Reverse(movable)
	}
	slices.SortStableFunc(movable, func(a, b item) int { return cmp.Compare(a.middle, b.middle) })
	for i := range layer {
		if !fixed[i] {
			layer[i] = movable[0].v
			movable = movable[1:]
		}
		s.vs[layer[i]].pos = i
	}
}

// swapNeighbours exchanges neighbours as long as that removes crossings.
func (s *layoutState) swapNeighbours() {
	for range 8 {
		better := false
		for _, layer := range s.layers {
			for i := 1; i < len(layer); i++ {
				a := layer[i-1]
				b := layer[i]
				if s.crossingsOf(a, b) > s.crossingsOf(b, a) {
					layer[i-1], layer[i] = b, a
					s.vs[a].pos, s.vs[b].pos = i, i-1
					better = true
				}
			}
		}
		if !better {
			return
		}
	}
}

// crossingsOf counts the crossings between the segments of two neighbours if a stood left of b.
func (s *layoutState) crossingsOf(a, b int) int {
	n := 0
	for _, i := range s.ups[a] {
		for _, j := range s.ups[b] {
			if s.upKey(i) > s.upKey(j) {
				n++
			}
		}
	}
	for _, i := range s.downs[a] {
		for _, j := range s.downs[b] {
			if s.downKey(i) > s.downKey(j) {
				n++
			}
		}
	}
	return n
}

// countCrossings counts all crossings in the current order.
func (s *layoutState) countCrossings() int {
	n := 0
	var keys [][2]int
	for _, layer := range s.layers {
		keys = keys[:0]
		for _, v := range layer {
			for _, g := range s.downs[v] {
				keys = append(keys, [2]int{s.upKey(g), s.downKey(g)})
			}
		}
		n += countInversions(keys)
	}
	return n
}

// countInversions counts the pairs of segments that cross: left of the other at one end, right of it at the other.
func countInversions(keys [][2]int) int {
	slices.SortFunc(keys, func(a, b [2]int) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	lowest := 0
	highest := 0
	for _, k := range keys {
		lowest = min(lowest, k[1])
		highest = max(highest, k[1])
	}
	tree := make([]int, highest-lowest+2) // a Fenwick tree over the lower keys
	n := 0
	for i, k := range keys {
		n += i
		for j := k[1] - lowest + 1; j > 0; j -= j & -j {
			n -= tree[j]
		}
		for j := k[1] - lowest + 1; j < len(tree); j += j & -j {
			tree[j]++
		}
	}
	return n
}

// chooseSides decides for every edge that runs upwards at which side of its nodes it has fewer other edges to cross.
// It reports whether there is such an edge.
func (s *layoutState) chooseSides() bool {
	found := false
	for e, chain := range s.chains {
		if !s.reversed[e] {
			continue
		}
		found = true
		first := chain[0]
		last := chain[len(chain)-1]
		vote := 0
		for _, g := range s.downs[first] {
			vote += cmp.Compare(s.vs[chain[1]].pos, s.vs[s.segs[g].down].pos)
		}
		for _, g := range s.ups[last] {
			vote += cmp.Compare(s.vs[chain[len(chain)-2]].pos, s.vs[s.segs[g].up].pos)
		}
		s.side[e] = 1
		if vote < 0 || len(s.loops[s.vs[first].node])+len(s.loops[s.vs[last].node]) > 0 {
			s.side[e] = -1 // the right side of a node with a loop is taken
		}
	}
	return found
}
