package strictyaml

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
	"raddle.dev/internal/base/jsonvalue"
)

// Scalars are resolved in this file by the core schema of YAML 1.2 and never by
// the library, which also accepts octal 017, 1_000, dates and merge keys.

// These are short and long forms of the tags of the core schema.
const (
	tagPrefix = "tag:yaml.org,2002:"
	tagBroken = "!raddle/broken" // on nodes that already have a finding
)

// coreTag returns the name of a core tag (str, int, map ...), "" if there is no
// explicit tag, and "?" for any other tag.
func coreTag(n *yaml.Node) string {
	tag := n.Tag
	switch {
	case n.Tag == "!":
		return "str" // the non-specific tag: the text is not resolved
	case n.Style&yaml.TaggedStyle == 0:
		return ""
	case strings.HasPrefix(tag, "!!"):
		tag = tag[2:]
	case strings.HasPrefix(tag, tagPrefix):
		tag = tag[len(tagPrefix):]
	}
	switch tag {
	case "str", "int", "float", "bool", "null", "map", "seq":
		return tag
	}
	return "?"
}

// DecodeScalar returns the value of a scalar: nil, bool, int64, uint64, float64
// or string. ok is false if the text does not match an explicit tag.
func DecodeScalar(n *yaml.Node) (any, bool) {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	switch tag := coreTag(n); tag {
	case "":
		if n.Style&quoted != 0 {
			return n.Value, true
		}
		return plainValue(n.Value), true
	case "str":
		return n.Value, true
	default:
		v := plainValue(n.Value)
		if f, ok := jsonvalue.AsFloat(v); ok && tag == "float" {
			v = f
		}
		return v, tag == valueTag(v)
	}
}

func valueTag(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case int64, uint64:
		return "int"
	case float64:
		return "float"
	}
	return "str"
}

// plainValue resolves an unquoted scalar.
func plainValue(s string) any {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	case ".nan", ".NaN", ".NAN":
		return math.NaN()
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF":
		return math.Inf(1)
	case "-.inf", "-.Inf", "-.INF":
		return math.Inf(-1)
	}
	if v, ok := plainNumber(s); ok {
		return v
	}
	return s
}

func plainNumber(s string) (any, bool) {
	if rest, ok := strings.CutPrefix(s, "0x"); ok {
		return basedNumber(rest, 16)
	}
	if rest, ok := strings.CutPrefix(s, "0o"); ok {
		return basedNumber(rest, 8)
	}
	digits := strings.TrimPrefix(s, "-")
	if len(digits) == len(s) {
		digits = strings.TrimPrefix(s, "+")
	}
	whole, ok := numberShape(digits)
	switch {
	case !ok:
		return nil, false
	case whole && len(digits) > 1 && digits[0] == '0':
		return nil, false // a leading zero: 017 is text
	case whole:
		return wholeYAML(s)
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// wholeYAML is jsonvalue.WholeNumber for YAML, where a plus sign is allowed and minus
// zero is the integer zero.
func wholeYAML(s string) (any, bool) {
	v := jsonvalue.WholeNumber(strings.TrimPrefix(s, "+"))
	if f, ok := v.(float64); ok && f == 0 {
		return int64(0), true
	}
	return v, v != nil
}

func basedNumber(digits string, base int) (any, bool) {
	if digits == "" || digits[0] == '+' || digits[0] == '-' {
		return nil, false
	}
	u, err := strconv.ParseUint(digits, base, 64)
	if err != nil {
		return nil, false
	}
	if u <= math.MaxInt64 {
		return int64(u), true
	}
	return u, true
}

// numberShape reports whether a text without sign is a decimal number, and
// whether it consists only of digits.
func numberShape(s string) (whole, ok bool) {
	rest := strings.TrimLeft(s, "0123456789")
	before := len(s) - len(rest)
	if rest == "" {
		return true, before > 0
	}
	after := 0
	if rest[0] == '.' {
		tail := strings.TrimLeft(rest[1:], "0123456789")
		after = len(rest) - 1 - len(tail)
		rest = tail
	}
	if before+after == 0 {
		return false, false
	}
	if rest == "" {
		return false, true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false, false
	}
	exponent := rest[1:]
	if exponent != "" && (exponent[0] == '+' || exponent[0] == '-') {
		exponent = exponent[1:]
	}
	return false, exponent != "" && strings.Trim(exponent, "0123456789") == ""
}
