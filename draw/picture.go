package draw

import (
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
type painter struct {
	measurer *textMeasurer
	right    bool
	o        Options
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
	p := &painter{measurer: r, right: o.Direction == Right, o: o}
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
	if b.note != "" {
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
	case name == oneLine(v.displayName()) || name == kind:
		return kind
	case kind == "":
		return name
	}
	return kind + " · " + name
}

// typeface is one of the two faces of the pictures.
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
type textMeasurer struct {
	buf   sfnt.Buffer
	fonts map[*typeface]*sfnt.Font
}

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

// textWidth returns the width of a line in whole pixels, rounded up. Characters that the face lacks, which a viewer of an
// SVG takes from another font, are estimated.
func (m *textMeasurer) textWidth(s textStyle, text string) int {
	var sum fixed.Int26_6
	for _, r := range text {
		sum += m.glyphAdvance(s, r)
	}
	return sum.Ceil()
}

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

// wrapText breaks text into lines of at most the given width, between words if possible, otherwise within them. Text that
// does not fit into the number of lines is cut off with an ellipsis.
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
		const dots = "…"
		room := widest - m.textWidth(s, dots)
		last := m.longestFittingPrefix(s, lines[most-1], room)
		lines = append(lines[:most-1], strings.TrimRight(last, " ")+dots)
	}
	return lines
}

// splitBreakable splits a line into the parts between which it may be broken: after spaces and after the signs that join
// words in names.
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

// longestFittingPrefix returns the longest beginning of s that is not wider than the room, but at least one character with what
// combines with it.
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

// cleanLabel makes a text fit for a label: valid UTF-8, lines separated by a single newline, no other control characters.
// Characters that cannot be shown become the replacement character.
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
func (v vertex) displayName() string {
	if t := cleanLabel(v.info.Title); t != "" {
		return t
	}
	return cleanLabel(v.info.Name)
}

// oneLine joins the lines of a text.
func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }
