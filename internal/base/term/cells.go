package term

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// cutCharacter cuts text after its first character as a reader sees it, and returns the columns that the character takes.
// Terminals disagree about characters of several code points, such as flags: some show them as one, and others side by side.
// So the larger number counts.
func cutCharacter(text string) (character, rest string, width int) {
	character, width = ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
	return character, text[len(character):], max(width, ansi.StringWidthWc(character))
}

// TextWidth returns the number of terminal columns that a line takes at most.
func TextWidth(line string) (columns int) {
	for line != "" {
		var width int
		_, line, width = cutCharacter(line)
		columns += width
	}
	return columns
}

// CutEnd returns the beginning of a line that fits into a width.
func CutEnd(line string, width int) string {
	for rest := line; rest != ""; {
		character, after, columns := cutCharacter(rest)
		if width -= columns; width < 0 {
			return line[:len(line)-len(after)-len(character)]
		}
		rest = after
	}
	return line
}

// CutStart returns the end of a line that fits into a width.
func CutStart(line string, width int) string {
	for n := TextWidth(line); n > width && line != ""; {
		var columns int
		_, line, columns = cutCharacter(line)
		n -= columns
	}
	return line
}

// PadText fills a text with spaces up to a width, or cuts it.
func PadText(text string, width int) string {
	if n := TextWidth(text); n <= width {
		return text + strings.Repeat(" ", width-n)
	}
	return PadText(CutEnd(text, width-1)+"…", width)
}

// A Table is text in columns, two spaces apart. The first row is its heading.
type Table struct {
	rows   [][]string
	styles map[[2]int]Style // of cells, by their row and column
}

// NewTable returns a table that has only its heading.
func NewTable(heading ...string) *Table {
	return &Table{rows: [][]string{heading}, styles: map[[2]int]Style{}}
}

// AddRow adds a row with a cell for each column. Each cell becomes one line, whatever it contains.
func (t *Table) AddRow(cells ...string) {
	for i, c := range cells {
		cells[i] = OneLine(c)
	}
	t.rows = append(t.rows, cells)
}

// StyleCell sets the style of a cell of the last row, for Paint. The last column has no style.
func (t *Table) StyleCell(column int, style Style) {
	t.styles[[2]int{len(t.rows) - 1, column}] = style
}

// Format returns the lines of the table. If width is above 0, they are for a terminal with that many columns: cells are clean, and
// a line that is longer is cut. The last column keeps a quarter of the width, if it needs that.
func (t *Table) Format(width int) string { return t.Paint(width, false) }

// Paint is Format with the styles of cells, if colors says so.
func (t *Table) Paint(width int, colors Colors) string {
	last := len(t.rows[0]) - 1
	widths, widest, total := make([]int, last+1), 0, 0
	for _, row := range t.rows {
		for i, c := range row {
			if width > 0 {
				c = CleanLine(c)
			}
			row[i] = c
			widths[i] = max(widths[i], TextWidth(c))
		}
	}
	for i, w := range widths[:last] {
		total += w + len(columnGap)
		if w > widths[widest] {
			widest = i
		}
	}
	if excess := total + min(widths[last], width/4) - width; width > 0 && excess > 0 {
		widths[widest] = max(widths[widest]-excess, 1)
	}
	var b strings.Builder
	for i, row := range t.rows {
		line := row[last]
		for column, c := range slices.Backward(row[:last]) {
			line = PadText(c, widths[column]) + columnGap + line
		}
		line = strings.TrimRight(line, " ")
		if width > 0 && TextWidth(line) > width {
			line = PadText(line, width)
		}
		b.WriteString(t.paintRow(i, line, widths[:last], colors) + "\n")
	}
	return b.String()
}

// paintRow applies the styles of a row to its finished line.
func (t *Table) paintRow(row int, line string, widths []int, colors Colors) string {
	if !colors {
		return line
	}
	var b strings.Builder
	for column, width := range widths {
		style, ok := t.styles[[2]int{row, column}]
		cell := CutEnd(line, width)
		if line = line[len(cell):]; ok {
			cell = colors.Paint(style, cell)
		}
		gap := CutEnd(line, len(columnGap))
		line = line[len(gap):]
		b.WriteString(cell + gap)
	}
	return b.String() + line
}

const columnGap = "  "

// Fields is a list of names and values, one below the other.
type Fields struct {
	width int
	text  strings.Builder
}

// NewFields returns an empty list whose values begin after width columns and a space.
func NewFields(width int) *Fields { return &Fields{width: width} }

// AddField adds a value, which may have several lines. It leaves out an empty value.
func (f *Fields) AddField(name, value string) {
	if value = strings.TrimRight(value, "\n"); value != "" {
		value = strings.ReplaceAll(value, "\n", "\n"+strings.Repeat(" ", f.width+1))
		fmt.Fprintf(&f.text, "%-*s %s\n", f.width, name, value)
	}
}

// String returns the list, a line break after each value.
func (f *Fields) String() string { return f.text.String() }
