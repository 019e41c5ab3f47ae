package pdftext

import (
	"bytes"
	"strconv"
)

// An operandKind is the type of an operand.
type operandKind uint8

const (
	numberOperand operandKind = iota
	stringOperand
	nameOperand
	arrayOperand
	otherOperand // a dictionary, true, false or null: its value is not kept
)

// An operand is a value before an operator.
type operand struct {
	kind   operandKind
	number float64
	text   string    // of a string or a name
	list   []operand // of an array
}

// maxOperands is how many operands of one operator are kept. Tables of characters have 300 at most, pages fewer.
const maxOperands = 1024

// maxItems is how many items of an array are kept.
const maxItems = 1 << 16

// A lexer divides a content stream, or a table of characters, into operators and their operands. It reads broken input
// to its end without an error: it skips the parts that it cannot read.
type lexer struct {
	data []byte
	at   int
}

// readOperators calls do for each operator. The operands are only valid during the call. It stops at an error of do.
func readOperators(data []byte, do func(operator string, args []operand) error) error {
	l := lexer{data: data}
	var args []operand
	for {
		value, operator, ok := l.nextToken()
		switch {
		case !ok:
			return nil
		case operator == "ID":
			l.skipPicture()
			args = args[:0]
		case operator != "":
			if err := do(operator, args); err != nil {
				return err
			}
			args = args[:0]
		case len(args) < maxOperands:
			args = append(args, value)
		}
	}
}

// nextToken returns a value or an operator. ok is false at the end.
func (l *lexer) nextToken() (value operand, operator string, ok bool) {
	for {
		l.skipSpace()
		if l.at >= len(l.data) {
			return operand{}, "", false
		}
		c := l.data[l.at]
		l.at++
		switch c {
		case '(':
			return operand{kind: stringOperand, text: l.readLiteral()}, "", true
		case '<':
			if l.at < len(l.data) && l.data[l.at] == '<' {
				l.at++
				l.skipDictionary()
				return operand{kind: otherOperand}, "", true
			}
			return operand{kind: stringOperand, text: l.readHexString()}, "", true
		case '/':
			return operand{kind: nameOperand, text: l.readName()}, "", true
		case '[':
			return operand{kind: arrayOperand, list: l.readArray()}, "", true
		case ']', ')', '>', '{', '}':
			continue
		}
		l.at--
		value, operator = parseWord(l.readWord())
		return value, operator, true
	}
}

func parseWord(word string) (operand, string) {
	switch c := word[0]; {
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.':
		number, err := strconv.ParseFloat(word, 64)
		if err != nil {
			number = 0 // such as "--5" or "1-2", which some programs write
		}
		return operand{kind: numberOperand, number: number}, ""
	case word == "true", word == "false", word == "null":
		return operand{kind: otherOperand}, ""
	}
	return operand{}, word
}

// readArray reads to the closing bracket. Arrays inside it and operators are left out.
func (l *lexer) readArray() []operand {
	var list []operand
	depth := 1
	for depth > 0 {
		l.skipSpace()
		if l.at >= len(l.data) {
			break
		}
		switch l.data[l.at] {
		case ']':
			l.at++
			depth--
			continue
		case '[':
			l.at++
			depth++
			continue
		}
		value, operator, ok := l.nextToken()
		if !ok {
			break
		}
		if operator == "" && depth == 1 && len(list) < maxItems {
			list = append(list, value)
		}
	}
	return list
}

// skipDictionary skips to the end of a dictionary whose beginning has been read.
func (l *lexer) skipDictionary() {
	for depth := 1; depth > 0 && l.at < len(l.data); {
		switch c := l.data[l.at]; {
		case c == '(':
			l.at++
			l.readLiteral()
		case c == '%':
			l.skipSpace()
		case bytes.HasPrefix(l.data[l.at:], []byte("<<")):
			l.at += 2
			depth++
		case bytes.HasPrefix(l.data[l.at:], []byte(">>")):
			l.at += 2
			depth--
		default:
			l.at++
		}
	}
}

