package draw

import (
	"math"

	"raddle.dev/graph"
)

const (
	lineWidth  = 1.5
	arrowLong  = 9.0
	arrowHalf  = 4.0
	frameRound = 8.0
)

// paintCanvas adds a canvas to the scene, its corner at (x, y), on a ground of the given colour.
// Edges come first, so that nodes cover their ends. The ground is the colour behind labels, which
// hide the lines that pass below them.
func (p *painter) paintCanvas(c *canvas, x, y int, ground string) {
	for i := range c.level.links {
		p.paintEdge(c, i, pt{float64(x), float64(y)}, ground)
	}
	for i, v := range c.level.vertices {
		r := c.layout.Nodes[i]
		b := box{float64(x + r.X), float64(y + r.Y), float64(r.W), float64(r.H)}
		if v.sub == nil {
			p.paintNode(v, c.blocks[i], b)
			continue
		}
		p.paintFrame(v, c.blocks[i], b)
		in := c.blocks[i].inner
		p.paintCanvas(in, x+r.X+(r.W-in.layout.W)/2, y+r.Y+frameHead, frameFill)
	}
}

// newGroup returns the empty group of a vertex. That of a node carries the node's path and kind for
// pages, and as its tip the title, the name and the description, each of them once.
func (v vertex) newGroup(class string) group {
	g := group{class: class}
	if v.role == roleNode {
		g.data = []attr{{"data-node", v.path}}
		if v.info.Kind != "" {
			g.data = append(g.data, attr{"data-kind", v.info.Kind})
		}
		g.tip = v.displayName()
		for _, more := range []string{cleanLabel(v.info.Name), cleanLabel(v.info.Doc)} {
			if more != "" && more != g.tip {
				g.tip += "\n" + more
			}
		}
	}
	return g
}

// paintNode adds a vertex that is not a frame: its outline, and its lines of text from the top. b
// is what was measured, r is where the layout put it.
func (p *painter) paintNode(v vertex, b block, r box) {
	s := v.nodeStyle()
	class := [...]string{"node", "start", "finish", "join"}[v.role]
	g := v.newGroup(class)
	for _, out := range s.form.outlinePaths(r) {
		g.figs = append(g.figs, figure{path: out, fill: s.fill, stroke: s.stroke, width: lineWidth})
	}
	switch s.form {
	case formRing:
		inner := box{r.x + 5, r.y + 5, r.w - 10, r.h - 10}
		g.figs[0].fill = paperColor
		g.figs = append(g.figs, figure{path: ellipsePath(inner), fill: s.fill})
	case formPill:
		g.figs[0].width = 2.5
	}
	if v.first {
		g.figs[0].width = boldWidth
	}
	ink, muted, noteInk := p.runInks(v, &g)
	pad := s.form.textPadding()
	middle := r.x + float64(pad[0]) + (r.w-float64(pad[0]+pad[2]))/2
	y := r.y + float64(pad[1])
	for _, line := range b.name {
		g.texts = append(g.texts, textAt(nameText, pt{middle, y}, ink, line))
		y += float64(nameText.line)
	}
	if b.small != "" {
		g.texts = append(g.texts, textAt(smallText, pt{middle, y}, muted, b.small))
		y += float64(smallText.line)
	}
	if b.note != "" {
		g.texts = append(g.texts, textAt(smallText, pt{middle, y}, noteInk, b.note))
	}
	p.scene.groups = append(p.scene.groups, g)
}

// runInks changes the figures of a node for a picture of a run: nodes that were not reached are pale, and those that failed or wait have a
// strong outline. It returns the colours of the name, the small word and the note.
func (p *painter) runInks(v vertex, g *group) (name, small, note string) {
	name, small, note = inkColor, mutedColor, doneColor
	if p.o.Run == nil || v.role != roleNode {
		return name, small, note
	}
	n, reached := p.o.Run[v.path]
	strong := ""
	switch {
	case !reached:
		for i := range g.figs {
			g.figs[i].fill, g.figs[i].stroke = paperColor, unreachedLine
		}
		return unreachedInk, unreachedInk, unreachedInk
	case n.Status == StatusFailed:
		strong = failedColor
	case n.Status != StatusDone:
		strong = waitingColor
	default:
		return name, small, note
	}
	for i := range g.figs {
		g.figs[i].stroke, g.figs[i].width = strong, boldWidth
	}
	g.data = append(g.data, attr{"data-status", n.Status})
	return name, small, strong
}

// textAt sets a line whose top middle is at the given point.
// The baseline is a bit more than a third of the size below the middle of the line, which centres
// letters of the Go fonts. The conversions keep the digits the same on every machine.
func textAt(s textStyle, top pt, color, text string) caption {
	base := top.y + float64(s.line)/2 + float64(float64(s.size)*0.36)
	return caption{at: pt{top.x, base}, style: s, color: color, text: text}
}

