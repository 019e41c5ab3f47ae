package cli

import (
	"strings"
	"unicode/utf8"
)

// A vt shows what a terminal of some width displays after what was written to it: it knows the
// sequences that this program sends, and no others. Long lines wrap.
type vt struct {
	cols     int
	lines    [][]rune
	row, col int
	unknown  []string // sequences that it does not know
}

// Screen returns what a terminal shows of what was written to it.
func Screen(cols int, written string) string {
	v := newVT(cols)
	v.write(strings.ReplaceAll(written, "\r\n", "\n"))
	return v.String()
}

func newVT(cols int) *vt { return &vt{cols: cols, lines: [][]rune{{}}} }

func (v *vt) write(text string) {
	for text != "" {
		if strings.HasPrefix(text, "\x1b[") {
			end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				v.unknown = append(v.unknown, text)
				return
			}
			v.obey(text[2:2+end], text[2+end])
			text = text[3+end:]
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		switch r {
		case '\r':
			v.col = 0
		case '\n': // the terminal driver makes \r\n of it
			v.row, v.col = v.row+1, 0
		case '\x1b':
			v.unknown = append(v.unknown, text)
		default:
			v.put(r)
		}
		v.room()
	}
}

func (v *vt) room() {
	for len(v.lines) <= v.row {
		v.lines = append(v.lines, nil)
	}
}

func (v *vt) put(r rune) {
	if v.col+runeWidth(r) > v.cols {
		v.row, v.col = v.row+1, 0
		v.room()
	}
	for range runeWidth(r) {
		for len(v.lines[v.row]) <= v.col {
			v.lines[v.row] = append(v.lines[v.row], ' ')
		}
		v.lines[v.row][v.col] = r
		v.col++
	}
}

func (v *vt) obey(args string, command byte) {
	switch command {
	case 'm':
	case 'A':
		n := 0
		for _, d := range args {
			n = n*10 + int(d-'0')
		}
		v.row = max(0, v.row-max(n, 1))
	case 'J':
		v.lines = v.lines[:v.row+1]
		v.lines[v.row] = v.lines[v.row][:min(v.col, len(v.lines[v.row]))]
	case 'K':
		v.lines[v.row] = v.lines[v.row][:min(v.col, len(v.lines[v.row]))]
	default:
		v.unknown = append(v.unknown, args+string(command))
	}
}

// resize reflows, as terminals do.
func (v *vt) resize(cols int) {
	var lines [][]rune
	for i, l := range v.lines {
		if i == v.row {
			v.row, v.col = len(lines)+v.col/cols, v.col%cols
		}
		for len(l) > cols {
			lines, l = append(lines, l[:cols:cols]), l[cols:]
		}
		lines = append(lines, l)
	}
	v.cols, v.lines = cols, lines
	v.room()
}

func (v *vt) String() string {
	var text []string
	for _, l := range v.lines {
		text = append(text, strings.TrimRight(string(l), " "))
	}
	return strings.TrimRight(strings.Join(text, "\n"), "\n")
}
