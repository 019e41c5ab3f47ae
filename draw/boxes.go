package draw

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"raddle.dev/draw/internal/layered"
	"raddle.dev/graph"
)

// An Ink is the colour of a part of a drawing with characters.
// It says what a part means, not which colour it has: [Options].Paint chooses that.
type Ink string

// The inks.
const (
	InkName   Ink = "name"   // names of nodes
	InkDim    Ink = "dim"    // small words, and what a run did not reach
	InkDone   Ink = "done"   // nodes that a run has finished
	InkWait   Ink = "wait"   // nodes that wait or run
	InkFail   Ink = "fail"   // nodes that failed
	InkChoice Ink = "choice" // edges that a node chooses
)

// Measures of drawings with characters, in columns.
const (
	boxUnit   = 10 // of the layout for each column
	railGap   = 2  // between the rails of edges that lead back
	leastText = 14 // of a box whose text is cut
)

// WriteText draws s with box characters, or ASCII characters, for a terminal. A drawing that does not fit into
// o.Columns becomes a list of the nodes. Graphs inside nodes follow below. It tries several sizes of boxes, the widest
// first. Where o.Paint is set, it is called with each run of characters of one ink, and its result must be as wide as
// its text.
func WriteText(w io.Writer, s graph.Structure, o Options) error {
	top, err := planPicture(s, o)
	if err != nil {
		return err
	}
	var b strings.Builder
	t := &textDrawing{o: o, w: &b}
	if err := t.writeLevel(top, ""); err != nil {
		return err
	}
	text := b.String()
	if o.ASCII {
		text = asciiSigns.Replace(text)
	}
	_, err = io.WriteString(w, text)
	return err
}

// asciiSigns replaces the signs that pictures put between words.
var asciiSigns = strings.NewReplacer("…", "~", " · ", " - ", "×", "x")

// A textDrawing writes the levels of a picture.
type textDrawing struct {
	o Options
	w *strings.Builder
}

// writeLevel writes a level, and then the levels inside its nodes.
// The title is that of the picture, or says which node the level is in. The sizes are tried in
// order: first texts are cut, then boxes are moved closer together. If even the smallest drawing is
// too wide, the level becomes a list.
func (t *textDrawing) writeLevel(l *level, title string) error {
	if title = cmp.Or(title, oneLine(l.name)); title != "" {
		t.w.WriteString(" " + t.paint(InkName, title) + "\n")
	}
	columns := cmp.Or(t.o.Columns, 80)
	for _, try := range []boxSize{{34, 0}, {24, 0}, {24, 2}, {20, 2}, {17, 2}, {leastText, 2}} {
		g, err := t.layOutBoxes(l, try)
		if err != nil {
			return err
		}
		if g.width() <= columns {
			t.w.WriteString(g.render(t))
			return t.writeInner(l)
		}
	}
	t.writeList(l)
	return t.writeInner(l)
}

// A boxSize is how wide the texts of boxes may be, and how many columns boxes are moved together.
type boxSize struct{ widest, closer int }

// writeInner writes the levels inside the nodes of a level.
func (t *textDrawing) writeInner(l *level) error {
	for _, v := range l.vertices {
		if v.sub == nil {
			continue
		}
		t.w.WriteString("\n")
		if err := t.writeLevel(v.sub, "in "+strings.ReplaceAll(v.path, "/", " / ")); err != nil {
			return err
		}
	}
	return nil
}

// paint returns a text in an ink.
func (t *textDrawing) paint(ink Ink, text string) string {
	if t.o.Paint == nil || ink == "" || text == "" {
		return text
	}
	return t.o.Paint(ink, text)
}

