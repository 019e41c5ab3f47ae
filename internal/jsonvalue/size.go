package jsonvalue

import (
	"math"
	"unicode/utf8"
)

var NegativeZero = math.Copysign(0, -1)

// Size returns the length in bytes of the compact JSON text of a state
// value, without building the text.
func Size(v any) int {
	switch x := v.(type) {
	case []any:
		size := 2 + max(len(x)-1, 0)
		for _, item := range x {
			size += Size(item)
		}
		return size
	case *Object:
		size := 2 + max(x.Len()-1, 0)
		for key, item := range x.All() {
			size += stringSize(key) + 1 + Size(item)
		}
		return size
	case string:
		return stringSize(x)
	}
	var room [32]byte
	text, err := appendScalar(room[:0], v)
	if err != nil {
		return len("null")
	}
	return len(text)
}

func stringSize(s string) int {
	if !utf8.ValidString(s) {
		s = toValid(s)
	}
	size := 2 + len(s)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\b' || c == '\f' || c == '\n' || c == '\r' || c == '\t':
			size++
		case c < ' ':
			size += 5
		}
	}
	return size
}
