package cli

import "os"

// Colours, as the numbers of ANSI escapes.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// paint colours a text where colours are on.
func (t *terminal) paint(color, s string) string { return paint(t.colors, color, s) }

func paint(on bool, color, s string) string {
	if !on || s == "" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// colors applies --color and the environment to standard error.
func (sh *shell) colors() error {
	switch sh.color {
	case "auto", "always", "never":
	default:
		return badUsage("use auto, always or never", "--color: %q is unknown", sh.color)
	}
	sh.err.colors = colorful(sh.color, isTerminal(sh.err.file), os.Getenv)
	return nil
}

// outColors tells whether results may be coloured.
func (sh *shell) outColors() bool { return colorful(sh.color, sh.out.isTerminal(), os.Getenv) }

// colorful decides about colours on a stream: --color first, then NO_COLOR, then
// the variables that force them, then whether the stream is a terminal that has
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
