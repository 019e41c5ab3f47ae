package draw

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cleanLabel makes a text fit for a label: valid UTF-8, lines separated by a single newline, no other control characters.
// Characters that cannot be shown become the replacement character.
func cleanLabel(s string) string {
	s = strings.TrimRightFunc(strings.ReplaceAll(s, "\r\n", "\n"), unicode.IsSpace)
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r', r == '\v', r == '\f', r == '\u0085', r == '\u2028', r == '\u2029':
			return '\n'
		case r == '\t':
			return ' '
		case r != '\n' && unicode.IsControl(r), r == 0xFFFE, r == 0xFFFF:
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

// displayName returns the name of a node in the picture.
func (v vertex) displayName() string {
	if t := cleanLabel(v.info.Title); t != "" {
		return t
	}
	return cleanLabel(v.info.Name)
}

// oneLine joins the lines of a text.
func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }
