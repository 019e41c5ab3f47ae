package draw

import "math"

// form is the outline of a node.
// The layout knows only its box; where the outline lies in it, outlineInset says.
type form int

const (
	formBox      form = iota // sharp corners
	formRound                // rounded corners
	formPill                 // half circles at both ends
	formHexagon              // a question
	formSlanted              // a parallelogram: something comes in
	formCylinder             // something stored
	formStack                // many of the same
	formCall                 // double sides: runs something else
	formDot                  // the start
	formRing                 // the end
	formBar                  // where a join meets
)

// Measures of the outlines.
const (
	slant    = 12.0 // of a parallelogram and of a hexagon's points
	lid      = 6.0  // half the height of a cylinder's lid
	stackOff = 4.0  // between the sheets of a stack
	callOff  = 6.0  // between the double sides of a call
	dotSize  = 18
	ringSize = 22
	barThick = 6
)

// outlinePaths returns the parts of a form's picture within a box, the rearmost first. Each is filled and stroked.
// Most forms have one part. A cylinder, a stack and a call have several.
func (f form) outlinePaths(b rect) []path {
	x0 := b.x
	y0 := b.y
	x1 := b.x + b.w
	y1 := b.y + b.h
	switch f {
	case formRound:
		return []path{roundRect(b, 9, 9)}
	case formPill:
		return []path{roundRect(b, b.h/2, b.h/2)}
	case formHexagon:
		m := b.centrePoint().y
		return []path{polygonPath(pt{x0 + slant, y0}, pt{x1 - slant, y0}, pt{x1, m}, pt{x1 - slant, y1}, pt{x0 + slant, y1}, pt{x0, m})}
	case formSlanted:
		return []path{polygonPath(pt{x0 + slant, y0}, pt{x1, y0}, pt{x1 - slant, y1}, pt{x0, y1})}
	case formCylinder:
		return []path{cylinderPath(b), ellipsePath(rect{x0, y0, b.w, 2 * lid})}
	case formStack:
		front := rect{x0, y0, b.w - 2*stackOff, b.h - 2*stackOff}
		var sheets []path
		for off := 2 * stackOff; off >= 0; off -= stackOff {
			sheets = append(sheets, roundRect(rect{x0 + off, y0 + off, front.w, front.h}, 3, 3))
		}
		return sheets
	case formCall:
		return []path{roundRect(b, 3, 3), polygonPath(pt{x0 + callOff, y0}, pt{x1 - callOff, y0}, pt{x1 - callOff, y1}, pt{x0 + callOff, y1})}
	case formDot, formRing:
		return []path{ellipsePath(b)}
	case formBar:
		return []path{roundRect(b, 2, 2)}
	}
	return []path{roundRect(b, 3, 3)}
}

// cylinderPath returns the outline of an upright cylinder.
func cylinderPath(b rect) path {
	x0 := b.x
	y0 := b.y
	x1 := b.x + b.w
	y1 := b.y + b.h
	m := b.centrePoint().x
	var p path
	p.moveTo(x0, y0+lid)
	p.turnTo(pt{x0, y0 + lid}, pt{x0, y0}, pt{m, y0})
	p.turnTo(pt{m, y0}, pt{x1, y0}, pt{x1, y0 + lid})
	p.lineTo(x1, y1-lid)
	p.turnTo(pt{x1, y1 - lid}, pt{x1, y1}, pt{m, y1})
	p.turnTo(pt{m, y1}, pt{x0, y1}, pt{x0, y1 - lid})
	p.close()
	return p
}

// textPadding is what a form needs around its text: left, top, right, bottom.
func (f form) textPadding() [4]int {
	const x, y = 16, 9
	switch f {
	case formHexagon, formSlanted:
		return [4]int{x + 6, y, x + 6, y}
	case formPill:
		return [4]int{x + 6, y, x + 6, y}
	case formCylinder:
		return [4]int{x, y + 2*lid - 2, x, y}
	case formStack:
		return [4]int{x, y, x + 2*stackOff, y + 2*stackOff}
	case formCall:
		return [4]int{x + callOff, y, x + callOff, y}
	}
	return [4]int{x, y, x, y}
}

// flatLength returns the length of the part of a form's top and bottom (or, for a picture from left to right, of its
// left and right side) at which several edges may end. The layout spreads the ends of edges over this length. It is 0
// for circles: all edges end in the middle.
func (f form) flatLength(w, h int, right bool) int {
	if right {
		switch f {
		case formDot, formRing:
			return 0
		case formPill, formHexagon:
			return h / 2
		}
		return max(0, h-18)
	}
	switch f {
	case formDot, formRing:
		return 0
	case formPill:
		return max(0, w-h)
	case formBar:
		return w - 8
	}
	return max(0, w-2*slant-8)
}

// side of a box.
type side int

const (
	sideTop side = iota
	sideBottom
	sideLeft
	sideRight
)

// inwardVector returns the direction from a side into the box.
func (s side) inwardVector() pt {
	return [...]pt{{0, 1}, {0, -1}, {1, 0}, {-1, 0}}[s]
}

// sideOf returns the side of b on which q lies.
func sideOf(b rect, q pt) side {
	switch {
	case q.y <= b.y:
		return sideTop
	case q.y >= b.y+b.h:
		return sideBottom
	case q.x <= b.x:
		return sideLeft
	}
	return sideRight
}

// outlineInset returns how far inside the box the outline lies, at an offset from the middle of the side.
// It is 0 for sides that are straight and lie on the box.
func (f form) outlineInset(b rect, s side, off float64) float64 {
	upright := s == sideTop || s == sideBottom
	switch f {
	case formDot, formRing:
		return arcDepth(b.w/2, off)
	case formPill:
		if !upright {
			return arcDepth(b.h/2, off)
		}
	case formHexagon:
		if !upright {
			return slant * math.Abs(off) / (b.h / 2)
		}
	case formSlanted:
		switch s {
		case sideLeft:
			return slant * (0.5 - off/b.h)
		case sideRight:
			return slant * (0.5 + off/b.h)
		}
	case formCylinder:
		if upright {
			return arcDepth(b.w/2, off) * lid / (b.w / 2)
		}
	}
	return 0
}

// arcDepth is how far a circle has fallen away from its tangent, at an offset from the point where they touch.
func arcDepth(radius, off float64) float64 {
	return radius - math.Sqrt(math.Max(0, float64(radius*radius)-float64(off*off)))
}
