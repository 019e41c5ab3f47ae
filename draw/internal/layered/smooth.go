package layered

import "math"

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
		a, b := line[i-1], line[i]
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

// middleSlope is the harmonic mean of the slopes before and after b, 0 where the line turns or is vertical.
func middleSlope(a, b, c Point) float64 {
	dx1, dy1, dx2, dy2 := b.X-a.X, b.Y-a.Y, c.X-b.X, c.Y-b.Y
	if dy1 <= 0 || dy2 <= 0 || dx1 == 0 || dx2 == 0 || (dx1 < 0) != (dx2 < 0) {
		return 0
	}
	s1, s2 := float64(dx1)/float64(dy1), float64(dx2)/float64(dy2)
	return 2 / (1/s1 + 1/s2)
}

// controlPoint is the control point of a curve at p for a piece of height dy. A vertical end gets a long handle, which
// makes a rounder swing.
func controlPoint(p Point, dy int, slope float64) Point {
	if slope == 0 {
		return Point{p.X, p.Y + dy/2}
	}
	return Point{p.X + int(math.Round(slope*float64(dy)/3)), p.Y + dy/3}
}

// xAt is the x at the height y of a path that leads downwards.
func xAt(path []Point, y int) float64 {
	i := 0
	for i+6 < len(path) && path[i+3].Y < y {
		i += 3
	}
	a, b, c, d := path[i], path[i+1], path[i+2], path[i+3]
	lo, hi := 0.0, 1.0
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
