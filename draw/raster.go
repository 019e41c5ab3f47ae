package draw

import (
	"image"
	"image/color"
	"math"

	"golang.org/x/image/vector"
)

// bandHeight bounds the buffer of the rasterizer: large shapes are filled band by band.
const bandHeight = 512

// polyline is a chain of points.
type polyline struct {
	points []pt
	closed bool
}

// flattenPath turns curves into short straight pieces and scales them.
func flattenPath(p path, scale float64) []polyline {
	var out []polyline
	var cur *polyline
	for _, o := range p {
		switch o.cmd {
		case 'M':
			out = append(out, polyline{points: []pt{o.p[0]}})
			cur = &out[len(out)-1]
		case 'L':
			cur.points = append(cur.points, o.p[0])
		case 'C':
			cur.points = appendCurve(cur.points, o.p, scale)
		case 'Z':
			cur.closed = true
		}
	}
	for i := range out {
		out[i].points = scalePoints(out[i].points, scale)
		if n := len(out[i].points); out[i].closed && n > 1 && out[i].points[0] == out[i].points[n-1] {
			out[i].points = out[i].points[:n-1]
		}
	}
	return out
}

// scalePoints multiplies the points and drops those that do not differ from the one before.
func scalePoints(points []pt, scale float64) []pt {
	out := points[:0]
	for _, q := range points {
		q = pt{q.x * scale, q.y * scale}
		if len(out) == 0 || pointDistance(out[len(out)-1], q) > 1e-6 {
			out = append(out, q)
		}
	}
	return out
}

func appendCurve(points []pt, c [3]pt, scale float64) []pt {
	a := points[len(points)-1]
	length := pointDistance(a, c[0]) + pointDistance(c[0], c[1]) + pointDistance(c[1], c[2])
	steps := min(200, 4+int(length*scale/6))
	for i := 1; i <= steps; i++ {
		t := float64(i) / float64(steps)
		ab, bc, cd := interpolatePoint(a, c[0], t), interpolatePoint(c[0], c[1], t), interpolatePoint(c[1], c[2], t)
		points = append(points, interpolatePoint(interpolatePoint(ab, bc, t), interpolatePoint(bc, cd, t), t))
	}
	return points
}

// fillShape fills the area within the lines, each of which is closed. Areas that overlap must turn the same way.
func fillShape(dst *image.RGBA, lines []polyline, c color.RGBA) {
	lo, hi := pt{math.Inf(1), math.Inf(1)}, pt{math.Inf(-1), math.Inf(-1)}
	for _, l := range lines {
		for _, q := range l.points {
			lo = pt{math.Min(lo.x, q.x), math.Min(lo.y, q.y)}
			hi = pt{math.Max(hi.x, q.x), math.Max(hi.y, q.y)}
		}
	}
	if lo.x > hi.x {
		return
	}
	bounds := image.Rect(int(math.Floor(lo.x)), int(math.Floor(lo.y)), int(math.Ceil(hi.x))+1, int(math.Ceil(hi.y))+1)
	bounds = bounds.Intersect(dst.Bounds())
	src := image.NewUniform(c)
	var r vector.Rasterizer
	for y := bounds.Min.Y; y < bounds.Max.Y; y += bandHeight {
		band := image.Rect(bounds.Min.X, y, bounds.Max.X, min(y+bandHeight, bounds.Max.Y))
		r.Reset(band.Dx(), band.Dy())
		for _, l := range lines {
			addLine(&r, l, band.Min)
		}
		r.Draw(dst, band, src, image.Point{})
	}
}

func addLine(r *vector.Rasterizer, l polyline, origin image.Point) {
	for i, q := range l.points {
		x, y := float32(q.x-float64(origin.X)), float32(q.y-float64(origin.Y))
		if i == 0 {
			r.MoveTo(x, y)
		} else {
			r.LineTo(x, y)
		}
	}
	r.ClosePath()
}

// dashPolylines cuts lines into strokes.
func dashPolylines(lines []polyline, dash []float64, scale float64) []polyline {
	var out []polyline
	for _, l := range lines {
		points := l.points
		if l.closed && len(points) > 0 {
			points = append(points[:len(points):len(points)], points[0])
		}
		out = append(out, dashLine(points, dash, scale)...)
	}
	return out
}

