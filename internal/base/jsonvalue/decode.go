package jsonvalue

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// journalDepth limits the depth of values that are read back from a journal. It
// is far above maxDepth, because a value that was read can grow by one level in
// every step.
const journalDepth = 100_000

// SyntaxError says where a text is not valid JSON. Line and Column start at 1;
// columns count bytes.
type SyntaxError struct {
	Line, Column int
	Reason       string
}

// Error returns the reason and the position.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at line %d column %d", e.Reason, e.Line, e.Column)
}

// Parse reads exactly one JSON value, with white space around it. It is
// strict: no comments, no trailing commas, no lone surrogates, at most 1000
// levels. Objects keep the order of their members. If a key occurs several
// times, the last value is used at the position of the first. An integer that
// fits becomes int64 or uint64, any other number float64. The error is a
// [*SyntaxError].
func Parse(data []byte) (any, error) {
	v, _, err := parseWithin(data, MaxDepth)
	return v, err
}

// ParseStored reads what Append has written to a journal. Values in a state
// may be deeper than Parse accepts.
func ParseStored(data []byte) (any, error) {
	v, _, err := parseWithin(data, journalDepth)
	return v, err
}

// ParseRounded is Parse. rounded is the first whole number in the value that no
// integer type can represent and that therefore became a float, or "" if there
// is none.
func ParseRounded(data []byte) (v any, rounded string, err error) { return parseWithin(data, MaxDepth) }

// parseWithin reads one value of at most depth levels.
func parseWithin(data []byte, depth int) (v any, rounded string, err error) {
	p := jsonParser{data: data, room: depth}
	if v, err = p.parseValue(); err != nil {
		return nil, "", err
	}
	if p.skipSpace(); p.at < len(data) {
		return nil, "", p.syntaxError("unexpected text after the value")
	}
	return v, p.rounded, nil
}

type jsonParser struct {
	data []byte
	at   int
	room int        // levels that may still be opened
	keys [32]string // names of earlier members, which usually occur again

	rounded string // the first whole number that became a float
}

func (p *jsonParser) syntaxError(reason string) error {
	before := p.data[:min(p.at, len(p.data))]
	if p.at >= len(p.data) {
		reason = "the text ends too early: " + reason
	}
	return &SyntaxError{
		Line:   1 + bytes.Count(before, []byte{'\n'}),
		Column: len(before) - bytes.LastIndexByte(before, '\n'),
		Reason: reason,
	}
}

