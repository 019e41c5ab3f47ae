package layered

// bendRadius is the radius of the bend of an edge into the side of a node.
const bendRadius = 16

// An edgeRouter draws edges between vertices whose places are final.
type edgeRouter struct {
	*layoutState

	// Where edges touch their upper and their lower node, by edge: the x of those at the top and bottom, the y of those at a side.
	upper, lower []int
	eased        [][]Point // by vertex: the points by which the edge of a loose piece passes
}

// newEdgeRouter decides where edges touch their nodes and where they pass labels.
func newEdgeRouter(s *layoutState) *edgeRouter {
	r := &edgeRouter{layoutState: s, eased: make([][]Point, len(s.vs))}
	r.findPorts()
	r.easeLayers()
	return r
}

// routeEdge draws the way of an edge through its pieces. Within a layer it runs straight down, between two layers it
// swings from one x to the next and never leaves the space between them: so it meets no node and no foreign label.
// Only where it passes labels without having one, it may take another way, given by eased.
func (s *edgeRouter) routeEdge(e int) Route {
	chain := s.chains[e]
	first, last := s.vs[chain[0]], s.vs[chain[len(chain)-1]]
	inside := chain[1 : len(chain)-1]
	var r Route
	var line, end []Point
	if s.reversed[e] {
		down, up := s.bendPoints(e)
		line = appendNew(line, down, Point{down.X, max(down.Y, s.bottom[first.layer])})
		end = []Point{{up.X, min(up.Y, s.top[last.layer])}, up}
		inside = inside[1 : len(inside)-1]
	} else {
		upper, lower := s.nodeRect(first.node), s.nodeRect(last.node)
		line = appendNew(line, Point{s.upper[e], upper.Y + upper.H}, Point{s.upper[e], s.bottom[first.layer]})
		end = []Point{{s.lower[e], s.top[last.layer]}, {s.lower[e], lower.Y}}
	}
	for _, v := range inside {
		if s.isLoose(v) {
			line = appendNew(line, s.eased[v]...)
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
		reversePath(r.Path)
	}
	return r
}

// verticalPath is the straight way of a piece through its layer.
func (s *edgeRouter) verticalPath(v int) []Point {
	x, l := s.vs[v].x, s.vs[v].layer
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
	a, b := s.vs[chain[1]], s.vs[chain[len(chain)-2]]
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
	first, last := path[0], path[len(path)-1]
	out := append([]Point{start}, curveFromSide(start, first, s.side[e])...)
	out = append(out, path[1:]...)
	back := append([]Point{end}, curveFromSide(end, last, s.side[e])...)
	reversePath(back)
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

// quarterCircle is the curve from a to b that is tangent to the lines a–c and c–b.
func quarterCircle(a, c, b Point) []Point {
	const n, d = 55, 100 // the usual approximation of a quarter of a circle
	return []Point{
		{a.X + (c.X-a.X)*n/d, a.Y + (c.Y-a.Y)*n/d},
		{b.X + (c.X-b.X)*n/d, b.Y + (c.Y-b.Y)*n/d},
		b,
	}
}

// straightCurve is a straight curve.
func straightCurve(a, b Point) []Point {
	return []Point{
		{a.X + (b.X-a.X)/3, a.Y + (b.Y-a.Y)/3},
		{b.X - (b.X-a.X)/3, b.Y - (b.Y-a.Y)/3},
		b,
	}
}

func reversePath(path []Point) {
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
}

// sideOf is the x of the left (-1) or right (1) side of a node.
func (s *edgeRouter) sideOf(node, side int) int {
	return s.vs[node].x + side*s.g.Nodes[node].W/2
}
