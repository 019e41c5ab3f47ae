package draw

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/text/width"
	"raddle.dev/draw/internal/layered"
	"raddle.dev/graph"
)

// This file and four others make the picture that SVG and PNG share. plan.go adds to a structure
// what only a picture has, such as the dot of the start. picture.go measures texts and asks package
// layered for the places of nodes and edges. paint.go turns places into paths, captions and
// colours: a scene. svg.go and png.go write the scene.
//
// The formats for other programs, in text.go, need only the plan: Mermaid and Graphviz place nodes
// themselves. Drawings with characters, in boxes.go and boxroute.go, have a layout of their own,
// because their unit is a character and not a pixel.
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
// It is measured before the layout, which needs its size, and painted after it.
type block struct {
	w, h  int
	name  []string
	small string
	note  string  // what a run did
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
// It works in three steps: planPicture says what is drawn, arrangeLevel measures and places it, and
// paintCanvas turns the places into figures and texts of a scene. SVG and PNG draw that scene.
type painter struct {
	measurer *textMeasurer
	right    bool
	o        Options
	scene    scene
}

// buildScene lays s out and returns the scene.
// It uses no font of the system: texts are measured with the fonts that are part of the program.
func buildScene(s graph.Structure, o Options) (*scene, error) {
	top, err := planPicture(s, o)
	if err != nil {
		return nil, err
	}
	r, err := newTextMeasurer()
	if err != nil {
		return nil, err
	}
	p := &painter{measurer: r, right: o.Direction == Right, o: o}
	c, err := p.arrangeLevel(top)
	if err != nil {
		return nil, err
	}
	p.paintAll(c)
	return &p.scene, nil
}

// paintAll sets the size of the scene, with a margin on each side, and paints the title and the
// outermost level. A title that is wider than the drawing makes the picture wider, with the drawing
// in the middle.
func (p *painter) paintAll(c *canvas) {
	x := margin
	y := margin
	w := c.layout.W
	p.scene.title = c.level.name
	if name := c.level.name; name != "" {
		// A title may be wider than a small drawing, but not without limit.
		line := p.measurer.wrapText(titleText, oneLine(name), max(400, w), 1)[0]
		w = max(w, p.measurer.textWidth(titleText, line))
		p.scene.groups = append(p.scene.groups, group{class: "title", texts: []caption{{
			at: pt{margin, margin + 14}, left: true, style: titleText, color: inkColor, text: line,
		}}})
		y += titleRoom
	}
	x += (w - c.layout.W) / 2
	p.scene.w = float64(w + 2*margin)
	p.scene.h = float64(y + c.layout.H + margin)
	p.paintCanvas(c, x, y, paperColor)
}

// arrangeLevel sizes the vertices of a level, the frames among them by arranging what is within, and lays the level
// out. The layout places nodes from top to bottom. For a picture from left to right the sizes are swapped before it and
// the places after it.
func (p *painter) arrangeLevel(l *level) (*canvas, error) {
	c := &canvas{level: l, blocks: make([]block, len(l.vertices)), labels: make([][]string, len(l.links))}
	var g layered.Graph
	for i, v := range l.vertices {
		b, err := p.measureVertex(l, i)
		if err != nil {
			return nil, err
		}
		c.blocks[i] = b
		// A frame is a rectangle, whatever the kind of its node.
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
// A node is as wide as the widest of its lines and what its outline needs around them. A frame is
// as large as the level inside it, with room for its title. Widths and heights are even, so that
// the middle is a whole pixel.
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
	if note, ok := p.o.Run[v.path]; ok {
		b.note = p.measurer.wrapText(smallText, note.sentence(), nameWidest, 1)[0]
	}
	text := max(p.maxLineWidth(nameText, b.name), p.measurer.textWidth(smallText, b.small), p.measurer.textWidth(smallText, b.note))
	if v.sub != nil {
		var err error
		if b.inner, err = p.arrangeLevel(v.sub); err != nil {
			return b, err
		}
		b.name = p.measurer.wrapText(nameText, oneLine(v.displayName()), max(nameWidest, b.inner.layout.W), 1)
		if b.note != "" {
			b.small += " · " + b.note
		}
		// The title and the small words share one line above the level.
		text = p.measurer.textWidth(nameText, b.name[0]) + 12 + p.measurer.textWidth(smallText, b.small)
		b.w = max(b.inner.layout.W, text) + 2*framePad
		b.h = b.inner.layout.H + frameHead + framePad
		return b, nil
	}
	// Even a node with a short name is wide enough to be seen as a box.
	pad := v.nodeStyle().form.textPadding()
	b.w = max(text, 60) + pad[0] + pad[2]
	b.h = nameText.line*len(b.name) + pad[1] + pad[3]
	if b.small != "" {
		b.h += smallText.line
	}
	if b.note != "" {
		b.h += smallText.line
	}
	b.w = b.w + b.w&1
	b.h = b.h + b.h&1
	return b, nil
}

// barSize is long enough for all edges of a join to end apart.
// The bar is upright in a picture from left to right.
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

// maxLineWidth returns the width of the widest of some lines, in pixels.
func (p *painter) maxLineWidth(s textStyle, lines []string) int {
	w := 0
	for _, l := range lines {
		w = max(w, p.measurer.textWidth(s, l))
	}
	return w
}

// subtitleText returns the word below a node's name: its kind, and its name where a title stands above.
// It is empty for a node without a kind whose name is already in the picture.
func (v vertex) subtitleText() string {
	kind := oneLine(cleanLabel(v.info.Kind))
	name := oneLine(cleanLabel(v.info.Name))
	switch {
	case name == oneLine(v.displayName()) || name == kind:
		return kind
	case kind == "":
		return name
	}
	return kind + " · " + name
}

// typeface is one of the two faces of the pictures.
// They are the Go fonts, regular and medium.
type typeface struct {
	parse  func() (*sfnt.Font, error)
	weight string // of the SVG
}

// The faces. They are parsed once, when the first picture needs them.
var (
	regularFace = &typeface{sync.OnceValues(func() (*sfnt.Font, error) { return opentype.Parse(goregular.TTF) }), "400"}
	mediumFace  = &typeface{sync.OnceValues(func() (*sfnt.Font, error) { return opentype.Parse(gomedium.TTF) }), "600"}
)

// textStyle is a face in a size.
// All texts of pictures have one of the four styles below.
type textStyle struct {
	face *typeface
	size int // pixels
	line int // height of a line
}

var (
	titleText = textStyle{mediumFace, 18, 24}
	nameText  = textStyle{mediumFace, 14, 18}
	smallText = textStyle{regularFace, 11, 15}
	labelText = textStyle{regularFace, 12, 15}
)

// textMeasurer measures text. It is not safe for concurrent use.
// It keeps a buffer between calls, which the font library needs to read a glyph.
type textMeasurer struct {
	buf   sfnt.Buffer
	fonts map[*typeface]*sfnt.Font
}

// newTextMeasurer returns a measurer with both faces. An error means that the fonts in the program
// are damaged.
func newTextMeasurer() (*textMeasurer, error) {
	r := &textMeasurer{fonts: make(map[*typeface]*sfnt.Font)}
	for _, f := range []*typeface{regularFace, mediumFace} {
		parsed, err := f.parse()
		if err != nil {
			return nil, fmt.Errorf("draw: parse the built-in font: %w", err)
		}
		r.fonts[f] = parsed
	}
	return r, nil
}

// glyphIndex returns the index of r's glyph in the face, 0 if it has none.
func (m *textMeasurer) glyphIndex(f *typeface, r rune) sfnt.GlyphIndex {
	i, err := m.fonts[f].GlyphIndex(&m.buf, r)
	if err != nil {
		return 0
	}
	return i
}

// textWidth returns the width of a line in whole pixels, rounded up. Characters that the face lacks, which a viewer of
// an SVG takes from another font, are estimated.
func (m *textMeasurer) textWidth(s textStyle, text string) int {
	var sum fixed.Int26_6
	for _, r := range text {
		sum += m.glyphAdvance(s, r)
	}
	return sum.Ceil()
}

// glyphAdvance returns how far a character moves the next one to the right. Characters that combine
// with the one before them have no width. Of the characters that the face lacks, wide ones of East
// Asian scripts count as a square, and all others as seven tenths of it.
func (m *textMeasurer) glyphAdvance(s textStyle, r rune) fixed.Int26_6 {
	if isIgnorable(r) {
		return 0
	}
	if i := m.glyphIndex(s.face, r); i != 0 {
		a, err := m.fonts[s.face].GlyphAdvance(&m.buf, i, fixed.I(s.size), font.HintingNone)
		if err == nil {
			return a
		}
	}
	// The font may lack an accent that a viewer puts on the character before it.
	if unicode.Is(unicode.Mn, r) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return fixed.I(s.size)
	}
	return fixed.I(s.size) * 7 / 10
}

// isIgnorable reports whether r is never visible by itself: joiners, direction marks and variation selectors.
func isIgnorable(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r)
}