// skipPicture skips the bytes of a picture between ID and EI.
func (l *lexer) skipPicture() {
	for i := l.at; ; i++ {
		n := bytes.Index(l.data[min(i, len(l.data)):], []byte("EI"))
		if n < 0 {
			l.at = len(l.data)
			return
		}
		i += n
		if i > 0 && isSpace(l.data[i-1]) && (i+2 == len(l.data) || isSpace(l.data[i+2])) {
			l.at = i + 2
			return
		}
	}
}

func (l *lexer) skipSpace() {
	for l.at < len(l.data) {
		switch c := l.data[l.at]; {
		case isSpace(c):
			l.at++
		case c == '%':
			for l.at < len(l.data) && l.data[l.at] != '\n' && l.data[l.at] != '\r' {
				l.at++
			}
		default:
			return
		}
	}
}

// readLiteral reads a string whose opening parenthesis has been read.
func (l *lexer) readLiteral() string {
	var b []byte
	for depth := 1; l.at < len(l.data); {
		c := l.data[l.at]
		l.at++
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return string(b)
			}
		case '\\':
			b = l.readEscape(b)
			continue
		}
		b = append(b, c)
	}
	return string(b)
}

var escapes = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'f': '\f'}

// readEscape appends the characters that the bytes after a backslash mean.
func (l *lexer) readEscape(b []byte) []byte {
	if l.at >= len(l.data) {
		return b
	}
	c := l.data[l.at]
	l.at++
	switch {
	case c >= '0' && c <= '7':
		code := int(c - '0')
		for n := 0; n < 2 && l.at < len(l.data) && l.data[l.at] >= '0' && l.data[l.at] <= '7'; n++ {
			code = code*8 + int(l.data[l.at]-'0')
			l.at++
		}
		return append(b, byte(code))
	case c == '\r':
		if l.at < len(l.data) && l.data[l.at] == '\n' {
			l.at++
		}
		return b
	case c == '\n':
		return b
	case escapes[c] != 0:
		return append(b, escapes[c])
	}
	return append(b, c)
}

// readHexString reads a string whose opening sign has been read.
func (l *lexer) readHexString() string {
	var b []byte
	half := 0
	digits := 0
	for l.at < len(l.data) {
		c := l.data[l.at]
		l.at++
		if c == '>' {
			break
		}
		digit := hexDigit(c)
		if digit < 0 {
			continue
		}
		half = half<<4 | digit
		if digits++; digits%2 == 0 {
			b = append(b, byte(half))
			half = 0
		}
	}
	if digits%2 == 1 {
		b = append(b, byte(half<<4))
	}
	return string(b)
}

func (l *lexer) readName() string {
	start := l.at
	for l.at < len(l.data) && !isSpace(l.data[l.at]) && !isDelimiter(l.data[l.at]) {
		l.at++
	}
	raw := l.data[start:l.at]
	if bytes.IndexByte(raw, '#') < 0 {
		return string(raw)
	}
	var b []byte
	for i := 0; i < len(raw); i++ {
		if raw[i] == '#' && i+2 < len(raw) && hexDigit(raw[i+1]) >= 0 && hexDigit(raw[i+2]) >= 0 {
			b = append(b, byte(hexDigit(raw[i+1])<<4|hexDigit(raw[i+2])))
			i += 2
			continue
		}
		b = append(b, raw[i])
	}
	return string(b)
}

// readWord reads at least one byte.
func (l *lexer) readWord() string {
	start := l.at
	for l.at++; l.at < len(l.data) && !isSpace(l.data[l.at]) && !isDelimiter(l.data[l.at]); {
		l.at++
	}
	return string(l.data[start:l.at])
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func isDelimiter(c byte) bool { return bytes.IndexByte([]byte("()<>[]{}/%"), c) >= 0 }

func hexDigit(c byte) int {
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
