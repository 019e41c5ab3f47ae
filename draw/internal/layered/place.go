package layered

import "slices"

// placeAcross gives every vertex its x. Four times, from each corner, every vertex is aligned with the middle one of
// its neighbours, and the blocks that arise are packed; the middle of the four results is taken. It keeps the order
// and the distances, because each of the four does.
func (s *layoutState) placeAcross() {
	s.markConflicts()
	var all [4][]int
	narrow := 0
	width := 0
	var lows, highs [4]int
	for i := range all {
		c := corner{s: s, fromBelow: i&1 != 0, fromRight: i&2 != 0}
		all[i] = c.packBlocks(c.alignVertices())
		lows[i], highs[i] = s.horizontalExtent(all[i])
		if w := highs[i] - lows[i]; i == 0 || w < width {
			narrow = i
			width = w
		}
	}
	for i, xs := range all {
		shift := lows[narrow] - lows[i]
		if i&2 != 0 {
			shift = highs[narrow] - highs[i]
		}
		for v := range xs {
			xs[v] += shift
		}
	}
	for v := range s.vs {
		x := [4]int{all[0][v], all[1][v], all[2][v], all[3][v]}
		slices.Sort(x[:])
		s.vs[v].x = (x[1] + x[2]) >> 1
	}
}

// horizontalExtent returns the left and right end of a placement.
func (s *layoutState) horizontalExtent(xs []int) (lo, hi int) {
	for v, x := range xs {
		l := x - s.vs[v].left
		r := x + s.vs[v].right
		if v == 0 {
			lo = l
			hi = r
		}
		lo = min(lo, l)
		hi = max(hi, r)
	}
	return lo, hi
}

// minDistance returns the least distance of the middles of two neighbours.
func (s *layoutState) minDistance(left, right int) int {
	a := &s.vs[left]
	b := &s.vs[right]
	gap := edgeGap
	switch {
	case a.node >= 0 && b.node >= 0:
		gap = nodeGap
	case a.label || b.label:
		gap = labelGap
	}
	return a.right + gap + b.left
}

// markConflicts finds the segments that cross the inner part of a long edge: the long edge stays straight.
func (s *layoutState) markConflicts() {
	inner := func(g int) bool { return s.isPiece(s.segs[g].up) && s.isPiece(s.segs[g].down) }
	for _, layer := range s.layers {
		// The inner segments that end in this layer, from left to right, split it into stretches: a segment that ends
		// within a stretch must begin between the upper ends of the inner segments on both sides of the stretch.
		left := -1
		begin := 0
		for i, v := range layer {
			right := -1
			for _, g := range s.ups[v] {
				if inner(g) {
					right = s.vs[s.segs[g].up].pos
				}
			}
			if right < 0 && i < len(layer)-1 {
				continue
			}
			for _, w := range layer[begin : i+1] {
				for _, g := range s.ups[w] {
					p := s.vs[s.segs[g].up].pos
					if !inner(g) && (p < left || right >= 0 && p > right) {
						s.segs[g].conflict = true
					}
				}
			}
			left = right
			begin = i + 1
		}
	}
}

// corner is one of the four directions of placeAcross.
type corner struct {
	s                    *layoutState
	fromBelow, fromRight bool
}

// alignVertices joins vertices of neighbouring layers to blocks and returns the root of each vertex's block.
func (c corner) alignVertices() []int {
	s := c.s
	root := make([]int, len(s.vs))
	next := make([]int, len(s.vs))
	for v := range root {
		root[v], next[v] = v, v
	}
	for i := range s.layers {
		l := i
		if c.fromBelow {
			l = len(s.layers) - 1 - i
		}
		limit := -1
		for j := range s.layers[l] {
			v := s.layers[l][j]
			if c.fromRight {
				v = s.layers[l][len(s.layers[l])-1-j]
			}
			for _, u := range c.middleNeighbours(v) {
				if next[v] == v && limit < c.positionOf(u) {
					next[u], root[v] = v, root[u]
					next[v] = root[v]
					limit = c.positionOf(u)
				}
			}
		}
	}
	return root
}

// positionOf returns the position of a vertex as seen from the corner.
func (c corner) positionOf(v int) int {
	if c.fromRight {
		return len(c.s.layers[c.s.vs[v].layer]) - 1 - c.s.vs[v].pos
	}
	return c.s.vs[v].pos
}

// middleNeighbours returns the middle neighbours of v in the layer before, those it may be aligned with; of two, the
// one that is nearer to the corner comes first.
func (c corner) middleNeighbours(v int) []int {
	s := c.s
	segs := s.ups[v]
	if c.fromBelow {
		segs = s.downs[v]
	}
	type end struct{ v, key, seg int }
	var ends []end
	heavy := slices.ContainsFunc(segs, func(g int) bool { return !s.segs[g].light })
	for _, g := range segs {
		if heavy && s.segs[g].light {
			continue // it does not move what other edges hold in place
		}
		if c.fromBelow {
			ends = append(ends, end{s.segs[g].down, s.downKey(g), g})
		} else {
			ends = append(ends, end{s.segs[g].up, s.upKey(g), g})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return a.key - b.key })
	if c.fromRight {
		slices.Reverse(ends)
	}
	var out []int
	if n := len(ends); n > 0 {
		for m := (n - 1) / 2; m <= n/2; m++ {
			if !s.segs[ends[m].seg].conflict {
				out = append(out, ends[m].v)
			}
		}
	}
	return out
}

