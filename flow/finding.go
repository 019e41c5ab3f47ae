package flow

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity tells whether a finding keeps a graph from running.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning" // told by every run
	SeverityInfo    Severity = "info"    // nothing is wrong; runs do not tell it
)

// Class tells which check made a finding.
type Class string

// The classes.
const (
	ClassParse      Class = "parse"       // the file is no graph: YAML, types, structure
	ClassUnknownKey Class = "unknown-key" // a key that nothing reads
	ClassValidate   Class = "validate"    // the validator of the file format
	ClassProof      Class = "proof"       // a placeholder that has no value on some path
	ClassAdvice     Class = "advice"      // what is allowed but can hardly be meant
)

// Pos is a place in a file. Lines and columns start at 1, columns count
// characters. The zero Pos is no place.
type Pos struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Col  int    `json:"col"`
}

// String is file:line:col.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Finding is one thing that a check has to say about a file.
type Finding struct {
	Severity Severity `json:"severity"`
	Class    Class    `json:"class"`
	Code     string   `json:"code"`           // stable name of the check, in lower case with hyphens
	Node     string   `json:"node,omitempty"` // id of the node it is about; empty: the whole graph
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"` // what to do about it
	Pos      Pos      `json:"pos"`
}

// Text is the message with the node before it, as lists of findings show it.
func (f Finding) Text() string {
	if f.Node == "" {
		return f.Message
	}
	return "[" + f.Node + "] " + f.Message
}

// String is the finding in one line, with its place.
func (f Finding) String() string {
	line := fmt.Sprintf("%s: %s: %s", f.Pos, f.Severity, f.Text())
	if f.Hint != "" {
		line += " (" + f.Hint + ")"
	}
	return line
}

// Strict returns the findings with unknown keys made errors.
func Strict(findings []Finding) []Finding {
	strict := slices.Clone(findings)
	for i := range strict {
		if strict[i].Class == ClassUnknownKey {
			strict[i].Severity = SeverityError
		}
	}
	return strict
}

// HasErrors reports whether a finding is an error.
func HasErrors(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == SeverityError })
}

// sortFindings puts findings in the order of the file.
func sortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
}

// maxFindings is how many findings one check keeps. A file with more of them
// is not looked at more closely.
const maxFindings = 2000

// report collects the findings of one class.
type report struct {
	class    Class
	findings []Finding
}

// full reports whether further findings would be dropped.
func (r *report) full() bool { return len(r.findings) > maxFindings }

func (r *report) add(f Finding) {
	f.Class = r.class
	switch {
	case len(r.findings) < maxFindings:
		r.findings = append(r.findings, f)
	case len(r.findings) == maxFindings:
		r.findings = append(r.findings, Finding{
			Severity: SeverityWarning, Class: r.class, Code: "too-many-findings", Pos: f.Pos,
			Message: fmt.Sprintf("more than %d findings; the rest is not listed", maxFindings),
		})
	}
}
