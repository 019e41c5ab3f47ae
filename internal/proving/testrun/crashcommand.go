package testrun

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/proving/junit"
	"raddle.dev/internal/proving/testcase"
)

// CrashReport is the result of crash tests, for programs.
type CrashReport struct {
	OK     bool         `json:"ok"`
	Graphs []GraphCrash `json:"graphs"`
}

// GraphCrash is what the crash tests of one file of cases found.
type GraphCrash struct {
	Agent  string      `json:"agent"`
	File   string      `json:"file"`
	Points int         `json:"crash_points"`     // at which runs were killed
	Missed int         `json:"missed,omitempty"` // which no run reached again, because of timing
	Equal  int         `json:"equal"`
	Error  string      `json:"error,omitempty"` // why the file cannot be used
	Cases  []CaseCrash `json:"cases"`
}

// CaseCrash is what the crash tests of one case found.
type CaseCrash struct {
	Name        string       `json:"name"`
	Points      int          `json:"crash_points"`
	Reason      string       `json:"reason,omitempty"` // why the case could not be checked
	Stops       string       `json:"stops,omitempty"`  // at which question a run without a case stops, and what to do
	Differences []Difference `json:"differences,omitempty"`

	line int
	took time.Duration
}

// hasPassed reports whether every run of the case ended as the one without a crash.
func (c *CaseCrash) hasPassed() bool { return c.Reason == "" && len(c.Differences) == 0 }

// describe returns what the crash tests of a case found, line by line; most is how many differences are described, 0:
// all.
func (c *CaseCrash) describe(most int) (lines []string) {
	if c.Reason != "" {
		lines = append(lines, c.Name+": "+c.Reason)
	}
	for i, d := range c.Differences {
		if i == most && most > 0 {
			return append(lines, fmt.Sprintf("%s: and %d more; all of them: --verbose", c.Name, len(c.Differences)-i))
		}
		lines = append(lines, c.Name+": killed "+d.Point)
		for _, what := range d.What {
			lines = append(lines, "  "+what)
		}
		if d.Cause != "" {
			lines = append(lines, "  "+d.Cause)
		}
	}
	return lines
}

// WriteJUnit writes the report in the form of JUnit: one test for each case.
func (r *CrashReport) WriteJUnit(w io.Writer) error {
	report := junit.Report{Name: "raddle test --crash"}
	for i := range r.Graphs {
		g := &r.Graphs[i]
		suite := junit.Suite{Name: g.File}
		if g.Error != "" {
			suite.AddBroken(g.Error)
		}
		for i := range g.Cases {
			c := &g.Cases[i]
			one := junit.Case{
				Name:  c.Name,
				Class: g.File,
				File:  g.File,
				Line:  c.line,
				Time:  junit.Seconds(c.took.Seconds()),
			}
			if !c.hasPassed() {
				all := c.describe(0)
				one.Failure = &junit.Failure{Message: all[0], Text: strings.Join(all, "\n")}
			}
			suite.Add(one)
		}
		report.Add(suite)
	}
	return report.Write(w)
}

// runCrashes runs the crash tests of the cases of files, or of the agents below the paths that have no cases, and
// writes the results.
func (c *Command) runCrashes(ctx context.Context, files []string) error {
	loaded, err := c.loadCrashCases(files)
	if err != nil {
		return err
	}
	report := CrashReport{OK: true, Graphs: []GraphCrash{}}
	invalid := false
	checked := 0
	for _, f := range loaded {
		if f.Err == nil && len(f.Results) == 0 {
			continue // no case is selected
		}
		checked++
		g := GraphCrash{Agent: filepath.Base(absPath(filepath.Dir(f.Path))), File: f.Path, Cases: []CaseCrash{}}
		if f.Err != nil {
			g.Error = f.Err.Error()
			report.OK = false
			invalid = true
		}
		for _, r := range f.Results {
			began := time.Now()
			stops := ""
			if f.file == nil {
				if stops, err = c.expectQuestion(ctx, r.Case); err != nil {
					return err
				}
			}
			found, err := c.Runner.RunCrashes(ctx, r.Case, c.Jobs)
			if err != nil {
				return err
			}
			g.Cases = append(g.Cases, CaseCrash{Name: r.Case.Name, Points: found.Points, Reason: found.Reason, Stops: stops, Differences: found.Differences, line: r.Case.Pos.Line, took: time.Since(began)})
			g.Points += found.Points
			g.Missed += found.Missed
			g.Equal += found.Points - len(found.Differences)
			report.OK = report.OK && found.HasPassed()
		}
		report.Graphs = append(report.Graphs, g)
		if c.Format == FormatText {
			c.printCrashes(f, &g)
		}
	}
	if checked == 0 {
		return c.refuseMatch()
	}
	switch c.Format {
	case FormatJSON:
		err = c.JSON(report)
	case FormatJUnit:
		err = report.WriteJUnit(c.Out)
	}
	switch {
	case err != nil:
		return err
	case invalid:
		return ErrInvalid
	case !report.OK:
		return ErrFailed
	}
	return nil
}

