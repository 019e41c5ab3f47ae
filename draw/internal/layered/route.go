package layered

import (
	"cmp"
	"slices"
)

// bendRadius is the radius of the bend of an edge into the side of a node.
const bendRadius = 16

// An edgeRouter draws edges between vertices whose places are final.
type edgeRouter struct {
	*layoutState

	// Where edges touch their upper and their lower node, by edge: the x of those at the top and bottom, the y of those
	// at a side.
	upper, lower []int
	smoothed     [][]Point // by vertex: the points by which the edge of a loose piece passes
}

// newEdgeRouter decides where edges touch their nodes and where they pass labels.
func newEdgeRouter(s *layoutState) *edgeRouter {
	r := &edgeRouter{layoutState: s, smoothed: make([][]Point, len(s.vs))}
	r.findPorts()
	r.smoothLabelLayers()
	return r
}

// routeEdge draws the way of an edge through its pieces. Within a layer it runs straight down, between two layers it
// swings from one x to the next and never leaves the space between them: so it meets no node and no foreign label.
// Only where it passes labels without having one, it may take another way, given by smoothed.
func (s *edgeRouter) routeEdge(e int) Route {
	chain := s.chains[e]
	first := s.vs[chain[0]]
	last := s.vs[chain[len(chain)-1]]
	inside := chain[1 : len(chain)-1]
	var r Route
	var line, end []Point
	if s.reversed[e] {
		down, up := s.bendPoints(e)
		line = appendNew(line, down, Point{down.X, max(down.Y, s.bottom[first.layer])})
		end = []Point{{up.X, min(up.Y, s.top[last.layer])}, up}
		inside = inside[1 : len(inside)-1]
	} else {
		upper := s.nodeRect(first.node)
		lower := s.nodeRect(last.node)
		line = appendNew(line, Point{s.upper[e], upper.Y + upper.H}, Point{s.upper[e], s.bottom[first.layer]})
		end = []Point{{s.lower[e], s.top[last.layer]}, {s.lower[e], lower.Y}}
	}
	for _, v := range inside {
		if s.isLoose(v) {
			line = appendNew(line, s.smoothed[v]...)
		} else {
			line = appendNew(line, s.verticalPath(v)...)
		}
		if s.vs[v].label {
			r.Label = Point{s.vs[v].x, (s.top[s.vs[v].layer] + s.bottom[s.vs[v].layer]) / 2}
		}
	}
	r.Path = smoothLine(appendNew(line, end...))
	if s.reversed[e] {
		r.Path = s.withBendCurves(e, r.Path)
		slices.Reverse(r.Path)
	}
	return r
}

// verticalPath returns the straight way of a piece through its layer.
func (s *edgeRouter) verticalPath(v int) []Point {
	x := s.vs[v].x
	l := s.vs[v].layer
	return []Point{{x, s.top[l]}, {x, s.bottom[l]}}
}

func appendNew(line []Point, points ...Point) []Point {
	for _, p := range points {
		if n := len(line); n == 0 || line[n-1] != p {
			line = append(line, p)
		}
	}
	return line
}

// bendPoints returns where an upward edge is vertical again next to its upper and its lower node.
func (s *edgeRouter) bendPoints(e int) (down, up Point) {
	if !s.reversed[e] {
		return
	}
	chain := s.chains[e]
	a := s.vs[chain[1]]
	b := s.vs[chain[len(chain)-2]]
	ra := s.sideBendRadius(chain[0], a.x)
	rb := s.sideBendRadius(chain[len(chain)-1], b.x)
	return Point{a.x, s.upper[e] + ra}, Point{b.x, s.lower[e] - rb}
}

// sideBendRadius returns the radius of the bend from the side of a node to x.
func (s *edgeRouter) sideBendRadius(node, x int) int {
	far := s.vs[node].x - x
	return max(0, min(bendRadius, max(far, -far)-s.g.Nodes[s.vs[node].node].W/2))
}

// withBendCurves adds, at both ends of the path of an upward edge, the curve into the side of the node.
func (s *edgeRouter) withBendCurves(e int, path []Point) []Point {
	u, v := s.edgeNodes(e)
	start := Point{s.sideOf(u, s.side[e]), s.upper[e]}
	end := Point{s.sideOf(v, s.side[e]), s.lower[e]}
	first := path[0]
	last := path[len(path)-1]
	out := append([]Point{start}, curveFromSide(start, first, s.side[e])...)
	out = append(out, path[1:]...)
	back := append([]Point{end}, curveFromSide(end, last, s.side[e])...)
	slices.Reverse(back)
	return append(out, back[1:]...)
}

// curveFromSide leads from the side of a node to a vertical line: level first, then a quarter of a circle.
func curveFromSide(from, to Point, side int) []Point {
	r := from.Y - to.Y
	r = max(r, -r)
	turn := Point{to.X - side*r, from.Y}
	if (turn.X-from.X)*side < 0 {
		turn.X = from.X
	}
	path := straightCurve(from, turn)
	return append(path, quarterCircle(turn, Point{to.X, from.Y}, to)...)
}

