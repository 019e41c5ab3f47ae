package markdown

import "raddle.dev/internal/base/term"

// A Theme is the look of Markdown. The zero value has no styles.
type Theme struct {
	Heading, Title            term.Style // Title is for headings of the first level
	Emphasis, Strong, Deleted term.Style
	Code, Link                term.Style // Code is for code in a line
	Marker, Quote, Rule       term.Style // Marker is for the bullets and numbers of lists
	// Keyword to Name are for code: Text is for texts and numbers in it, Name for keys and other names.
	Keyword, Text, Comment, Name term.Style
	Added, Removed, Hunk         term.Style // of diffs
}

// Default uses the terminal's own colours, and only those that are legible on dark and on light backgrounds.
var Default = Theme{
	Heading: "1;36", Title: "1;4;36", Emphasis: "3", Strong: "1", Deleted: "9", Code: "35", Link: "4;36", Marker: "36", Quote: "2", Rule: "2",
	Keyword: "35", Text: "32", Comment: "2;3", Name: "36", Added: "32", Removed: "31", Hunk: "36",
}

// dark is for dark backgrounds, and light for light ones. mono has no colours.
var (
	dark = Theme{
		Heading: "1;96", Title: "1;4;96", Emphasis: "3", Strong: "1", Deleted: "9", Code: "95", Link: "4;96", Marker: "96", Quote: "2", Rule: "2",
		Keyword: "95", Text: "92", Comment: "2;3", Name: "96", Added: "92", Removed: "91", Hunk: "96",
	}
	light = Theme{
		Heading: "1;34", Title: "1;4;34", Emphasis: "3", Strong: "1", Deleted: "9", Code: "35", Link: "4;34", Marker: "34", Quote: "2", Rule: "2",
		Keyword: "35", Text: "32", Comment: "2;3", Name: "34", Added: "32", Removed: "31", Hunk: "34",
	}
	mono = Theme{Heading: "1", Title: "1;4", Emphasis: "3", Strong: "1", Deleted: "9", Code: "1", Link: "4", Quote: "2", Rule: "2", Comment: "2", Hunk: "1"}
)

// FindTheme returns the theme with a name: auto, dark, light or mono. The colours of auto are legible on every
// background.
func FindTheme(name string) (t Theme, ok bool) {
	t, ok = map[string]Theme{"auto": Default, "dark": dark, "light": light, "mono": mono}[name]
	return t, ok
}

func (t *Theme) heading(level int) term.Style {
	if level == 1 {
		return t.Title
	}
	return t.Heading
}

// paintText returns a text in a style, which may be empty.
func paintText(style term.Style, text string) string {
	if style == "" {
		return text
	}
	return term.PaintText(style, text)
}
