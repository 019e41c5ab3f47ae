package testrun

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"raddle.dev/draw"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/term/excerpt"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/testcase"
)

// Command is what raddle test does: it runs the cases below paths and writes the results.
type Command struct {
	Suite
	Paths   []string // files and directories
	Format  string   // FormatText, or another one
	Update  bool     // expected values are replaced by what the cases do
	Watch   bool     // the cases are run again whenever a file changes
	Quiet   bool     // text has failures only
	Verbose bool     // text names the cases that have passed

	Crash       bool    // the run of each case is killed everywhere, and resumed
	Coverage    bool    // the results say which nodes and edges the cases reach
	MinCoverage float64 // in percent: a graph of which less is reached has failed; 0: none
	PictureDir  string  // where a picture AGENT.svg of what is reached is written for each graph; "": nowhere

	Out  *term.Output
	Look excerpt.Look
	Note func(format string, args ...any) // a message that is not a result
	JSON func(v any) error                // writes a report
}

// The formats of results.
const (
	FormatText  = "text"
	FormatJSON  = "json"
	FormatJUnit = "junit"
)

// These say why a command has failed after it has written the results.
var (
	ErrFailed  = errors.New("a test has failed")
	ErrInvalid = errors.New("a file of tests cannot be used")
	ErrCovered = errors.New("the tests of a graph reach less than --min-coverage")
)

// Execute runs the cases. The error is [ErrFailed], [ErrInvalid] or [ErrCovered] if the results say what is wrong, and
// that of ctx if it has ended.
func (c *Command) Execute(ctx context.Context) error {
	for {
		err := c.runOnce(ctx)
		if reported := err == nil || errors.Is(err, ErrFailed) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrCovered); !c.Watch || !reported {
			return err
		}
		c.Note("raddle: waiting for a change; Ctrl-C ends the command")
		if err := c.WaitForChange(ctx, c.Paths); err != nil {
			return err
		}
	}
}

// FindPaths returns the directories and files of arguments, which may also be names of agents. Without arguments it is
// the working directory.
func FindPaths(p *app.Process, args []string) (paths []string, err error) {
	if len(args) == 0 {
		args = []string{"."}
	}
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err == nil && !info.IsDir() && !strings.HasSuffix(arg, testcase.Suffix): // a graph.yaml
			arg = filepath.Dir(arg)
		case errors.Is(err, fs.ErrNotExist) && !app.IsPath(arg):
			place, err := p.FindAgent(arg)
			if err != nil {
				return nil, err
			}
			arg = place.Dir
		case err != nil:
			return nil, failure.NewUsage("", "%s cannot be read: %v", arg, err)
		}
		paths = append(paths, arg)
	}
	return paths, nil
}

// runOnce runs the cases once and writes the results.
func (c *Command) runOnce(ctx context.Context) error {
	files, err := FindFiles(c.Paths)
	if err != nil {
		return err
	}
	if c.Crash {
		return c.runCrashes(ctx, files)
	}
	if len(files) == 0 {
		return failure.NewUsage("write one: raddle help testing", "there is no file *%s in %s", testcase.Suffix, strings.Join(c.Paths, ", "))
	}
	var all []*FileResult
	var left error
	covered := c.measureCoverage()
	if covered != nil {
		setup := c.Setup
		c.Setup = covered.wrapSetup(setup)
		defer func() { c.Setup = setup }()
	}
	_, err = c.Run(ctx, files, func(f *FileResult) {
		if c.Update && left == nil {
			f, left = c.Suite.Update(ctx, f)
		}
		if all = append(all, f); c.Format == FormatText {
			c.printFile(f)
		}
	})
	if err != nil {
		return err
	}
	report := NewReport(all)
	if covered != nil {
		report.Coverage = covered.Reports()
		left = errors.Join(left, c.drawCoverage(report.Coverage))
	}
	switch c.Format {
	case FormatJSON:
		err = c.JSON(report)
	case FormatJUnit:
		err = report.WriteJUnit(c.Out)
	default:
		c.printTotal(&report)
		for i := range report.Coverage {
			if c.Coverage || report.Coverage[i].Percent < c.MinCoverage {
				err = errors.Join(err, report.Coverage[i].WriteText(c.Out))
			}
		}
	}
	if err = errors.Join(err, left); err != nil {
		return err
	}
	for _, f := range all {
		if f.Err != nil {
			return ErrInvalid
		}
	}
	switch {
	case report.Tests == 0:
		return c.refuseMatch()
	case !report.OK:
		return ErrFailed
	}
	for i := range report.Coverage {
		if report.Coverage[i].Percent < c.MinCoverage {
			return ErrCovered
		}
	}
	return nil
}

