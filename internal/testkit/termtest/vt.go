// Package termtest shows what a terminal displays, for tests.
package termtest

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// A cell is one place of a terminal.
type cell struct {
	r     rune
	style string // the numbers of an SGR sequence, "" for plain text
}

// A Display is what a terminal of some width displays after what was written to it: it knows the
// sequences that raddle sends, and no others. Long lines wrap.
type Display struct {
	Unknown []string // sequences that it does not know

	cols     int
	rows     int // of the terminal; 0: no limit
	top      int // the first line that is not above the terminal
	lines    [][]cell
	style    string // of what is written next: the numbers of an SGR sequence
	row, col int
}

// Render returns what a terminal shows of what was written to it.
func Render(cols int, written string) string {
	v := NewDisplay(cols)
	v.WriteText(strings.ReplaceAll(written, "\r\n", "\n"))
	return v.String()
}

// NewDisplay returns an empty display without a limit of its height.
func NewDisplay(cols int) *Display { return &Display{cols: cols, lines: [][]cell{{}}} }

// NewTerminal returns an empty display with a number of rows: the cursor cannot go back to lines that have left it at
// the top.
func NewTerminal(cols, rows int) *Display {
	v := NewDisplay(cols)
	v.rows = rows
	return v
}

// WriteText adds text that was written.
func (v *Display) WriteText(text string) {
	for text != "" {
		if strings.HasPrefix(text, "\x1b[") {
			end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				v.Unknown = append(v.Unknown, text)
				return
			}
			v.obeySequence(text[2:2+end], text[2+end])
			v.addRows()
			text = text[3+end:]
			continue
		}
		if body, ok := strings.CutPrefix(text, "\x1b]8;;"); ok { // a link
			if end := strings.IndexByte(body, '\a'); end >= 0 {
				text = body[end+1:]
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		switch r {
		case '\r':
			v.col = 0
		case '\n': // the terminal driver makes \r\n of it
			v.row = v.row + 1
			v.col = 0
		case '\x1b':
			v.Unknown = append(v.Unknown, text)
		default:
			v.putRune(r)
		}
		v.addRows()
	}
}

func (v *Display) addRows() {
	for len(v.lines) <= v.row {
		v.lines = append(v.lines, nil)
	}
	if v.rows > 0 {
		v.top = max(v.top, v.row-v.rows+1)
	}
}

func (v *Display) putRune(r rune) {
	if v.col+ansi.StringWidthWc(string(r)) > v.cols {
		v.row = v.row + 1
		v.col = 0
		v.addRows()
	}
	for i := range ansi.StringWidthWc(string(r)) {
		for len(v.lines[v.row]) <= v.col {
			v.lines[v.row] = append(v.lines[v.row], cell{r: ' '})
		}
		if v.lines[v.row][v.col] = (cell{r, v.style}); i > 0 {
			v.lines[v.row][v.col].r = rightHalf
		}
		v.col++
	}
}

// rightHalf is in the second cell of a wide character.
const rightHalf = -1

func (v *Display) obeySequence(args string, command byte) {
	switch command {
	case 'm':
		if strings.HasPrefix(args, ">") {
			return // it is about keys, not about style
		}
		if v.style += ";" + args; args == "" || args == "0" {
			v.style = ""
		}
	case 'h', 'l': // modes change nothing that is displayed
	case 'A':
		v.row = max(v.top, v.row-countOf(args))
	case 'B':
		v.row += countOf(args)
		if v.rows > 0 {
			v.row = min(v.row, v.top+v.rows-1)
		}
	case 'C':
		v.col = min(v.col+countOf(args), v.cols-1)
	case 'G':
		v.col = min(countOf(args)-1, v.cols-1)
	case 'L':
		v.lines = slices.Insert(v.lines, v.row, make([][]cell, countOf(args))...)
		if v.rows > 0 {
			v.lines = v.lines[:min(len(v.lines), v.top+v.rows)] // what leaves it at the bottom is gone
		}
	case 'M':
		v.lines = slices.Delete(v.lines, v.row, min(v.row+countOf(args), len(v.lines)))
	case 'J':
		v.lines = v.lines[:v.row+1]
		v.lines[v.row] = v.lines[v.row][:min(v.col, len(v.lines[v.row]))]
	case 'K':
		v.lines[v.row] = v.lines[v.row][:min(v.col, len(v.lines[v.row]))]
	default:
		v.Unknown = append(v.Unknown, args+string(command))
	}
}

// countOf returns the number of a sequence; 1 if there is none.
func countOf(args string) int {
	n := 0
	for _, d := range args {
		n = n*10 + int(d-'0')
	}
	return max(n, 1)
}

// Cursor returns the place of the cursor, counted from 0.
func (v *Display) Cursor() (row, col int) { return v.row, v.col }

// Resize changes the width. The lines reflow, as terminals do.
func (v *Display) Resize(cols int) {
	var lines [][]cell
	row := v.row
	for i, l := range v.lines {
		if i == row {
			v.row = len(lines) + v.col/cols
			v.col = v.col % cols
		}
		for len(l) > cols {
			lines = append(lines, l[:cols:cols])
			l = l[cols:]
		}
		lines = append(lines, l)
	}
	v.cols = cols
	v.lines = lines
	v.addRows()
}

// String returns the displayed lines, without spaces at their ends.
func (v *Display) String() string {
	var text []string
	for _, l := range v.lines {
		text = append(text, strings.TrimRight(textOf(l), " "))
	}
	return strings.TrimRight(strings.Join(text, "\n"), "\n")
}

// textOf returns the text of cells.
func textOf(cells []cell) string {
	var b strings.Builder
	for _, c := range cells {
		if c.r != rightHalf {
			b.WriteRune(c.r)
		}
	}
	return b.String()
}
