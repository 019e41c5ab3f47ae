package draw

import "math"

// pt is a point of the picture in pixels; y grows downwards.
type pt struct{ x, y float64 }

// pathOp is a step of a path: M and L use the first point, C all three, Z none.
type pathOp struct {
	cmd byte
	p   [3]pt
}

// path is an outline or a line.
// It begins with a moveTo; an outline ends with close.
type path []pathOp

func (p *path) moveTo(x, y float64) { *p = append(*p, pathOp{'M', [3]pt{{x, y}}}) }

func (p *path) close() { *p = append(*p, pathOp{cmd: 'Z'}) }

func (p *path) curveTo(a, b, c pt) { *p = append(*p, pathOp{'C', [3]pt{a, b, c}}) }

// lineTo leads to a point, if the path is not there already.
func (p *path) lineTo(x, y float64) {
	if last := (*p)[len(*p)-1]; last.endPoint() != (pt{x, y}) {
		*p = append(*p, pathOp{'L', [3]pt{{x, y}}})
	}
}

// endPoint returns the point to which a step leads.
func (o pathOp) endPoint() pt {
	if o.cmd == 'C' {
		return o.p[2]
	}
	return o.p[0]
}

// turnTo adds a quarter of an ellipse to the point c, tangent to the line from the current point to the corner.
func (p *path) turnTo(from, corner, to pt) {
	const k = 0.5523 // the usual approximation
	p.curveTo(interpolatePoint(from, corner, k), interpolatePoint(to, corner, k), to)
}

// interpolatePoint returns the point at the share t of the way from a to b. The conversions keep machines that fuse
// multiplication and addition from giving other digits.
func interpolatePoint(a, b pt, t float64) pt {
	return pt{a.x + float64((b.x-a.x)*t), a.y + float64((b.y-a.y)*t)}
}

// polygonPath returns a closed outline of straight lines.
func polygonPath(points ...pt) path {
	var p path
	for i, q := range points {
		if i == 0 {
			p.moveTo(q.x, q.y)
		} else {
			p.lineTo(q.x, q.y)
		}
	}
	p.close()
	return p
}

// roundRect returns a rectangle with rounded corners.
func roundRect(r rect, rx, ry float64) path {
	x0 := r.x
	y0 := r.y
	x1 := r.x + r.w
	y1 := r.y + r.h
	if rx <= 0 || ry <= 0 {
		return polygonPath(pt{x0, y0}, pt{x1, y0}, pt{x1, y1}, pt{x0, y1})
	}
	var p path
	p.moveTo(x0+rx, y0)
	p.lineTo(x1-rx, y0)
	p.turnTo(pt{x1 - rx, y0}, pt{x1, y0}, pt{x1, y0 + ry})
	p.lineTo(x1, y1-ry)
	p.turnTo(pt{x1, y1 - ry}, pt{x1, y1}, pt{x1 - rx, y1})
	p.lineTo(x0+rx, y1)
	p.turnTo(pt{x0 + rx, y1}, pt{x0, y1}, pt{x0, y1 - ry})
	p.lineTo(x0, y0+ry)
	p.turnTo(pt{x0, y0 + ry}, pt{x0, y0}, pt{x0 + rx, y0})
	p.close()
	return p
}

// ellipsePath returns the ellipse within a box.
func ellipsePath(r rect) path { return roundRect(r, r.w/2, r.h/2) }

// rect is a rectangle from its top left corner.
type rect struct{ x, y, w, h float64 }

// centrePoint returns the middle of the box.
func (b rect) centrePoint() pt { return pt{b.x + b.w/2, b.y + b.h/2} }

// pointDistance returns the distance of two points.
func pointDistance(a, b pt) float64 { return math.Hypot(a.x-b.x, a.y-b.y) }
