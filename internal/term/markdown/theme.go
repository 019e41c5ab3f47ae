package markdown

import "raddle.dev/internal/term"

// A Theme is the look of Markdown. The zero value has no styles.
type Theme struct {
	Heading, Title               term.Style // Title is for headings of the first level
	Emphasis, Strong, Deleted    term.Style
	Code, Link                   term.Style // Code is for code in a line
	Marker, Quote, Rule          term.Style // Marker is for the bullets and numbers of lists
	Keyword, Text, Comment, Name term.Style // of code; Text is for texts and numbers in it, Name for keys and other names
	Added, Removed, Hunk         term.Style // of diffs
}

// Default uses the terminal's own colours, and only those that are legible on dark and on light backgrounds.
var Default = Theme{
	Heading: "1;36", Title: "1;4;36", Emphasis: "3", Strong: "1", Deleted: "9", Code: "35", Link: "4;36", Marker: "36", Quote: "2", Rule: "2",
	Keyword: "35", Text: "32", Comment: "2;3", Name: "36", Added: "32", Removed: "31", Hunk: "36",
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
