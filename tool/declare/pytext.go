package declare

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// A scanner splits source into statements of one logical line each, without
// understanding them: it knows strings, comments, brackets and indentation.
type scanner struct {
	src     string
	at      int
	line    int
	comment string
}

// A statement is one logical line.
type statement struct {
	text     string // without indentation
	indent   int    // bytes of white space before it
	line     int    // where it begins, from 1
	comments []string
	end      bool // there is nothing more
}

// nextStatement returns the next logical line and the comments directly above it.
func (sc *scanner) nextStatement() (st statement, complaint string) {
	for sc.at < len(sc.src) {
		start := sc.at
		for sc.at < len(sc.src) && strings.IndexByte(" \t\f\r", sc.src[sc.at]) >= 0 {
			sc.at++
		}
		indent := sc.at - start
		switch {
		case sc.at == len(sc.src):
		case sc.src[sc.at] == '\n':
			sc.at++
			sc.line++
			st.comments = nil
		case sc.src[sc.at] == '#':
			end := lineEnd(sc.src, sc.at)
			if indent == 0 {
				st.comments = append(st.comments, strings.TrimRight(sc.src[sc.at:end], "\r"))
			}
			sc.at = end
			if end < len(sc.src) {
				sc.at = end + 1
				sc.line = sc.line + 1
			}
		default:
			st.indent = indent
			st.line = sc.line
			st.text, complaint = sc.readLogicalLine()
			return st, complaint
		}
	}
	st.end = true
	return st, ""
}

// readLogicalLine reads up to the line break that ends a statement.
func (sc *scanner) readLogicalLine() (text, complaint string) {
	start := sc.at
	first := sc.line
	depth := 0
	for sc.at < len(sc.src) {
		switch c := sc.src[sc.at]; c {
		case '\'', '"':
			end := quoteEnd(sc.src, sc.at)
			if end < 0 {
				line := sc.line
				sc.at = len(sc.src)
				return sc.src[start:], "the text that begins in line " + strconv.Itoa(line) + " has no end"
			}
			sc.line += strings.Count(sc.src[sc.at:end], "\n")
			sc.at = end
			continue
		case '#':
			sc.at = lineEnd(sc.src, sc.at)
			continue
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case '\\':
			if sc.at+1 < len(sc.src) && sc.src[sc.at+1] == '\n' {
				sc.at++
				sc.line++
			}
		case '\n':
			sc.line++
			if depth <= 0 {
				text = sc.src[start:sc.at]
				sc.at++
				return text, ""
			}
		}
		sc.at++
	}
	sc.at = len(sc.src)
	if depth > 0 {
		return sc.src[start:], "a bracket that is open since line " + strconv.Itoa(first) + " or later is not closed"
	}
	return sc.src[start:], ""
}

// peekDocstring returns the docstring of a function whose header has just been read.
func (sc *scanner) peekDocstring(indent int) (string, bool) {
	ahead := *sc
	st, complaint := ahead.nextStatement()
	if complaint != "" || st.end || st.indent <= indent {
		return "", false
	}
	return parseDocstring(st.text)
}

// parseDocstring returns the value of a statement that is a text and nothing else.
func parseDocstring(text string) (string, bool) {
	if i := topLevel(text, 0, ';'); i >= 0 {
		text = text[:i]
	}
	var b strings.Builder
	rest := strings.TrimSpace(stripComments(text))
	whole := strings.HasPrefix(rest, "(") && closingBracket(rest, 0) == len(rest)-1
	if whole {
		rest = strings.TrimSpace(rest[1 : len(rest)-1])
	}
	if rest == "" {
		return "", false
	}
	for rest != "" {
		s, more, ok := stringLiteral(rest)
		if !ok {
			return "", false
		}
		b.WriteString(s)
		rest = strings.TrimLeft(more, " \t\r\n\\")
	}
	return b.String(), true
}

// lineEnd returns the index of the line break at or after i, or of the end.
func lineEnd(s string, i int) int {
	if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(s)
}

