package doctor

import (
	"fmt"
	"strings"

	"raddle.dev/internal/base/term"
)

// FormatResults returns results as lines.
func FormatResults(colors term.Colors, results []Result) string {
	marks := map[string]string{OK: colors.Paint(term.Green, "✓"), Warning: colors.Paint(term.Yellow, "!"), Failed: colors.Paint(term.Red, "✗")}
	var b strings.Builder
	const width = 10
	for _, r := range results {
		indent := "\n" + strings.Repeat(" ", width+3)
		fmt.Fprintf(&b, "%s %-*s %s\n", marks[r.Status], width, r.Check, strings.ReplaceAll(term.CleanText(r.Text), "\n", indent))
		if r.Next != "" {
			fmt.Fprintf(&b, "  %-*s %s\n", width, "", "next: "+strings.ReplaceAll(term.CleanText(r.Next), "\n", indent))
		}
	}
	return b.String()
}
