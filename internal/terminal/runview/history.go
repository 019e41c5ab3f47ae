package runview

import (
	"fmt"
	"strings"
	"time"

	"raddle.dev/graph/history"
	"raddle.dev/internal/base/term"
)

// Line is a record as "runs history --output json" writes it.
type Line struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	Path string    `json:"path,omitempty"`
	What string    `json:"what,omitempty"`
	Next []string  `json:"next,omitempty"`
	By   string    `json:"by,omitempty"` // who answered, forked, edited or cancelled, if the server knows
}

// ListLines returns the records of a run in the form of programs, never nil.
func ListLines(entries []history.Entry) []Line {
	lines := []Line{}
	for _, e := range entries {
		lines = append(lines, Line{
			Seq:  e.Seq,
			Time: e.Time,
			Kind: e.Kind.String(),
			Path: e.Path,
			What: e.What,
			Next: e.Next,
			By:   e.By,
		})
	}
	return lines
}

// FormatLines returns records for people, one on each line.
func FormatLines(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		text := fmt.Sprintf("%6d  %s  %-9s %s", l.Seq, l.Time.Local().Format("15:04:05.000"), l.Kind, l.Path+l.What)
		if len(l.Next) > 0 {
			text += " -> " + strings.Join(l.Next, ", ")
		}
		if l.By != "" {
			text += " (by " + term.CleanText(l.By) + ")"
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	return b.String()
}
