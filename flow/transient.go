package flow

import "strings"

// transientMarks are words in errors that are probably temporary. They are
// searched in the whole text of an error, with the same case.
var transientMarks = []string{
	"timed out", "rate limit", "429", "Connection reset", "Connection refused", "produced no output",
}

// isTransient reports whether the text of an error, including its causes,
// suggests that another attempt may succeed.
func isTransient(text string) bool {
	for _, mark := range transientMarks {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return false
}
