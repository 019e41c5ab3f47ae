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

// paintText colours a text if colours are on.
func (t *terminal) paintText(color, s string) string { return paintText(t.colors, color, s) }

func paintText(on bool, color, s string) string {
	if !on {
		return s
	}
	return term.PaintText(term.Style(color), s)
}

// applyColors applies --color and the environment to standard error.
func (env *environment) applyColors() error {
	switch env.color {
	case "auto", "always", "never":
	default:
		return badUsage("use auto, always or never", "--color: %q is unknown", env.color)
	}
	env.err.colors = wantsColor(env.color, env.err.IsTerminal(), os.Getenv)
	return nil
}

// outColors reports whether results may be coloured.
func (env *environment) outColors() bool {
	return wantsColor(env.color, env.out.IsTerminal(), os.Getenv)
}

// wantsColor decides about colours on a stream: --color first, then NO_COLOR, then
// the variables that force them, then whether the stream is a terminal that supports
// them.
func wantsColor(flag string, terminal bool, getenv func(string) string) bool {
	switch {
	case flag == "always":
		return true
	case flag == "never" || getenv("NO_COLOR") != "":
		return false
	case isForced(getenv("CLICOLOR_FORCE")) || isForced(getenv("FORCE_COLOR")):
		return true
	}
	return terminal && getenv("TERM") != "dumb"
}

func isForced(v string) bool { return v != "" && v != "0" && v != "false" }
