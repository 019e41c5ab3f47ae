package layered

import "math"

// isLoose reports whether a vertex is a piece that passes a layer of labels without a label of its own. Such a piece
// keeps edges apart from labels, but the edge need not pass at its x.
func (s *edgeRouter) isLoose(v int) bool {
	return s.isPiece(v) && !s.vs[v].label && s.isLabel[s.vs[v].layer]
}

// smoothLabelLayers chooses for every loose piece the points by which its edge passes: as few as can be, so that the
// edge swings from the layer above to the layer below without a step at the labels.
func (s *edgeRouter) smoothLabelLayers() {
	for l, layer := range s.layers {
		if !s.isLabel[l] {
			continue
		}
		lines := make([][]Point, len(layer))
		straight := make([]bool, len(layer))
		for i, v := range layer {
			lines[i] = s.pathThroughLayer(v, false)
		}
		for changed := true; changed; {
			changed = false
			for i := 1; i < len(layer); i++ {
				if !s.meetOutside(l, lines[i-1], lines[i]) {
					continue
				}
				for _, j := range []int{i - 1, i} {
					if !straight[j] && s.isLoose(layer[j]) {
						lines[j] = s.pathThroughLayer(layer[j], true)
						straight[j], changed = true, true
					}
				}
			}
		}
		for i, v := range layer {
			s.smoothed[v] = lines[i][1 : len(lines[i])-1]
		}
	}
}

// pathThroughLayer returns the way of a piece in a layer of labels from the layer above to the layer below. A loose
// piece takes the direct way if that is free. Else, if its x would make a step in the way, it passes a point as near to
// the direct way as its neighbours allow. Where that is too narrow, and if straight is set, it passes straight down.
func (s *edgeRouter) pathThroughLayer(v int, straight bool) []Point {
	a, b := s.adjacentPoints(v)
	upright := s.verticalPath(v)
	if straight || !s.isLoose(v) {
		return appendNew([]Point{a}, append(upright, b)...)
	}
	top := upright[0].Y
	bottom := upright[1].Y
	lo, hi := s.movableRange(v)
	free := func(line []Point) bool {
		path := smoothLine(line)
		x := xAt(path, top)
		y := xAt(path, bottom)
		return min(x, y) >= lo && max(x, y) <= hi
	}
	direct := []Point{a, b}
	if free(direct) {
		return direct
	}
	if x := s.vs[v].x; x > min(a.X, b.X) && x < max(a.X, b.X) {
		p := Point{int(math.Round(min(max(xAt(smoothLine(direct), (top+bottom)/2), lo), hi))), (top + bottom) / 2}
		off := math.Abs(middleSlope(a, p, b)) * float64(bottom-top) * 0.7 // half the height, and some more
		p.X = int(math.Round(min(max(float64(p.X), lo+off), hi-off)))
		if via := appendNew([]Point{a}, p, b); free(via) {
			return via
		}
	}
	return appendNew([]Point{a}, upright[0], upright[1], b)
}

// adjacentPoints returns where the edge of a piece leaves the layer above and enters the layer below.
func (s *edgeRouter) adjacentPoints(v int) (a, b Point) {
	e := s.vs[v].edge
	l := s.vs[v].layer
	chain := s.chains[e]
	i := l - s.vs[chain[0]].layer
	if s.reversed[e] {
		i++ // after the bend next to the upper node
	}
	a = Point{s.vs[chain[i-1]].x, s.bottom[l-1]}
	b = Point{s.vs[chain[i+1]].x, s.top[l+1]}
	down, up := s.bendPoints(e)
	switch {
	case s.reversed[e] && i == 2:
		a.Y = max(a.Y, down.Y)
	case !s.reversed[e] && i == 1:
		a.X = s.upper[e]
	}
	switch {
	case s.reversed[e] && i == len(chain)-3:
		b.Y = min(b.Y, up.Y)
	case !s.reversed[e] && i == len(chain)-2:
		b.X = s.lower[e]
	}
	return a, b
}

// movableRange returns how far to the left and right a loose piece may move: up to the labels next to it, and half the
// way to other loose pieces.
func (s *edgeRouter) movableRange(v int) (lo, hi float64) {
	layer := s.layers[s.vs[v].layer]
	pos := s.vs[v].pos
	x := s.vs[v].x
	lo = math.Inf(-1)
	hi = math.Inf(1)
	if pos > 0 {
		w := s.vs[layer[pos-1]]
		if lo = float64((w.x+x)/2 + 1); w.label {
			lo = float64(w.x + w.right + labelGap/2)
		}
	}
	if pos < len(layer)-1 {
		w := s.vs[layer[pos+1]]
		if hi = float64((w.x+x)/2 - 1); w.label {
			hi = float64(w.x - w.left - labelGap/2)
		}
	}
	return lo, hi
}

