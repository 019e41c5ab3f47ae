package jsonvalue

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Append appends the compact JSON text of a state value: members in order,
// only the escapes that JSON requires, floats always with a fraction or an
// exponent (3.0, 1e21), integers without. A float that is not a finite number
// becomes null, and bytes that are not UTF-8 become U+FFFD, because JSON has
// neither. It fails only for a Go type that is not a state value.
func Append(dst []byte, v any) ([]byte, error) {
	switch x := v.(type) {
	case []any:
		return appendArray(dst, x)
	case *Object:
		return appendObject(dst, x)
	}
	return appendScalar(dst, v)
}

// Compact returns the text of Append as a string. A value that is not a
// state value becomes null.
func Compact(v any) string {
	text, err := Append(nil, v)
	if err != nil {
		return "null"
	}
	return string(text)
}

// Pretty returns the JSON text of a state value on several lines, indented by
// two spaces. Empty arrays and objects stay on one line.
func Pretty(v any) string {
	return string(appendPretty(nil, v, 0))
}

func appendArray(dst []byte, list []any) ([]byte, error) {
	var err error
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = Append(dst, v); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func appendObject(dst []byte, o *Object) ([]byte, error) {
	if o == nil {
		return append(dst, "{}"...), nil
	}
	var err error
	dst = append(dst, '{')
	for i := range o.Members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, o.Members[i].Key), ':')
		if dst, err = Append(dst, o.Members[i].Value); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func appendScalar(dst []byte, v any) ([]byte, error) {
	switch x := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, x), nil
	case string:
		return AppendString(dst, x), nil
	case int64:
		return strconv.AppendInt(dst, x, 10), nil
	case uint64:
		return strconv.AppendUint(dst, x, 10), nil
	case float64:
		return AppendFloat(dst, x), nil
	}
	return dst, fmt.Errorf("a Go value of type %T is not a state value: it must be nil, bool, string, int64, uint64, float64, []any or *jsonvalue.Object", v)
}

func appendPretty(dst []byte, v any, depth int) []byte {
	switch x := v.(type) {
	case []any:
		if len(x) == 0 {
			return append(dst, "[]"...)
		}
		for i, item := range x {
			dst = appendLine(dst, "[,"[min(i, 1)], depth+1)
			dst = appendPretty(dst, item, depth+1)
		}
		return append(appendBreak(dst, depth), ']')
	case *Object:
		if x.Len() == 0 {
			return append(dst, "{}"...)
		}
		for i := range x.Members {
			dst = appendLine(dst, "{,"[min(i, 1)], depth+1)
			dst = append(AppendString(dst, x.Members[i].Key), ": "...)
			dst = appendPretty(dst, x.Members[i].Value, depth+1)
		}
		return append(appendBreak(dst, depth), '}')
	}
	out, err := appendScalar(dst, v)
	if err != nil {
		return append(dst, "null"...)
	}
	return out
}

// appendLine appends a character, a line break and the indentation of the next
// line.
func appendLine(dst []byte, sign byte, depth int) []byte {
	return appendBreak(append(dst, sign), depth)
}

func appendBreak(dst []byte, depth int) []byte {
	dst = append(dst, '\n')
	for range depth {
		dst = append(dst, "  "...)
	}
	return dst
}

// AppendFloat writes the shortest text that reads back as f. Between 1e-5 and
// 1e16 it has a decimal point and no exponent; outside this range it has an
// exponent without plus sign and leading zeros.
func AppendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	if a := math.Abs(f); a == 0 || a >= 1e-5 && a < 1e16 {
		start := len(dst)
		dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
		for _, c := range dst[start:] {
			if c == '.' {
				return dst
			}
		}
		return append(dst, ".0"...)
	}
	var room [32]byte
	text := strconv.AppendFloat(room[:0], f, 'e', -1, 64)
	for i, c := range text {
		if c != 'e' {
			continue
		}
		dst = append(dst, text[:i+1]...)
		if text[i+1] == '-' {
			dst = append(dst, '-')
		}
		digits := text[i+2:]
		for len(digits) > 1 && digits[0] == '0' {
			digits = digits[1:]
		}
		return append(dst, digits...)
	}
	return append(dst, text...)
}

const hexDigits = "0123456789abcdef"

// AppendString writes a quoted JSON string.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	if !utf8.ValidString(s) {
		s = toValid(s)
	}
	done := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[done:i]...)
		dst = appendEscape(dst, c)
		done = i + 1
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// toValid replaces every byte that is not part of UTF-8 text.
func toValid(s string) string {
	out := make([]byte, 0, len(s)+8)
	for _, r := range s {
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}
