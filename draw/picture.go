package draw

import (
	"raddle.dev/draw/internal/layered"
	"raddle.dev/graph"
)

// Measures of the pictures, in pixels.
const (
	margin      = 28
	titleRoom   = 40  // above the drawing, if it has a title
	nameWidest  = 210 // a longer name is broken into lines
	nameLines   = 3
	labelWidest = 160
	labelLines  = 3
	labelPad    = 5
	framePad    = 22 // within a frame
	frameHead   = 40 // for a frame's title
)

// block is a vertex with the size of its picture and the lines of its text.
type block struct {
	w, h  int
	name  []string
	small string
	inner *canvas // of a frame
}

// canvas is a level that has been laid out, its top left corner at (0, 0).
type canvas struct {
	level  *level
	blocks []block
	labels [][]string // by link
	layout *layered.Layout
}

// painter builds pictures.
type painter struct {
	measurer *textMeasurer
	right    bool
	scene    scene
}

// buildScene lays s out and returns the scene.
func buildScene(s graph.Structure, o Options) (*scene, error) {
	top, err := planPicture(s, o)
	if err != nil {
		return nil, err
	}
	r, err := newTextMeasurer()
	if err != nil {
		return nil, err
	}
	p := &painter{measurer: r, right: o.Direction == Right}
	c, err := p.arrangeLevel(top)
	if err != nil {
		return nil, err
	}
	p.paintAll(c)
	return &p.scene, nil
}

func (p *painter) paintAll(c *canvas) {
	x, y := margin, margin
	w := c.layout.W
	p.scene.title = c.level.name
	if name := c.level.name; name != "" {
		line := p.measurer.wrapText(titleText, oneLine(name), max(400, w), 1)[0]
		w = max(w, p.measurer.textWidth(titleText, line))
		p.scene.groups = append(p.scene.groups, group{class: "title", texts: []caption{{
			at: pt{margin, margin + 14}, left: true, style: titleText, color: inkColor, text: line,
		}}})
		y += titleRoom
	}
	x += (w - c.layout.W) / 2
	p.scene.w, p.scene.h = float64(w+2*margin), float64(y+c.layout.H+margin)
	p.paintCanvas(c, x, y, paperColor)
}

// arrangeLevel sizes the vertices of a level, the frames among them by arranging what is within, and lays the level out.
func (p *painter) arrangeLevel(l *level) (*canvas, error) {
	c := &canvas{level: l, blocks: make([]block, len(l.vertices)), labels: make([][]string, len(l.links))}
	var g layered.Graph
	for i, v := range l.vertices {
		b, err := p.measureVertex(l, i)
		if err != nil {
			return nil, err
		}
		c.blocks[i] = b
		f := v.nodeStyle().form
		if v.sub != nil {
			f = formBox
		}
		g.Nodes = append(g.Nodes, layered.Node{W: b.w, H: b.h, Flat: f.flatLength(b.w, b.h, p.right)})
	}
	for i, k := range l.links {
		e := layered.Edge{From: k.from, To: k.to, Weight: k.linkStyle().weight}
		if k.label != "" {
			c.labels[i] = p.measurer.wrapText(labelText, k.label, labelWidest, labelLines)
			e.LabelW = p.maxLineWidth(labelText, c.labels[i]) + 2*labelPad
			e.LabelH = labelText.line*len(c.labels[i]) + 2
		}
		g.Edges = append(g.Edges, e)
	}
	if p.right {
		g = g.WithSwappedAxes()
	}
	var err error
	if c.layout, err = layered.LayoutGraph(g); err != nil {
		return nil, err
	}
	if p.right {
		c.layout.SwapAxes()
	}
	return c, nil
}

// measureVertex measures one vertex.
func (p *painter) measureVertex(l *level, i int) (block, error) {
	v := l.vertices[i]
	switch v.role {
	case roleStart:
		return block{w: dotSize, h: dotSize}, nil
	case roleFinish:
		return block{w: ringSize, h: ringSize}, nil
	case roleJoin:
		return p.barSize(l, i), nil
	}
	b := block{name: p.measurer.wrapText(nameText, v.displayName(), nameWidest, nameLines), small: v.subtitleText()}
	if b.small != "" {
		b.small = p.measurer.wrapText(smallText, b.small, nameWidest, 1)[0]
	}
	text := max(p.maxLineWidth(nameText, b.name), p.measurer.textWidth(smallText, b.small))
	if v.sub != nil {
		var err error
		if b.inner, err = p.arrangeLevel(v.sub); err != nil {
			return b, err
		}
		b.name = p.measurer.wrapText(nameText, oneLine(v.displayName()), max(nameWidest, b.inner.layout.W), 1)
		text = p.measurer.textWidth(nameText, b.name[0]) + 12 + p.measurer.textWidth(smallText, b.small)
		b.w = max(b.inner.layout.W, text) + 2*framePad
		b.h = b.inner.layout.H + frameHead + framePad
		return b, nil
	}
	pad := v.nodeStyle().form.textPadding()
	b.w = max(text, 60) + pad[0] + pad[2]
	b.h = nameText.line*len(b.name) + pad[1] + pad[3]
	if b.small != "" {
		b.h += smallText.line
	}
	b.w, b.h = b.w+b.w&1, b.h+b.h&1
	return b, nil
}

// barSize is long enough for all edges of a join to end apart.
func (p *painter) barSize(l *level, i int) block {
	ends := 0
	for _, k := range l.links {
		if k.to == i {
			ends++
		}
	}
	b := block{w: max(56, 18*ends+20), h: barThick}
	if p.right {
		b.w, b.h = b.h, b.w
	}
	return b
}

func (p *painter) maxLineWidth(s textStyle, lines []string) int {
	w := 0
	for _, l := range lines {
		w = max(w, p.measurer.textWidth(s, l))
	}
	return w
}

// subtitleText is the word below a node's name: its kind, and its name where a title stands above.
func (v vertex) subtitleText() string {
	kind, name := oneLine(cleanLabel(v.info.Kind)), oneLine(cleanLabel(v.info.Name))
	switch {
	case name == oneLine(v.displayName()):
		return kind
	case kind == "":
		return name
	}
	return kind + " · " + name
}
