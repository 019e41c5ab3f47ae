package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity says whether a finding prevents a graph from running.
type Severity string

// These are the severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning" // shown in every run
	SeverityInfo    Severity = "info"    // not a problem; not shown in runs
)

// Class says which check made a finding.
type Class string

// These are the classes.
const (
	ClassParse      Class = "parse"       // the file is not a graph: YAML, types, structure
	ClassUnknownKey Class = "unknown-key" // a key that has no meaning
	ClassValidate   Class = "validate"    // the validator of the file format
	ClassProof      Class = "proof"       // a placeholder that has no value on some path
	ClassAdvice     Class = "advice"      // allowed, but probably a mistake
)

// Pos is a position in a file. Lines and columns start at 1; columns count
// characters. The zero Pos is no position.
type Pos struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Col  int    `json:"col"`
}

// String returns the position as file:line:col.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Finding is one result of a check of a file.
type Finding struct {
	Severity Severity `json:"severity"`
	Class    Class    `json:"class"`
	Code     string   `json:"code"`           // stable name of the check, in lower case with hyphens
	Node     string   `json:"node,omitempty"` // id of the node it is about; empty: the whole graph
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"` // what to do about it
	Pos      Pos      `json:"pos"`
	// Fix is what to do about it, where the file format fixes the texts of errors and Hint is empty.
	Fix     string `json:"-"`
	Certain bool   `json:"-"` // of a warning: what it is about can never work
}

// A Lister is an error that knows what is wrong with a file, and where.
type Lister interface {
	error
	ListFindings() []Finding
}

// Text returns the message, preceded by the node, as lists of findings show it.
func (f Finding) Text() string {
	if f.Node == "" {
		return f.Message
	}
	return "[" + f.Node + "] " + f.Message
}

// String returns the finding in one line, with its position.
func (f Finding) String() string {
	line := fmt.Sprintf("%s: %s: %s", f.Pos, f.Severity, f.Text())
	if f.Hint != "" {
		line += " (" + f.Hint + ")"
	}
	return line
}

// PromoteUnknownKeys returns the findings with unknown keys as errors.
func PromoteUnknownKeys(findings []Finding) []Finding {
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

// SortFindings sorts findings by their position in the file.
func SortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
}

// MaxFindings is how many findings one check keeps. Further findings are
// dropped.
const MaxFindings = 2000

// Report collects the findings of one class.
type Report struct {
	Class    Class
	Findings []Finding
}

// IsFull reports whether further findings would be dropped.
func (r *Report) IsFull() bool { return len(r.Findings) > MaxFindings }

func (r *Report) Add(f Finding) {
	f.Class = r.Class
	switch {
	case len(r.Findings) < MaxFindings:
		r.Findings = append(r.Findings, f)
	case len(r.Findings) == MaxFindings:
		r.Findings = append(r.Findings, Finding{
			Severity: SeverityWarning, Class: r.Class, Code: "too-many-findings", Pos: f.Pos,
			Message: fmt.Sprintf("more than %d findings; the rest is not listed", MaxFindings),
		})
	}
}