// meetOutside reports whether two neighbouring ways through a layer of labels meet above or below the layer, although
// they begin or end there in the right order.
func (s *edgeRouter) meetOutside(l int, left, right []Point) bool {
	const samples = 6
	p := smoothLine(left)
	q := smoothLine(right)
	n := len(left) - 1
	m := len(right) - 1
	meet := func(from, to, apart int) bool {
		if apart < 0 {
			return false // a true crossing
		}
		for i := 1; i < samples; i++ {
			y := from + (to-from)*i/samples
			if xAt(q, y)-xAt(p, y) < min(5, float64(apart)-0.5) {
				return true
			}
		}
		return false
	}
	return meet(max(left[0].Y, right[0].Y), s.top[l], right[0].X-left[0].X) ||
		meet(s.bottom[l], min(left[n].Y, right[m].Y), right[m].X-left[n].X)
}

// smoothLine turns a line that leads downwards into curves that are vertical at both ends. Between two points the curve
// never leaves their x and y: it is the monotone interpolation of Fritsch and Carlson, with x as a function of y.
func smoothLine(line []Point) []Point {
	line = dropVerticalMidpoints(line)
	if len(line) == 0 {
		return nil
	}
	slope := make([]float64, len(line)) // dx/dy at each point; 0 at both ends
	for i := 1; i < len(line)-1; i++ {
		slope[i] = middleSlope(line[i-1], line[i], line[i+1])
	}
	path := []Point{line[0]}
	for i := 1; i < len(line); i++ {
		a := line[i-1]
		b := line[i]
		path = append(path, controlPoint(a, b.Y-a.Y, slope[i-1]), controlPoint(b, a.Y-b.Y, slope[i]), b)
	}
	return path
}

// dropVerticalMidpoints removes points in the middle of a vertical stretch.
func dropVerticalMidpoints(line []Point) []Point {
	var out []Point
	for i, p := range line {
		if i > 0 && i < len(line)-1 && line[i-1].X == p.X && line[i+1].X == p.X {
			continue
		}
		out = append(out, p)
	}
	return out
}

// middleSlope returns the harmonic mean of the slopes before and after b, 0 where the line turns or is vertical.
func middleSlope(a, b, c Point) float64 {
	dx1 := b.X - a.X
	dy1 := b.Y - a.Y
	dx2 := c.X - b.X
	dy2 := c.Y - b.Y
	if dy1 <= 0 || dy2 <= 0 || dx1 == 0 || dx2 == 0 || (dx1 < 0) != (dx2 < 0) {
		return 0
	}
	s1 := float64(dx1) / float64(dy1)
	s2 := float64(dx2) / float64(dy2)
	return 2 / (1/s1 + 1/s2)
}

// controlPoint returns the control point of a curve at p for a piece of height dy. A vertical end gets a long handle,
// which makes a rounder swing.
func controlPoint(p Point, dy int, slope float64) Point {
	if slope == 0 {
		return Point{p.X, p.Y + dy/2}
	}
	return Point{p.X + int(math.Round(slope*float64(dy)/3)), p.Y + dy/3}
}

// xAt returns the x at the height y of a path that leads downwards.
func xAt(path []Point, y int) float64 {
	i := 0
	for i+6 < len(path) && path[i+3].Y < y {
		i += 3
	}
	a := path[i]
	b := path[i+1]
	c := path[i+2]
	d := path[i+3]
	lo := 0.0
	hi := 1.0
	for range 24 { // find the parameter at which the curve has fallen to y
		if t := (lo + hi) / 2; evalBezier(a.Y, b.Y, c.Y, d.Y, t) < float64(y) {
			lo = t
		} else {
			hi = t
		}
	}
	return evalBezier(a.X, b.X, c.X, d.X, lo)
}

func evalBezier(a, b, c, d int, t float64) float64 {
	u := 1 - t
	return float64(float64(a)*u*u*u) + float64(3*float64(b)*u*u*t) + float64(3*float64(c)*u*t*t) + float64(float64(d)*t*t*t)
}
