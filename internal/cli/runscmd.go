package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/graph"
	"raddle.dev/internal/runs"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
)

func runsCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs COMMAND",
		Short: "List, inspect, fork and delete runs",
		Long: `The journal of a run records everything that it did. RUN is the id of a run, or a unique prefix of it; RUN@N is
a checkpoint of it, as "raddle runs show" lists them.`,
		Example: `  raddle runs ls
  raddle runs show 06ab
  raddle runs diff 06ab@3
  raddle runs fork 06ab@7`,
		Args: env.noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		runsLsCommand(env), runsShowCommand(env), runsHistoryCommand(env), runsDiffCommand(env), runsBlameCommand(env),
		runsForkCommand(env), runsEditCommand(env), runsPruneCommand(env), runsGCCommand(env), runsRmCommand(env),
		runsCancelCommand(env), runsExportCommand(env),
	)
	return cmd
}

func runsLsCommand(env *environment) *cobra.Command {
	var output, status, agent string
	var limit int
	var tree bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List runs, newest first",
		Example: `  raddle runs ls
  raddle runs ls --status waiting --output json`,
		Args: checkArgCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFormat(output, formatText, formatJSON); err != nil {
				return err
			}
			if tree && (status != "" || agent != "") {
				return badUsage("leave the other flags out", "--tree lists runs of all agents, whatever their status")
			}
			if !cmd.Flags().Changed("limit") && output == formatText {
				limit = defaultRuns
			}
			if tree {
				return listFamily(env, output, limit)
			}
			return listRuns(env, output, limit, func(r runs.Info) bool {
				return (status == "" || r.Status == status) && (agent == "" || r.Agent == agent)
			})
		},
	}
	cmd.Flags().StringVar(&output, "output", formatText, "write the list as `FORMAT`: text or json")
	cmd.Flags().StringVar(&status, "status", "", "only runs with this `STATUS`: done, waiting, failed, crashed, running, ...")
	cmd.Flags().StringVar(&agent, "agent", "", "only runs of this `AGENT`")
	cmd.Flags().BoolVar(&tree, "tree", false, "list runs, forks below what they were forked from, with the agents and nodes that worked in each")
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "at most `N` runs; 0: all (default 100 as text, all as json)")
	completeWords(cmd, "output", formatText, formatJSON)
	completeWords(cmd, "status", append(statusNames(), runs.Running)...)
	return cmd
}

// statusNames are the statuses by which runs can be listed.
func statusNames() []string {
	var names []string
	for s := graph.Done; s <= graph.Crashed; s++ {
		names = append(names, s.String())
	}
	return names
}

func listRuns(env *environment, output string, limit int, keep func(runs.Info) bool) error {
	p, err := env.openProcess()
	if err != nil {
		return err
	}
	all, err := p.Runs.ListRuns(context.Background(), "")
	if err != nil {
		return err
	}
	list, more := []runs.Info{}, 0
	for _, r := range all {
		switch {
		case !keep(r):
		case limit > 0 && len(list) == limit:
			more++
		default:
			list = append(list, r)
		}
	}
	if err := showRuns(env, output, list); err != nil {
		return err
	}
	sayMore(env, more)
	return nil
}

// defaultRuns is how many runs a list for people shows.
const defaultRuns = 100

// sayMore says how many runs a list has left out.
func sayMore(env *environment, n int) {
	if n > 0 && !env.quiet {
		env.err.PrintLine(wording.FormatCount(n, "older run") + " not listed; see all with: -n 0")
	}
}

// listFamily implements "runs ls --tree".
func listFamily(env *environment, output string, limit int) error {
	p, err := env.openProcess()
	if err != nil {
		return err
	}
	list, depths, err := p.Runs.ListRunTree(context.Background())
	if err != nil {
		return err
	}
	more := 0
	if limit > 0 && len(list) > limit {
		cut := limit // after a run with all its forks
		for cut < len(list) && depths[cut] > 0 {
			cut++
		}
		list, more = list[:cut], len(list)-cut
	}
	listed, err := readTrees(env, p, list)
	if err != nil {
		return err
	}
	defer sayMore(env, more)
	if output == formatJSON {
		return env.printJSON(listed)
	}
	return printTable(env, list, func(table *term.Table, i int) {
		id := strings.Repeat("  ", depths[i]) + list[i].Run
		if from := list[i].From; depths[i] > 0 && from != nil {
			id += fmt.Sprintf(" (from @%d)", from.At)
		}
		addRunRow(table, id, &list[i])
		addBranchRows(table, &listed[i].Tree, depths[i])
	})
}

// showRuns writes a list of runs.
func showRuns(env *environment, output string, list []runs.Info) error {
	if output == formatJSON {
		return env.printJSON(list)
	}
	return printTable(env, list, func(table *term.Table, i int) { addRunRow(table, list[i].Run, &list[i]) })
}

