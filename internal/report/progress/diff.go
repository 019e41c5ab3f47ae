package progress

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/tool"
)

// diffLines is how many lines of a change are shown.
const diffLines = 20

// A diffLine is a line of a change.
type diffLine struct {
	// in the file before the change for a removed line, otherwise in the file after it; 0: lines are left out here
	number int
	sign   byte // '+', '-' or ' '
	text   string
}

// formatDiff returns the lines of a change, painted: with detail all of them.
func (l Look) formatDiff(c tool.FileChange, cols int, detail bool) []string {
	const indent = "    "
	switch {
	case c.Withheld == tool.WithheldSecret:
		return []string{l.dim(indent + "(not shown: it contains a secret, or your rules do not let tools read it)")}
	case c.Withheld != "":
		return []string{l.dim(indent + "(not shown: " + string(c.Withheld) + ")")}
	case c.After == nil:
		return nil
	}
	before := ""
	if c.Before != nil {
		before = c.Before.Text
	}
	lines := diffTexts(before, c.After.Text)
	more := 0
	if !detail && len(lines) > diffLines {
		lines, more = lines[:diffLines], len(lines)-diffLines
	}
	wide := 1
	for _, line := range lines {
		wide = max(wide, len(fmt.Sprint(line.number)))
	}
	var out []string
	for _, line := range lines {
		if line.number == 0 {
			out = append(out, l.dim(indent+strings.Repeat(" ", wide)+" "+l.more))
			continue
		}
		sign := string(line.sign)
		if line.sign == '-' {
			sign = l.minus
		}
		text := fmt.Sprintf("%s%*d %s %s", indent, wide, line.number, sign, term.CleanText(strings.ReplaceAll(line.text, "\t", "    ")))
		text = l.cutRight(text, cols)
		switch line.sign {
		case '+':
			text = l.colors.Paint(term.Green, text)
		case '-':
			text = l.colors.Paint(term.Red, text)
		default:
			text = l.dim(text)
		}
		out = append(out, text)
	}
	if more > 0 {
		out = append(out, l.dim(indent+l.more+" "+wording.FormatCount(more, "more line")))
	}
	return out
}

// cutRight cuts a line at a width, and keeps the blanks at its beginning.
func (l Look) cutRight(line string, width int) string {
	line = strings.TrimRight(term.CleanLine(line), " ")
	if term.TextWidth(line) <= width {
		return line
	}
	return term.CutEnd(line, max(0, width-term.TextWidth(l.more))) + l.more
}

// diffTexts returns what differs between two texts, with a line before and after each difference.
func diffTexts(before, after string) []diffLine {
	const around = 1
	edits := udiff.Lines(before, after)
	unified, err := udiff.ToUnifiedDiff("", "", before, edits, around)
	if err != nil {
		return nil // the edits are of this text
	}
	var lines []diffLine
	for i, h := range unified.Hunks {
		if i > 0 {
			lines = append(lines, diffLine{})
		}
		from := h.FromLine
		to := h.ToLine
		for _, line := range h.Lines {
			text := strings.TrimRight(line.Content, "\r\n")
			switch line.Kind {
			case udiff.Delete:
				lines = append(lines, diffLine{from, '-', text})
				from++
			case udiff.Insert:
				lines = append(lines, diffLine{to, '+', text})
				to++
			default:
				lines = append(lines, diffLine{to, ' ', text})
				from = from + 1
				to = to + 1
			}
		}
	}
	return lines
}
