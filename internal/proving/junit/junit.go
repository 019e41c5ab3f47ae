// Package junit writes reports in the form of JUnit, which services that run tests read.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
)

// Report is the root of a report. Add keeps its counts.
type Report struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Suites   []Suite  `xml:"testsuite"`
}

// Suite is a group of tests. Add keeps its counts.
type Suite struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Cases    []Case `xml:"testcase"`
}

// Case is one test.
type Case struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	File    string   `xml:"file,attr"`
	Line    int      `xml:"line,attr,omitempty"` // from 1; 0: not known
	Time    Seconds  `xml:"time,attr"`
	Failure *Failure `xml:"failure,omitempty"` // nil: it has passed
}

// Failure says why a test has failed.
type Failure struct {
	Message string `xml:"message,attr"` // one line
	Text    string `xml:",chardata"`
}

// Seconds are written with three decimals.
type Seconds float64

// MarshalText implements [encoding.TextMarshaler].
func (s Seconds) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%.3f", float64(s)), nil }

// Add adds a test.
func (s *Suite) Add(c Case) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	if c.Failure != nil {
		s.Failures++
	}
}

// AddBroken adds a failure for the file that the group is named by, which cannot be used.
func (s *Suite) AddBroken(why string) {
	s.Add(Case{
		Name:    "the file",
		Class:   s.Name,
		File:    s.Name,
		Failure: &Failure{Message: "the file cannot be used", Text: why},
	})
}

// Add adds a group, which must be complete.
func (r *Report) Add(s Suite) {
	r.Suites = append(r.Suites, s)
	r.Tests += s.Tests
	r.Failures += s.Failures
}

// Write writes the report as a document of XML.
func (r *Report) Write(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
