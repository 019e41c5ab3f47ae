package junit_test

import (
	"encoding/xml"
	"strings"
	"testing"

	"raddle.dev/internal/proving/junit"
)

// What is written is XML whose counts are those of its tests, whatever the texts are, and every suite has its failures.
func TestWrite(t *testing.T) {
	good := junit.Suite{Name: "a & b.yaml"}
	good.Add(junit.Case{Name: `"<x>"`, Class: "c", File: "f", Line: 7, Time: 1.23456})
	good.Add(junit.Case{Name: "two", Failure: &junit.Failure{Message: "expected\n<1>", Text: "line ]]> \x00 two\n"}})
	broken := junit.Suite{Name: "b.yaml"}
	broken.AddBroken("no colon")
	all := junit.Report{Name: "raddle test"}
	all.Add(good)
	all.Add(broken)
	var text strings.Builder
	if err := all.Write(&text); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Cases    []struct {
				Name    string  `xml:"name,attr"`
				Line    string  `xml:"line,attr"`
				Time    string  `xml:"time,attr"`
				Failure *string `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(text.String()), &read); err != nil {
		t.Fatalf("%v in\n%s", err, text.String())
	}
	if read.Tests != 3 || read.Failures != 2 || len(read.Suites) != 2 || read.Suites[0].Tests != 2 || read.Suites[0].Failures != 1 || read.Suites[1].Failures != 1 {
		t.Fatalf("the counts are wrong:\n%s", text.String())
	}
	one, two, file := read.Suites[0].Cases[0], read.Suites[0].Cases[1], read.Suites[1].Cases[0]
	if read.Suites[0].Name != "a & b.yaml" || one.Name != `"<x>"` || one.Line != "7" || one.Time != "1.235" || one.Failure != nil {
		t.Errorf("the first test is %+v", one)
	}
	if two.Failure == nil || !strings.HasPrefix(*two.Failure, "line ]]> ") || two.Time != "0.000" || two.Line != "" {
		t.Errorf("the second test is %+v", two)
	}
	if file.Failure == nil || *file.Failure != "no colon" {
		t.Errorf("the test of the file is %+v", file)
	}
}
