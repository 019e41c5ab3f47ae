package cli

import (
	"os"

	"raddle.dev/internal/term"
)

// These are the colours of texts, for paint.
const (
	bold   = string(term.Bold)
	dim    = string(term.Dim)
	red    = string(term.Red)
	green  = string(term.Green)
	yellow = string(term.Yellow)
	cyan   = string(term.Cyan)
)

// paint colours a text if colours are on.
func (t *terminal) paint(color, s string) string { return paint(t.colors, color, s) }

func paint(on bool, color, s string) string {
	if !on {
		return s
	}
	return term.Paint(term.Style(color), s)
}

// colors applies --color and the environment to standard error.
func (sh *shell) colors() error {
	switch sh.color {
	case "auto", "always", "never":
	default:
		return badUsage("use auto, always or never", "--color: %q is unknown", sh.color)
	}
	sh.err.colors = colorful(sh.color, sh.err.IsTerminal(), os.Getenv)
	return nil
}

// outColors reports whether results may be coloured.
func (sh *shell) outColors() bool { return colorful(sh.color, sh.out.IsTerminal(), os.Getenv) }

// colorful decides about colours on a stream: --color first, then NO_COLOR, then
// the variables that force them, then whether the stream is a terminal that supports
// them.
func colorful(flag string, terminal bool, getenv func(string) string) bool {
	switch {
	case flag == "always":
		return true
	case flag == "never" || getenv("NO_COLOR") != "":
		return false
	case forced(getenv("CLICOLOR_FORCE")) || forced(getenv("FORCE_COLOR")):
		return true
	}
	return terminal && getenv("TERM") != "dumb"
}

func forced(v string) bool { return v != "" && v != "0" && v != "false" }
