// Package excerpt shows findings of files on a terminal: a line with the place and the message, and below it the line
// of the file with its place marked.
package excerpt

import (
	"cmp"
	"fmt"
	"strings"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/term"
)

// Look says how findings are shown. The zero value shows them without colours, with whole paths.
type Look struct {
	Colors       term.Colors
	Columns      int                      // of the terminal, as far as they are free; 0: an excerpt is as wide as it may be
	ShortPath    func(path string) string // how a person writes a path; nil: as it is
	HoldsSecrets func(path string) bool   // whether the values of a file are hidden; nil: they are not
}

// These limit what is shown: the size of a file above which there is no excerpt, and how much of a line there is, at most
// and on a narrow terminal.
const (
	maxSize   = 8 << 20
	lineWidth = 100

	leastWidth = 12
)

// FormatFinding returns a finding on one line, with its place as the user would write it.
func (l Look) FormatFinding(f strictyaml.Finding) string {
	if l.ShortPath != nil {
		f.Pos.File = l.ShortPath(f.Pos.File)
	}
	text := f.Text()
	if hint := cmp.Or(f.Hint, f.Fix); hint != "" {
		text += " (" + hint + ")"
	}
	return l.Colors.Paint(term.Bold, term.OneLine(f.Pos.String())+":") + " " + l.Colors.Paint(severityColor(f.Severity), string(f.Severity)+":") + " " + term.OneLine(text)
}

// FormatExcerpt returns the line that a finding is about, and carets below its place; "" if its file cannot be read.
func (l Look) FormatExcerpt(f strictyaml.Finding) string {
	text, err := plainfile.Read(f.Pos.File, maxSize)
	if err != nil {
		return ""
	}
	e, ok := strictyaml.CutExcerpt(text, f.Pos)
	if !ok {
		return ""
	}
	if l.HoldsSecrets != nil && l.HoldsSecrets(f.Pos.File) {
		if e, ok = e.HideValue(f.Code); !ok {
			return ""
		}
	}
	number := fmt.Sprint(e.Number)
	width := lineWidth
	if l.Columns > 0 {
		width = max(min(width, l.Columns-len("   | ")-len(number)), leastWidth)
	}
	to := min(e.To, len(e.Line))
	before := term.CleanLine(e.Line[:e.From])
	word := term.CleanLine(e.Line[e.From:to])
	after := term.CleanLine(e.Line[to:])
	if excess := term.TextWidth(before) + min(term.TextWidth(word), width/2) - width; excess > 0 {
		before = "…" + term.CutStart(before, max(width/2-1, 0))
	}
	word = term.CutEnd(word, width/2)
	after = term.CutEnd(after, max(width-term.TextWidth(before+word), 0))
	bar := l.Colors.Paint(term.Dim, "|")
	return fmt.Sprintf("  %s %s %s\n  %*s %s %s%s\n", l.Colors.Paint(term.Dim, number), bar, strings.TrimRight(before+word+after, " "), len(number), "", bar,
		strings.Repeat(" ", term.TextWidth(before)), l.Colors.Paint(severityColor(f.Severity), strings.Repeat("^", max(term.TextWidth(word), 1))))
}

// severityColor returns the colour of a severity.
func severityColor(s strictyaml.Severity) term.Style {
	switch s {
	case strictyaml.SeverityError:
		return term.Red
	case strictyaml.SeverityInfo:
		return term.Cyan
	}
	return term.Yellow
}
