package draw

import (
	"cmp"
	"slices"

	"github.com/charmbracelet/x/ansi"

	"raddle.dev/draw/internal/layered"
	"raddle.dev/graph"
)

// A textRouter gives the boxes of a level their rows and columns, and draws its edges between them.
// The drawing has rows of boxes with channels between them. A channel has one line for each track,
// and one for the arrows:
//
//	┌─────┐           row 0
//	│ ask │
//	└──┬──┘
//	   ├────────┐     channel 1: a track,
//	   ▼        ▼     and the line of the arrows
//	┌─────┐  ┌─────┐  row 1
//
// An edge to the next row is one wire in the channel between the rows. An edge across several rows
// is a chain of wires, with a line through each row that it passes. An edge that leads back runs
// along a rail at the right of all boxes.
type textRouter struct {
	t     *textDrawing
	g     *textGrid
	l     *level
	links []link
	rows  *layered.Rows

	channels [][]*wire // above each row, and one below the last
	tops     []int     // by row: its first line
	rails    int       // column of the first rail
}

// A wire is the part of an edge in a channel: from a column above to one below.
type wire struct {
	from, to int
	group    int  // wires that leave one box share their line
	arrow    bool // it ends at a box
	start    bool // it begins at a box
	upward   bool // it leads from a rail to a box, or from a box to a rail
	track    int
	pen      pen
}

func (w *wire) low() int  { return min(w.from, w.to) }
func (w *wire) high() int { return max(w.from, w.to) }

// gridColumn returns the column of an x of the layout.
func gridColumn(x int) int { return x / boxUnit }

// draw draws everything.
// The layout says only in which order and at which x the boxes of a row are. draw moves everything
// to the right until the first column is free, and puts the rails behind the last one. Boxes are
// drawn before wires, because a wire opens the border of the box that it leaves.
func (r *textRouter) draw() {
	least := 0
	for i, b := range r.g.boxes {
		r.g.boxes[i].x = gridColumn(r.rows.X[i]) - b.w/2
		least = min(least, r.g.boxes[i].x)
	}
	for _, row := range r.rows.Rows {
		for _, p := range row {
			least = min(least, gridColumn(p.X))
		}
	}
	shift := 1 - least
	for i := range r.g.boxes {
		r.g.boxes[i].x += shift
		r.rails = max(r.rails, r.g.boxes[i].x+r.g.boxes[i].w)
	}
	for _, row := range r.rows.Rows {
		for _, p := range row {
			r.rails = max(r.rails, gridColumn(p.X)+shift+1)
		}
	}
	r.collectWires(shift)
	r.placeRows()
	for i := range r.g.boxes {
		r.g.drawBox(&r.g.boxes[i], r.t)
	}
	r.drawWires(shift)
}

// penOf returns the pen of a link.
// Edges that a node chooses and edges for failures are dashed. In the picture of a run an edge that
// the run followed is solid and has the colour of finished nodes.
func (r *textRouter) penOf(k *link) pen {
	p := pen{g: r.g, dashed: k.kind == graph.EdgeRoute || k.kind == graph.EdgeBranch || k.kind == graph.EdgeError, ink: InkDim}
	switch {
	case k.kind == graph.EdgeError:
		p.ink = InkFail
	case r.t.o.Run != nil && r.t.o.Taken[[2]string{r.l.vertices[k.from].path, r.l.vertices[k.to].path}]:
		p.ink = InkDone
		p.dashed = false
	case r.t.o.Run == nil && p.dashed:
		p.ink = InkChoice
	}
	return p
}

