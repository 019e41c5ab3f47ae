package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/graph/history"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/story"
	"raddle.dev/internal/terminal/console"
)

// runsHistoryOptions are the flags of "runs history".
type runsHistoryOptions struct {
	output string
	raw    bool
}

func newRunsHistoryCommand(op *opener) *cobra.Command {
	var opts runsHistoryOptions
	cmd := newCommand(op, &opts, runRunsHistory, &cobra.Command{
		Use:   "history RUN",
		Short: "List what happened in a run, from its journal",
		Long: `Lists what happened, oldest first: replies of models, calls of tools, questions and answers, and which node ran when.
The number of each line is that of the record. --raw lists every record with its codes, newest first, as the JSON does.`,
		Example: `  raddle runs history last
  raddle runs history last --raw`,
		Args:              checkArgCount(1, 1, "the id of a run"),
		ValidArgsFunction: completeRuns(op, 1, nil),
	})
	addOutputFlag(cmd, &opts.output, "write the list as `FORMAT`: text or json")
	cmd.Flags().BoolVar(&opts.raw, "raw", false, "list every record with its codes, newest first")
	return cmd
}

// historyLine is a record as "runs history --output json" writes it.
type historyLine struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	Path string    `json:"path,omitempty"`
	What string    `json:"what,omitempty"`
	Next []string  `json:"next,omitempty"`
	By   string    `json:"by,omitempty"` // who answered, forked, edited or cancelled, if the server knows
}

func lineOf(e *history.Entry) historyLine {
	return historyLine{e.Seq, e.Time, e.Kind.String(), e.Path, e.What, e.Next, e.By}
}

func runRunsHistory(ctx context.Context, con *console.Console, p *app.Process, opts runsHistoryOptions, args []string) error {
	if opts.output == console.FormatText && !opts.raw {
		return printStory(ctx, con, p, args[0])
	}
	_, entries, err := p.Runs.ReadHistory(ctx, args[0])
	if err != nil {
		return err
	}
	lines := []historyLine{}
	for _, e := range entries {
		lines = append(lines, lineOf(&e))
	}
	return con.PrintResult(opts.output, lines, func() string {
		var b strings.Builder
		for _, l := range lines {
			text := fmt.Sprintf("%6d  %s  %-9s %s", l.Seq, l.Time.Local().Format("15:04:05.000"), l.Kind, l.Path+l.What)
			if len(l.Next) > 0 {
				text += " -> " + strings.Join(l.Next, ", ")
			}
			if l.By != "" {
				text += " (by " + term.CleanText(l.By) + ")"
			}
			b.WriteString(strings.TrimRight(text, " ") + "\n")
		}
		return b.String()
	})
}

// printStory prints what happened in a run, a line for each moment. A line above the first moment of a day names the
// day.
func printStory(ctx context.Context, con *console.Console, p *app.Process, run string) error {
	v, err := p.Runs.ReadSession(ctx, run)
	if err != nil {
		return err
	}
	moments := v.Moments()
	con.Out.PrintText(story.NewDescriber(moments, &v.Info).DescribeMoments(moments, con.Out.Paint))
	return nil
}
