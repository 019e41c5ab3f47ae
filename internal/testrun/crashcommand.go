package testrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"raddle.dev/internal/failure"
	"raddle.dev/internal/strictyaml"
	"raddle.dev/internal/term"
	"raddle.dev/internal/testcase"
	"raddle.dev/internal/wording"
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
	Points int         `json:"crash_points"`
	Equal  int         `json:"equal"`
	Error  string      `json:"error,omitempty"` // why the file cannot be used
	Cases  []CaseCrash `json:"cases"`
}

// CaseCrash is what the crash tests of one case found.
type CaseCrash struct {
	Name        string       `json:"name"`
	Points      int          `json:"crash_points"`
	Reason      string       `json:"reason,omitempty"` // why the case could not be checked
	Differences []Difference `json:"differences,omitempty"`
}

// runCrashes runs the crash tests of the cases of files, or of the agents below the paths that have no cases, and writes the results.
func (c *Command) runCrashes(ctx context.Context, files []string) error {
	loaded, err := c.loadCrashCases(files)
	if err != nil {
		return err
	}
	report, invalid := CrashReport{OK: true, Graphs: []GraphCrash{}}, false
	for _, f := range loaded {
		g := GraphCrash{Agent: filepath.Base(absPath(filepath.Dir(f.Path))), File: f.Path, Cases: []CaseCrash{}}
		if f.Err != nil {
			g.Error, report.OK, invalid = f.Err.Error(), false, true
		}
		for _, r := range f.Results {
			found, err := c.Runner.RunCrashes(ctx, r.Case)
			if err != nil {
				return err
			}
			g.Cases = append(g.Cases, CaseCrash{r.Case.Name, found.Points, found.Reason, found.Differences})
			g.Points += found.Points
			g.Equal += found.Points - len(found.Differences)
			report.OK = report.OK && found.HasPassed()
		}
		report.Graphs = append(report.Graphs, g)
		if c.Format == FormatText {
			c.printCrashes(f, &g)
		}
	}
	switch c.Format {
	case FormatJSON:
		err = c.JSON(report)
	case FormatJUnit:
		err = errors.New("crash tests have no report as JUnit: use --output json")
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

// loadCrashCases returns the selected cases of files. A path without files is that of an agent, which runs without a prompt.
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
	style, failed := term.Green, false
	for _, each := range g.Cases {
		failed = failed || each.Reason != "" || len(each.Differences) > 0
	}
	if failed {
		style = term.Red
	}
	if failed || !c.Quiet {
		c.Out.PrintText(g.Agent + ": " + c.Out.Paint(style, fmt.Sprintf("%s, %d equal", wording.FormatCount(g.Points, "crash point"), g.Equal)))
	}
	for _, each := range g.Cases {
		if each.Reason != "" {
			c.Out.PrintText("  " + term.OneLine(each.Name+": "+each.Reason))
		}
		for i, d := range each.Differences {
			if i == mostDifferences && !c.Verbose {
				c.Out.PrintText(fmt.Sprintf("  %s: and %d more; all of them: --verbose", term.OneLine(each.Name), len(each.Differences)-i))
				break
			}
			c.Out.PrintText("  " + term.OneLine(each.Name) + ": killed " + term.OneLine(d.Point))
			for _, what := range d.What {
				c.Out.PrintText("    " + term.OneLine(what))
			}
			if d.Culprit != "" {
				c.Out.PrintText("    " + term.OneLine(d.Culprit))
			}
		}
	}
}

// mostDifferences is how many differences of a case are written without --verbose.
const mostDifferences = 3