// collectWires splits the edges into wires.
// Every edge that leads back gets its own rail, in the order of the edges; drawWires counts the
// rails in the same order. Such an edge needs a wire in a channel only at an end that is not the
// rightmost box of its row: the rightmost box is connected to the rail directly.
//
// The first wire of a chain has the group of its box, so that all edges of the box leave it as one
// line. The others have a group of their own: their lines must not be taken for one.
func (r *textRouter) collectWires(shift int) {
	r.channels = make([][]*wire, len(r.rows.Rows)+1)
	rail := r.rails + 1
	for e := range r.links {
		k := &r.links[e]
		p := r.penOf(k)
		if r.rows.Back[e] {
			from := r.rows.Row[k.from]
			to := r.rows.Row[k.to]
			// The wire leads from below the box to the rail.
			if !r.isRightmost(k.from) {
				r.channels[from+1] = append(r.channels[from+1], &wire{from: r.middle(k.from), to: rail, group: k.from, start: true, upward: true, pen: p})
			}
			// The wire leads from the rail to above the box; it ends in an arrow. Its group is its
			// own.
			if !r.isRightmost(k.to) {
				r.channels[to] = append(r.channels[to], &wire{from: rail, to: r.middle(k.to), group: -1 - e, arrow: true, upward: true, pen: p})
			}
			rail += railGap
			continue
		}
		chain := r.rows.Chains[e]
		for i := 1; i < len(chain); i++ {
			w := &wire{from: gridColumn(chain[i-1]) + shift, to: gridColumn(chain[i]) + shift, group: k.from, start: i == 1, arrow: i == len(chain)-1, pen: p}
			if i > 1 {
				w.group = len(r.g.boxes) + e
			}
			at := r.rows.First[e] + i
			r.channels[at] = append(r.channels[at], w)
		}
	}
}

// middle returns the column of the middle of a box.
func (r *textRouter) middle(box int) int { return r.g.boxes[box].x + r.g.boxes[box].w/2 }

// isRightmost reports whether nothing is to the right of a box in its row.
func (r *textRouter) isRightmost(box int) bool {
	row := r.rows.Rows[r.rows.Row[box]]
	return row[len(row)-1].Node == box
}

// assignTracks gives the wires of a channel that change their column a track each, so that tracks do not overlap. Wires
// of one group share a track. A wire whose column above is that of another below comes first, so that they do not
// touch. It returns the number of tracks.
func assignTracks(wires []*wire) int {
	type span struct {
		low, high, group int
		wires            []*wire
	}
	var spans []*span
	count := map[int]int{}
	for _, w := range wires {
		count[w.group]++
	}
	joins := func(w *wire) int { // wires to one box that are alone in their groups share a track, too
		if count[w.group] == 1 && w.arrow && !w.upward {
			return -1_000_000 - w.to
		}
		return w.group
	}
	for _, w := range wires {
		if w.from == w.to {
			w.track = -1
			continue
		}
		i := slices.IndexFunc(spans, func(s *span) bool { return s.group == joins(w) })
		if i < 0 {
			i = len(spans)
			spans = append(spans, &span{low: w.low(), high: w.high(), group: joins(w)})
		}
		s := spans[i]
		s.low, s.high, s.wires = min(s.low, w.low()), max(s.high, w.high()), append(s.wires, w)
	}
	// Two wires that have the same column, one above and one below, would look like one line if the
	// first were not above. Where both spans must be above the other, the order of the edges
	// decides.
	before := func(a, b *span) bool { // a must be above b
		return slices.ContainsFunc(a.wires, func(x *wire) bool {
			return slices.ContainsFunc(b.wires, func(y *wire) bool { return x.from == y.to })
		})
	}
	slices.SortStableFunc(spans, func(a, b *span) int {
		switch {
		case before(a, b) && !before(b, a):
			return -1
		case before(b, a) && !before(a, b):
			return 1
		}
		return 0
	})
	// A span gets the first track below all earlier spans that overlap with it.
	tracks := 0
	// A span gets the first track below all earlier ones that share a column with it.
	for i, s := range spans {
		track := 0
		for _, o := range spans[:i] {
			if o.low <= s.high && s.low <= o.high {
				track = max(track, o.wires[0].track+1)
			}
		}
		for _, w := range s.wires {
			w.track = track
		}
		tracks = max(tracks, track+1)
	}
	return tracks
}