// writeList writes a level that is too wide as a list.
// Each line has a node, what boxText says about it, and the names of the nodes that follow.
func (t *textDrawing) writeList(l *level) {
	for i, v := range l.vertices {
		if v.role != roleNode {
			continue
		}
		text := t.boxText(l, i, 0)
		var names []string
		for _, k := range l.links {
			if to := l.vertices[k.to]; k.from == i && to.role != roleStart && k.label == "" && k.kind != graph.EdgeError {
				name := oneLine(to.displayName())
				if to.role != roleNode {
					name = "end"
				}
				names = append(names, name)
			}
		}
		line := " " + t.dot() + " " + t.paint(cmp.Or(t.inkOf(v), InkName), text[0].text)
		if len(text) > 1 {
			var rest []string
			for _, part := range text[1:] {
				rest = append(rest, part.text)
			}
			line += "  " + t.paint(InkDim, strings.Join(rest, ", "))
		}
		if len(names) > 0 {
			line += " " + t.arrow() + " " + strings.Join(names, ", ")
		}
		t.w.WriteString(line + "\n")
	}
}

// dot returns the sign of a node in a list, and of the start in a drawing.
func (t *textDrawing) dot() string {
	if t.o.ASCII {
		return "*"
	}
	return "●"
}

// arrow returns the sign between a node and what follows it, in a text.
func (t *textDrawing) arrow() string {
	if t.o.ASCII {
		return "->"
	}
	return "→"
}

// A boxLine is a line in a box.
// All of a line has one ink.
type boxLine struct {
	text string
	ink  Ink
}

// boxText returns the lines of a vertex: its name and kind, what a run did, and where its labels
// lead. widest is the width of the box; 0 means a list, which also has the edges that a drawing
// shows as lines. The label of an edge is a line in the box that the edge leaves, with the name of
// its target: there is no room for it next to the line of the edge. An edge from a node to itself
// is never drawn; its box says what is repeated.
func (t *textDrawing) boxText(l *level, i, widest int) []boxLine {
	// A list has no lines, so the texts name the targets of all edges for failures.
	ends := widest == 0
	v := l.vertices[i]
	switch v.role {
	case roleStart:
		return []boxLine{{t.dot(), InkDim}}
	case roleFinish:
		return []boxLine{{map[bool]string{false: "◉", true: "(end)"}[t.o.ASCII], InkDim}}
	case roleJoin:
		return []boxLine{{"all of them", InkDim}}
	}
	note, seen := t.o.Run[v.path]
	ink := cmp.Or(t.inkOf(v), InkName)
	name := strings.Split(v.displayName(), "\n")
	lines := []boxLine{{t.mark(note, seen) + name[0], ink}}
	for _, more := range name[1:] {
		lines = append(lines, boxLine{more, InkDim})
	}
	if kind := v.subtitleText(); kind != "" {
		if whole := ansi.StringWidth(lines[0].text + "  " + kind); len(name) == 1 && (ends || whole <= min(widest, 26)) {
			lines[0].text += "  " + kind
		} else {
			lines = append(lines, boxLine{kind, InkDim})
		}
	}
	if note.Text != "" {
		lines = append(lines, boxLine{strings.ReplaceAll(note.Text, " · ", "  "), ink})
	}
	for _, k := range l.links {
		to := l.vertices[k.to]
		if k.from != i || to.role == roleJoin {
			continue
		}
		target := oneLine(to.displayName())
		switch {
		case k.to == i:
			lines = append(lines, boxLine{"repeats " + oneLine(k.label), InkDim})
		case k.kind == graph.EdgeError && (ends || !t.isDrawn(l, &k)):
			lines = append(lines, boxLine{oneLine(k.label) + " " + t.arrow() + " " + target, InkFail})
		case k.kind == graph.EdgeError: // its line says it
		case k.label != "" && to.role == roleFinish:
			lines = append(lines, boxLine{oneLine(k.label), InkDim})
		case k.label != "":
			lines = append(lines, boxLine{oneLine(k.label) + " " + t.arrow() + " " + target, InkDim})
		}
	}
	return lines
}

