package value

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// JSON has no way to write text that is not UTF-8: encoding/json replaces each wrong byte. A
// value with such a text is stored as JSON in which every text is escaped, after
// escapedMark, which JSON allows and no encoder writes there.
const escapedMark = '\t'

// escape begins what means a byte that is not UTF-8: it and two hexadecimal digits.
// escape and two hyphens are escape itself.
const escape = "\uf8fe"

// replacement is what encoding/json writes for bytes that are not UTF-8. A text that holds
// U+FFFD itself is written without a backslash.
var replacement = []byte(`\ufffd`)

// escapeText returns a text in which everything is UTF-8.
func escapeText(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, escape) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		_, n := utf8.DecodeRuneInString(s[i:])
		switch part := s[i : i+n]; {
		case n == 1 && s[i] >= utf8.RuneSelf:
			fmt.Fprintf(&b, "%s%02x", escape, s[i])
		case part == escape:
			b.WriteString(escape + "--")
		default:
			b.WriteString(part)
		}
		i += n
	}
	return b.String()
}

// unescapeText is the inverse of escapeText.
func unescapeText(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, escape)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		code := rest[:min(2, len(rest))]
		if wrong, err := hex.DecodeString(code); err == nil {
			b.Write(wrong)
		} else {
			b.WriteString(escape)
		}
		s = rest[len(code):]
	}
}

// keepTexts returns JSON from which the target of p is read back with all its texts. j is its
// plain JSON, which encoding/json has written.
func keepTexts(p reflect.Value, j []byte) ([]byte, error) {
	if !bytes.Contains(j, replacement) || isStable(p.Type(), j) {
		return j, nil
	}
	own := reflect.New(p.Type().Elem())
	own.Elem().Set(p.Elem())
	(&copier{deep: true, text: escapeText}).separate(own.Elem(), 0)
	escaped, err := MarshalJSON(own.Interface())
	if err != nil {
		return nil, err
	}
	if bytes.Contains(escaped, replacement) && !isStable(p.Type(), escaped) {
		return nil, fmt.Errorf("a %s holds text that is not UTF-8 where its own JSON or a text of a map key cannot keep it: convert it with strings.ToValidUTF8, or use []byte", TypeName(p.Type().Elem()))
	}
	return append([]byte{escapedMark}, escaped...), nil
}

// EncodeJSON returns the JSON of the target of a pointer, and keeps its texts.
func EncodeJSON(p any) ([]byte, error) {
	j, err := MarshalJSON(p)
	if err != nil {
		return nil, err
	}
	return keepTexts(reflect.ValueOf(p), j)
}

// DecodeJSON reads what EncodeJSON wrote into the target of a pointer.
func DecodeJSON(b []byte, p any) error {
	err := unmarshalJSON(b, p)
	if err == nil {
		restoreTexts(reflect.ValueOf(p).Elem(), b)
	}
	return err
}

// isStable reports whether JSON is the same after it was read into the target of a pointer
// of a type and written again.
func isStable(pointer reflect.Type, j []byte) bool {
	back := reflect.New(pointer.Elem())
	if unmarshalJSON(j, back.Interface()) != nil {
		return false
	}
	again, err := MarshalJSON(back.Interface())
	return err == nil && bytes.Equal(j, again)
}

// CheckText returns an error if the JSON of a value replaces text that is not UTF-8.
func CheckText(v any, j []byte) error {
	if v == nil || !bytes.Contains(j, replacement) || isStable(reflect.PointerTo(reflect.TypeOf(v)), j) {
		return nil
	}
	return fmt.Errorf("the %T holds text that is not UTF-8, which JSON cannot keep", v)
}

// restoreTexts undoes keepTexts in a value that was read from j.
func restoreTexts(v reflect.Value, j []byte) {
	if len(j) > 0 && j[0] == escapedMark {
		(&copier{deep: true, text: unescapeText}).separate(v, 0)
	}
}
