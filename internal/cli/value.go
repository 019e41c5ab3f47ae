package cli

import (
	"strings"

	"raddle.dev/flow"
)

// shortValue is the longest value that is shown beside its key.
const shortValue = 60

// valueLines shows a value of a state to people: text as it is where it reads as
// text, else quoted; all else as JSON, over several lines if it is long.
func valueLines(encoded []byte) []string {
	v, err := flow.ParseJSON(encoded)
	if err != nil { // another program wrote it
		return []string{string(encoded)}
	}
	text, ok := v.(string)
	if ok {
		if back, err := flow.ParseValue(text); err == nil && back == v && text != "" && text == strings.TrimSpace(text) {
			return strings.Split(text, "\n")
		}
	}
	if short := flow.Compact(v); ok || len(short) <= shortValue {
		return []string{short}
	}
	return strings.Split(flow.Pretty(v), "\n")
}

// short tells whether lines fit beside a key.
func short(lines []string) bool { return len(lines) == 1 && len(lines[0]) <= shortValue }
