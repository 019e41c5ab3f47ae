package spec

import (
	"fmt"
	"strings"

	"raddle.dev/internal/base/strictyaml"
)

// ParseError says that a file is not a graph. Its text is the first problem in
// the words of the file format; Findings has all of them, including warnings,
// in the order of the file.
type ParseError struct {
	Path     string
	Findings []strictyaml.Finding
	text     string
}

// Error returns the text of the problem that prevents the file from loading.
func (e *ParseError) Error() string { return e.text }

// ValidationError says that the validator rejects a graph.
type ValidationError struct {
	Findings []strictyaml.Finding // the errors among the findings
}

// Error returns the errors, one per line.
func (e *ValidationError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Graph validation failed with %d error(s):", len(e.Findings))
	for _, f := range e.Findings {
		b.WriteString("\n  " + f.Text())
	}
	return b.String()
}

// ValidationFailure returns a [*ValidationError] with the errors of the validator among
// the findings, or nil if there are none.
func ValidationFailure(findings []strictyaml.Finding) error {
	var errs []strictyaml.Finding
	for _, f := range findings {
		if f.Severity == strictyaml.SeverityError && f.Class == strictyaml.ClassValidate {
			errs = append(errs, f)
		}
	}
	if errs == nil {
		return nil
	}
	return &ValidationError{Findings: errs}
}