func (p *jsonParser) skipSpace() {
	for p.at < len(p.data) {
		switch p.data[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// peek returns the next byte that is not white space, or 0 at the end.
func (p *jsonParser) peek() byte {
	p.skipSpace()
	if p.at < len(p.data) {
		return p.data[p.at]
	}
	return 0
}

func (p *jsonParser) parseValue() (any, error) {
	switch c := p.peek(); c {
	case '{':
		return p.parseObject()
	case '[':
		return p.parseArray()
	case '"':
		return p.parseText()
	case 't':
		return p.parseWord("true", true)
	case 'f':
		return p.parseWord("false", false)
	case 'n':
		return p.parseWord("null", nil)
	default:
		if c == '-' || c >= '0' && c <= '9' {
			return p.parseNumber()
		}
		return nil, p.syntaxError("expected a value")
	}
}

func (p *jsonParser) parseWord(word string, v any) (any, error) {
	if !bytes.HasPrefix(p.data[p.at:], []byte(word)) {
		return nil, p.syntaxError("expected " + word)
	}
	p.at += len(word)
	return v, nil
}

// enterNested enters an array or object and reports whether it is empty.
func (p *jsonParser) enterNested(end byte) (empty bool, err error) {
	if p.room--; p.room < 0 {
		return false, p.syntaxError("too many nested levels")
	}
	p.at++
	if p.peek() == end {
		p.at++
		p.room++
		return true, nil
	}
	return false, nil
}

// hasMore reads the character after an element and reports whether another element
// follows.
func (p *jsonParser) hasMore(end byte) (bool, error) {
	switch p.peek() {
	case ',':
		p.at++
		return true, nil
	case end:
		p.at++
		p.room++
		return false, nil
	}
	return false, p.syntaxError("expected , or " + string(rune(end)))
}

func (p *jsonParser) parseArray() (any, error) {
	list := []any{}
	empty, err := p.enterNested(']')
	if empty || err != nil {
		return list, err
	}
	for {
		v, err := p.parseValue()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if again, err := p.hasMore(']'); !again {
			return list, err
		}
	}
}

func (p *jsonParser) parseObject() (any, error) {
	o := &Object{}
	empty, err := p.enterNested('}')
	if empty || err != nil {
		return o, err
	}
	o.Members = make([]Member, 0, 4)
	for {
		if p.peek() != '"' {
			return nil, p.syntaxError("expected a member's name in double quotes")
		}
		key, err := p.parseKey()
		if err != nil {
			return nil, err
		}
		if p.peek() != ':' {
			return nil, p.syntaxError("expected :")
		}
		p.at++
		v, err := p.parseValue()
		if err != nil {
			return nil, err
		}
		o.Set(key, v)
		if again, err := p.hasMore('}'); !again {
			return o, err
		}
	}
}

func (p *jsonParser) parseNumber() (any, error) {
	start := p.at
	whole := true
	if p.data[p.at] == '-' {
		p.at++
	}
	switch n := p.skipDigits(); {
	case n == 0:
		return nil, p.syntaxError("expected a digit")
	case n > 1 && p.data[p.at-n] == '0':
		p.at -= n - 1
		return nil, p.syntaxError("a number may not start with 0")
	}
	if p.nextIs('.') {
		whole = false
		p.at++
		if p.skipDigits() == 0 {
			return nil, p.syntaxError("expected a digit after the decimal point")
		}
	}
	if p.nextIs('e') || p.nextIs('E') {
		whole = false
		p.at++
		if p.nextIs('+') || p.nextIs('-') {
			p.at++
		}
		if p.skipDigits() == 0 {
			return nil, p.syntaxError("expected a digit in the exponent")
		}
	}
	text := string(p.data[start:p.at])
	if whole {
		if v := WholeNumber(text); v != nil {
			if f, isFloat := v.(float64); isFloat && f != 0 && p.rounded == "" {
				p.rounded = text
			}
			return v, nil
		}
	} else if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f, nil
	}
	p.at = start
	return nil, p.syntaxError("number out of range")
}

func (p *jsonParser) nextIs(c byte) bool { return p.at < len(p.data) && p.data[p.at] == c }

func (p *jsonParser) skipDigits() int {
	start := p.at
	for p.at < len(p.data) && p.data[p.at] >= '0' && p.data[p.at] <= '9' {
		p.at++
	}
	return p.at - start
}

// NegativeZero is the value of -0.0, which is a number of its own in JSON.
var NegativeZero = math.Copysign(0, -1)

// WholeNumber reads decimal digits with an optional minus sign: as an integer
// if it fits, else as a float. Minus zero is a float, because no integer
// represents it. The result is nil if the number is too large for a float.
func WholeNumber(text string) any {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		if i == 0 && text[0] == '-' {
			return NegativeZero
		}
		return i
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	return nil
}

// parseKey reads the name of a member. A plain name that occurred before is not
// copied again.
func (p *jsonParser) parseKey() (string, error) {
	rest := p.data[p.at+1:]
	end := bytes.IndexByte(rest[:min(len(rest), 64)], '"')
	if end <= 0 {
		return p.parseText()
	}
	slot := &p.keys[(int(rest[0])+int(rest[end-1])*7+end)%len(p.keys)]
	if *slot == string(rest[:end]) {
		p.at += end + 2
		return *slot, nil
	}
	key, err := p.parseText()
	if err == nil && len(key) == end {
		*slot = key
	}
	return key, err
}

func (p *jsonParser) parseText() (string, error) {
	p.at++
	start := p.at
	for p.at < len(p.data) {
		switch c := p.data[p.at]; {
		case c == '"':
			raw := p.data[start:p.at]
			if !utf8.Valid(raw) {
				return "", p.syntaxError("text that is not UTF-8")
			}
			p.at++
			return string(raw), nil
		case c == '\\':
			return p.escapedText(start)
		case c < ' ':
			return "", p.syntaxError("a control character in a string must be escaped")
		}
		p.at++
	}
	return "", p.syntaxError("expected the closing quote of a string")
}

// escapedText reads a string that contains escapes; start is the position of
// its first character.
func (p *jsonParser) escapedText(start int) (string, error) {
	out := append(make([]byte, 0, 2*(p.at-start)+16), p.data[start:p.at]...)
	for p.at < len(p.data) {
		switch c := p.data[p.at]; {
		case c == '"':
			if !utf8.Valid(out) {
				return "", p.syntaxError("text that is not UTF-8")
			}
			p.at++
			return string(out), nil
		case c == '\\':
			var err error
			if out, err = p.parseEscape(out); err != nil {
				return "", err
			}
		case c < ' ':
			return "", p.syntaxError("a control character in a string must be escaped")
		default:
			out = append(out, c)
			p.at++
		}
	}
	return "", p.syntaxError("expected the closing quote of a string")
}

func (p *jsonParser) parseEscape(out []byte) ([]byte, error) {
	p.at++
	if p.at >= len(p.data) {
		return nil, p.syntaxError("expected an escape")
	}
	c := p.data[p.at]
	if c == 'u' {
		return p.unicodeEscape(out)
	}
	for i := 0; i < len(escapes); i += 2 {
		if escapes[i] == c {
			p.at++
			return append(out, escapes[i+1]), nil
		}
	}
	return nil, p.syntaxError("unknown escape")
}

// escapes contains the letters of the short escapes, each followed by its byte.
const escapes = "\"\"\\\\//b\bf\fn\nr\rt\t"

func (p *jsonParser) unicodeEscape(out []byte) ([]byte, error) {
	r, err := p.parseHex4()
	if err != nil {
		return nil, err
	}
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(out, r), nil
	}
	if p.at+1 < len(p.data) && p.data[p.at] == '\\' && p.data[p.at+1] == 'u' {
		p.at++
		low, err := p.parseHex4()
		if err != nil {
			return nil, err
		}
		if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
			return utf8.AppendRune(out, full), nil
		}
	}
	return nil, p.syntaxError("half of a surrogate pair")
}

// parseHex4 reads the u and the four digits of an escape.
func (p *jsonParser) parseHex4() (rune, error) {
	p.at++
	if p.at+4 > len(p.data) {
		p.at = len(p.data)
		return 0, p.syntaxError("expected four hexadecimal digits")
	}
	n, err := strconv.ParseUint(string(p.data[p.at:p.at+4]), 16, 16)
	if err != nil {
		return 0, p.syntaxError("expected four hexadecimal digits")
	}
	p.at += 4
	return rune(n), nil
}