// packBlocks places the blocks: each as near to the corner's side as its neighbours allow, then back towards the other
// side as far as there is room before the next block.
func (c corner) packBlocks(root []int) []int {
	s := c.s
	type gap struct{ from, to, size int }
	gaps := make([][]gap, len(s.vs)) // by block: the blocks behind it
	waits := make([]int, len(s.vs))
	for _, layer := range s.layers {
		for i := 1; i < len(layer); i++ {
			a := root[layer[i-1]]
			b := root[layer[i]]
			if c.fromRight {
				a, b = b, a
			}
			gaps[a] = append(gaps[a], gap{a, b, s.minDistance(layer[i-1], layer[i])})
			waits[b]++
		}
	}
	var order []int
	for v := range root {
		if root[v] == v && waits[v] == 0 {
			order = append(order, v)
		}
	}
	at := make([]int, len(s.vs))
	for i := 0; i < len(order); i++ {
		for _, g := range gaps[order[i]] {
			at[g.to] = max(at[g.to], at[g.from]+g.size)
			if waits[g.to]--; waits[g.to] == 0 {
				order = append(order, g.to)
			}
		}
	}
	for i := range order {
		b := order[len(order)-1-i]
		for j, g := range gaps[b] {
			if room := at[g.to] - g.size; j == 0 || room < at[b] {
				at[b] = room
			}
		}
	}
	xs := make([]int, len(s.vs))
	for v := range xs {
		if xs[v] = at[root[v]]; c.fromRight {
			xs[v] = -xs[v]
		}
	}
	return xs
}

// placeDown gives every layer its height and y. Layers between which edges run far across stand further apart, so
// that these do not become flat.
func (s *layoutState) placeDown() {
	s.top = make([]int, len(s.layers))
	s.bottom = make([]int, len(s.layers))
	y := 0
	for l, layer := range s.layers {
		if l > 0 {
			y += s.gapAbove(l)
		}
		height := 0
		for _, v := range layer {
			height = max(height, s.vs[v].height, s.loopHeight(v))
		}
		s.top[l], s.bottom[l] = y, y+roundUpToEven(height)
		y = s.bottom[l]
	}
}

func (s *layoutState) gapAbove(l int) int {
	gap := layerGap
	switch {
	case s.isLabel[l]:
		gap = aboveGap
	case s.isLabel[l-1]:
		gap = belowGap
	}
	far := 0
	for _, v := range s.layers[l] {
		for _, g := range s.ups[v] {
			dx := s.vs[s.segs[g].up].x - s.vs[v].x
			far = max(far, dx, -dx)
		}
	}
	return gap + min(far/10, 64)
}

// nodeRect returns the position of a node: in the middle of its layer's height.
func (s *layoutState) nodeRect(node int) Rect {
	n := s.g.Nodes[node]
	v := s.vs[node] // the vertices of the nodes come first, in their order
	middle := (s.top[v.layer] + s.bottom[v.layer]) / 2
	return Rect{v.x - n.W/2, middle - n.H/2, n.W, n.H}
}

// buildLayout collects the result and moves it to the origin.
func (s *layoutState) buildLayout() *Layout {
	out := &Layout{Nodes: make([]Rect, len(s.g.Nodes)), Edges: make([]Route, len(s.g.Edges))}
	for i := range out.Nodes {
		out.Nodes[i] = s.nodeRect(i)
	}
	router := newEdgeRouter(s)
	for e := range s.g.Edges {
		if s.isLoop(e) {
			continue
		}
		out.Edges[e] = router.routeEdge(e)
	}
	for i := range s.g.Nodes {
		s.drawLoops(i, out.Edges)
	}
	s.moveToOrigin(out)
	return out
}

func (s *layoutState) moveToOrigin(out *Layout) {
	first := true
	var lo, hi Point
	include := func(x0, y0, x1, y1 int) {
		if first {
			lo = Point{x0, y0}
			hi = Point{x1, y1}
			first = false
		}
		lo = Point{min(lo.X, x0), min(lo.Y, y0)}
		hi = Point{max(hi.X, x1), max(hi.Y, y1)}
	}
	for _, r := range out.Nodes {
		include(r.X, r.Y, r.X+r.W, r.Y+r.H)
	}
	for e, r := range out.Edges {
		for _, p := range r.Path {
			include(p.X, p.Y, p.X, p.Y)
		}
		if g := s.g.Edges[e]; g.LabelW > 0 {
			w := (g.LabelW + 1) / 2
			h := (g.LabelH + 1) / 2
			include(r.Label.X-w, r.Label.Y-h, r.Label.X+w, r.Label.Y+h)
		}
	}
	for i := range out.Nodes {
		out.Nodes[i].X -= lo.X
		out.Nodes[i].Y -= lo.Y
	}
	for i := range out.Edges {
		r := &out.Edges[i]
		r.Label = Point{r.Label.X - lo.X, r.Label.Y - lo.Y}
		for j := range r.Path {
			r.Path[j] = Point{r.Path[j].X - lo.X, r.Path[j].Y - lo.Y}
		}
	}
	out.W = hi.X - lo.X
	out.H = hi.Y - lo.Y
}
