package markdown

import (
	"strings"

	extast "github.com/yuin/goldmark/extension/ast"

	"raddle.dev/internal/base/term"
)

const (
	minTableWidth = 40 // columns of a terminal; a narrower one gets a table as records
	minCellWidth  = 6
	cellGap       = 2
)

// renderTable returns a table whose cells wrap, so that it fits into the width; or as one record for each row, if the
// width is too small.
func (p *page) renderTable(table *extast.Table, width int) []string {
	var rows [][][]span
	for row := table.FirstChild(); row != nil; row = row.NextSibling() {
		_, heading := row.(*extast.TableHeader)
		var cells [][]span
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			outer := span{}
			if heading {
				outer.style = p.renderer.Theme.Strong
			}
			cells = append(cells, p.inlineSpans(cell, outer))
		}
		rows = append(rows, cells)
	}
	count := len(rows[0])
	widths := fitColumns(rows, count, width-cellGap*(count-1))
	if width < minTableWidth || widths == nil {
		return p.renderRecords(rows, width)
	}
	var lines []string
	for i, row := range rows {
		lines = append(lines, renderRow(row, widths, table.Alignments)...)
		if i == 0 {
			var rule []string
			for _, w := range widths {
				rule = append(rule, strings.Repeat("─", w))
			}
			lines = append(lines, paintText(p.renderer.Theme.Rule, strings.Join(rule, strings.Repeat("─", cellGap))))
		}
	}
	return lines
}

// fitColumns returns the widths of columns that fit into a width together, or nil if there are too many.
func fitColumns(rows [][][]span, count, width int) []int {
	if count*minCellWidth > width {
		return nil
	}
	widths := make([]int, count)
	total := 0
	for c := range widths {
		for _, row := range rows {
			if c < len(row) {
				widths[c] = max(widths[c], term.TextWidth(joinTexts(row[c])), 1)
			}
		}
		widths[c] = min(widths[c], width)
		total += widths[c]
	}
	for total > width { // the widest column gives up columns first
		widest := 0
		next := 0
		for c, w := range widths {
			switch {
			case w > widths[widest]:
				widest, next = c, widths[widest]
			case c != widest && w > next:
				next = w
			}
		}
		give := min(total-width, max(1, widths[widest]-max(next, minCellWidth)))
		widths[widest] -= give
		total -= give
	}
	return widths
}

func renderRow(row [][]span, widths []int, align []extast.Alignment) []string {
	cells := make([][][]span, len(widths))
	height := 1
	for c := range widths {
		if c < len(row) {
			cells[c] = wrapLines(row[c], widths[c])
			height = max(height, len(cells[c]))
		}
	}
	lines := make([]string, height)
	for i := range lines {
		var b strings.Builder
		gap := 0
		for c, width := range widths {
			var cell []span
			if i < len(cells[c]) {
				cell = cells[c][i]
			}
			room := width - term.TextWidth(joinTexts(cell))
			left := 0
			if c < len(align) {
				switch align[c] {
				case extast.AlignRight:
					left = room
				case extast.AlignCenter:
					left = room / 2
				}
			}
			if gap += left; len(cell) > 0 {
				b.WriteString(strings.Repeat(" ", gap))
				gap = 0
			}
			for _, s := range cell {
				b.WriteString(s.paint())
			}
			gap += room - left + cellGap
		}
		lines[i] = b.String()
	}
	return lines
}

// renderRecords returns each row as lines "heading: cell".
func (p *page) renderRecords(rows [][][]span, width int) []string {
	var lines []string
	for i, row := range rows[1:] {
		if i > 0 {
			lines = append(lines, "")
		}
		for c, cell := range row {
			var line []span
			if c < len(rows[0]) && len(rows[0][c]) > 0 {
				line = append(append(line, rows[0][c]...), span{text: ": "})
			}
			lines = append(lines, wrapSpans(append(line, cell...), width)...)
		}
	}
	if len(rows) == 1 {
		for _, cell := range rows[0] {
			lines = append(lines, wrapSpans(cell, width)...)
		}
	}
	return lines
}