// printTable writes a table with the lines that row makes of each run.
func printTable(env *environment, list []runs.Info, row func(table *term.Table, i int)) error {
	if len(list) == 0 {
		if !env.quiet {
			env.err.PrintLine("no runs")
		}
		return nil
	}
	table := term.NewTable("RUN", "AGENT", "STATUS", "STARTED", "WAITS FOR")
	for i := range list {
		row(table, i)
	}
	width := 0
	if env.out.IsTerminal() {
		width, _ = env.out.Size()
	}
	env.out.PrintText(table.Format(width))
	return nil
}

// addRunRow adds the row of a run.
func addRunRow(table *term.Table, id string, r *runs.Info) {
	agent := r.Agent
	if r.Session != "" {
		agent += " -s " + r.Session
	}
	table.AddRow(id, agent, string(r.Status), formatAge(time.Since(r.Started)), waitsFor(*r))
}

// waitsFor returns the last column of the list: what a run waits for, or why it failed.
func waitsFor(r runs.Info) string {
	switch {
	case r.Status == runs.Running && r.Host != "":
		return fmt.Sprintf("(process %d on %s)", r.PID, plainText(r.Host))
	case r.Status == runs.Running && r.PID != 0:
		return fmt.Sprintf("(process %d)", r.PID)
	case len(r.Questions) > 0 && !r.Final:
		first, _, _ := strings.Cut(r.Questions[0].Prompt, "\n")
		text := r.Questions[0].ID + ": " + wording.CutText(first, 60, "…")
		if more := len(r.Questions) - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more)", more)
		}
		return text
	case r.Reason != "" && (r.Status == graph.Failed.String() || r.Status == runs.Damaged):
		first, _, _ := strings.Cut(r.Reason, "\n")
		return "(" + wording.CutText(first, 70, "…") + ")"
	}
	return ""
}

// formatAge returns a time in the past in a form for people.
func formatAge(d time.Duration) string {
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

// printJSON writes a value on one line.
func (env *environment) printJSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	env.out.PrintText(string(b))
	return nil
}

func runsRmCommand(env *environment) *cobra.Command {
	var finished, sessions bool
	cmd := &cobra.Command{
		Use:   "rm RUN...",
		Short: "Delete runs permanently",
		Long: `Removes runs with all their records. --all-finished removes the runs that are over, but not sessions: a session
is a conversation, and is removed only if you name it or add --sessions.`,
		Example: `  raddle runs rm 06ab 06ac
  raddle runs rm --all-finished`,
		ValidArgsFunction: completeRuns(env, 0, func(r runs.Info) bool { return r.Status != runs.Running }),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case finished && len(args) > 0:
				return badUsage("leave one of them out", "--all-finished already selects the runs")
			case finished:
				return removeFinished(env, sessions)
			case sessions:
				return badUsage("add --all-finished, or name the sessions", "--sessions goes with --all-finished")
			case len(args) == 0:
				return badUsage("usage: "+cmd.UseLine(), "raddle runs rm: the id of a run is missing")
			}
			return removeRuns(env, args)
		},
	}
	cmd.Flags().BoolVar(&finished, "all-finished", false, "remove all runs that are over; those that wait or failed stay, and so do sessions")
	cmd.Flags().BoolVar(&sessions, "sessions", false, "with --all-finished: remove sessions, too, whose last turn is over")
	return cmd
}

// removeFinished removes the runs that are over, and with sessions also the sessions whose
// last turn is over.
func removeFinished(env *environment, sessions bool) error {
	p, err := env.openProcess()
	if err != nil {
		return err
	}
	list, err := p.Runs.ListRuns(context.Background(), "")
	if err != nil {
		return err
	}
	var ids, conversations []string
	for _, r := range list {
		switch {
		case !r.Final:
		case r.Session == "":
			ids = append(ids, r.Run)
		default:
			conversations = append(conversations, r.Run)
		}
	}
	if err := p.Runs.RemoveRuns(context.Background(), ids, env.reportRemoved); err != nil {
		return err
	}
	if !sessions {
		if n := len(conversations); n > 0 && !env.quiet {
			env.err.PrintLine(fmt.Sprintf("raddle: %s not removed; to remove sessions, too: raddle runs rm --all-finished --sessions", wording.FormatCount(n, "session")))
		}
		conversations = nil
	}
	return removeRuns(env, conversations)
}

// reportRemoved says that a run was removed.
func (env *environment) reportRemoved(id string) {
	if !env.quiet {
		env.err.PrintLine("removed run " + id)
	}
}

func removeRuns(env *environment, ids []string) error {
	p, err := env.openProcess()
	if err != nil {
		return err
	}
	for _, id := range ids {
		id, err := p.Runs.RemoveRun(context.Background(), id)
		if err != nil {
			return err
		}
		env.reportRemoved(id)
	}
	return compactStore(env, p)
}
