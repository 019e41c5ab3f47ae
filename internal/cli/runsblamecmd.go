package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/internal/runs"
	"raddle.dev/internal/term"
)

func runsBlameCommand(env *environment) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "blame RUN[@N] KEY",
		Short: "Show what wrote a key of the state, newest first",
		Long:  "For a fork, the list continues in the run that it was forked from.",
		Example: `  raddle runs blame 06ab owner
  raddle runs blame 06ab@7 owner --output json`,
		Args:              checkArgCount(2, 2, "the id of a run, or a key,"),
		ValidArgsFunction: completePoints(env, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkFormat(output, formatText, formatJSON); err != nil {
				return err
			}
			return printBlame(env, args[0], args[1], output)
		},
	}
	cmd.Flags().StringVar(&output, "output", formatText, "write the list as `FORMAT`: text or json")
	completeWords(cmd, "output", formatText, formatJSON)
	return cmd
}

func printBlame(env *environment, run, key, output string) error {
	p, err := env.openProcess()
	if err != nil {
		return err
	}
	authors, err := p.Runs.BlameKey(context.Background(), run, key)
	if err != nil {
		return err
	}
	if output == formatJSON {
		return env.printJSON(authors)
	}
	table := term.NewTable("CHECKPOINT", "TIME", "WRITTEN BY")
	for _, a := range authors {
		table.AddRow(a.Point.String(), a.Time.Local().Format(time.DateTime), describeAuthor(&a))
	}
	env.out.PrintText(table.Format(0))
	return nil
}

// describeAuthor says what wrote a key.
func describeAuthor(a *runs.Author) string {
	switch {
	case a.From != nil:
		return "before the fork of " + a.From.String()
	case a.Kind == "start":
		return "the start"
	case a.Kind == "call":
		return "the call of " + strings.TrimSuffix(a.Path, "/")
	case a.Kind == "edit":
		return "an edit"
	case a.Kind == "snapshot":
		return "records that were pruned"
	}
	var names []string
	for _, n := range a.Nodes {
		names = append(names, a.Path+n)
	}
	return joinWords(names)
}
