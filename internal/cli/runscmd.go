package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/graph"
	"raddle.dev/internal/app"
)

func (sh *shell) runsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs COMMAND",
		Short: "Look at runs, go back in them, and remove them",
		Long: `Everything that a run did is in its journal. RUN is the id of a run, or enough of its beginning; RUN@N is
a checkpoint of it, as "raddle runs show" lists them.`,
		Example: `  raddle runs ls
  raddle runs show 06ab
  raddle runs diff 06ab@3
  raddle runs fork 06ab@7`,
		Args: sh.noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		sh.runsLsCommand(), sh.runsShowCommand(), sh.runsHistoryCommand(), sh.runsDiffCommand(), sh.runsBlameCommand(),
		sh.runsForkCommand(), sh.runsEditCommand(), sh.runsPruneCommand(), sh.runsGCCommand(), sh.runsRmCommand(),
		sh.runsCancelCommand(), sh.runsExportCommand(),
	)
	return cmd
}

func (sh *shell) runsLsCommand() *cobra.Command {
	var output, status, agent string
	var limit int
	var tree bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List runs, newest first",
		Example: `  raddle runs ls
  raddle runs ls --status waiting --output json`,
		Args: want(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if err := checkFormat(output, formatText, formatJSON); err != nil {
				return err
			}
			if tree && (status != "" || agent != "" || limit != 0) {
				return badUsage("leave the other flags out", "--tree lists all runs")
			}
			if tree {
				return sh.listFamily(output)
			}
			return sh.listRuns(output, limit, func(r app.RunInfo) bool {
				return (status == "" || r.Status == status) && (agent == "" || r.Agent == agent)
			})
		},
	}
	cmd.Flags().StringVar(&output, "output", formatText, "write the list as `FORMAT`: text or json")
	cmd.Flags().StringVar(&status, "status", "", "only runs with this `STATUS`: done, waiting, failed, crashed, running, ...")
	cmd.Flags().StringVar(&agent, "agent", "", "only runs of this `AGENT`")
	cmd.Flags().BoolVar(&tree, "tree", false, "list all runs, forks below what they were forked from, with the agents and nodes that worked in each")
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "at most `N` runs (0: all)")
	fixed(cmd, "output", formatText, formatJSON)
	fixed(cmd, "status", append(statusNames(), app.Running)...)
	return cmd
}

// statusNames are the statuses that a run can be listed with.
func statusNames() []string {
	var names []string
	for s := graph.Done; s <= graph.Crashed; s++ {
		names = append(names, s.String())
	}
	return names
}

func (sh *shell) listRuns(output string, limit int, keep func(app.RunInfo) bool) error {
	p, err := sh.app()
	if err != nil {
		return err
	}
	all, err := p.Runs(context.Background(), "")
	if err != nil {
		return err
	}
	runs := []app.RunInfo{}
	for _, r := range all {
		if keep(r) && (limit <= 0 || len(runs) < limit) {
			runs = append(runs, r)
		}
	}
	return sh.showRuns(output, runs)
}

// listFamily is "runs ls --tree".
func (sh *shell) listFamily(output string) error {
	p, err := sh.app()
	if err != nil {
		return err
	}
	runs, depths, err := p.Family(context.Background())
	if err != nil {
		return err
	}
	listed, err := sh.trees(p, runs)
	if err != nil {
		return err
	}
	if output == formatJSON {
		return sh.json(listed)
	}
	return sh.tabulate(runs, func(w io.Writer, i int) {
		id := strings.Repeat("  ", depths[i]) + runs[i].Run
		if from := runs[i].From; depths[i] > 0 && from != nil {
			id += fmt.Sprintf(" (from @%d)", from.At)
		}
		tabRow(w, id, &runs[i])
		branches(w, &listed[i].Tree, depths[i])
	})
}

// showRuns writes a list of runs.
func (sh *shell) showRuns(output string, runs []app.RunInfo) error {
	if output == formatJSON {
		return sh.json(runs)
	}
	return sh.tabulate(runs, func(w io.Writer, i int) { tabRow(w, runs[i].Run, &runs[i]) })
}

// tabulate writes a table with the lines that row makes of each run.
func (sh *shell) tabulate(runs []app.RunInfo, row func(w io.Writer, i int)) error {
	if len(runs) == 0 {
		if !sh.quiet {
			sh.err.line("no runs")
		}
		return nil
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tAGENT\tSTATUS\tSTARTED\tWAITS FOR")
	for i := range runs {
		row(w, i)
	}
	_ = w.Flush() // it writes to memory
	for line := range strings.Lines(b.String()) {
		sh.out.text(strings.TrimRight(line, " \n"))
	}
	return nil
}

// tabRow is the line of a run.
func tabRow(w io.Writer, id string, r *app.RunInfo) {
	agent := r.Agent
	if r.Session != "" {
		agent += " -s " + r.Session
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", id, agent, r.Status, ago(time.Since(r.Started)), waitsFor(*r))
}

// waitsFor is the last column of the list: what a run waits for, or why it failed.
func waitsFor(r app.RunInfo) string {
	switch {
	case r.Status == app.Running && r.PID != 0:
		return fmt.Sprintf("(process %d)", r.PID)
	case len(r.Questions) > 0 && !r.Final:
		first, _, _ := strings.Cut(r.Questions[0].Prompt, "\n")
		text := r.Questions[0].ID + ": " + shorten(first, 60)
		if more := len(r.Questions) - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more)", more)
		}
		return text
	case r.Reason != "" && r.Status == graph.Failed.String():
		first, _, _ := strings.Cut(r.Reason, "\n")
		return "(" + shorten(first, 70) + ")"
	}
	return ""
}

func shorten(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// ago is a time in the past for people.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}

// json writes a value as one line.
func (sh *shell) json(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	sh.out.text(string(b))
	return nil
}

func (sh *shell) runsRmCommand() *cobra.Command {
	var finished bool
	cmd := &cobra.Command{
		Use:   "rm RUN...",
		Short: "Remove runs for good",
		Example: `  raddle runs rm 06ab 06ac
  raddle runs rm --all-finished`,
		ValidArgsFunction: sh.completeRuns(0, func(r app.RunInfo) bool { return r.Status != app.Running }),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case finished && len(args) > 0:
				return badUsage("leave one of them out", "--all-finished names runs already")
			case finished:
				return sh.removeFinished()
			case len(args) == 0:
				return badUsage("usage: "+cmd.UseLine(), "raddle runs rm: the id of a run is missing")
			}
			return sh.remove(args)
		},
	}
	cmd.Flags().BoolVar(&finished, "all-finished", false, "remove all runs that are over; those that wait or failed stay")
	return cmd
}

func (sh *shell) removeFinished() error {
	p, err := sh.app()
	if err != nil {
		return err
	}
	runs, err := p.Runs(context.Background(), "")
	if err != nil {
		return err
	}
	var ids []string
	for _, r := range runs {
		if r.Final {
			ids = append(ids, r.Run)
		}
	}
	return sh.remove(ids)
}

func (sh *shell) remove(ids []string) error {
	p, err := sh.app()
	if err != nil {
		return err
	}
	for _, id := range ids {
		id, err := p.Remove(context.Background(), id)
		if err != nil {
			return err
		}
		if !sh.quiet {
			sh.err.line("removed run " + id)
		}
	}
	return nil
}