// mark returns the sign of what a run did with a node.
// It is empty in a picture without a run, and for a node that the run did not reach.
func (t *textDrawing) mark(n Note, seen bool) string {
	if t.o.Run == nil {
		return ""
	}
	signs := map[string][2]string{StatusDone: {"✓ ", "ok "}, StatusFailed: {"✗ ", "failed "}, StatusWaiting: {"⏸ ", "waits "}, StatusRunning: {"◐ ", ".. "}}
	sign := signs[n.Status]
	if t.o.ASCII {
		return sign[1]
	}
	return sign[0]
}

// inkOf returns the ink of a node in a picture of a run.
// It is empty in other pictures: the caller then chooses one.
func (t *textDrawing) inkOf(v vertex) Ink {
	if t.o.Run == nil || v.role != roleNode {
		return ""
	}
	switch n, seen := t.o.Run[v.path]; {
	case !seen:
		return InkDim
	case n.Status == StatusFailed:
		return InkFail
	case n.Status == StatusWaiting || n.Status == StatusRunning:
		return InkWait
	}
	return InkDone
}

// isDrawn reports whether a link is a line of the drawing. Of the edges for failures, only the last one to a node is
// drawn, and only if no other edge leads to that node; the boxes name the others.
func (t *textDrawing) isDrawn(l *level, k *link) bool {
	if k.kind != graph.EdgeError {
		return true
	}
	last := -1
	for i, o := range l.links {
		switch {
		case o.to != k.to || o.from == o.to:
		case o.kind != graph.EdgeError:
			return false
		default:
			last = i
		}
	}
	return last >= 0 && l.links[last].from == k.from
}

// A textBox is a vertex in a drawing.
// x and y are the column and row of its upper left corner in the grid.
type textBox struct {
	lines      []boxLine
	x, y, w, h int
	bare       bool // it has no border
	kind       string
	ink        Ink
}

// A textGrid is a drawing of one level.
// Cells exist only where something was drawn: most of a large drawing is empty.
type textGrid struct {
	boxes []textBox
	cells map[[2]int]*glyph // by row and column
	cols  int
	rows  int
}

// A glyph is one character of a drawing.
// Lines that cross or join are one cell with several arms, so the order in which edges are drawn
// does not matter.
type glyph struct {
	arms   byte // directions of lines that meet in it
	dashed bool
	text   string // instead of lines
	ink    Ink
}

// The directions of a cell's lines.
const (
	armUp byte = 1 << iota
	armDown
	armLeft
	armRight
)

// width returns the number of columns.
func (g *textGrid) width() int { return g.cols }

// layOutBoxes places the boxes of a level and draws its edges.
// The layout works in units smaller than a column, in which it centres boxes over others. Edges
// between the same two nodes are one line, and an edge from a node to itself is none.
func (t *textDrawing) layOutBoxes(l *level, size boxSize) (*textGrid, error) {
	g := &textGrid{cells: map[[2]int]*glyph{}}
	var in layered.Graph
	for i, v := range l.vertices {
		b := textBox{lines: t.boxText(l, i, size.widest), bare: v.role != roleNode, kind: v.info.Kind, ink: t.inkOf(v)}
		for j, line := range b.lines {
			if w := ansi.StringWidth(line.text); w > size.widest {
				b.lines[j].text = ansi.Truncate(line.text, size.widest, "…")
			}
			b.w = max(b.w, ansi.StringWidth(b.lines[j].text))
		}
		b.h = len(b.lines)
		if !b.bare {
			b.w = b.w + 4
			b.h = b.h + 2
		}
		b.w |= 1 // a middle column
		g.boxes = append(g.boxes, b)
		in.Nodes = append(in.Nodes, layered.Node{W: max(b.w-size.closer, 1) * boxUnit})
	}
	var links []link
	for _, k := range l.links {
		// The boxes name what these lines do not show.
		same := slices.ContainsFunc(links, func(o link) bool { return o.from == k.from && o.to == k.to })
		if k.from != k.to && !same && t.isDrawn(l, &k) {
			links = append(links, k)
			in.Edges = append(in.Edges, layered.Edge{From: k.from, To: k.to, Weight: k.linkStyle().weight})
		}
	}
	rows, err := layered.LayoutRows(in)
	if err != nil {
		return nil, err
	}
	(&textRouter{t: t, g: g, l: l, links: links, rows: rows}).draw()
	return g, nil
}

