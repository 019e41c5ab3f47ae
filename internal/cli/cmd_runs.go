package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/graph"
	"raddle.dev/internal/runs"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
)

func newRunsCommand(env *environment) *cobra.Command {
	return newGroup(env, &cobra.Command{
		Use:   "runs COMMAND",
		Short: "List, inspect, fork and delete runs",
		Long: `The journal of a run records everything that it did. RUN is the id of a run, or a unique prefix of it; RUN@N is
a checkpoint of it, as "raddle runs show" lists them.`,
		Example: `  raddle runs ls
  raddle runs show 06ab
  raddle runs diff 06ab@3
  raddle runs fork 06ab@7`,
	},
		newRunsLsCommand(env), newRunsShowCommand(env), newRunsHistoryCommand(env), newRunsDiffCommand(env), newRunsBlameCommand(env),
		newRunsForkCommand(env), newRunsEditCommand(env), newRunsPruneCommand(env), newRunsGCCommand(env), newRunsRmCommand(env),
		newRunsCancelCommand(env), newRunsExportCommand(env))
}

// runsLsOptions are the flags of "runs ls".
type runsLsOptions struct {
	output, status, agent string
	limit                 int // negative: not set
	tree                  bool
}

func newRunsLsCommand(env *environment) *cobra.Command {
	var opts runsLsOptions
	cmd := newCommand(env, &opts, runRunsLs, &cobra.Command{
		Use:   "ls",
		Short: "List runs, newest first",
		Example: `  raddle runs ls
  raddle runs ls --status waiting --output json`,
		Args: checkArgCount(0, 0, ""),
	})
	addOutputFlag(cmd, &opts.output, "write the list as `FORMAT`: text or json")
	cmd.Flags().StringVar(&opts.status, "status", "", "only runs with this `STATUS`: done, waiting, failed, crashed, running, ...")
	cmd.Flags().StringVar(&opts.agent, "agent", "", "only runs of this `AGENT`")
	cmd.Flags().BoolVar(&opts.tree, "tree", false, "list runs, forks below what they were forked from, with the agents and nodes that worked in each")
	cmd.Flags().IntVarP(&opts.limit, "limit", "n", -1, "at most `N` runs; 0: all (default 100 as text, all as json)")
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

// defaultRuns is how many runs a list for people shows.
const defaultRuns = 100

func runRunsLs(ctx context.Context, env *environment, opts runsLsOptions, _ []string) error {
	if opts.limit < 0 && opts.output == formatText {
		opts.limit = defaultRuns
	}
	if opts.tree && (opts.status != "" || opts.agent != "") {
		return badUsage("leave the other flags out", "--tree lists runs of all agents, whatever their status")
	}
	if opts.tree {
		return printRunTree(ctx, env, opts)
	}
	all, err := env.process.Runs.ListRuns(ctx, "")
	if err != nil {
		return err
	}
	list, more := []runs.Info{}, 0
	for _, r := range all {
		switch {
		case opts.status != "" && r.Status != opts.status || opts.agent != "" && r.Agent != opts.agent:
		case opts.limit > 0 && len(list) == opts.limit:
			more++
		default:
			list = append(list, r)
		}
	}
	defer noteOlderRuns(env, more)
	if opts.output == formatJSON {
		return env.printJSON(list)
	}
	printRuns(env, list, func(table *term.Table, i int) { addRunRow(table, list[i].Run, &list[i]) })
	return nil
}

// noteOlderRuns says how many runs a list has left out.
func noteOlderRuns(env *environment, n int) {
	if n > 0 {
		env.printNote("%s not listed; see all with: -n 0", wording.FormatCount(n, "older run"))
	}
}

// printRunTree implements "runs ls --tree".
func printRunTree(ctx context.Context, env *environment, opts runsLsOptions) error {
	list, depths, err := env.process.Runs.ListRunTree(ctx)
	if err != nil {
		return err
	}
	more := 0
	if opts.limit > 0 && len(list) > opts.limit {
		cut := opts.limit // after a run with all its forks
		for cut < len(list) && depths[cut] > 0 {
			cut++
		}
		list, more = list[:cut], len(list)-cut
	}
	listed, err := readTrees(ctx, env.process, list)
	if err != nil {
		return err
	}
	defer noteOlderRuns(env, more)
	if opts.output == formatJSON {
		return env.printJSON(listed)
	}
	printRuns(env, list, func(table *term.Table, i int) {
		id := strings.Repeat("  ", depths[i]) + list[i].Run
		if from := list[i].From; depths[i] > 0 && from != nil {
			id += fmt.Sprintf(" (from @%d)", from.At)
		}
		addRunRow(table, id, &list[i])
		addBranchRows(table, &listed[i].Tree, depths[i])
	})
	return nil
}

// printRuns writes a table with the rows that addRow makes of each run.
func printRuns(env *environment, list []runs.Info, addRow func(table *term.Table, i int)) {
	if len(list) == 0 {
		env.printNote("no runs")
		return
	}
	table := term.NewTable("RUN", "AGENT", "STATUS", "STARTED", "WAITS FOR")
	for i := range list {
		addRow(table, i)
	}
	width := 0
	if env.out.IsTerminal() {
		width, _ = env.out.Size()
	}
	env.out.PrintText(table.Format(width))
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
