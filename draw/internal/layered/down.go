package layered

// placeDown gives every layer its height and y. Layers between which edges run far across stand further apart, so
// that these do not become flat.
func (s *layoutState) placeDown() {
	s.top, s.bottom = make([]int, len(s.layers)), make([]int, len(s.layers))
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
	see := func(x0, y0, x1, y1 int) {
		if first {
			lo, hi, first = Point{x0, y0}, Point{x1, y1}, false
		}
		lo = Point{min(lo.X, x0), min(lo.Y, y0)}
		hi = Point{max(hi.X, x1), max(hi.Y, y1)}
	}
	for _, r := range out.Nodes {
		see(r.X, r.Y, r.X+r.W, r.Y+r.H)
	}
	for e, r := range out.Edges {
		for _, p := range r.Path {
			see(p.X, p.Y, p.X, p.Y)
		}
		if g := s.g.Edges[e]; g.LabelW > 0 {
			w, h := (g.LabelW+1)/2, (g.LabelH+1)/2
			see(r.Label.X-w, r.Label.Y-h, r.Label.X+w, r.Label.Y+h)
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
	out.W, out.H = hi.X-lo.X, hi.Y-lo.Y
}
