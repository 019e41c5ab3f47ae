package redact

import (
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A view is a text after the escapes of one kind are resolved. It knows which
// bytes of the original each of its bytes comes from.
type view struct {
	of   *view // the view whose escapes it resolves; nil: the original text
	text string
	cuts []resolvedEscape // the resolved escapes, in order
	// offset of an incomplete escape at the end, which may mean something else when more text follows
	tail int
}

// A resolvedEscape is one resolved escape.
type resolvedEscape struct{ at, n, src, srcLen int }

// A decoder resolves one kind of escape.
type decoder struct {
	begins string // the bytes that can begin an escape
	// decode resolves the escape at the beginning of s: its first n bytes mean value. n is 0
	// if there is no escape, and -1 if s is an incomplete one.
	decode func(s string) (value string, n int)
}

var decoders = struct{ backslash, quotes, percent, entity decoder }{
	decoder{`\`, decodeBackslash}, decoder{`'`, decodeQuotes}, decoder{`%`, decodePercent}, decoder{`&`, decodeEntity},
}

// resolveView returns the view of v that a decoder produces, or nil if v holds none of
// its escapes and does not end in an incomplete one.
func (d *decoder) resolveView(v *view) *view {
	first := strings.IndexByte(v.text, d.begins[0])
	if first < 0 {
		return nil
	}
	w := &view{of: v}
	rest := v.tail
	var b strings.Builder
	copied := 0
	for at := first; at < len(v.text); {
		value, n := d.decode(v.text[at:])
		if n < 0 {
			rest = min(rest, at)
		}
		if n > 0 {
			if w.cuts == nil {
				b.Grow(len(v.text))
			}
			b.WriteString(v.text[copied:at])
			w.cuts = append(w.cuts, resolvedEscape{at: b.Len(), n: len(value), src: at, srcLen: n})
			b.WriteString(value)
			copied = at + n
			at = copied
		} else {
			at++
		}
		skip := strings.IndexByte(v.text[at:], d.begins[0])
		if skip < 0 {
			break
		}
		at += skip
	}
	if w.cuts == nil && rest == v.tail {
		return nil
	}
	b.WriteString(v.text[copied:])
	w.text = b.String()
	w.tail = w.fromSource(rest)
	return w
}

// originSpan returns the span of the original that a span of the view comes from.
func (v *view) originSpan(s span) span {
	for ; v.of != nil; v = v.of {
		s = span{v.sourceStart(s.from), v.sourceEnd(s.to)}
	}
	return s
}

// sourceStart maps the offset of a byte to the text that v resolves: to the beginning
// of its escape, if it comes from one.
func (v *view) sourceStart(at int) int {
	i := sort.Search(len(v.cuts), func(i int) bool { return v.cuts[i].at > at }) - 1
	if i < 0 {
		return at
	}
	c := v.cuts[i]
	if at < c.at+c.n {
		return c.src
	}
	return c.src + c.srcLen + at - c.at - c.n
}

// sourceEnd maps the offset after a byte to the text that v resolves.
func (v *view) sourceEnd(at int) int {
	if at == 0 {
		return 0
	}
	i := sort.Search(len(v.cuts), func(i int) bool { return v.cuts[i].at > at-1 }) - 1
	if i < 0 {
		return at
	}
	c := v.cuts[i]
	if at <= c.at+c.n {
		return c.src + c.srcLen
	}
	return c.src + c.srcLen + at - c.at - c.n
}

// escapeBoundary moves an offset of the original back until it is not inside an
// escape of v or of the views below it.
func (v *view) escapeBoundary(at int) int {
	if v.of == nil {
		return at
	}
	at = v.of.escapeBoundary(at)
	below := v.of.fromOriginal(at)
	i := sort.Search(len(v.cuts), func(i int) bool { return v.cuts[i].src >= below }) - 1
	if i < 0 || below >= v.cuts[i].src+v.cuts[i].srcLen {
		return at
	}
	return v.of.originSpan(span{v.cuts[i].src, v.cuts[i].src}).from
}

// fromOriginal maps an offset of the original that is not inside an escape to the view.
func (v *view) fromOriginal(at int) int {
	if v.of == nil {
		return at
	}
	return v.fromSource(v.of.fromOriginal(at))
}

// fromSource maps an offset of the text that v resolves to v: to the beginning of the
// escape that contains it, if there is one.
func (v *view) fromSource(at int) int {
	i := sort.Search(len(v.cuts), func(i int) bool { return v.cuts[i].src >= at }) - 1
	if i < 0 {
		return at
	}
	c := v.cuts[i]
	if at < c.src+c.srcLen {
		return c.at
	}
	return c.at + c.n + at - c.src - c.srcLen
}

// buildViews returns the original text and every other way to read it.
func buildViews(text string) []*view {
	const nested = 3 // JSON inside JSON inside JSON
	plain := &view{text: text, tail: len(text)}
	all := []*view{plain}
	for range nested {
		next := decoders.backslash.resolveView(all[len(all)-1])
		if next == nil {
			break
		}
		all = append(all, next)
	}
	for _, v := range all {
		for _, d := range []*decoder{&decoders.quotes, &decoders.percent, &decoders.entity} {
			if w := d.resolveView(v); w != nil {
				all = append(all, w)
			}
		}
	}
	return all
}

// simpleEscapes are the letters whose meaning a backslash changes.
var simpleEscapes = map[byte]string{'n': "\n", 'r': "\r", 't': "\t", 'b': "\b", 'f': "\f", 'v': "\v", 'a': "\a", 'e': "\x1b", 'E': "\x1b"}

// decodeBackslash resolves the escapes of JSON, Go, C and shells.
func decodeBackslash(s string) (string, int) {
	if len(s) < 2 {
		return "", -1
	}
	switch c := s[1]; {
	case simpleEscapes[c] != "":
		return simpleEscapes[c], 2
	case c == 'u':
		return decodeUnicode(s)
	case c == 'U':
		return decodeNumber(s, 2, 8, 16, utf8Text)
	case c == 'x':
		return decodeNumber(s, 2, 2, 16, byteText)
	case c >= '0' && c <= '3':
		return decodeNumber(s, 1, 3, 8, byteText)
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '4' && c <= '9', c >= utf8.RuneSelf, c == '\n':
		return "", 0
	}
	return s[1:2], 2
}

func utf8Text(n rune) string { return string(n) }
func byteText(n rune) string { return string([]byte{byte(n)}) }

// decodeNumber resolves an escape with the given number of digits from an offset.
func decodeNumber(s string, from, digits, base int, text func(rune) string) (string, int) {
	n := rune(0)
	for i := from; i < from+digits; i++ {
		if i >= len(s) {
			return "", -1
		}
		d := parseHexDigit(s[i])
		if d < 0 || d >= base {
			return "", 0
		}
		n = n*rune(base) + rune(d)
	}
	return text(n), from + digits
}

func parseHexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// decodeUnicode resolves \uXXXX, and a pair of them that is one character.
func decodeUnicode(s string) (string, int) {
	const one = len(`\u0000`)
	var unit rune
	_, n := decodeNumber(s, 2, 4, 16, func(r rune) string { unit = r; return "" })
	if n <= 0 || !utf16.IsSurrogate(unit) {
		return string(unit), n
	}
	if rest := s[one:]; len(rest) < one && strings.HasPrefix(`\u`, rest[:min(2, len(rest))]) {
		return "", -1
	} else if !strings.HasPrefix(rest, `\u`) {
		return string(utf8.RuneError), one
	}
	var low rune
	if _, n := decodeNumber(s[one:], 2, 4, 16, func(r rune) string { low = r; return "" }); n <= 0 {
		return string(utf8.RuneError), one
	}
	if r := utf16.DecodeRune(unit, low); r != utf8.RuneError {
		return string(r), 2 * one
	}
	return string(utf8.RuneError), one
}

// decodeQuotes resolves a quote inside single quotes, as shells write it.
func decodeQuotes(s string) (string, int) {
	for _, form := range []string{`'\''`, `'"'"'`} {
		if strings.HasPrefix(s, form) {
			return "'", len(form)
		}
		if strings.HasPrefix(form, s) {
			return "", -1
		}
	}
	return "", 0
}

// decodePercent resolves the escapes of URLs.
func decodePercent(s string) (string, int) {
	return decodeNumber(s, 1, 2, 16, byteText)
}

// entities are the names of the characters that HTML and XML writers escape.
var entities = map[string]string{"lt": "<", "gt": ">", "amp": "&", "quot": `"`, "apos": "'", "nbsp": "\u00a0"}

// decodeEntity resolves the escapes of HTML and XML.
func decodeEntity(s string) (string, int) {
	const longest = len("&#x10ffff;")
	end := strings.IndexByte(s[:min(len(s), longest)], ';')
	if end < 0 {
		if len(s) < longest && !strings.ContainsAny(s[1:], " \n<>&\"'") {
			return "", -1
		}
		return "", 0
	}
	name := s[1:end]
	if value, ok := entities[name]; ok {
		return value, end + 1
	}
	number, ok := strings.CutPrefix(name, "#")
	base := 10
	if strings.HasPrefix(number, "x") || strings.HasPrefix(number, "X") {
		number = number[1:]
		base = 16
	}
	if !ok || number == "" {
		return "", 0
	}
	value, n := decodeNumber(number, 0, len(number), base, utf8Text)
	if n <= 0 {
		return "", 0
	}
	return value, end + 1
}
