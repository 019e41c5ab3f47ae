package check

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
)

// locator finds placeholders in the text of a file.
type locator struct {
	text   []byte
	lines  []int            // the offset of each line
	starts []strictyaml.Pos // where each key and value begins, in order
}

func newLocator(f *spec.File) *locator {
	l := &locator{text: f.Text, lines: []int{0}}
	for i, c := range f.Text {
		if c == '\n' {
			l.lines = append(l.lines, i+1)
		}
	}
	l.addStarts(f.Source, f.Source.Node)
	slices.SortFunc(l.starts, comparePlaces)
	return l
}

func comparePlaces(a, b strictyaml.Pos) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
}

// addStarts records where a node and those in it begin.
func (l *locator) addStarts(file strictyaml.Mapping, n *yaml.Node) {
	if n == nil {
		return
	}
	l.starts = append(l.starts, file.PositionOf(n))
	for _, inner := range n.Content {
		l.addStarts(file, inner)
	}
}

// endOf returns an index of the text at or after the end of the scalar at a position, before the next key or value.
func (l *locator) endOf(from strictyaml.Pos) int {
	next, _ := slices.BinarySearchFunc(l.starts, strictyaml.Pos{Line: from.Line, Col: from.Col + 1}, comparePlaces)
	if next < len(l.starts) {
		if end := l.offsetOf(l.starts[next]); end >= 0 {
			return end
		}
	}
	return len(l.text)
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
	window := l.text[start:max(start, min(l.endOf(from), start+4*len(u.Template.Text)+1024))]
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