// placeRows gives each row of boxes its lines.
// A row begins below the channel above it, which has a line for each of its tracks and one for the
// arrows. The first channel has no line if no wire is in it. Boxes without a border are at the
// bottom of their row, all others at its top.
func (r *textRouter) placeRows() {
	y := 0
	for i, row := range r.rows.Rows {
		if n := assignTracks(r.channels[i]); n > 0 || i > 0 {
			y += n + 1
		}
		r.tops = append(r.tops, y)
		high := 1
		for _, p := range row {
			if p.Node >= 0 {
				high = max(high, r.g.boxes[p.Node].h)
			}
		}
		for _, p := range row {
			if p.Node >= 0 {
				b := &r.g.boxes[p.Node]
				b.y = y
				if b.bare { // it touches the channel below
					b.y = y + high - b.h
				}
			}
		}
		y += high
	}
	assignTracks(r.channels[len(r.rows.Rows)])
	r.tops = append(r.tops, y)
}

// drawBox draws a box with its lines.
// The border shows the kind of the node: round corners for models, double lines for agents, thick
// lines for ends. A character that is two columns wide leaves an empty cell behind it, which render
// skips.
func (g *textGrid) drawBox(b *textBox, t *textDrawing) {
	if !b.bare {
		// The order is: top left, horizontal, top right, vertical, bottom left, bottom right.
		border := []rune("┌─┐│└┘")
		switch {
		case t.o.ASCII:
			border = []rune("+-+|++")
		case b.kind == "llm" || b.kind == "model":
			border = []rune("╭─╮│╰╯")
		case b.kind == "agent" || b.kind == "team":
			border = []rune("╔═╗║╚╝")
		case b.kind == "end":
			border = []rune("┏━┓┃┗┛")
		}
		ink := cmp.Or(b.ink, InkDim)
		put := func(row, col int, r rune) { *g.at(row, col) = glyph{text: string(r), ink: ink} }
		for c := b.x; c < b.x+b.w; c++ {
			put(b.y, c, border[1])
			put(b.y+b.h-1, c, border[1])
		}
		for row := b.y; row < b.y+b.h; row++ {
			put(row, b.x, border[3])
			put(row, b.x+b.w-1, border[3])
		}
		put(b.y, b.x, border[0])
		put(b.y, b.x+b.w-1, border[2])
		put(b.y+b.h-1, b.x, border[4])
		put(b.y+b.h-1, b.x+b.w-1, border[5])
	}
	for i, line := range b.lines {
		row := b.y + i
		col := b.x
		if !b.bare {
			row = row + 1
			col = col + 2
		}
		// The line is centred between the borders.
		col += (b.w - 4*boolInt(!b.bare) - ansi.StringWidth(line.text)) / 2
		for text := line.text; text != ""; {
			character, width := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
			*g.at(row, col) = glyph{text: character, ink: line.ink}
			for i := 1; i < width; i++ {
				*g.at(row, col+i) = glyph{}
			}
			col = col + width
			text = text[len(character):]
		}
	}
}

// boolInt returns 1 for true.
func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// drawWires draws the edges.
// A chain gets its lines through the rows here; its wires in the channels are drawn by drawWire.
func (r *textRouter) drawWires(shift int) {
	for i, channel := range r.channels {
		top := 0 // first line of the channel
		if i > 0 {
			top = r.bottom(i - 1)
		}
		for _, w := range channel {
			r.drawWire(w, i, top)
		}
	}
	rail := r.rails + 1
	for e := range r.links {
		k := &r.links[e]
		if r.rows.Back[e] {
			r.drawBack(k, rail)
			rail += railGap
			continue
		}
		chain := r.rows.Chains[e]
		for j := 1; j < len(chain)-1; j++ { // the rows that it passes
			row := r.rows.First[e] + j
			r.penOf(k).through(gridColumn(chain[j])+shift, r.tops[row], r.bottom(row)-1)
		}
	}
}

// bottom returns the line after a row of boxes.
func (r *textRouter) bottom(row int) int {
	high := 1
	for _, p := range r.rows.Rows[row] {
		if p.Node >= 0 {
			high = max(high, r.g.boxes[p.Node].h)
		}
	}
	return r.tops[row] + high
}

// through draws a line through all of some rows.
func (p pen) through(col, from, to int) {
	for row := from; row <= to; row++ {
		p.arm(row, col, armUp|armDown)
	}
}

