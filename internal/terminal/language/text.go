package language

import (
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"raddle.dev/internal/base/strictyaml"
)

// Position is a place in a document as the Language Server Protocol counts it: lines and UTF-16 units from 0.
type Position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// Range is a part of a document, without its end.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Text is the text of a document with its lines. It does not change.
type Text struct {
	s     string
	lines []int // the offset of each line; lines end with LF, CR LF or CR
	yaml  []int // the offset of each line of YAML, which three characters of Unicode also end
}

// NewText returns a text with its lines.
func NewText(s string) *Text {
	t := &Text{s: s, lines: []int{0}, yaml: []int{0}}
	for i, r := range s {
		switch {
		case r == '\n' || r == '\r' && (i+1 == len(s) || s[i+1] != '\n'):
			t.lines = append(t.lines, i+1)
			t.yaml = append(t.yaml, i+1)
		case r == '\u0085' || r == '\u2028' || r == '\u2029':
			t.yaml = append(t.yaml, i+utf8.RuneLen(r))
		}
	}
	return t
}

// String returns the text.
func (t *Text) String() string { return t.s }

// lineAt returns a line without its end, and its offset.
func (t *Text) lineAt(n int) (string, int) {
	if n < 0 || n >= len(t.lines) {
		return "", len(t.s)
	}
	start, end := t.lines[n], len(t.s)
	if n+1 < len(t.lines) {
		end = t.lines[n+1]
	}
	return strings.TrimRight(t.s[start:end], "\r\n"), start
}

// Offset returns the index in the text of a position. A position behind the end of its line is that end, and one
// within a character its beginning, as the protocol wants it.
func (t *Text) Offset(p Position) int {
	if p.Line < 0 {
		return 0
	}
	text, start := t.lineAt(p.Line)
	units := 0
	for i, r := range text {
		size := utf16Size(r)
		if units+size > p.Character {
			return start + i
		}
		units += size
	}
	return start + len(text)
}

func utf16Size(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// Position returns the position of an index in the text.
func (t *Text) Position(offset int) Position {
	offset = min(max(offset, 0), len(t.s))
	n, found := slices.BinarySearch(t.lines, offset)
	if !found {
		n--
	}
	units := 0
	for _, r := range t.s[t.lines[n]:offset] {
		units += utf16Size(r)
	}
	return Position{n, units}
}

// rangeOf returns the range between two indexes of the text.
func (t *Text) rangeOf(from, to int) Range { return Range{t.Position(from), t.Position(to)} }

// ReplaceRange returns the text with another one for a range.
func (t *Text) ReplaceRange(r Range, with string) *Text {
	from, to := t.Offset(r.Start), t.Offset(r.End)
	if to < from {
		from, to = to, from
	}
	return NewText(t.s[:from] + with + t.s[to:])
}

// findPlace returns the index of a place as findings have it: lines are those of YAML, columns count characters.
func (t *Text) findPlace(p strictyaml.Pos) int {
	if p.Line > len(t.yaml) {
		return len(t.s)
	}
	at := t.yaml[max(p.Line, 1)-1]
	if at == 0 {
		at += len(t.s) - len(strings.TrimPrefix(t.s, "\ufeff"))
	}
	for range p.Col - 1 {
		r, size := utf8.DecodeRuneInString(t.s[at:])
		if size == 0 || r == '\n' || r == '\r' {
			break
		}
		at += size
	}
	return at
}

// PathOf returns the absolute path of the file that an address of the protocol names; ok is false for other documents.
// Escapes and the letter of a drive may be written in several ways.
func PathOf(uri string) (path string, ok bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" {
		return "", false
	}
	path = u.Path
	if runtime.GOOS == "windows" {
		if u.Host != "" { // a share of another machine
			return filepath.Clean(`\\` + u.Host + filepath.FromSlash(path)), true
		}
		if path = strings.TrimPrefix(path, "/"); len(path) > 1 && path[1] == ':' {
			path = strings.ToUpper(path[:1]) + path[1:]
		}
	}
	return filepath.Clean(filepath.FromSlash(path)), true
}

// AddressOf returns the address of a file.
func AddressOf(path string) string {
	path = filepath.ToSlash(path)
	if share, is := strings.CutPrefix(path, "//"); is { // a share of another machine
		host, rest, _ := strings.Cut(share, "/")
		return (&url.URL{Scheme: "file", Host: host, Path: "/" + rest}).String()
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// EditLines returns the edit that makes another text of a text: it replaces the lines between those that both begin and
// end with. There is none if they are equal.
func EditLines(t *Text, with string) []TextEdit {
	if t.s == with {
		return []TextEdit{}
	}
	from := 0
	for i := 0; i < len(t.s) && i < len(with) && t.s[i] == with[i]; i++ {
		if t.s[i] == '\n' {
			from = i + 1
		}
	}
	end := 0 // bytes that both texts end with, from the beginning of a line
	for i := 1; i <= len(t.s)-from && i <= len(with)-from && t.s[len(t.s)-i] == with[len(with)-i]; i++ {
		if i == len(t.s)-from || i == len(with)-from || t.s[len(t.s)-i-1] == '\n' && with[len(with)-i-1] == '\n' {
			end = i
		}
	}
	if end == len(t.s)-from || end == len(with)-from { // one is a part of the other: the boundary must be a line of both
		end = 0
	}
	return []TextEdit{{t.rangeOf(from, len(t.s)-end), with[from : len(with)-end]}}
}
