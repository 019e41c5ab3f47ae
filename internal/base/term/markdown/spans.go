package markdown

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"raddle.dev/internal/base/term"
)

// A span is text in one style. A line break in it is kept.
type span struct {
	text  string
	style term.Style
	link  string // an address; empty: the text is no link
}

func (s span) withText(text string) span {
	s.text = text
	return s
}

// withStyle returns the span with a further style.
func (s span) withStyle(style term.Style) span {
	switch {
	case s.style == "":
		s.style = style
	case style != "":
		s.style += ";" + style
	}
	return s
}

func (s span) paint() string {
	painted := s.text
	if s.style != "" {
		painted = term.PaintText(s.style, painted)
	}
	if s.link != "" {
		painted = term.LinkText(s.link, painted)
	}
	return painted
}

func plainSpans(text string) []span { return []span{{text: text}} }

func joinTexts(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.text)
	}
	return b.String()
}

// wrapSpans returns the lines of a text. No line is wider than width; a word that is wider is divided.
func wrapSpans(spans []span, width int) []string {
	var lines []string
	for _, line := range wrapLines(spans, width) {
		var b strings.Builder
		for _, s := range line {
			b.WriteString(s.paint())
		}
		lines = append(lines, b.String())
	}
	return lines
}

// wrapLines is like wrapSpans, and returns spans.
func wrapLines(spans []span, width int) [][]span {
	w := wrapper{width: width}
	for _, s := range spans {
		for i, part := range strings.Split(s.text, "\n") {
			if i > 0 {
				w.endWord()
				w.endLine()
			}
			w.addText(s.withText(part))
		}
	}
	w.endWord()
	if len(w.line) > 0 || len(w.lines) == 0 {
		w.endLine()
	}
	return w.lines
}

// A wrapper collects words into lines.
type wrapper struct {
	width   int
	lines   [][]span
	line    []span
	columns int // of line
	word    []span
	letters int  // columns of word
	space   span // between line and word; empty: there is none
}

func (w *wrapper) addText(s span) {
	for s.text != "" {
		end := strings.IndexAny(s.text, " \t")
		if end == 0 {
			w.endWord()
			s.text = strings.TrimLeft(s.text, " \t")
			w.space = s.withText(" ")
			continue
		}
		if end < 0 {
			end = len(s.text)
		}
		w.addLetters(s.withText(s.text[:end]))
		s.text = s.text[end:]
	}
}

// addLetters adds a part of a word, and divides the word where it is wider than a line.
func (w *wrapper) addLetters(s span) {
	for {
		head := term.CutEnd(s.text, w.width-w.letters)
		if head == "" && len(w.word) == 0 { // a character that is wider than the line
			head, _ = ansi.FirstGraphemeCluster(s.text, ansi.GraphemeWidth)
		}
		if head != "" {
			w.word, w.letters = append(w.word, s.withText(head)), w.letters+term.TextWidth(head)
		}
		if s.text = s.text[len(head):]; s.text == "" {
			return
		}
		w.endWord()
		w.endLine()
	}
}

// endWord puts the word into the line, or into a new one if there is no room.
func (w *wrapper) endWord() {
	if len(w.word) == 0 {
		return
	}
	gap := term.TextWidth(w.space.text)
	switch {
	case len(w.line) == 0:
	case w.columns+gap+w.letters > w.width:
		w.endLine()
	case gap > 0:
		w.line = append(w.line, w.space)
		w.columns = w.columns + gap
	}
	w.line = append(w.line, w.word...)
	w.columns = w.columns + w.letters
	w.word = nil
	w.letters = 0
	w.space = span{}
}

func (w *wrapper) endLine() {
	w.lines = append(w.lines, w.line)
	w.line = nil
	w.columns = 0
	w.space = span{}
}
