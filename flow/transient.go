package flow

import "strings"

// transientMarks are the words of errors that may go away by themselves. They
// are looked for in the whole text of an error, as they are written.
var transientMarks = []string{
	"timed out", "rate limit", "429", "Connection reset", "Connection refused", "produced no output",
}

// isTransient reports whether the text of an error, with all its causes, says
// that another attempt may succeed.
func isTransient(text string) bool {
	for _, mark := range transientMarks {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return false
}
