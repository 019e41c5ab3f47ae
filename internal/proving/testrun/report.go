package testrun

import (
	"fmt"
	"io"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/proving/junit"
)

// Report is the result of a suite, for programs.
type Report struct {
	OK     bool         `json:"ok"`
	Tests  int          `json:"tests"`
	Failed int          `json:"failed"`
	Files  []FileReport `json:"files"`

	Coverage []AgentCoverage `json:"coverage,omitempty"` // if it was asked for
}

// FileReport is the part of a report about one file.
type FileReport struct {
	File  string       `json:"file"`
	Error string       `json:"error,omitempty"` // why the file cannot be used
	Tests []CaseReport `json:"tests"`
}

// CaseReport is the part of a report about one case.
type CaseReport struct {
	Name       string          `json:"name"`
	Line       int             `json:"line"`
	OK         bool            `json:"ok"`
	Seconds    float64         `json:"seconds"`
	Status     string          `json:"status,omitempty"`
	ModelCalls int             `json:"model_calls"`
	Cost       float64         `json:"cost_usd,omitempty"`
	Failures   []FailureReport `json:"failures,omitempty"`
}

// FailureReport is one thing that was not as expected.
type FailureReport struct {
	What     string `json:"what"`
	Message  string `json:"message"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Col      int    `json:"col"`
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"`
}

// NewReport returns the results of files as a report.
func NewReport(all []*FileResult) Report {
	report := Report{OK: true, Files: []FileReport{}}
	for _, f := range all {
		file := FileReport{File: f.Path, Tests: []CaseReport{}}
		if f.Err != nil {
			file.Error = f.Err.Error()
		}
		for _, r := range f.Results {
			c := CaseReport{Name: r.Case.Name, Line: r.Case.Pos.Line, OK: r.HasPassed(), Seconds: float64(r.Took.Milliseconds()) / 1000, Status: r.Status, ModelCalls: r.ModelCalls, Cost: r.Cost}
			for _, failed := range r.Failures {
				c.Failures = append(c.Failures, FailureReport{What: failed.What, Message: failed.Message, File: failed.Pos.File, Line: failed.Pos.Line, Col: failed.Pos.Col,
					Expected: failed.Want, Got: failed.Got})
			}
			file.Tests = append(file.Tests, c)
		}
		report.Tests += len(f.Results)
		report.Failed += f.CountFailed()
		report.Files = append(report.Files, file)
	}
	report.OK = report.Failed == 0
	return report
}

// WriteJUnit writes the report in the form of JUnit.
func (r *Report) WriteJUnit(w io.Writer) error {
	all := junit.Report{Name: "raddle test"}
	for _, f := range r.Files {
		suite := junit.Suite{Name: f.File}
		if f.Error != "" {
			suite.AddBroken(f.Error)
		}
		for _, c := range f.Tests {
			one := junit.Case{
				Name:  c.Name,
				Class: f.File,
				File:  f.File,
				Line:  c.Line,
				Time:  junit.Seconds(c.Seconds),
			}
			if !c.OK {
				one.Failure = &junit.Failure{Message: c.Failures[0].What + ": " + c.Failures[0].Message, Text: c.describe()}
			}
			suite.Add(one)
		}
		all.Add(suite)
	}
	return all.Write(w)
}

// describe returns the failures of a case as text.
func (c *CaseReport) describe() string {
	var b strings.Builder
	for _, f := range c.Failures {
		fmt.Fprintf(&b, "%s:%d:%d: %s: %s\n", f.File, f.Line, f.Col, f.What, f.Message)
		for _, line := range DiffTexts(f.Expected, f.Got) {
			b.WriteString("  " + line + "\n")
		}
	}
	return b.String()
}

// DiffTexts returns what differs between two texts: lines that begin with "-" are expected and missing, lines with "+"
// are there and not expected. It returns nil if one line says it all.
func DiffTexts(want, got string) (lines []string) {
	if !strings.Contains(strings.TrimRight(want, "\n"), "\n") && !strings.Contains(strings.TrimRight(got, "\n"), "\n") {
		return nil
	}
	want = strings.TrimRight(want, "\n") + "\n"
	got = strings.TrimRight(got, "\n") + "\n"
	unified, err := udiff.ToUnifiedDiff("", "", want, udiff.Lines(want, got), 2)
	if err != nil {
		return nil // the edits are of this text
	}
	signs := map[udiff.OpKind]string{udiff.Delete: "-", udiff.Insert: "+", udiff.Equal: " "}
	for i, h := range unified.Hunks {
		if i > 0 {
			lines = append(lines, "…")
		}
		for _, line := range h.Lines {
			lines = append(lines, signs[line.Kind]+" "+strings.TrimRight(line.Content, "\r\n"))
		}
	}
	return lines
}

// Summarize says in a few words how many cases of a file have passed.
func (f *FileResult) Summarize() string {
	updated := ""
	if f.Updated > 0 {
		updated = ", " + wording.FormatCount(f.Updated, "expected value") + " replaced"
	}
	switch failed, all := f.CountFailed(), len(f.Results); {
	case f.Err != nil:
		return "the file cannot be used"
	case all == 0:
		return "no test has this name"
	case failed > 0:
		return fmt.Sprintf("%d of %s failed%s", failed, wording.FormatCount(all, "test"), updated)
	default:
		return wording.FormatCount(all, "test") + " passed" + updated
	}
}