// loadCrashCases returns the selected cases of files. A path without files is that of an agent, which runs without a
// prompt.
func (c *Command) loadCrashCases(files []string) (list []*FileResult, err error) {
	for _, path := range files {
		f := &FileResult{Path: path}
		if f.file, f.Err = testcase.Load(path); f.Err == nil {
			for _, each := range c.selectCases(f.file) {
				f.Results = append(f.Results, &Result{Case: each})
			}
		}
		list = append(list, f)
	}
	if len(files) > 0 {
		return list, nil
	}
	for _, dir := range c.Paths {
		for _, name := range []string{"graph.yaml", "config.yaml"} {
			path := filepath.Join(dir, name)
			if _, err := os.Stat(path); err == nil {
				bare := &testcase.Case{Name: "without a prompt", Pos: strictyaml.Pos{File: path, Line: 1, Col: 1}}
				list = append(list, &FileResult{Path: path, Results: []*Result{{Case: bare}}})
				break
			}
		}
	}
	if list == nil {
		return nil, failure.NewUsage("write one: raddle help testing", "there is no agent and no file *%s in %s", testcase.Suffix, strings.Join(c.Paths, ", "))
	}
	return list, nil
}

// expectQuestion runs an agent that has no cases. If it stops at a question, which nothing answers, that is its
// expected end: expectQuestion says so.
func (c *Command) expectQuestion(ctx context.Context, bare *testcase.Case) (stops string, err error) {
	r, err := c.Runner.RunCase(ctx, bare, Setup{})
	if err != nil || r.Status != "waiting" || len(r.Questions) == 0 {
		return "", err
	}
	bare.Expect.Status = r.Status
	name := r.Questions[len(r.Questions)-1].Name
	return fmt.Sprintf("the run stops at the question of %s; to test what comes after it, write a case with `answers: {%s: ...}`: raddle help testing", name, name), nil
}

func absPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// printCrashes writes a line about a graph, and its differences.
func (c *Command) printCrashes(f *FileResult, g *GraphCrash) {
	if f.Err != nil {
		c.printFile(f)
		return
	}
	style := term.Green
	failed := false
	for i := range g.Cases {
		failed = failed || !g.Cases[i].hasPassed()
	}
	if failed {
		style = term.Red
	}
	text := fmt.Sprintf("%s, %d equal", wording.FormatCount(g.Points, "crash point"), g.Equal)
	if g.Missed > 0 {
		text += fmt.Sprintf(" (%d more depend on timing, and no run reached them again)", g.Missed)
	}
	if failed || !c.Quiet {
		c.Out.PrintText(term.OneLine(g.Agent) + ": " + c.Out.Paint(style, text))
	}
	most := maxDifferences
	if c.Verbose {
		most = 0
	}
	for i := range g.Cases {
		if g.Cases[i].Stops != "" && !c.Quiet {
			c.Out.PrintText("  " + term.CleanLine(g.Cases[i].Stops))
		}
		for _, line := range g.Cases[i].describe(most) {
			c.Out.PrintText("  " + term.CleanLine(line))
		}
	}
}

// maxDifferences is how many differences of a case are written without --verbose.
const maxDifferences = 3