// at returns a cell, which is created if it is empty.
func (g *textGrid) at(row, col int) *glyph {
	key := [2]int{row, col}
	if g.cells[key] == nil {
		g.cells[key] = &glyph{}
		g.cols = max(g.cols, col+1)
		g.rows = max(g.rows, row+1)
	}
	return g.cells[key]
}

// A pen draws lines of one edge.
// A solid line is on top of a dashed one where both are in one cell.
type pen struct {
	g      *textGrid
	dashed bool
	ink    Ink
}

// arm adds arms to a cell. The first line that is drawn there sets its ink, unless a solid one
// follows a dashed one.
func (p pen) arm(row, col int, arms byte) {
	// A cell that two lines share shows the more certain one.
	c := p.g.at(row, col)
	if c.arms == 0 {
		c.dashed = p.dashed
		c.ink = p.ink
	} else if c.dashed && !p.dashed {
		c.dashed = false
		c.ink = p.ink
	}
	c.arms |= arms
}

// down draws a line from one row to another one below, both included.
func (p pen) down(col, from, to int) {
	for r := from; r <= to; r++ {
		arms := armUp | armDown
		if r == from {
			arms &^= armUp
		}
		if r == to {
			arms &^= armDown
		}
		p.arm(r, col, arms)
	}
}

// across draws a line between two columns, both included.
func (p pen) across(row, a, b int) {
	if a > b {
		a, b = b, a
	}
	for c := a; c <= b; c++ {
		arms := armLeft | armRight
		if c == a {
			arms &^= armLeft
		}
		if c == b {
			arms &^= armRight
		}
		p.arm(row, c, arms)
	}
}

// lineCharacters are the characters for lines, by their arms.
// The index is the sum of the arms, and the first one, for a cell without any, is not used.
var lineCharacters = [16]rune{0, '│', '│', '│', '─', '┘', '┐', '┤', '─', '└', '┌', '├', '─', '┴', '┬', '┼'}

// character returns the character of a cell.
// Only a cell on a straight piece of a line can be dashed; corners and crossings have solid
// characters.
func (c *glyph) character(ascii bool) string {
	if c.text != "" {
		return c.text
	}
	upright := c.arms&(armLeft|armRight) == 0
	flat := c.arms&(armUp|armDown) == 0
	switch {
	case c.arms == 0:
		return " "
	case ascii && upright && c.dashed:
		return ":"
	case ascii && upright:
		return "|"
	case ascii && flat && c.dashed:
		return "."
	case ascii && flat:
		return "-"
	case ascii:
		return "+"
	case upright && c.dashed:
		return "┆"
	case flat && c.dashed:
		return "┄"
	}
	return string(lineCharacters[c.arms])
}

// render returns the drawing as lines.
// Characters with the same ink are painted together, with the spaces between them. Spaces at the
// end of a line are left out.
func (g *textGrid) render(t *textDrawing) string {
	var b strings.Builder
	for r := range g.rows {
		var line strings.Builder
		var ink Ink
		var run strings.Builder
		flush := func() { line.WriteString(t.paint(ink, run.String())); run.Reset() }
		for c, wide := 0, 0; c < g.cols; c++ {
			if wide > 0 { // the second half of a wide character
				wide--
				continue
			}
			text := " "
			own := Ink("")
			if k := g.cells[[2]int{r, c}]; k != nil {
				text = k.character(t.o.ASCII)
				own = k.ink
			}
			// Spaces have no ink: they do not end a run of characters.
			if own != ink && strings.TrimSpace(text) != "" {
				flush()
				ink = own
			}
			run.WriteString(text)
			wide = max(ansi.StringWidth(text)-1, 0)
		}
		flush()
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
