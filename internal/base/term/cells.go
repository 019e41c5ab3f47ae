package term

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// cutCharacter cuts text after its first character as a reader sees it, and returns the columns that the character
// takes. Terminals disagree about characters of several code points, such as flags: some show them as one, and others
// side by side. So the larger number counts.
func cutCharacter(text string) (character, rest string, width int) {
	character, width = ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
	return character, text[len(character):], max(width, ansi.StringWidthWc(character))
}

// TextWidth returns the number of terminal columns that a line takes at most.
func TextWidth(line string) (columns int) {
	for line != "" {
		var width int
		_, line, width = cutCharacter(line)
		columns += width
	}
	return columns
}

// CutEnd returns the beginning of a line that fits into a width.
func CutEnd(line string, width int) string {
	for rest := line; rest != ""; {
		character, after, columns := cutCharacter(rest)
		if width -= columns; width < 0 {
			return line[:len(line)-len(after)-len(character)]
		}
		rest = after
	}
	return line
}

// CutStart returns the end of a line that fits into a width.
func CutStart(line string, width int) string {
	for n := TextWidth(line); n > width && line != ""; {
		var columns int
		_, line, columns = cutCharacter(line)
		n -= columns
	}
	return line
}

// PadText fills a text with spaces up to a width, or cuts it.
func PadText(text string, width int) string {
	if n := TextWidth(text); n <= width {
		return text + strings.Repeat(" ", width-n)
	}
	return PadText(CutEnd(text, width-1)+"…", width)
}

// Fields is a list of names and values, one below the other.
type Fields struct {
	width int
	text  strings.Builder
}

// NewFields returns an empty list whose values begin after width columns and a space.
func NewFields(width int) *Fields { return &Fields{width: width} }

// AddField adds a value, which may have several lines. It leaves out an empty value.
func (f *Fields) AddField(name, value string) {
	if value = strings.TrimRight(value, "\n"); value != "" {
		value = strings.ReplaceAll(value, "\n", "\n"+strings.Repeat(" ", f.width+1))
		fmt.Fprintf(&f.text, "%-*s %s\n", f.width, name, value)
	}
}

// String returns the list, a line break after each value.
func (f *Fields) String() string { return f.text.String() }
