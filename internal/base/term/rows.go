package term

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// This file changes rows on a terminal: it writes only what differs, so that little is sent over a slow connection and
// nothing flickers.

// endOfRow is the column of a [Cursor] behind the text of its row.
const endOfRow = -1

// A rowWriter collects the text that changes rows which are on the screen. Nothing else is below them.
type rowWriter struct {
	b    strings.Builder
	rows []string // as they are on the screen now; at least one
	row  int      // of the cursor
	col  int      // of the cursor; -1: unknown
}

// updateRows returns the text that changes old rows on the screen to next, and moves the cursor from a row of old to a
// place in next. No row may be wider than the terminal or have a tab or a line break; both lists have at least one.
func updateRows(old, next []string, from int, to Cursor) string {
	w := rowWriter{rows: slices.Clone(old), row: from, col: -1}
	w.deleteSlide(next)
	w.alignEnds(next)
	for i, row := range next {
		w.setRow(i, row)
	}
	if len(w.rows) > len(next) {
		w.moveTo(len(next), 0)
		w.mark("[J")
	}
	col := to.Column
	if col == endOfRow {
		if w.row == to.Row && to.Row < len(next) && w.col < 0 {
			return w.b.String() // it is there, in a row whose width terminals do not agree about
		}
		col = TextWidth(StripMarks(next[to.Row]))
	}
	w.moveTo(to.Row, col)
	return w.b.String()
}

func (w *rowWriter) mark(sequence string) { w.b.WriteString(wrapMark(sequence)) }

// moveTo moves the cursor to a place in the rows.
func (w *rowWriter) moveTo(row, col int) {
	switch {
	case row < w.row:
		w.mark(fmt.Sprintf("[%dA", w.row-row))
	case row > w.row:
		w.mark(fmt.Sprintf("[%dB", row-w.row))
	}
	w.row = row
	switch {
	case w.col == col:
	case col == 0:
		w.mark("[G")
	default:
		w.mark(fmt.Sprintf("[%dG", col+1))
	}
	w.col = col
}

// deleteSlide removes rows from the top of what differs, if the rows below them are what is shown there next.
func (w *rowWriter) deleteSlide(next []string) {
	const maxDeleted, least = 4, 2 // rows to delete; rows that need not be written again then
	top := CountCommonStart(w.rows, next)
	for n := 1; n <= maxDeleted && top+n+least <= len(w.rows); n++ {
		if CountCommonStart(w.rows[top+n:], next[top:]) >= least {
			w.deleteRows(top, n)
			return
		}
	}
}

// alignEnds inserts or removes rows, so that equal rows at the end need not be written again.
func (w *rowWriter) alignEnds(next []string) {
	top := CountCommonStart(w.rows, next)
	same := CountCommonEnd(w.rows[top:], next[top:])
	n := len(next) - len(w.rows)
	switch at := len(w.rows) - same; {
	case same == 0 || n == 0:
	case n < 0:
		w.deleteRows(at+n, -n)
	default:
		w.moveTo(len(w.rows)-1, max(w.col, 0))
		w.b.WriteString(strings.Repeat("\n", n)) // there may be no room below
		w.row = w.row + n
		w.col = 0
		w.moveTo(at, 0)
		w.mark(fmt.Sprintf("[%dL", n))
		w.rows = slices.Insert(w.rows, at, make([]string, n)...)
	}
}

func (w *rowWriter) deleteRows(at, n int) {
	w.moveTo(at, 0)
	w.mark(fmt.Sprintf("[%dM", n))
	w.rows = slices.Delete(w.rows, at, at+n)
	if len(w.rows) == 0 {
		w.rows = []string{""}
	}
}

// CountCommonStart returns how many elements at the start of two lists are equal.
func CountCommonStart[T comparable](a, b []T) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// CountCommonEnd returns how many elements at the end of two lists are equal.
func CountCommonEnd[T comparable](a, b []T) (n int) {
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// setRow changes one row, or adds it below the last.
func (w *rowWriter) setRow(i int, row string) {
	if i == len(w.rows) {
		if w.row != i-1 {
			w.moveTo(i-1, 0)
		}
		w.b.WriteString("\n")
		w.rows = append(w.rows, "")
		w.row = i
		w.col = 0
	}
	old := w.rows[i]
	if old == row {
		return
	}
	w.rows[i] = row
	before, sure := splitCells(old)
	after, alsoSure := splitCells(row)
	if !sure || !alsoSure {
		w.moveTo(i, 0)
		w.writeCells(after)
		w.mark("[K")
		w.col = -1
		return
	}
	head := CountCommonStart(before, after)
	tail := 0
	if cellsWidth(before) == cellsWidth(after) {
		tail = CountCommonEnd(before[head:], after[head:])
	}
	middle := after[head : len(after)-tail]
	w.moveTo(i, cellsWidth(after[:head]))
	w.writeCells(middle)
	w.col += cellsWidth(middle)
	if cellsWidth(before) > cellsWidth(after) {
		w.mark("[K")
	}
}

// A cell is a character of a row, with all that decides about its look.
type cell struct {
	text  string
	width int
	style string // the marks of its style
	link  string // the mark that begins its link; "" if it has none
}

// splitCells returns the characters of a painted row. sure is false if terminals do not agree about the width of one of
// them.
func splitCells(row string) (cells []cell, sure bool) {
	sure = true
	var style, link string
	renderMarks(row, func(text string) string {
		for text = CleanLine(text); text != ""; {
			var c cell
			c.text, text, c.width = cutCharacter(text)
			sure = sure && ansi.StringWidthWc(c.text) == ansi.StringWidth(c.text)
			c.style = style
			c.link = link
			cells = append(cells, c)
		}
		return ""
	}, func(mark string) string {
		switch {
		case mark == "[0m":
			style = ""
		case strings.HasSuffix(mark, "m"):
			style += wrapMark(mark)
		case mark == "]8;;\a":
			link = ""
		case strings.HasPrefix(mark, "]8;;"):
			link = wrapMark(mark)
		}
		return ""
	})
	return cells, sure
}

func cellsWidth(cells []cell) (columns int) {
	for _, c := range cells {
		columns += c.width
	}
	return columns
}

// writeCells writes characters at the cursor, with their looks. It leaves the look of the terminal as it was.
func (w *rowWriter) writeCells(cells []cell) {
	var now cell
	set := func(next cell) {
		if now.style != next.style {
			if now.style != "" {
				w.mark("[0m")
			}
			w.b.WriteString(next.style)
		}
		if now.link != next.link {
			if next.link == "" {
				w.mark("]8;;\a")
			}
			w.b.WriteString(next.link)
		}
		now = next
	}
	for _, c := range cells {
		set(c)
		w.b.WriteString(c.text)
	}
	set(cell{})
}

// syncUpdate encloses text in marks that make terminals which know them show all of it at once (mode 2026).
func syncUpdate(text string) string {
	if text == "" {
		return ""
	}
	return wrapMark("[?2026h") + text + wrapMark("[?2026l")
}
