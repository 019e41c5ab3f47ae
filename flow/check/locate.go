package check

import (
	"bytes"
	"unicode/utf8"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
)

// locator finds placeholders in the text of a file.
type locator struct {
	text  []byte
	lines []int // the offset of each line
}

func newLocator(f *spec.File) *locator {
	l := &locator{text: f.Text, lines: []int{0}}
	for i, c := range f.Text {
		if c == '\n' {
			l.lines = append(l.lines, i+1)
		}
	}
	return l
}

// locatePlaceholder returns the position of the first placeholder of a template with
// the same text as p. If the file writes it with escapes or by an alias, it is
// the position of the template.
func (l *locator) locatePlaceholder(n *spec.Node, u spec.TemplateUse, p *spec.Path) strictyaml.Pos {
	from := n.Source.ItemPositions(u.Field)(u.Item)
	start := l.offsetOf(from)
	if start < 0 || start < len(l.text) && l.text[start] == '*' {
		return from
	}
	window := l.text[start:min(len(l.text), start+4*len(u.Template.Text)+1024)]
	found := bytes.Index(window, []byte("{{"+p.Text+"}}"))
	if found < 0 {
		return from
	}
	return l.positionAt(from, start+found)
}

// maxColumn is the column above which placeholders are not searched.
const maxColumn = 100_000

// offsetOf returns the index of a position in the text, or -1 if there is no
// position.
func (l *locator) offsetOf(p strictyaml.Pos) int {
	if p.Line < 1 || p.Line > len(l.lines) || p.Col > maxColumn {
		return -1
	}
	at := l.lines[p.Line-1]
	for range p.Col - 1 {
		if at >= len(l.text) {
			return -1
		}
		_, size := utf8.DecodeRune(l.text[at:])
		at += size
	}
	return at
}

// positionAt returns the position of an index at or after a known position.
func (l *locator) positionAt(from strictyaml.Pos, at int) strictyaml.Pos {
	line := from.Line
	for line < len(l.lines) && l.lines[line] <= at {
		line++
	}
	return strictyaml.Pos{File: from.File, Line: line, Col: 1 + utf8.RuneCount(l.text[l.lines[line-1]:at])}
}