// refuseMatch returns the error of an expression that matches no case.
func (c *Command) refuseMatch() error {
	return failure.NewUsage("see the names with: raddle test --verbose", "no test matches --run %s", c.Match)
}

// measureCoverage returns what gathers the coverage of the cases, nil if nothing wants it.
func (c *Command) measureCoverage() *Coverage {
	if !c.Coverage && c.MinCoverage == 0 && c.PictureDir == "" {
		return nil
	}
	return &Coverage{}
}

// drawCoverage writes the pictures of what is reached.
func (c *Command) drawCoverage(list []AgentCoverage) error {
	if c.PictureDir == "" {
		return nil
	}
	if err := os.MkdirAll(c.PictureDir, 0o755); err != nil {
		return err
	}
	for i := range list {
		var o draw.Options
		list[i].AddToPicture(&o)
		var b bytes.Buffer
		if err := draw.WriteSVG(&b, list[i].Structure, o); err != nil {
			return err
		}
		dir, err := filepath.Abs(list[i].Dir)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(c.PictureDir, filepath.Base(dir)+".svg"), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// printFile writes what failed in a file, and a summary line. A file none of whose cases was selected gets no line.
func (c *Command) printFile(f *FileResult) {
	var list strictyaml.Lister
	switch {
	case errors.As(f.Err, &list):
		for _, each := range list.ListFindings() {
			c.printFinding(each)
		}
	case f.Err != nil:
		c.Out.PrintText(term.OneLine(f.Err.Error()))
	}
	for _, r := range f.Results {
		switch {
		case !r.HasPassed():
			c.Out.PrintText(c.Out.Paint(term.Red, "failed") + ": " + term.OneLine(r.Case.Name))
		case c.Verbose:
			c.Out.PrintText(c.Out.Paint(term.Green, "passed") + ": " + term.OneLine(r.Case.Name))
		}
		for _, each := range r.Failures {
			c.printFailure(&each)
		}
	}
	if c.Quiet || f.Err == nil && len(f.Results) == 0 {
		return
	}
	style := term.Green
	if f.CountFailed() > 0 {
		style = term.Red
	}
	path := f.Path
	if c.Look.ShortPath != nil {
		path = c.Look.ShortPath(path)
	}
	c.Out.PrintText(term.OneLine(path) + ": " + c.Out.Paint(style, f.Summarize()))
}

func (c *Command) printFinding(f strictyaml.Finding) {
	c.Out.PrintText(c.Look.FormatFinding(f))
	c.Out.PrintExact(c.Look.FormatExcerpt(f))
}

func (c *Command) printFailure(f *testcase.Failure) {
	c.printFinding(strictyaml.Finding{Severity: strictyaml.SeverityError, Pos: f.Pos, Message: f.What + ": " + f.Message})
	for _, line := range DiffTexts(f.Want, f.Got) {
		text := "    " + term.CleanLine(line)
		switch line[0] {
		case '-':
			text = c.Out.Paint(term.Green, text)
		case '+':
			text = c.Out.Paint(term.Red, text)
		}
		c.Out.PrintText(text)
	}
}

// printTotal writes the line below the results of several files.
func (c *Command) printTotal(r *Report) {
	if len(r.Files) < 2 || c.Quiet {
		return
	}
	verdict := c.Out.Paint(term.Green, "all passed")
	if r.Failed > 0 {
		verdict = c.Out.Paint(term.Red, wording.FormatCount(r.Failed, "failure"))
	}
	c.Out.PrintText(wording.FormatCount(r.Tests, "test") + " in " + wording.FormatCount(len(r.Files), "file") + ": " + verdict)
}
