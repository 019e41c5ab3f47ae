package story

import (
	"fmt"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/runs"
)

// FormatChange returns a change for people: the sign of what happened, the key, and the old
// and the new value, below the key if they are long.
func FormatChange(c *runs.Change, colors term.Colors) string {
	sign := "~"
	color := term.Yellow
	switch {
	case c.Was == nil:
		sign = "+"
		color = term.Green
	case c.Is == nil:
		sign = "-"
		color = term.Red
	}
	head := colors.Paint(color, sign) + " " + colors.Paint(term.Bold, c.Path+c.Key)
	var was, is []string
	if c.Was != nil {
		was = ListValueLines(c.Was)
	}
	if c.Is != nil {
		is = ListValueLines(c.Is)
	}
	switch {
	case c.Was == nil && isShort(is):
		return head + ": " + is[0]
	case c.Is == nil && isShort(was):
		return head + ": " + was[0]
	case c.Was != nil && c.Is != nil && isShort(was) && isShort(is):
		return head + ": " + was[0] + " -> " + is[0]
	}
	return head + "\n" + formatDiff(was, is, colors)
}

// formatDiff shows the lines in which two values differ.
func formatDiff(was, is []string, colors term.Colors) string {
	head := term.CountCommonStart(was, is)
	tail := term.CountCommonEnd(was[head:], is[head:])
	var b strings.Builder
	same := func(n int) {
		if n > 0 {
			fmt.Fprintf(&b, "    (%s alike)\n", wording.FormatCount(n, "line"))
		}
	}
	same(head)
	for _, line := range was[head : len(was)-tail] {
		b.WriteString("  " + colors.Paint(term.Red, "- "+line) + "\n")
	}
	for _, line := range is[head : len(is)-tail] {
		b.WriteString("  " + colors.Paint(term.Green, "+ "+line) + "\n")
	}
	same(tail)
	return b.String()
}

// shortValue is the longest value that is shown on the line of its key.
const shortValue = 60

// ListValueLines returns a value of a state for people: text unchanged if it reads as
// text, otherwise quoted; other values as JSON, on several lines if it is long.
func ListValueLines(encoded []byte) []string {
	v, err := jsonvalue.Parse(encoded)
	if err != nil { // another program wrote it
		return []string{string(encoded)}
	}
	text, ok := v.(string)
	if ok {
		if back, err := flow.ParseValue(text); err == nil && back == v && text != "" && text == strings.TrimSpace(text) {
			return strings.Split(text, "\n")
		}
	}
	if short := jsonvalue.Compact(v); ok || len(short) <= shortValue {
		return []string{short}
	}
	return strings.Split(jsonvalue.Pretty(v), "\n")
}

// isShort reports whether lines fit on the line of a key.
func isShort(lines []string) bool { return len(lines) == 1 && len(lines[0]) <= shortValue }