// paintFrame adds the frame around a level, with its title and small words in the upper left
// corner.
func (p *painter) paintFrame(v vertex, b block, r box) {
	g := v.newGroup("frame")
	g.figs = []figure{{path: roundRect(r, frameRound, frameRound), fill: frameFill, stroke: frameLine, width: lineWidth}}
	if v.first {
		g.figs[0].width = boldWidth
	}
	// A frame that the run did not reach keeps its colours: its nodes are pale already.
	if _, reached := p.o.Run[v.path]; reached {
		p.runInks(v, &g)
	}
	at := pt{r.x + 14, r.y + 22}
	g.texts = []caption{{at: at, left: true, style: nameText, color: inkColor, text: b.name[0]}}
	if b.small != "" {
		at.x += float64(p.measurer.textWidth(nameText, b.name[0]) + 8)
		g.texts = append(g.texts, caption{at: at, left: true, style: smallText, color: mutedColor, text: b.small})
	}
	p.scene.groups = append(p.scene.groups, g)
}

// paintEdge adds the edge with the index i: its line from outline to outline, its arrow head, and
// its label. In the picture of a run, edges that were not followed are pale, and those that were
// are wide.
func (p *painter) paintEdge(c *canvas, i int, off pt, ground string) {
	k, r := c.level.links[i], c.layout.Edges[i]
	points := make([]pt, len(r.Path))
	for j, q := range r.Path {
		points[j] = pt{off.x + float64(q.X), off.y + float64(q.Y)}
	}
	// The path ends at the boxes of both nodes; their outlines may lie further in.
	points[0] = p.snapToOutline(c, k.from, points[0], off)
	points[len(points)-1] = p.snapToOutline(c, k.to, points[len(points)-1], off)
	s := k.linkStyle()
	width := lineWidth
	if p.o.Run != nil && c.level.vertices[k.from].role == roleNode {
		if p.o.Taken[[2]string{c.level.vertices[k.from].path, c.level.vertices[k.to].path}] {
			width = 2.6
		} else if c.level.vertices[k.to].role == roleNode {
			s.color = unreachedLine
		}
	}
	g := group{class: "edge edge-" + edgeClass(k.kind), tip: k.label}
	for _, end := range []struct {
		key string
		v   vertex
	}{{"data-from", c.level.vertices[k.from]}, {"data-to", c.level.vertices[k.to]}} {
		// Only nodes have names that a page may refer to.
		if end.v.role == roleNode {
			g.data = append(g.data, attr{end.key, end.v.path})
		}
	}
	var head path
	if !k.headless {
		head = cutArrowHead(points)
	}
	g.figs = append(g.figs, figure{path: curvePath(points), stroke: s.color, width: width, dash: s.dash, round: s.round})
	if s.round {
		g.figs[0].width = 2.2
	}
	if head != nil {
		g.figs = append(g.figs, figure{path: head, fill: s.color})
	}
	p.paintLabel(&g, c.labels[i], pt{off.x + float64(r.Label.X), off.y + float64(r.Label.Y)}, [2]string{ground, s.color})
	p.scene.groups = append(p.scene.groups, g)
}

// curvePath is the path through the points of a chain of curves; curves that are straight become lines.
// A chain has three points for each curve, after the first point of all.
func curvePath(points []pt) path {
	var p path
	p.moveTo(points[0].x, points[0].y)
	for i := 0; i+3 < len(points); i += 3 {
		a, b, c, d := points[i], points[i+1], points[i+2], points[i+3]
		if a.x == b.x && b.x == c.x && c.x == d.x || a.y == b.y && b.y == c.y && c.y == d.y {
			p.lineTo(d.x, d.y)
		} else {
			p.curveTo(b, c, d)
		}
	}
	return p
}

// paintLabel sets the lines of a label around its middle, on the colour of the ground, so that the line of the edge
// stops before them.
func (p *painter) paintLabel(g *group, lines []string, middle pt, groundAndInk [2]string) {
	if len(lines) == 0 {
		return
	}
	w, h := float64(p.maxLineWidth(labelText, lines)+2*labelPad), float64(labelText.line*len(lines)+2)
	back := box{middle.x - w/2, middle.y - h/2, w, h}
	g.figs = append(g.figs, figure{path: roundRect(back, 4, 4), fill: groundAndInk[0]})
	for i, line := range lines {
		top := pt{middle.x, back.y + 1 + float64(i*labelText.line)}
		g.texts = append(g.texts, textAt(labelText, top, groundAndInk[1], line))
	}
}

