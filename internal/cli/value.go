package cli

import (
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/jsonvalue"
)

// shortValue is the longest value that is shown on the line of its key.
const shortValue = 60

// valueLines shows a value of a state to people: text unchanged if it reads as
// text, otherwise quoted; other values as JSON, on several lines if it is long.
func valueLines(encoded []byte) []string {
	v, err := jsonvalue.Parse(encoded)
	if err != nil { // another program wrote it
		return []string{string(encoded)}
	}
	text, ok := v.(string)
	if ok {
		if back, err := flow.ParseValue(text); err == nil && back == v && text != "" && text == strings.TrimSpace(text) {
			return strings.Split(text, "\n")
		}
	}
	if short := jsonvalue.Compact(v); ok || len(short) <= shortValue {
		return []string{short}
	}
	return strings.Split(jsonvalue.Pretty(v), "\n")
}

// isShort reports whether lines fit on the line of a key.
func isShort(lines []string) bool { return len(lines) == 1 && len(lines[0]) <= shortValue }
