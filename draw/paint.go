package draw

import (
	"strings"

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
		b := rect{float64(x + r.X), float64(y + r.Y), float64(r.W), float64(r.H)}
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
func (p *painter) newGroup(v vertex, class string) group {
	g := group{class: class}
	if v.role == roleNode {
		g.data = []attr{{"data-node", v.path}}
		if v.info.Kind != "" {
			g.data = append(g.data, attr{"data-kind", v.info.Kind})
		}
		if list := p.o.Members[v.path]; list != nil {
			g.data = append(g.data, attr{"data-members", strings.Join(list, "\n")})
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
func (p *painter) paintNode(v vertex, b block, r rect) {
	s := v.nodeStyle()
	class := [...]string{"node", "start", "finish", "join"}[v.role]
	g := p.newGroup(v, class)
	for _, out := range s.form.outlinePaths(r) {
		g.figs = append(g.figs, figure{path: out, fill: s.fill, stroke: s.stroke, width: lineWidth})
	}
	switch s.form {
	case formRing:
		inner := rect{r.x + 5, r.y + 5, r.w - 10, r.h - 10}
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

// runInks changes the figures of a node for a picture of a run: nodes that were not reached are pale, and those that
// failed or wait have a strong outline. It returns the colours of the name, the small word and the note.
func (p *painter) runInks(v vertex, g *group) (name, small, note string) {
	name = inkColor
	small = mutedColor
	note = doneColor
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
func (p *painter) paintFrame(v vertex, b block, r rect) {
	g := p.newGroup(v, "frame")
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
	k := c.level.links[i]
	r := c.layout.Edges[i]
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

// curvePath returns the path through the points of a chain of curves; curves that are straight become lines.
// A chain has three points for each curve, after the first point of all.
func curvePath(points []pt) path {
	var p path
	p.moveTo(points[0].x, points[0].y)
	for i := 0; i+3 < len(points); i += 3 {
		a := points[i]
		b := points[i+1]
		c := points[i+2]
		d := points[i+3]
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
	w := float64(p.maxLineWidth(labelText, lines) + 2*labelPad)
	h := float64(labelText.line*len(lines) + 2)
	back := rect{middle.x - w/2, middle.y - h/2, w, h}
	g.figs = append(g.figs, figure{path: roundRect(back, 4, 4), fill: groundAndInk[0]})
	for i, line := range lines {
		top := pt{middle.x, back.y + 1 + float64(i*labelText.line)}
		g.texts = append(g.texts, textAt(labelText, top, groundAndInk[1], line))
	}
}

// snapToOutline moves the end of an edge from the box of its node onto the node's outline.
// The layout ends edges at the box around a node, but a hexagon or a circle does not fill that box.
func (p *painter) snapToOutline(c *canvas, vertex int, q, off pt) pt {
	v := c.level.vertices[vertex]
	r := c.layout.Nodes[vertex]
	if v.sub != nil {
		return q
	}
	b := rect{off.x + float64(r.X), off.y + float64(r.Y), float64(r.W), float64(r.H)}
	s := sideOf(b, q)
	along := q.x - b.centrePoint().x
	if s == sideLeft || s == sideRight {
		along = q.y - b.centrePoint().y
	}
	in := v.nodeStyle().form.outlineInset(b, s, along)
	dir := s.inwardVector()
	return pt{q.x + float64(in*dir.x), q.y + float64(in*dir.y)}
}

// cutArrowHead returns the head at the end of a path and shortens the path to where the head begins.
// The head points in the direction in which the path arrives. It is nil for a path without a
// length. The line ends a pixel inside the head, so that no gap is visible.
func cutArrowHead(points []pt) path {
	n := len(points)
	tip := points[n-1]
	from := points[n-2]
	// Control points that lie on the tip give no direction.
	for i := n - 2; i > 0 && pointDistance(from, tip) < 1; i-- {
		from = points[i-1]
	}
	d := pointDistance(from, tip)
	if d == 0 {
		return nil
	}
	ux := (tip.x - from.x) / d
	uy := (tip.y - from.y) / d
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
