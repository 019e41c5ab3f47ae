package progress

import (
	"fmt"
	"strings"
	"time"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
)

// A Look is how what happens is shown: the characters of its marks, and how wide its lines may be. The zero Look is not
// useful.
type Look struct {
	done, failed, waits, call string
	spinner                   []string // marks of what runs; one: it does not move
	arrow, minus, dot, more   string
	open, close               string // around a text that is quoted
	full, half, empty         string // of a bar
	colors                    term.Colors
}

// frameTime is how long the spinner shows one of its marks.
const frameTime = 125 * time.Millisecond

// NewLook returns the look for a terminal with the variables of the environment: in ASCII if the terminal only prints
// lines or if the locale is not UTF-8, and without motion if NO_MOTION is set.
func NewLook(colors term.Colors, getenv func(string) string) Look {
	if isUTF8(getenv) && getenv("TERM") != "dumb" {
		l := Look{done: "✓", failed: "✗", waits: "⏸", call: "●", spinner: []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"},
			arrow: "→", minus: "−", dot: "·", more: "…", open: "“", close: "”", full: "█", empty: " ", half: "▏", colors: colors}
		if getenv("NO_MOTION") != "" {
			l.spinner = []string{"…"}
		}
		return l
	}
	return Look{done: "ok", failed: "failed", waits: "waits", call: "*", spinner: []string{".."},
		arrow: "->", minus: "-", dot: "-", more: "...", open: `"`, close: `"`, full: "#", empty: " ", half: "|", colors: colors}
}

// isUTF8 reports whether a terminal shows UTF-8: no locale is set, or one that says so.
func isUTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToUpper(getenv(name)); locale != "" {
			return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
		}
	}
	return true
}

// Done returns the mark of what has ended well.
func (l Look) Done() string { return l.colors.Paint(term.Green, l.done) }

// Dot returns what separates the parts of a line.
func (l Look) Dot() string { return " " + l.dot + " " }

// frame returns the mark of what runs.
func (l Look) frame(now time.Time) string {
	return l.spinner[int(now.UnixMilli()/frameTime.Milliseconds())%len(l.spinner)]
}

func (l Look) dim(text string) string { return l.colors.Paint(term.Dim, text) }

// quote returns a text from outside as a quotation on one line, cut at a width.
func (l Look) quote(text string, width int) string {
	text = strings.Join(strings.Fields(term.CleanLine(text)), " ")
	if text == "" || width < len(l.more)+3 {
		return ""
	}
	if room := width - term.TextWidth(l.open+l.close); term.TextWidth(text) > room {
		text = term.CutEnd(text, room-term.TextWidth(l.more)) + l.more
	}
	return l.open + text + l.close
}

// cut returns a text from outside on one line, cut at a width.
func (l Look) cut(text string, width int) string {
	text = strings.TrimSpace(term.CleanLine(text))
	if term.TextWidth(text) <= width {
		return text
	}
	return term.CutEnd(text, max(0, width-term.TextWidth(l.more))) + l.more
}

// formatTook returns a duration for people: "0.4 s", "12 s", "1m05s".
func formatTook(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Truncate(time.Second).Seconds())
	}
	return wording.FormatDuration(d)
}

// formatSince returns how long something runs already, in whole seconds.
func formatSince(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return wording.FormatDuration(d)
}
