package layered

// loopRoom is the room that the loops of a node and their labels take at its right side.
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

// loopHeight is the height that the labels of the loops of a vertex need.
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
	x, y := box.X+box.W, box.Y+box.H/2
	far, half := x, 4
	for _, e := range s.loops[node] {
		half = min(half+8, max(0, box.H/2-2))
		far += loopGap
		start, end := Point{x, y - half}, Point{x, y + half}
		r := min(10, half)
		a, b := Point{far, y - half + r}, Point{far, y + half - r}
		path := append([]Point{start}, curveFromSide(start, a, 1)...)
		path = append(path, straightCurve(a, b)...)
		back := append([]Point{end}, curveFromSide(end, b, 1)...)
		reversePath(back)
		routes[e] = Route{Path: append(path, back[1:]...)}
		if label := s.g.Edges[e]; label.LabelW > 0 {
			routes[e].Label = Point{far + loopLabel + (label.LabelW+1)/2, y}
			far += label.LabelW + loopLabel
			half = max(half, (label.LabelH+1)/2-3)
		}
	}
}