// quoteEnd returns the index after the text that begins with the quote at i, or -1.
func quoteEnd(s string, i int) int {
	q := s[i : i+1]
	if long := strings.Repeat(q, 3); strings.HasPrefix(s[i:], long) {
		q = long
	}
	for j := i + len(q); j < len(s); j++ {
		switch {
		case s[j] == '\\':
			j++
		case s[j] == '\n' && len(q) == 1:
			return -1
		case strings.HasPrefix(s[j:], q):
			return j + len(q)
		}
	}
	return -1
}

// closingBracket returns the index of the bracket that closes the one at open, or -1.
func closingBracket(s string, open int) int {
	return findOutside(s, open+1, func(c byte) bool { return strings.IndexByte(")]}", c) >= 0 })
}

// topLevel returns the index of the byte outside brackets, texts and comments at or
// after from, or -1.
func topLevel(s string, from int, b byte) int {
	return findOutside(s, from, func(c byte) bool { return c == b })
}

// findOutside returns the index of the first byte at or after from that is outside brackets,
// texts and comments and that matches, or -1.
func findOutside(s string, from int, matches func(c byte) bool) int {
	for i := from; i < len(s); i++ {
		if matches(s[i]) {
			return i
		}
		switch s[i] {
		case '(', '[', '{':
			end := closingBracket(s, i)
			if end < 0 {
				return -1
			}
			i = end
		case '#':
			i = lineEnd(s, i) - 1
		case '\'', '"':
			end := quoteEnd(s, i)
			if end < 0 {
				return -1
			}
			i = end - 1
		}
	}
	return -1
}

// splitTop splits at a byte that stands outside brackets and texts.
func splitTop(s string, sep byte) []string { return splitAt(s, sep, topLevel) }

// splitAt splits at each byte that a function finds.
func splitAt(s string, sep byte, find func(s string, from int, b byte) int) []string {
	var parts []string
	for {
		i := find(s, 0, sep)
		if i < 0 {
			return append(parts, s)
		}
		parts = append(parts, s[:i])
		s = s[i+1:]
	}
}

// stripComments removes comments that are outside of texts.
func stripComments(s string) string {
	if strings.IndexByte(s, '#') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		switch s[i] {
		case '#':
			i = lineEnd(s, i)
		case '\'', '"':
			end := quoteEnd(s, i)
			if end < 0 {
				end = len(s)
			}
			b.WriteString(s[i:end])
			i = end
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return b.String()
}

// stringLiteral reads one Python text that s begins with. Bytes and formatted
// texts are none.
func stringLiteral(s string) (value, rest string, ok bool) {
	n := 0
	for n < len(s) && n < 2 && strings.IndexByte("rRuU", s[n]) >= 0 {
		n++
	}
	if n == len(s) || s[n] != '\'' && s[n] != '"' {
		return "", s, false
	}
	raw := strings.ContainsAny(s[:n], "rR")
	end := quoteEnd(s, n)
	if end < 0 {
		return "", s, false
	}
	width := 1
	if strings.HasPrefix(s[n:], strings.Repeat(s[n:n+1], 3)) && end-n >= 6 {
		width = 3
	}
	value = strings.ReplaceAll(s[n+width:end-width], "\r\n", "\n")
	if !raw {
		value = unescapePython(value)
	}
	return value, s[end:], true
}

// unescapePython replaces Python's escapes. What is none stays as it is.
func unescapePython(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if plain := strings.IndexByte("\\'\"abfnrtv", s[i]); plain >= 0 {
			b.WriteByte("\\'\"\a\b\f\n\r\t\v"[plain])
			continue
		}
		digits := 0
		base := 16
		switch c := s[i]; {
		case c == '\n':
			continue
		case c == 'x':
			digits = 2
		case c == 'u':
			digits = 4
		case c == 'U':
			digits = 8
		case c >= '0' && c <= '7':
			base = 8
			for digits < 3 && i+digits < len(s) && s[i+digits] >= '0' && s[i+digits] <= '7' {
				digits++
			}
			i--
		}
		var code uint64 = utf8.MaxRune + 1
		if digits > 0 && i+1+digits <= len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+1+digits], base, 32); err == nil {
				code = v
			}
		}
		if code > utf8.MaxRune {
			if base == 8 {
				i++
			}
			b.WriteByte('\\')
			b.WriteByte(s[i])
			continue
		}
		b.WriteRune(rune(code))
		i += digits
	}
	return b.String()
}
