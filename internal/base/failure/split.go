package failure

import (
	"strings"

	"raddle.dev/internal/base/pattern"
)

// graphFailed matches the beginning of the failure of an agent; its cause follows without
// an error of its own.
var graphFailed = pattern.CompileLater(`(?s)^(Graph execution failed for agent '[^']*'): (.*)$`)

// Split splits the text of an error into the texts of the errors that it wraps, the outermost first. There is at least
// one.
func Split(err error) []string {
	var parts []string
	for _, p := range splitWrapped(err.Error(), err) {
		if m := graphFailed().FindStringSubmatch(p); m != nil {
			parts = append(parts, m[1], m[2])
		} else {
			parts = append(parts, p)
		}
	}
	return parts
}

// splitWrapped splits text, the text of err or of an error around it, where an error
// inside err begins.
func splitWrapped(text string, err error) []string {
	for _, inner := range innerErrors(err) {
		rest := inner.Error()
		if head, ok := strings.CutSuffix(text, ": "+rest); ok && rest != "" {
			return append([]string{head}, splitWrapped(rest, inner)...)
		}
		if parts := splitWrapped(text, inner); len(parts) > 1 {
			return parts
		}
	}
	return []string{text}
}

// innerErrors returns the errors that err wraps directly.
func innerErrors(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return []error{inner}
		}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}