// wrapText breaks text into lines of at most the given width, between words if possible, otherwise within them. Text
// that does not fit into the number of lines is cut off with an ellipsis. A newline in the text always ends a line. The
// text is not read to its end once there are more lines than allowed: a label may be very long.
func (m *textMeasurer) wrapText(s textStyle, text string, widest, most int) []string {
	var lines []string
	for _, paragraph := range strings.Split(text, "\n") {
		if len(lines) > most {
			break
		}
		line := ""
		for _, part := range splitBreakable(paragraph) {
			if len(lines) > most {
				break
			}
			if line != "" && m.textWidth(s, strings.TrimRight(line+part, " ")) > widest {
				lines = append(lines, strings.TrimRight(line, " "))
				line = ""
			}
			// A part that is wider than a line by itself is cut within the word.
			for m.textWidth(s, part) > widest && len(lines) <= most {
				head := m.longestFittingPrefix(s, part, widest)
				lines = append(lines, head)
				part = part[len(head):]
			}
			line += part
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	if len(lines) > most {
		// The last line gives up as many characters as the ellipsis needs.
		const dots = "…"
		room := widest - m.textWidth(s, dots)
		last := m.longestFittingPrefix(s, lines[most-1], room)
		lines = append(lines[:most-1], strings.TrimRight(last, " ")+dots)
	}
	return lines
}

// splitBreakable splits a line into the parts between which it may be broken: after spaces and after the signs that
// join words in names. The parts together are the line; the sign or space is the end of its part.
func splitBreakable(s string) []string {
	var parts []string
	start := 0
	for i, r := range s {
		if end := i + 1; strings.ContainsRune(" _-/.:", r) && end < len(s) {
			parts = append(parts, s[start:end])
			start = end
		}
	}
	return append(parts, s[start:])
}

// longestFittingPrefix returns the longest beginning of s that is not wider than the room, but at least one character
// with what combines with it.
func (m *textMeasurer) longestFittingPrefix(s textStyle, text string, room int) string {
	var sum fixed.Int26_6
	for i, r := range text {
		sum += m.glyphAdvance(s, r)
		if i > 0 && sum.Ceil() > room && !unicode.Is(unicode.Mn, r) && !isIgnorable(r) {
			return text[:i]
		}
	}
	return text
}

// cleanLabel makes a text fit for a label: valid UTF-8, lines separated by a single newline, no other control
// characters. Characters that cannot be shown become the replacement character. Names come from files and programs, and
// a terminal or a page would obey control characters in them.
func cleanLabel(s string) string {
	s = strings.TrimRightFunc(strings.ReplaceAll(s, "\r\n", "\n"), unicode.IsSpace)
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r', r == '\v', r == '\f', r == '\u0085', r == '\u2028', r == '\u2029':
			return '\n'
		case r == '\t':
			return ' '
		case r != '\n' && unicode.IsControl(r), r == 0xFFFE, r == 0xFFFF:
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

// displayName returns the name of a node in the picture.
// It is the title, if the node has one, and may have several lines.
func (v vertex) displayName() string {
	return cmp.Or(cleanLabel(v.info.Title), cleanLabel(v.info.Name))
}

// oneLine joins the lines of a text.
func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }
