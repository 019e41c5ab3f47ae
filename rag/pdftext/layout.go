package pdftext

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Distances, as parts of the font's size.
const (
	spaceGap   = 0.15 // a wider gap between two glyphs is a space
	joinGap    = 0.6  // pieces of a line that are drawn apart belong together up to this gap
	overlap    = 0.3  // pieces that overlap by more are on different lines
	stepBack   = 0.5  // a glyph that is further back begins a new piece
	sameLine   = 0.5  // a baseline that differs by less, as that of an index does, belongs to the same line
	samePiece  = 0.3  // the same for pieces that are drawn apart
	maxPieces  = 500  // of one line
	maxNearby  = 8    // lines that are tried for a piece
	pageMargin = 1.3  // a pitch that is so much larger than the usual one separates paragraphs
)

// A piece is a run of glyphs on one line that were drawn one after the other. u is measured along the direction of the
// text.
type piece struct {
	u0, u1 float64
	text   []byte
}

// A line holds the pieces on one baseline. v is measured across the direction of the text, upwards.
type line struct {
	direction [2]float64
	v, size   float64
	pieces    []piece // sorted by u0
}

// A layout collects the glyphs of a page in the order in which they are drawn.
type layout struct {
	lines   []*line
	rows    map[rowKey][]*line
	current *line // of one piece, which is still growing
	last    *line // got the last piece
}

// A rowKey finds lines by direction and baseline.
type rowKey struct{ x, y, v int }

func newLayout() *layout { return &layout{rows: map[rowKey][]*line{}} }

// addGlyph adds a glyph: at transforms the unit square of the font to the page, and the next glyph begins width units
// further.
func (l *layout) addGlyph(at matrix, width float64, text string) {
	across := math.Hypot(at[0], at[1])
	direction := [2]float64{at[0] / across, at[1] / across}
	size := math.Abs(direction[0]*at[3] - direction[1]*at[2]) // the height, slanted or not
	if size == 0 {
		return
	}
	u := at[4]*direction[0] + at[5]*direction[1]
	v := at[5]*direction[0] - at[4]*direction[1]
	end := u + max(width, 0)*across
	if !l.continuesPiece(direction, u, v, size) {
		l.finishPiece()
		l.current = &line{direction: direction, v: v, size: size, pieces: []piece{{u0: u, u1: u}}}
	}
	p := &l.current.pieces[0]
	if u-p.u1 > spaceGap*min(across, size, l.current.size) {
		p.text = appendSpace(p.text)
	}
	if size > l.current.size {
		l.current.v = v
		l.current.size = size
	}
	if strings.TrimSpace(text) == "" && text != "" {
		p.text = appendSpace(p.text)
	} else {
		p.text = append(p.text, text...)
	}
	p.u1 = max(p.u1, end)
}

// continuesPiece reports whether a glyph belongs to the piece that is growing.
func (l *layout) continuesPiece(direction [2]float64, u, v, size float64) bool {
	c := l.current
	if c == nil || direction[0]*c.direction[0]+direction[1]*c.direction[1] < 0.99 {
		return false
	}
	larger := max(size, c.size)
	gap := u - c.pieces[0].u1
	return math.Abs(v-c.v) < sameLine*larger && gap > -stepBack*larger && gap < joinGap*larger
}

// finishPiece adds the piece that is growing to a line that it touches, or makes a line of it.
func (l *layout) finishPiece() {
	c := l.current
	l.current = nil
	if c == nil || len(strings.TrimSpace(string(c.pieces[0].text))) == 0 {
		return
	}
	key := rowKey{int(math.Round(c.direction[0] * 10)), int(math.Round(c.direction[1] * 10)), int(math.Floor(c.v / 4))}
	for _, dv := range []int{0, -1, 1} {
		near := l.rows[rowKey{key.x, key.y, key.v + dv}]
		for i := len(near) - 1; i >= max(0, len(near)-maxNearby); i-- {
			if near[i].joinPiece(c, joinGap) {
				l.last = near[i]
				return
			}
		}
	}
	if l.last != nil && l.last.endsBefore(c) && l.last.joinPiece(c, math.Inf(1)) {
		return
	}
	l.last = c
	l.lines = append(l.lines, c)
	l.rows[key] = append(l.rows[key], c)
}

// endsBefore reports whether other, which was drawn after the line, begins after its end, as the next cell of a table
// does.
func (l *line) endsBefore(other *line) bool {
	return l.direction == other.direction && other.pieces[0].u0 >= l.pieces[len(l.pieces)-1].u1
}

// joinPiece adds the only piece of other to the line if it fits between or next to its pieces, with at most maxGap to
// one of them, and reports whether it did. It drops a piece that the line has already, drawn again to look bold.
func (l *line) joinPiece(other *line, maxGap float64) bool {
	p := other.pieces[0]
	size := max(l.size, other.size)
	if math.Abs(l.v-other.v) > samePiece*size || len(l.pieces) >= maxPieces {
		return false
	}
	i, _ := slices.BinarySearchFunc(l.pieces, p, func(a, b piece) int {
		if a.u0 < b.u0 {
			return -1
		}
		return 1
	})
	for _, n := range []int{i - 1, i} {
		if n >= 0 && n < len(l.pieces) && math.Abs(l.pieces[n].u0-p.u0) < overlap*size && string(l.pieces[n].text) == string(p.text) {
			return true
		}
	}
	before := math.Inf(1)
	after := math.Inf(1) // the gaps
	if i > 0 {
		before = p.u0 - l.pieces[i-1].u1
	}
	if i < len(l.pieces) {
		after = l.pieces[i].u0 - p.u1
	}
	if min(before, after) < -overlap*size || min(before, after) > maxGap*size {
		return false
	}
	l.pieces = slices.Insert(l.pieces, i, p)
	return true
}

func (l *line) lineText() string {
	var b []byte
	for i, p := range l.pieces {
		if i > 0 && p.u0-l.pieces[i-1].u1 > spaceGap*l.size {
			b = appendSpace(b)
		}
		b = append(b, p.text...)
	}
	return strings.TrimSpace(string(b))
}

func appendSpace(b []byte) []byte {
	if len(b) == 0 || b[len(b)-1] == ' ' {
		return b
	}
	return append(b, ' ')
}

// pageText returns the lines, with an empty one between paragraphs.
func (l *layout) pageText() string {
	l.finishPiece()
	usual := l.usualPitch()
	var b strings.Builder
	for i, line := range l.lines {
		text := line.lineText()
		if i+1 < len(l.lines) {
			next := l.lines[i+1]
			if pitch, ok := linePitch(line, next); ok && pitch < pageMargin*usual {
				if head, divided := dividedWord(text, next.lineText()); divided {
					b.WriteString(head)
				} else {
					b.WriteString(text + "\n")
				}
				continue
			}
		}
		b.WriteString(text + "\n\n")
	}
	return b.String()
}

// linePitch returns the distance of the baselines as a part of the size. ok is false if b is not below a.
func linePitch(a, b *line) (pitch float64, ok bool) {
	size := max(a.size, b.size)
	pitch = (a.v - b.v) / size
	aligned := a.direction[0]*b.direction[0]+a.direction[1]*b.direction[1] > 0.99
	return pitch, aligned && pitch > 0 && pitch < 4
}

// usualPitch returns the median.
func (l *layout) usualPitch() float64 {
	var all []float64
	for i := 1; i < len(l.lines); i++ {
		if pitch, ok := linePitch(l.lines[i-1], l.lines[i]); ok {
			all = append(all, pitch)
		}
	}
	if len(all) == 0 {
		return 1.2
	}
	slices.Sort(all)
	return max(all[len(all)/2], 1)
}

// dividedWord returns text without the hyphen at its end, and whether the last word continues at the beginning of next.
// A last word with other characters than letters, such as an address, keeps its hyphen.
func dividedWord(text, next string) (head string, divided bool) {
	hyphen, size := utf8.DecodeLastRuneInString(text)
	first, _ := utf8.DecodeRuneInString(next)
	if hyphen != '-' && hyphen != '\u2010' && hyphen != '\u00ad' || !unicode.IsLower(first) {
		return text, false
	}
	head = text[:len(text)-size]
	word := strings.TrimLeft(head[strings.LastIndexByte(head, ' ')+1:], "([\"'\u201c\u2018")
	return head, word != "" && strings.IndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}
