package layered

import (
	"cmp"
	"slices"
)

// portGap is the distance of neighbouring edges at the same side of a node, where there is room.
const portGap = 16

// findPorts spreads the edges along the sides of their nodes, in the order in which they continue.
func (s *edgeRouter) findPorts() {
	s.upper, s.lower = make([]int, len(s.g.Edges)), make([]int, len(s.g.Edges))
	n := len(s.g.Nodes)
	tops, bottoms := make([][]int, n), make([][]int, n)
	sides := make([]map[int][]int, n) // by node and side: reversed edges from the top to the bottom
	for e, chain := range s.chains {
		if len(chain) == 0 {
			continue
		}
		u, v := s.edgeNodes(e)
		if !s.reversed[e] {
			bottoms[u] = append(bottoms[u], e)
			tops[v] = append(tops[v], e)
			continue
		}
		for _, node := range []int{u, v} {
			if sides[node] == nil {
				sides[node] = make(map[int][]int, 2)
			}
			sides[node][s.side[e]] = append(sides[node][s.side[e]], e)
		}
	}
	for i := range s.g.Nodes {
		s.spreadPorts(i, bottoms[i], s.upper, func(e int) int { return s.chains[e][1] })
		s.spreadPorts(i, tops[i], s.lower, func(e int) int { return s.chains[e][len(s.chains[e])-2] })
		s.spreadSide(i, sides[i][-1])
		s.spreadSide(i, sides[i][1])
	}
}

// spreadPorts gives each edge at the top or bottom of a node its x: straight towards where the edge continues, not further
// from the middle than the edges need, and apart from its neighbours.
func (s *edgeRouter) spreadPorts(node int, edges []int, at []int, next func(e int) int) {
	k := len(edges)
	if k == 0 {
		return
	}
	slices.SortStableFunc(edges, func(a, b int) int {
		return cmp.Compare(s.vs[next(a)].pos, s.vs[next(b)].pos)
	})
	x, half := s.vs[node].x, s.g.Nodes[node].Flat/2
	step, reach := 0, 0
	if k > 1 {
		step = min(portGap, 2*half/(k-1))
		reach = min(step*(k-1), half)
	}
	wants := make([]targetPosition, k)
	for i, e := range edges {
		to := s.vs[next(e)].x
		from, upTo := max(x-reach, x-half+i*step), min(x+reach, x+half-(k-1-i)*step)
		wants[i] = targetPosition{at: min(max(to, from), upTo), weight: 1}
		if wants[i].at == to {
			wants[i].weight = 100 // would run straight
		}
	}
	for i, w := range separatePositions(wants, step) {
		at[edges[i]] = w
	}
}

// targetPosition is the preferred position of something, and its weight.
type targetPosition struct{ at, weight int }

// separatePositions moves the sorted wants as little as possible (in the mean of the squares) so that neighbours are at least
// step apart: without the steps this is a monotone regression, done by pooling neighbours that are out of order.
func separatePositions(wants []targetPosition, step int) []int {
	type pool struct{ sum, weight, n int }
	var pools []pool
	for i, w := range wants {
		pools = append(pools, pool{(w.at - i*step) * w.weight, w.weight, 1})
		for last := len(pools) - 1; last > 0; last-- {
			a, b := pools[last-1], pools[last]
			if a.sum*b.weight <= b.sum*a.weight {
				break
			}
			pools[last-1] = pool{a.sum + b.sum, a.weight + b.weight, a.n + b.n}
			pools = pools[:last]
		}
	}
	var out []int
	for _, p := range pools {
		for range p.n {
			out = append(out, floorDiv(p.sum+p.weight/2, p.weight)+len(out)*step)
		}
	}
	return out
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// spreadSide gives each edge at the left or right side of a node its y. Those that lead up stand above those that
// lead down, and of each kind the one with the nearest bend stands outermost, so that bends do not cross.
func (s *edgeRouter) spreadSide(node int, edges []int) {
	if len(edges) == 0 {
		return
	}
	type end struct {
		e     int
		leads int // -1 up, 1 down
		far   int
	}
	var ends []end
	for _, e := range edges {
		u, _ := s.edgeNodes(e)
		chain := s.chains[e]
		bend, leads := chain[len(chain)-2], -1
		if u == node {
			bend, leads = chain[1], 1
		}
		far := s.vs[bend].x - s.vs[node].x
		ends = append(ends, end{e, leads, max(far, -far)})
	}
	slices.SortStableFunc(ends, func(a, b end) int {
		if a.leads != b.leads {
			return a.leads - b.leads
		}
		return -a.leads * (a.far - b.far)
	})
	box := s.nodeRect(node)
	step := min(12, max(0, box.H-12)/len(ends))
	y := box.Y + box.H/2 - step*(len(ends)-1)/2
	for _, d := range ends {
		if d.leads < 0 {
			s.lower[d.e] = y
		} else {
			s.upper[d.e] = y
		}
		y += step
	}
}
