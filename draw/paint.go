package draw

import (
	"raddle.dev/graph"
)

const (
	lineWidth  = 1.5
	arrowLong  = 9.0
	arrowHalf  = 4.0
	frameRound = 8.0
)

// paintCanvas adds a canvas to the scene, its corner at (x, y), on a ground of the given colour.
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
	pad := s.form.textPadding()
	middle := r.x + float64(pad[0]) + (r.w-float64(pad[0]+pad[2]))/2
	y := r.y + float64(pad[1])
	for _, line := range b.name {
		g.texts = append(g.texts, textAt(nameText, pt{middle, y}, inkColor, line))
		y += float64(nameText.line)
	}
	if b.small != "" {
		g.texts = append(g.texts, textAt(smallText, pt{middle, y}, mutedColor, b.small))
	}
	p.scene.groups = append(p.scene.groups, g)
}

// textAt sets a line whose top middle is at the given point.
func textAt(s textStyle, top pt, color, text string) caption {
	base := top.y + float64(s.line)/2 + float64(float64(s.size)*0.36)
	return caption{at: pt{top.x, base}, style: s, color: color, text: text}
}

func (p *painter) paintFrame(v vertex, b block, r box) {
	g := v.newGroup("frame")
	g.figs = []figure{{path: roundRect(r, frameRound, frameRound), fill: frameFill, stroke: frameLine, width: lineWidth}}
	if v.first {
		g.figs[0].width = boldWidth
	}
	at := pt{r.x + 14, r.y + 22}
	g.texts = []caption{{at: at, left: true, style: nameText, color: inkColor, text: b.name[0]}}
	if b.small != "" {
		at.x += float64(p.measurer.textWidth(nameText, b.name[0]) + 8)
		g.texts = append(g.texts, caption{at: at, left: true, style: smallText, color: mutedColor, text: b.small})
	}
	p.scene.groups = append(p.scene.groups, g)
}

func (p *painter) paintEdge(c *canvas, i int, off pt, ground string) {
	k, r := c.level.links[i], c.layout.Edges[i]
	points := make([]pt, len(r.Path))
	for j, q := range r.Path {
		points[j] = pt{off.x + float64(q.X), off.y + float64(q.Y)}
	}
	points[0] = p.snapToOutline(c, k.from, points[0], off)
	points[len(points)-1] = p.snapToOutline(c, k.to, points[len(points)-1], off)
	s := k.linkStyle()
	g := group{class: "edge edge-" + edgeClass(k.kind), tip: k.label}
	for _, end := range []struct {
		key string
		v   vertex
	}{{"data-from", c.level.vertices[k.from]}, {"data-to", c.level.vertices[k.to]}} {
		if end.v.role == roleNode {
			g.data = append(g.data, attr{end.key, end.v.path})
		}
	}
	var head path
	if !k.headless {
		head = cutArrowHead(points)
	}
	g.figs = append(g.figs, figure{path: curvePath(points), stroke: s.color, width: lineWidth, dash: s.dash, round: s.round})
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
func cutArrowHead(points []pt) path {
	n := len(points)
	tip, from := points[n-1], points[n-2]
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
	if room := pointDistance(points[n-2], tip); room < arrowLong {
		points[n-2] = points[n-1]
	}
	left := pt{back.x + float64(uy*arrowHalf), back.y - float64(ux*arrowHalf)}
	right := pt{back.x - float64(uy*arrowHalf), back.y + float64(ux*arrowHalf)}
	return polygonPath(tip, left, right)
}

// edgeClass names the kind of an edge in an SVG.
func edgeClass(k graph.EdgeKind) string {
	switch k {
	case graph.EdgeBranch, graph.EdgeJoin, graph.EdgeRoute, graph.EdgeError:
		return string(k)
	}
	return "plain"
}
