package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"

	"raddle.dev/internal/term"
)

// runeWidth returns the number of terminal columns of a character.
func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// textWidth returns the number of terminal columns of a line.
func textWidth(s string) (n int) {
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// truncateEnd returns the beginning of a line that fits into a width.
func truncateEnd(s string, width int) string {
	for i, r := range s {
		if width -= runeWidth(r); width < 0 {
			return s[:i]
		}
	}
	return s
}

// truncateStart returns the end of a line that fits into a width.
func truncateStart(s string, width int) string {
	for n := textWidth(s); n > width && s != ""; {
		for _, r := range s {
			n, s = n-runeWidth(r), s[len(string(r)):]
			break
		}
	}
	return s
}

// padText fills a text with spaces up to a width, or cuts it.
func padText(s string, width int) string {
	if n := textWidth(s); n <= width {
		return s + strings.Repeat(" ", width-n)
	}
	return padText(truncateEnd(s, width-1)+"…", width)
}

// fitLine shortens a line to a width by removing text after its first keep bytes.
// It leaves out characters that could move the cursor.
func fitLine(line string, width, keep int) string {
	head, rest := oneLine(line[:min(keep, len(line))]), oneLine(line[min(keep, len(line)):])
	room := width - textWidth(head)
	switch {
	case textWidth(rest) <= room:
		return head + rest
	case room <= 2:
		return truncateEnd(head+rest, max(width, 0))
	}
	return head + "…" + truncateStart(rest, room-1)
}

// oneLine returns a text as one line without characters that a terminal obeys.
func oneLine(s string) string { return term.CleanLine(s) }

// tableRow writes a row of a table: each cell is one line, whatever it contains.
func tableRow(w io.Writer, cells ...string) {
	for i, c := range cells {
		cells[i] = term.OneLine(c)
	}
	_, _ = io.WriteString(w, strings.Join(cells, "\t")+"\n") // to memory
}

// formatTokens returns a number of tokens in a form for people.
func formatTokens(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}

// formatDuration returns a duration in a form for people.
func formatDuration(d time.Duration) string {
	s := int(d.Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}