// snapToOutline moves the end of an edge from the box of its node onto the node's outline.
// The layout ends edges at the box around a node, but a hexagon or a circle does not fill that box.
func (p *painter) snapToOutline(c *canvas, vertex int, q, off pt) pt {
	v, r := c.level.vertices[vertex], c.layout.Nodes[vertex]
	if v.sub != nil {
		return q
	}
	b := box{off.x + float64(r.X), off.y + float64(r.Y), float64(r.W), float64(r.H)}
	s := sideOf(b, q)
	along := q.x - b.centrePoint().x
	if s == sideLeft || s == sideRight {
		along = q.y - b.centrePoint().y
	}
	in, dir := v.nodeStyle().form.outlineInset(b, s, along), s.inwardVector()
	return pt{q.x + float64(in*dir.x), q.y + float64(in*dir.y)}
}

// sideOf returns the side of b on which q lies.
func sideOf(b box, q pt) side {
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

// cutArrowHead returns the head at the end of a path and shortens the path to where the head begins.
// The head points in the direction in which the path arrives. It is nil for a path without a
// length. The line ends a pixel inside the head, so that no gap is visible.
func cutArrowHead(points []pt) path {
	n := len(points)
	tip, from := points[n-1], points[n-2]
	// Control points that lie on the tip give no direction.
	for i := n - 2; i > 0 && pointDistance(from, tip) < 1; i-- {
		from = points[i-1]
	}
	d := pointDistance(from, tip)
	if d == 0 {
		return nil
	}
	ux, uy := (tip.x-from.x)/d, (tip.y-from.y)/d
	back := pt{tip.x - float64(ux*arrowLong), tip.y - float64(uy*arrowLong)}
	points[n-1] = pt{tip.x - float64(ux*(arrowLong-1)), tip.y - float64(uy*(arrowLong-1))}
	// A last piece that is shorter than the head would come out of it on the other side.
	if room := pointDistance(points[n-2], tip); room < arrowLong {
		points[n-2] = points[n-1]
	}
	left := pt{back.x + float64(uy*arrowHalf), back.y - float64(ux*arrowHalf)}
	right := pt{back.x - float64(uy*arrowHalf), back.y + float64(ux*arrowHalf)}
	return polygonPath(tip, left, right)
}

// edgeClass names the kind of an edge in an SVG.
// Kinds that this version does not know are plain, as in linkStyle.
func edgeClass(k graph.EdgeKind) string {
	switch k {
	case graph.EdgeBranch, graph.EdgeJoin, graph.EdgeRoute, graph.EdgeError:
		return string(k)
	}
	return "plain"
}

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
func (f form) outlinePaths(b box) []path {
	x0, y0, x1, y1 := b.x, b.y, b.x+b.w, b.y+b.h
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
		return []path{cylinderPath(b), ellipsePath(box{x0, y0, b.w, 2 * lid})}
	case formStack:
		front := box{x0, y0, b.w - 2*stackOff, b.h - 2*stackOff}
		var sheets []path
		for off := 2 * stackOff; off >= 0; off -= stackOff {
			sheets = append(sheets, roundRect(box{x0 + off, y0 + off, front.w, front.h}, 3, 3))
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

// cylinderPath is the outline of an upright cylinder.
func cylinderPath(b box) path {
	x0, y0, x1, y1, m := b.x, b.y, b.x+b.w, b.y+b.h, b.centrePoint().x
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

// flatLength is the length of the part of a form's top and bottom (or, for a picture from left to right, of its left and
// right side) at which several edges may end.
// The layout spreads the ends of edges over this length. It is 0 for circles: all edges end in the
// middle.
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

// inwardVector is the direction from a side into the box.
func (s side) inwardVector() pt {
	return [...]pt{{0, 1}, {0, -1}, {1, 0}, {-1, 0}}[s]
}

// outlineInset returns how far inside the box the outline lies, at an offset from the middle of the side.
// It is 0 for sides that are straight and lie on the box.
func (f form) outlineInset(b box, s side, off float64) float64 {
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
func (p *path) close()              { *p = append(*p, pathOp{cmd: 'Z'}) }
func (p *path) curveTo(a, b, c pt)  { *p = append(*p, pathOp{'C', [3]pt{a, b, c}}) }

// lineTo leads to a point, if the path is not there already.
func (p *path) lineTo(x, y float64) {
	if last := (*p)[len(*p)-1]; last.endPoint() != (pt{x, y}) {
		*p = append(*p, pathOp{'L', [3]pt{{x, y}}})
	}
}

// endPoint is where a step leads.
func (o pathOp) endPoint() pt {
	if o.cmd == 'C' {
		return o.p[2]
	}
	return o.p[0]
}

// turnTo adds a quarter of an ellipse to the point c, tangent to the line from the present point to the corner.
func (p *path) turnTo(from, corner, to pt) {
	const k = 0.5523 // the usual approximation
	p.curveTo(interpolatePoint(from, corner, k), interpolatePoint(to, corner, k), to)
}

// interpolatePoint is the point at the share t of the way from a to b. The conversions keep machines that fuse multiplication and
// addition from giving other digits.
func interpolatePoint(a, b pt, t float64) pt {
	return pt{a.x + float64((b.x-a.x)*t), a.y + float64((b.y-a.y)*t)}
}

// polygonPath is a closed outline of straight lines.
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

// roundRect is a rectangle with rounded corners.
func roundRect(r box, rx, ry float64) path {
	x0, y0, x1, y1 := r.x, r.y, r.x+r.w, r.y+r.h
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

// ellipsePath is the ellipse within a box.
func ellipsePath(r box) path { return roundRect(r, r.w/2, r.h/2) }

// box is a rectangle from its top left corner.
type box struct{ x, y, w, h float64 }

// centrePoint returns the middle of the box.
func (b box) centrePoint() pt { return pt{b.x + b.w/2, b.y + b.h/2} }

// pointDistance of two points.
func pointDistance(a, b pt) float64 { return math.Hypot(a.x-b.x, a.y-b.y) }

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

// style is the look of a kind of node.
// Colours are those of the light theme; Theme.colorIn replaces them when the picture is written.
type style struct {
	form         form
	fill, stroke string
}

// boldWidth is the width of the outline of a node that runs first, if no start dot is drawn.
const boldWidth = 3.0

// kindStyles maps the kinds of nodes to their look. Colours come in families: models are violet, people amber,
// code green, knowledge blue.
var kindStyles = map[string]style{
	"llm":      {formRound, "#f3f0ff", "#7c5cdb"},
	"model":    {formRound, "#f3f0ff", "#7c5cdb"},
	"server":   {formCall, "#eaf7ef", "#3a9464"},
	"agent":    {formCall, "#fbeefc", "#b14fc5"},
	"team":     {formCall, "#fbeefc", "#b14fc5"},
	"script":   {formBox, "#eaf7ef", "#3a9464"},
	"tool":     {formBox, "#eaf7ef", "#3a9464"},
	"tools":    {formBox, "#eaf7ef", "#3a9464"},
	"approval": {formHexagon, "#fff6e0", "#d1930f"},
	"input":    {formSlanted, "#fff1e6", "#db7a2b"},
	"rag":      {formCylinder, "#e9f4fd", "#3384c4"},
	"map":      {formStack, "#e6f7f7", "#21918f"},
	"graph":    {formCall, "#f4f6f9", "#64748b"},
	"end":      {formPill, "#eceff3", "#475569"},
}

// plainStyle is the look of a node whose kind has none of its own.
var plainStyle = style{formBox, "#ffffff", "#7c8a9c"}

// Colours of everything else.
const (
	inkColor   = "#1e293b" // names
	mutedColor = "#64748b" // small words
	paperColor = "#ffffff"
	dotColor   = "#334155" // start, end and joins
	frameFill  = "#f7f9fb"
	frameLine  = "#b6c2d1"

	doneColor    = "#3a9464" // what a run did
	failedColor  = "#d13438"
	waitingColor = "#d1930f"
)

// nodeStyle returns the style of a vertex.
func (v vertex) nodeStyle() style {
	switch v.role {
	case roleStart:
		return style{formDot, dotColor, dotColor}
	case roleFinish:
		return style{formRing, dotColor, dotColor}
	case roleJoin:
		return style{formBar, dotColor, dotColor}
	}
	if s, ok := kindStyles[v.info.Kind]; ok {
		return s
	}
	return plainStyle
}

// edgeStyle is the look of a kind of edge.
// Dashes and dots let a reader see the kind of an edge without its colour.
type edgeStyle struct {
	color  string
	dash   []float64 // lengths of strokes and gaps, nil for a solid line
	round  bool      // strokes are dots
	weight int       // how much the edge wants to be short and straight
}

// linkStyle returns the style of a link. An unknown kind looks like a plain edge.
func (k link) linkStyle() edgeStyle {
	switch k.kind {
	case graph.EdgeBranch:
		return edgeStyle{color: "#4f5fc4", dash: []float64{7, 4}, weight: 8}
	case graph.EdgeRoute:
		return edgeStyle{color: "#0f7b72", dash: []float64{3, 3}, weight: 8}
	case graph.EdgeError:
		return edgeStyle{color: "#d13438", dash: []float64{0, 4.5}, round: true, weight: 1}
	}
	return edgeStyle{color: "#55637a", weight: 12}
}
