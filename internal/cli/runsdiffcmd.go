package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/app"
	"raddle.dev/internal/runs"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
)

func runsDiffCommand(env *environment) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "diff RUN[@N] [RUN[@N]]",
		Short: "Compare the state of two checkpoints, or of two runs",
		Long: `RUN@N is a checkpoint of a run, as "raddle runs show" lists them; RUN alone is the current state of the run.
With one argument, RUN@N is compared with the current state, and RUN with its own start.`,
		Example: `  raddle runs diff 06ab@3
  raddle runs diff 06ab@3 06ab@7
  raddle runs diff 06ab 06ac`,
		Args:              checkArgCount(1, 2, "a checkpoint"),
		ValidArgsFunction: completePoints(env, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkFormat(output, formatText, formatJSON); err != nil {
				return err
			}
			return printDiff(env, args, output)
		},
	}
	cmd.Flags().StringVar(&output, "output", formatText, "write the differences as `FORMAT`: text or json")
	completeWords(cmd, "output", formatText, formatJSON)
	return cmd
}

func printDiff(env *environment, args []string, output string) error {
	p, err := env.openProcess()
	if err != nil {
		return err
	}
	from, to, err := diffPoints(p, args)
	if err != nil {
		return err
	}
	was, is, changes, err := p.Runs.DiffPoints(context.Background(), from, to)
	if err != nil {
		return err
	}
	if output == formatJSON {
		return env.printJSON(struct {
			From    runs.Point    `json:"from"`
			To      runs.Point    `json:"to"`
			Changes []runs.Change `json:"changes"`
		}{was, is, changes})
	}
	if !env.quiet {
		env.err.PrintLine(fmt.Sprintf("raddle: from %s to %s: %s", was, is, formatDifferences(len(changes))))
	}
	for _, c := range changes {
		env.out.PrintText(changeText(&c, env.out.Colors))
	}
	return nil
}

func formatDifferences(n int) string {
	if n == 0 {
		return "no differences"
	}
	return wording.FormatCount(n, "key") + " differ"
}

// diffPoints returns the two points that diff compares.
func diffPoints(p *app.Process, args []string) (from, to string, err error) {
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
	list, err := p.Runs.ListCheckpoints(context.Background(), run)
	if err != nil || len(list) == 0 {
		return run, run, err
	}
	return runs.Point{Run: run, At: list[len(list)-1].At}.String(), run, nil
}

// changeText returns a change for people: the sign of what happened, the key, and the old
// and the new value, below the key if they are long.
func changeText(c *runs.Change, colors term.Colors) string {
	sign, color := "~", term.Yellow
	switch {
	case c.Was == nil:
		sign, color = "+", term.Green
	case c.Is == nil:
		sign, color = "-", term.Red
	}
	head := colors.Paint(color, sign) + " " + colors.Paint(term.Bold, c.Path+c.Key)
	var was, is []string
	if c.Was != nil {
		was = valueLines(c.Was)
	}
	if c.Is != nil {
		is = valueLines(c.Is)
	}
	switch {
	case c.Was == nil && isShort(is):
		return head + ": " + is[0]
	case c.Is == nil && isShort(was):
		return head + ": " + was[0]
	case c.Was != nil && c.Is != nil && isShort(was) && isShort(is):
		return head + ": " + was[0] + " -> " + is[0]
	}
	return head + "\n" + formatDiff(was, is, colors)
}

// formatDiff shows the lines in which two values differ.
func formatDiff(was, is []string, colors term.Colors) string {
	head := 0
	for head < min(len(was), len(is)) && was[head] == is[head] {
		head++
	}
	tail := 0
	for tail < min(len(was), len(is))-head && was[len(was)-1-tail] == is[len(is)-1-tail] {
		tail++
	}
	var b strings.Builder
	same := func(n int) {
		if n > 0 {
			fmt.Fprintf(&b, "    (%s alike)\n", wording.FormatCount(n, "line"))
		}
	}
	same(head)
	for _, line := range was[head : len(was)-tail] {
		b.WriteString("  " + colors.Paint(term.Red, "- "+line) + "\n")
	}
	for _, line := range is[head : len(is)-tail] {
		b.WriteString("  " + colors.Paint(term.Green, "+ "+line) + "\n")
	}
	same(tail)
	return b.String()
}
