package term

import (
	"slices"
	"strings"
)

// WrapText returns a text whose lines fit into a terminal with that many columns: they are broken between words, and the
// rest of a line begins below its words, behind its number, sign or name in a list. A word that is wider than the
// terminal has a line of its own. Lines that fit stay as they are. The text may be painted.
func WrapText(text string, width int) string {
	if width <= 0 {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if bare := strings.TrimSuffix(line, "\n"); paintedWidth(bare) > width {
			lines[i] = wrapLine(bare, width) + line[len(bare):]
		}
	}
	return strings.Join(lines, "")
}

// paintedWidth returns how many columns a painted line takes at most.
func paintedWidth(line string) int { return TextWidth(CleanLine(StripMarks(line))) }

// wrapLine is WrapText for one line that does not fit.
func wrapLine(line string, width int) string {
	indent := strings.Repeat(" ", findIndent(CleanLine(StripMarks(line)), width))
	var b strings.Builder
	used := 0 // columns of the current line
	for line != "" {
		words := strings.TrimLeft(line, " ")
		gap := line[:len(line)-len(words)]
		word, rest := cutWord(words)
		line = rest
		columns := paintedWidth(word)
		switch {
		case word == "":
			return b.String() // blanks at the end
		case b.Len() == 0:
			gap = gap[:min(len(gap), max(0, width-columns))]
			b.WriteString(gap + word)
			used = len(gap) + columns
		case used+len(gap)+columns <= width:
			b.WriteString(gap + word)
			used += len(gap) + columns
		default:
			begin := indent[:min(len(indent), max(0, width-columns))]
			b.WriteString("\n" + begin + word)
			used = len(begin) + columns
		}
	}
	return b.String()
}

// cutWord cuts the first word from a text that begins with one. A mark of a style is a part of its word.
func cutWord(text string) (word, rest string) {
	at := 0
	for at < len(text) && text[at] != ' ' {
		if strings.HasPrefix(text[at:], markBegin) {
			if end := strings.IndexByte(text[at:], markEnd); end > 0 {
				at += end + 1
				continue
			}
		}
		at++
	}
	return text[:at], text[at:]
}

// signs are the words at which an item of a list begins.
var signs = []string{"-", "*", "•", "●", "▸", "✓", "✗", "✕", "!", "·", "◆", "…", ">"}

// findIndent returns below which column of a line its rest continues, at most below its middle: behind its blanks, a
// sign or a number, and behind a name that several blanks follow, as in lists and tables. The rest of a line of a
// difference begins behind its + or -, so that nothing in it looks like a line of its own.
func findIndent(line string, width int) int {
	words := strings.TrimLeft(line, " ")
	indent := len(line) - len(words)
	if strings.HasPrefix(words, "+") || strings.HasPrefix(words, "-") {
		indent++
	}
	first, rest, found := strings.Cut(words, " ")
	number := strings.TrimRight(first, ".)")
	if found && (slices.Contains(signs, first) || number != first && number != "" && strings.Trim(number, "0123456789") == "") {
		words = strings.TrimLeft(rest, " ")
		indent = TextWidth(line) - TextWidth(words)
	}
	if name, _, found := strings.Cut(words, "  "); found {
		after := strings.TrimLeft(words[len(name):], " ")
		if column := TextWidth(line) - TextWidth(after); column <= width/2 {
			indent = column
		}
	}
	if indent > width/2 {
		return 0
	}
	return indent
}
