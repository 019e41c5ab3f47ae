package flow

import (
	"fmt"
	"strings"
)

// ParseError is a file that is no graph. Its text is the first problem in the
// words of the file format; Findings has all of them, warnings too, in the
// order of the file.
type ParseError struct {
	Path     string
	Findings []Finding
	text     string
}

// Error is the text of the problem that stops the file from loading.
func (e *ParseError) Error() string { return e.text }

// ValidationError is a graph that the validator refuses.
type ValidationError struct {
	Findings []Finding // the errors among the findings
}

// Error lists the errors, one a line.
func (e *ValidationError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Graph validation failed with %d error(s):", len(e.Findings))
	for _, f := range e.Findings {
		b.WriteString("\n  " + f.Text())
	}
	return b.String()
}

// Rejected returns a [*ValidationError] with the errors of the validator among
// the findings, nil when there is none.
func Rejected(findings []Finding) error {
	var errs []Finding
	for _, f := range findings {
		if f.Severity == SeverityError && f.Class == ClassValidate {
			errs = append(errs, f)
		}
	}
	if errs == nil {
		return nil
	}
	return &ValidationError{Findings: errs}
}