func dashLine(points []pt, dash []float64, scale float64) []polyline {
	var out []polyline
	at, left := 0, dash[0]*scale
	var cur []pt
	if len(points) > 0 {
		cur = []pt{points[0]}
	}
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		for d := pointDistance(a, b); d > left; d = pointDistance(a, b) {
			a = interpolatePoint(a, b, left/d)
			if at%2 == 0 {
				out = append(out, polyline{points: scalePoints(append(cur, a), 1)}) // a dot is a single point
			}
			at = (at + 1) % len(dash)
			left = dash[at] * scale
			cur = []pt{a}
		}
		left -= pointDistance(a, b)
		cur = append(cur, b)
	}
	if at%2 == 0 && len(cur) > 1 {
		out = append(out, polyline{points: scalePoints(cur, 1)})
	}
	return out
}

// stroke is a pen.
type stroke struct {
	width float64
	round bool // the ends of a line are round
}

// strokeOutline returns the area that the pen covers along the lines.
func (s stroke) strokeOutline(lines []polyline) []polyline {
	var out []polyline
	for _, l := range lines {
		n := len(l.points)
		if s.round && n > 0 {
			out = append(out, s.discAt(l.points[0]))
			if last := l.points[n-1]; last != l.points[0] {
				out = append(out, s.discAt(last))
			}
		}
		left, right := s.offsetLines(l)
		for i := 1; i < len(left); i++ {
			out = append(out, orientClockwise(polyline{points: []pt{left[i-1], left[i], right[i], right[i-1]}, closed: true}))
		}
	}
	return out
}

// offsetLines returns the two lines on both sides of l, at half the width. At each point both lie on the bisector of the
// angle, so the pieces between neighbours fit together without gap or overlap.
func (s stroke) offsetLines(l polyline) (left, right []pt) {
	p := l.points
	n := len(p)
	if n < 2 {
		return nil, nil
	}
	count := n
	if l.closed {
		count++
	}
	for i := range count {
		j := i % n
		before, after := j-1, j+1
		if l.closed {
			before, after = (j+n-1)%n, (j+1)%n
		}
		normal := bisectorAt(p, max(before, 0), j, min(after, n-1))
		h := s.width / 2
		left = append(left, pt{p[j].x + normal.x*h, p[j].y + normal.y*h})
		right = append(right, pt{p[j].x - normal.x*h, p[j].y - normal.y*h})
	}
	return left, right
}

// bisectorAt returns the direction across a line at point j, long enough to keep the width in the corner.
func bisectorAt(p []pt, before, j, after int) pt {
	a, b := unitNormal(p[before], p[j]), unitNormal(p[j], p[after])
	if a == (pt{}) {
		a = b // the line begins at j
	}
	if b == (pt{}) {
		b = a // the line ends at j
	}
	m := pt{a.x + b.x, a.y + b.y}
	l2 := m.x*m.x + m.y*m.y
	if l2 < 0.25 { // a turn by more than 150 degrees: no corner that sharp occurs, do not draw a spike
		return b
	}
	return pt{2 * m.x / l2, 2 * m.y / l2}
}

// unitNormal is the unit vector to the left of the way from a to b.
func unitNormal(a, b pt) pt {
	d := pointDistance(a, b)
	if d == 0 {
		return pt{}
	}
	return pt{(b.y - a.y) / d, -(b.x - a.x) / d}
}

func (s stroke) discAt(at pt) polyline {
	r := s.width / 2
	l := flattenPath(ellipsePath(box{at.x - r, at.y - r, s.width, s.width}), 1)[0]
	return orientClockwise(l)
}

// orientClockwise makes an area turn clockwise, so that overlapping ones do not cancel each other.
func orientClockwise(l polyline) polyline {
	sum := 0.0
	for i, q := range l.points {
		next := l.points[(i+1)%len(l.points)]
		sum += q.x*next.y - next.x*q.y
	}
	if sum < 0 {
		for i, j := 0, len(l.points)-1; i < j; i, j = i+1, j-1 {
			l.points[i], l.points[j] = l.points[j], l.points[i]
		}
	}
	return l
}
