package term

// Colors says whether a stream gets colours.
type Colors bool

// Paint returns text in a style if the stream gets colours, otherwise text.
func (c Colors) Paint(style Style, text string) string {
	if !c {
		return text
	}
	return PaintText(style, text)
}

// WantsColors decides about the colours of a stream: flag first, which is "auto", "always" or "never", then NO_COLOR,
// then the variables that force colours, then whether the stream is a terminal that supports them.
func WantsColors(flag string, terminal bool, getenv func(string) string) Colors {
	switch {
	case flag == "always":
		return true
	case flag == "never" || getenv("NO_COLOR") != "":
		return false
	case isForced(getenv("CLICOLOR_FORCE")) || isForced(getenv("FORCE_COLOR")):
		return true
	}
	return Colors(terminal && getenv("TERM") != "dumb")
}

func isForced(v string) bool { return v != "" && v != "0" && v != "false" }