// quarterCircle returns the curve from a to b that is tangent to the lines a–c and c–b.
func quarterCircle(a, c, b Point) []Point {
	const n, d = 55, 100 // the usual approximation of a quarter of a circle
	return []Point{
		{a.X + (c.X-a.X)*n/d, a.Y + (c.Y-a.Y)*n/d},
		{b.X + (c.X-b.X)*n/d, b.Y + (c.Y-b.Y)*n/d},
		b,
	}
}

// straightCurve returns a straight curve.
func straightCurve(a, b Point) []Point {
	return []Point{
		{a.X + (b.X-a.X)/3, a.Y + (b.Y-a.Y)/3},
		{b.X - (b.X-a.X)/3, b.Y - (b.Y-a.Y)/3},
		b,
	}
}

// sideOf returns the x of the left (-1) or right (1) side of a node.
func (s *edgeRouter) sideOf(node, side int) int {
	return s.vs[node].x + side*s.g.Nodes[node].W/2
}

// portGap is the distance of neighbouring edges at the same side of a node, where there is room.
const portGap = 16

// findPorts spreads the edges along the sides of their nodes, in the order in which they continue.
func (s *edgeRouter) findPorts() {
	s.upper = make([]int, len(s.g.Edges))
	s.lower = make([]int, len(s.g.Edges))
	n := len(s.g.Nodes)
	tops := make([][]int, n)
	bottoms := make([][]int, n)
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

// spreadPorts gives each edge at the top or bottom of a node its x: straight towards where the edge continues, not
// further from the middle than the edges need, and apart from its neighbours.
func (s *edgeRouter) spreadPorts(node int, edges []int, at []int, next func(e int) int) {
	k := len(edges)
	if k == 0 {
		return
	}
	slices.SortStableFunc(edges, func(a, b int) int {
		return cmp.Compare(s.vs[next(a)].pos, s.vs[next(b)].pos)
	})
	x := s.vs[node].x
	half := s.g.Nodes[node].Flat / 2
	step := 0
	reach := 0
	if k > 1 {
		step = min(portGap, 2*half/(k-1))
		reach = min(step*(k-1), half)
	}
	wants := make([]targetPosition, k)
	for i, e := range edges {
		to := s.vs[next(e)].x
		from := max(x-reach, x-half+i*step)
		upTo := min(x+reach, x+half-(k-1-i)*step)
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

// separatePositions moves the sorted wants as little as possible (in the mean of the squares) so that neighbours are at
// least step apart: without the steps this is a monotone regression, done by pooling neighbours that are out of order.
func separatePositions(wants []targetPosition, step int) []int {
	type pool struct{ sum, weight, n int }
	var pools []pool
	for i, w := range wants {
		pools = append(pools, pool{(w.at - i*step) * w.weight, w.weight, 1})
		for last := len(pools) - 1; last > 0; last-- {
			a := pools[last-1]
			b := pools[last]
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
		bend := chain[len(chain)-2]
		leads := -1
		if u == node {
			bend = chain[1]
			leads = 1
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

// loopRoom returns the room that the loops of a node and their labels take at its right side.
func (s *layoutState) loopRoom(node int) int {
	room := 0
	for _, e := range s.loops[node] {
		room += loopGap
		if w := s.g.Edges[e].LabelW; w > 0 {
			room += w + loopLabel
		}
	}
	return room
}

// loopHeight returns the height that the labels of the loops of a vertex need.
func (s *layoutState) loopHeight(v int) int {
	height := 0
	if n := s.vs[v].node; n >= 0 {
		for _, e := range s.loops[n] {
			height = max(height, s.g.Edges[e].LabelH)
		}
	}
	return height
}

// drawLoops draws the loops of a node, each around the ones before, its label to the right of it.
func (s *layoutState) drawLoops(node int, routes []Route) {
	box := s.nodeRect(node)
	x := box.X + box.W
	y := box.Y + box.H/2
	far := x
	half := 4
	for _, e := range s.loops[node] {
		half = min(half+8, max(0, box.H/2-2))
		far += loopGap
		start := Point{x, y - half}
		end := Point{x, y + half}
		r := min(10, half)
		a := Point{far, y - half + r}
		b := Point{far, y + half - r}
		path := append([]Point{start}, curveFromSide(start, a, 1)...)
		path = append(path, straightCurve(a, b)...)
		back := append([]Point{end}, curveFromSide(end, b, 1)...)
		slices.Reverse(back)
		routes[e] = Route{Path: append(path, back[1:]...)}
		if label := s.g.Edges[e]; label.LabelW > 0 {
			routes[e].Label = Point{far + loopLabel + (label.LabelW+1)/2, y}
			far += label.LabelW + loopLabel
			half = max(half, (label.LabelH+1)/2-3)
		}
	}
}
