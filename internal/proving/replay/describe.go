package replay

import (
	"fmt"
	"strings"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
)

// longestRecorded limits what is shown of a recorded answer.
const longestRecorded = 200

// Describe returns the result for people. paint styles a text.
func (r *Result) Describe(paint func(term.Style, string) string) string {
	var b strings.Builder
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", term.CleanText(note))
	}
	d := r.Difference
	counts := wording.FormatCount(r.Steps, "step") + ", " + wording.FormatCount(r.Effects, "effect")
	if d == nil {
		b.WriteString(counts + ", no difference")
		if r.Ended != "" {
			b.WriteString("; " + term.CleanText(r.Ended))
		}
		return b.String()
	}
	fmt.Fprintf(&b, "%s\n", paint(term.Red, term.CleanText(d.Error())))
	for line := range strings.Lines(term.CleanText(d.Diff())) {
		style := term.Dim
		switch line[0] {
		case '+':
			style = term.Green
		case '-':
			style = term.Red
		}
		fmt.Fprintf(&b, "  %s\n", paint(style, strings.TrimRight(line, "\n")))
	}
	if d.Recorded != "" {
		text := strings.Join(strings.Fields(term.CleanText(d.Recorded)), " ")
		fmt.Fprintf(&b, "recorded answer (%s@%d): %s\n", d.Run, d.Record, wording.CutText(text, longestRecorded, "…"))
	}
	for _, c := range r.Changes {
		fmt.Fprintf(&b, "since then: %s\n", term.CleanText(c))
	}
	b.WriteString("before it: " + counts + ", no difference")
	return b.String()
}
