package term

import (
	"slices"
	"strings"
)

// A Table shows rows in columns, two blanks apart, below a heading.
type Table[R any] struct {
	columns []Column[R]
	rows    []R
}

// A Column is what a table shows of each row.
type Column[R any] struct {
	Heading string
	Cell    func(row R) string // becomes one line, whatever it contains
	Style   func(row R) Style  // of the cell, for Paint; nil or "": it has none. The last column has none
	Keep    func(row R) int    // columns of the terminal that the cell keeps, at most its width; nil: 1
}

// NewColumn returns a column without styles.
func NewColumn[R any](heading string, cell func(row R) string) Column[R] {
	return Column[R]{Heading: heading, Cell: cell}
}

// NewTable returns a table without rows. It needs a column.
func NewTable[R any](columns ...Column[R]) *Table[R] {
	return &Table[R]{columns: columns}
}

// FormatRows returns a table of rows, for a terminal of any width.
func FormatRows[R any](rows []R, columns ...Column[R]) string {
	t := NewTable(columns...)
	t.rows = rows
	return t.Format(0)
}

// AddRow adds a row.
func (t *Table[R]) AddRow(row R) { t.rows = append(t.rows, row) }

// Format returns the lines of the table. If width is above 0, they are for a terminal with that many columns: cells are
// clean, and a line that is longer is cut. The last column keeps a quarter of the width, if it needs that and the others
// need not keep more.
func (t *Table[R]) Format(width int) string { return t.Paint(width, false) }

// Paint is Format with the styles of cells, if colors says so.
func (t *Table[R]) Paint(width int, colors Colors) string {
	lines := t.listCells(width)
	widths := fitColumns(lines, t.listKept(), width)
	var b strings.Builder
	for i, cells := range lines {
		last := len(cells) - 1
		line := cells[last]
		for column, c := range slices.Backward(cells[:last]) {
			line = PadText(c, widths[column]) + columnGap + line
		}
		line = strings.TrimRight(line, " ")
		if width > 0 && TextWidth(line) > width {
			line = PadText(line, width)
		}
		if i > 0 && bool(colors) {
			line = t.paintRow(t.rows[i-1], line, widths, colors)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// listCells returns the heading and the cells of the rows. For a terminal they are clean.
func (t *Table[R]) listCells(width int) [][]string {
	heading := make([]string, len(t.columns))
	for i, c := range t.columns {
		heading[i] = c.Heading
	}
	lines := [][]string{heading}
	for _, row := range t.rows {
		cells := make([]string, len(t.columns))
		for i, c := range t.columns {
			cells[i] = OneLine(c.Cell(row))
			if width > 0 {
				cells[i] = CleanLine(cells[i])
			}
		}
		lines = append(lines, cells)
	}
	return lines
}

// listKept returns how wide each column stays in a narrow terminal, if its cells are that wide; 0: it does not say.
func (t *Table[R]) listKept() []int {
	kept := make([]int, len(t.columns))
	for i, c := range t.columns {
		if c.Keep == nil {
			continue
		}
		kept[i] = TextWidth(c.Heading)
		for _, row := range t.rows {
			kept[i] = max(kept[i], c.Keep(row))
		}
	}
	return kept
}

// fitColumns returns the widths of all columns but the last one, in a terminal of a width; 0: as wide as their cells.
// The column gives way first that can by most, then each other one that says how wide it stays, and in the end the last
// one.
func fitColumns(lines [][]string, kept []int, width int) []int {
	widths := make([]int, len(lines[0]))
	for _, cells := range lines {
		for i, c := range cells {
			widths[i] = max(widths[i], TextWidth(c))
		}
	}
	last := widths[len(widths)-1]
	widths = widths[:len(widths)-1]
	excess := min(last, width/4) - width
	for _, w := range widths {
		excess += w + len(columnGap)
	}
	for turn := range widths {
		widest := 0
		most := 0
		for i, w := range widths {
			if can := w - max(kept[i], 1); can > most && (turn == 0 || kept[i] > 0) {
				widest = i
				most = can
			}
		}
		if gives := min(excess, most); width > 0 && gives > 0 {
			widths[widest] -= gives
			excess -= gives
		}
	}
	return widths
}

// paintRow applies the styles of a row to its finished line.
func (t *Table[R]) paintRow(row R, line string, widths []int, colors Colors) string {
	var b strings.Builder
	for column, width := range widths {
		cell := CutEnd(line, width)
		line = line[len(cell):]
		if style := t.columns[column].Style; style != nil && style(row) != "" {
			cell = colors.Paint(style(row), cell)
		}
		gap := CutEnd(line, len(columnGap))
		line = line[len(gap):]
		b.WriteString(cell + gap)
	}
	return b.String() + line
}

const columnGap = "  "
