package term

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"raddle.dev/internal/base/proc"
)

// CleanText returns text without anything that a terminal would obey or that changes how its other characters are
// shown. It removes whole control sequences, in their 7-bit and 8-bit forms, all control characters except line breaks
// and tabs, the controls of text direction, and invisible characters such as tags. Line breaks of any kind become "\n",
// also a lone "\r", which would let the rest of a line cover its beginning. Bytes that are not UTF-8 become U+FFFD.
// Clean(Clean(text)) equals Clean(text).
func CleanText(text string) string {
	if isClean(text) {
		return text
	}
	text = string(proc.StripEscapes([]byte(text)))
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			return '\n'
		case isHarmful(r):
			return -1
		}
		return r
	}, text)
}

// RevealText returns text for a person who decides about it: it shows what Clean would remove as an escape, such as
// \x1b or \u202e, so that nothing is hidden.
func RevealText(text string) string {
	if isClean(text) {
		return text
	}
	var b strings.Builder
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case isHarmful(r) || r == '\u2028' || r == '\u2029':
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

// CleanLine returns text as one line: cleaned as by Clean, with line breaks and tabs replaced by spaces.
func CleanLine(text string) string { return CleanText(OneLine(text)) }

// OneLine returns text with line breaks of any kind and tabs replaced by spaces, for a row of a table. It changes
// nothing else.
func OneLine(text string) string {
	if !strings.ContainsAny(text, lineBreaks) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(lineBreaks, r) {
			return ' '
		}
		return r
	}, strings.ReplaceAll(text, "\r\n", "\n"))
}

const lineBreaks = "\n\t\r\v\f\u0085\u2028\u2029"

// QuoteName returns the name of a file, or any other name, for a terminal: unchanged if it is one clean line, otherwise
// as a quoted string with escapes, so that the reader sees which name it is.
func QuoteName(name string) string {
	if isClean(name) && !strings.ContainsAny(name, "\n\t") {
		return name
	}
	return RevealText(strconv.Quote(name))
}

func isClean(text string) bool {
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' || isHarmful(r) {
			return false
		}
		i += n
	}
	return true
}

// isHarmful reports whether a character from outside must not reach a terminal.
func isHarmful(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	case r < 0xAD:
		return false
	case r >= 0xE0100 && r <= 0xE01EF: // variation selectors that can only carry hidden data here
		return true
	}
	return unicode.Is(unicode.Cf, r) && !unicode.In(r, visibleFormat)
}

// visibleFormat holds the characters of category Cf that are visible, or that writing needs: the soft hyphen, signs
// before Arabic and Syriac numbers, and the joiners that Persian, the languages of India and emoji are written with.
var visibleFormat = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00AD, Hi: 0x00AD, Stride: 1},
		{Lo: 0x0600, Hi: 0x0605, Stride: 1},
		{Lo: 0x06DD, Hi: 0x070F, Stride: 0x070F - 0x06DD},
		{Lo: 0x0890, Hi: 0x0891, Stride: 1},
		{Lo: 0x08E2, Hi: 0x08E2, Stride: 1},
		{Lo: 0x200C, Hi: 0x200D, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x110BD, Hi: 0x110CD, Stride: 0x10},
		{Lo: 0x13430, Hi: 0x1343F, Stride: 1},
	},
	LatinOffset: 1,
}
