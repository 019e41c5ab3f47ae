// Package diffview is the command that compares states of runs, and two runs.
package diffview

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/story"
	"raddle.dev/internal/report/versus"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
)

// Options are the flags of the command.
type Options struct {
	Output string
}

// Describe returns the command without what it does.
func Describe() *cobra.Command {
	return &cobra.Command{
		Use:   "diff RUN[@N] [RUN[@N]]",
		Short: "Compare the state of two checkpoints, or two runs",
		Long: `RUN@N is a checkpoint of a run, as "raddle runs show" lists them; RUN alone is the current state of the run.
With one argument, RUN@N is compared with the current state, and RUN with its own start.
Of two runs, raddle also says where they part, and what the difference in time and cost comes from. The first one is A.`,
		Example: `  raddle runs diff last@3
  raddle runs diff last@3 last@7
  raddle runs diff last last~1`,
	}
}

// Run implements the view.
func (o *Options) Run(ctx context.Context, con *console.Console, p *app.Process, args []string) error {
	from, to, err := findPoints(ctx, p, args)
	if err != nil {
		return err
	}
	was, is, changes, err := p.Runs.DiffPoints(ctx, from, to)
	if err != nil {
		return err
	}
	comparison, err := compareRuns(ctx, p, was, is)
	if err != nil {
		return err
	}
	if o.Output == console.FormatJSON {
		return con.PrintJSON(struct {
			From       runs.Point         `json:"from"`
			To         runs.Point         `json:"to"`
			Changes    []runs.Change      `json:"changes"`
			Comparison *versus.Comparison `json:"comparison,omitempty"` // of two runs
		}{was, is, changes, comparison})
	}
	if comparison != nil {
		con.PrintNote("raddle: A is %s, B is %s: %s", was, is, comparison.Text)
		if s := comparison.First; s != nil {
			con.PrintNote("raddle: first difference%s: %s", s.At(), s.Text)
		}
	}
	differences := "no differences"
	switch n := len(changes); {
	case n == 1:
		differences = "1 key differs"
	case n > 1:
		differences = wording.FormatCount(n, "key") + " differ"
	}
	con.PrintNote("raddle: from %s to %s: %s", was, is, differences)
	for _, c := range changes {
		con.Out.PrintText(story.FormatChange(&c, con.Out.Colors))
	}
	return nil
}

// compareRuns compares what two runs did up to two points; nil: they are points of one run.
func compareRuns(ctx context.Context, p *app.Process, was, is runs.Point) (*versus.Comparison, error) {
	if was.Run == is.Run {
		return nil, nil
	}
	a, b, err := versus.ReadPair(ctx, p.Runs, was.String(), is.String())
	if err != nil {
		return nil, err
	}
	return versus.CompareRuns(a, b, p.Models.UsageCost), nil
}

// findPoints returns the two points that diff compares.
func findPoints(ctx context.Context, p *app.Process, args []string) (from, to string, err error) {
	if len(args) == 2 {
		if strings.HasPrefix(args[1], "@") {
			run, _, _ := strings.Cut(args[0], "@")
			return args[0], run + args[1], nil
		}
		return args[0], args[1], nil
	}
	run, at, err := runs.SplitPoint(args[0])
	if err != nil || at > 0 {
		return args[0], run, err
	}
	list, err := p.Runs.ListCheckpoints(ctx, run)
	if err != nil || len(list) == 0 {
		return run, run, err
	}
	return runs.Point{Run: run, At: list[len(list)-1].At}.String(), run, nil
}
