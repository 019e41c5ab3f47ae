package edit

import (
	"fmt"
	"slices"
	"strings"
)

// These bound what a result shows.
const (
	linesAround = 2
	mostShown   = 60  // lines
	longestLine = 200 // characters
)

// widenRegions adds the lines around the changed ones, for Lines.
func (r *Result) widenRegions(t *text) {
	for i := range r.where {
		r.where[i].from = max(0, r.where[i].from-linesAround)
		r.where[i].to = min(len(t.lines), r.where[i].to+linesAround)
	}
	slices.SortFunc(r.where, func(a, b region) int { return a.from - b.from })
}

// Lines returns the changed lines as they are now, with their numbers and a few lines around them.
func (r Result) Lines() string {
	text, _ := r.showLines()
	return text
}

// ShowsAll reports whether Lines has every changed line whole.
func (r Result) ShowsAll() bool {
	_, whole := r.showLines()
	return whole
}

// showLines returns the changed lines, and whether nothing of them is left out.
func (r Result) showLines() (text string, whole bool) {
	lines := splitText(r.Text).lines
	var b strings.Builder
	left := mostShown
	done := 0
	whole = true
	for i, where := range r.where {
		from := max(where.from, done)
		if from >= where.to {
			continue
		}
		if i > 0 && from > done {
			b.WriteString("   ...\n")
		}
		for at := from; at < where.to; at++ {
			if left--; left < 0 {
				b.WriteString("   ... and more\n")
				return b.String(), false
			}
			l := lines[at]
			if len(l) > longestLine {
				l = strings.ToValidUTF8(l[:longestLine], "") + "..."
				whole = false
			}
			fmt.Fprintf(&b, "%6d  %s\n", at+1, l)
		}
		done = where.to
	}
	return b.String(), whole
}