// drawWire draws a wire in its channel, whose first line is top.
// A wire leads down from its first column, along its track, and down in its last column to the
// arrow. A wire that stays in its column is one line. A wire at a rail is only the part at the box:
// the rail itself ends in the wire's track.
func (r *textRouter) drawWire(w *wire, channel, top int) {
	end := r.tops[channel] - 1 // the line above the boxes below
	from := top
	if w.start {
		box := r.boxAbove(w, channel)
		if box != nil {
			from = box.y + box.h // below a box that is lower than its neighbours
			r.port(box, w.from)
		}
	}
	// The wire turns in the line of its track.
	turn := top + max(w.track, 0)
	if w.track < 0 {
		w.pen.through(w.from, from, end)
	} else {
		if !w.upward || w.start {
			w.pen.through(w.from, from, turn-1)
		}
		w.pen.across(turn, w.from, w.to)
		if !w.upward || w.start {
			w.pen.arm(turn, w.from, armUp)
		}
		if !w.upward || w.arrow {
			w.pen.arm(turn, w.to, armDown)
			w.pen.through(w.to, turn+1, end)
		}
	}
	if w.arrow {
		text := "▼"
		if r.t.o.ASCII {
			text = "v"
		}
		*r.g.at(end, w.to) = glyph{text: text, ink: w.pen.ink}
	}
}

// boxAbove returns the box from which a wire comes.
// It finds the box by the column of its middle, and returns nil if the wire comes from another
// wire.
func (r *textRouter) boxAbove(w *wire, channel int) *textBox {
	for _, p := range r.rows.Rows[channel-1] {
		if p.Node >= 0 && r.middle(p.Node) == w.from {
			return &r.g.boxes[p.Node]
		}
	}
	return nil
}

// port opens the lower border of a box where a wire leaves it.
// The character of the border says which kind of border it is. Boxes without a border and drawings
// with ASCII characters have no open borders.
func (r *textRouter) port(b *textBox, col int) {
	if b.bare || r.t.o.ASCII {
		return
	}
	c := r.g.at(b.y+b.h-1, col)
	switch c.text {
	case "─":
		c.text = "┬"
	case "═":
		c.text = "╤"
	case "━":
		c.text = "┯"
	}
}

// drawBack draws an edge that leads back, along a rail at the right.
// At each end, the rail is connected to the box itself if nothing is to the right of the box.
// Otherwise collectWires has made a wire, which leads to the rail below or above the row.
func (r *textRouter) drawBack(k *link, rail int) {
	p := r.penOf(k)
	low := r.railEnd(k.from, false, rail)
	high := r.railEnd(k.to, true, rail)
	if low < high {
		low, high = high, low
	}
	p.down(rail, high, low)
	for _, end := range []struct {
		box   int
		arrow bool
	}{{k.from, false}, {k.to, true}} {
		if !r.isRightmost(end.box) {
			continue
		}
		b := &r.g.boxes[end.box]
		row := r.railEnd(end.box, end.arrow, rail)
		p.across(row, b.x+b.w, rail)
		p.arm(row, b.x+b.w, armLeft)
		if end.arrow {
			text := "◀"
			if r.t.o.ASCII {
				text = "<"
			}
			*r.g.at(row, b.x+b.w) = glyph{text: text, ink: p.ink}
		}
	}
}

// railEnd returns the line in which a rail meets the wire of a box: in a line of the box itself, or in a channel below
// or above it. At a box that is high enough the edge comes in at the first line of text and goes out at the last one,
// so that both can be seen.
func (r *textRouter) railEnd(box int, target bool, rail int) int {
	row := r.rows.Row[box]
	if r.isRightmost(box) {
		b := &r.g.boxes[box]
		if target && b.h > 3 {
			return b.y + 1
		}
		return b.y + b.h - 2
	}
	// The rail meets the wire in the channel: below the box for a source, above it for a target.
	at := row + 1
	top := r.bottom(row)
	if target {
		if at, top = row, 0; row > 0 {
			top = r.bottom(row - 1)
		}
	}
	for _, w := range r.channels[at] {
		if w.upward && w.arrow == target && (w.from == rail || w.to == rail) {
			return top + max(w.track, 0)
		}
	}
	return top
}
