package strictyaml

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// An Excerpt is the line of a file that a finding is about.
type Excerpt struct {
	Line   string // without its line break
	Number int    // from 1
	From   int    // index in Line at which the finding begins
	To     int    // index at which the word at From ends; above From
}

// CutExcerpt returns the line at a position of a text. ok is false if the text has no such position, or the line is
// blank.
func CutExcerpt(text []byte, at Pos) (e Excerpt, ok bool) {
	rest := string(text)
	for n := 1; n < at.Line; n++ {
		_, after, found := strings.Cut(rest, "\n")
		if !found {
			return e, false
		}
		rest = after
	}
	if at.Line < 1 {
		return e, false
	}
	line, _, _ := strings.Cut(rest, "\n")
	e = Excerpt{Line: strings.TrimRight(line, "\r"), Number: at.Line}
	if strings.TrimSpace(e.Line) == "" {
		return e, false
	}
	for range at.Col - 1 {
		_, size := utf8.DecodeRuneInString(e.Line[e.From:])
		e.From += size
	}
	if at.Col <= 1 { // the line as a whole
		e.From = len(e.Line) - len(strings.TrimLeft(e.Line, " \t"))
	}
	e.From = min(e.From, len(e.Line))
	e.To = e.From + wordLength(e.Line[e.From:])
	return e, true
}

// wordLength returns the length of the word with which a text begins: a quoted text, or what has no space and no sign
// of YAML in it. It is at least 1.
func wordLength(text string) int {
	if text == "" {
		return 1
	}
	if quote := text[0]; quote == '"' || quote == '\'' {
		if end := strings.IndexByte(text[1:], quote); end >= 0 {
			return end + len(`""`)
		}
	}
	if strings.HasPrefix(text, "{{") {
		if end := strings.Index(text, "}}"); end >= 0 {
			return end + len("}}")
		}
	}
	end := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`,[]{}"'`, r) })
	if end < 0 {
		end = len(text)
	}
	_, first := utf8.DecodeRuneInString(text)
	return max(len(strings.TrimRight(text[:end], ":")), first)
}

// HideValue returns the excerpt with only the key that it is about, for a file whose values may be secrets. A finding
// about a value keeps its place. code is that of the finding. ok is false if the file could not be read, so that it is
// unknown what is a key.
func (e Excerpt) HideValue(code string) (hidden Excerpt, ok bool) {
	head := e.Line[:e.From]
	word := e.Line[e.From:min(e.To, len(e.Line))]
	indent := head[:len(head)-len(strings.TrimLeft(head, " \t-"))]
	const dots = "…"
	switch {
	case strings.ContainsAny(word[:min(1, len(word))], "{}[],:"):
		return Excerpt{Line: dots + word[:1] + dots, Number: e.Number, From: len(dots), To: len(dots) + 1}, true
	case strings.HasPrefix(code, "yaml-"):
		return e, false
	}
	if after := strings.TrimLeft(e.Line[min(e.To, len(e.Line)):], " "); strings.HasPrefix(after, ":") { // a key
		line := indent + word + ": " + dots
		return Excerpt{Line: line, Number: e.Number, From: len(indent), To: len(indent) + len(word)}, true
	}
	key := strings.TrimRight(head[strings.LastIndexAny(strings.TrimRight(head, " "), "{,[")+1:], " ")
	if !strings.HasSuffix(key, ":") {
		key = indent
	} else {
		key = indent + strings.TrimLeft(key, " \t-") + " "
	}
	return Excerpt{Line: key + dots, Number: e.Number, From: len(key), To: len(key) + len(dots)}, true
}
