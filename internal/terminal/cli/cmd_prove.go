package cli

import (
	"context"
	"errors"
	"regexp"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/testrun"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

// testOptions are the flags of "test".
type testOptions struct {
	run    string
	from   string
	jobs   int
	update bool
	watch  bool
	output string

	crash    bool
	coverage bool
	least    float64
	pictures string
}

func newTestCommand(op *opener) *cobra.Command {
	var opts testOptions
	cmd := newCommand(op, &opts, runTest, &cobra.Command{
		Use:   "test [AGENT|DIR|FILE]...",
		Short: "Run the test cases of agents",
		Long: `Runs the test cases in the files *.test.yaml of agents and in the directories below; without an argument, in this directory.
No model, tool or network is used unless a case says so, and nothing is written outside of scratch copies. See: raddle help testing
The exit code is 1 if a test fails, and 3 if a file cannot be used.`,
		Example: `  raddle examples copy triage
  raddle test examples/triage --run agrees
  raddle test
  raddle test coder explore
  raddle test agents/review --update
  raddle test --from last
  raddle test --output junit > report.xml`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return agentNames(op), cobra.ShellCompDirectiveDefault
		},
	})
	cmd.Flags().StringVar(&opts.run, "run", "", "run only the cases whose FILE/NAME matches a regular `EXPRESSION`")
	cmd.Flags().IntVar(&opts.jobs, "jobs", 0, "run `N` cases at the same time; 0: one for each processor")
	cmd.Flags().BoolVar(&opts.update, "update", false, "replace expected values by what the cases do, and keep the rest of the files")
	cmd.Flags().BoolVar(&opts.watch, "watch", false, "run the cases again whenever a file of the agents changes")
	cmd.Flags().BoolVar(&opts.crash, "crash", false, "kill the run of each case at every record of its journal, resume it, and require the same end")
	cmd.Flags().BoolVar(&opts.coverage, "coverage", false, "show which nodes, edges and loops of the graphs the cases reach")
	cmd.Flags().Float64Var(&opts.least, "min-coverage", 0, "fail if the cases reach less than `PERCENT` of the nodes and edges of a graph")
	cmd.Flags().StringVar(&opts.pictures, "coverage-pictures", "", "write a picture AGENT.svg of what the cases reach for each graph into `DIR`")
	cmd.Flags().StringVar(&opts.from, "from", "", "write a test case of a `RUN`, or of an exported one, to its agent's directory or to the one that is named")
	_ = cmd.RegisterFlagCompletionFunc("from", completeRuns(op, 0, nil))
	addOutputFlag(cmd, &opts.output, "write the results as `FORMAT`: text, json or junit")
	return cmd
}

func runTest(ctx context.Context, con *console.Console, p *app.Process, opts testOptions, args []string) (err error) {
	ctx, stop := signalContext(ctx)
	defer stop()
	if opts.from != "" {
		return writeCase(ctx, con, p, opts.from, args)
	}
	c := &testrun.Command{Suite: testrun.Suite{Jobs: opts.jobs}, Format: opts.output, Update: opts.update, Watch: opts.watch, Quiet: con.Quiet, Verbose: con.Verbose,
		Out: con.Out, Look: ending.LookAtFindings(p, con.Out.Colors), Note: con.PrintNote, JSON: con.PrintJSON,
		Crash: opts.crash, Coverage: opts.coverage, MinCoverage: opts.least, PictureDir: opts.pictures}
	c.Look.Columns = con.Out.Columns()
	if opts.jobs < 0 {
		return ending.BadUsage("leave it out, or use a number above 0", "--jobs %d is not a number of cases", opts.jobs)
	}
	if opts.least < 0 || opts.least > 100 {
		return ending.BadUsage("use a number from 0 to 100", "--min-coverage %g is not a percentage", opts.least)
	}
	if opts.crash && (opts.update || opts.coverage || opts.least > 0 || opts.pictures != "") {
		return ending.BadUsage("use two commands", "--crash cannot be combined with --update, --coverage, --min-coverage or --coverage-pictures")
	}
	if opts.run != "" {
		if c.Match, err = regexp.Compile(opts.run); err != nil {
			return ending.BadUsage("the syntax is that of Go: https://pkg.go.dev/regexp/syntax", "--run is not a regular expression: %v", err)
		}
	}
	if c.Paths, err = testrun.FindPaths(p, args); err != nil {
		return err
	}
	switch err = c.Execute(ctx); {
	case ctx.Err() != nil:
		return ending.Silent{Code: ending.Interrupted}
	case errors.Is(err, testrun.ErrFailed):
		return ending.Silent{Code: ending.Failed}
	case errors.Is(err, testrun.ErrCovered):
		return &ending.Error{Code: ending.Failed, Next: "add cases for what is not reached: raddle help testing", Err: err}
	case errors.Is(err, testrun.ErrInvalid):
		return ending.Silent{Code: ending.Invalid}
	}
	return err
}
