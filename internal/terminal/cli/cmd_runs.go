package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/runview"
)

func newRunsCommand(env *environment) *cobra.Command {
	list := newRunsLsCommand(&env.opener)
	cmd := newGroup(&env.opener, &cobra.Command{
		Use:   "runs COMMAND",
		Short: "List, inspect, fork and delete runs",
		Long: `The journal of a run records everything that it did. RUN is the id of a run, or a unique prefix of it; last is
the newest run, and last~1 the one before it, in the order of "raddle runs ls". RUN@N is a checkpoint of
a run, as "raddle runs show" lists them. Without a command, raddle lists the runs.`,
		Example: `  raddle runs
  raddle runs show last
  raddle runs diff last@3
  raddle runs fork last@7`,
	},
		list, newRunsShowCommand(&env.opener), newRunsHistoryCommand(&env.opener), newRunsDiffCommand(&env.opener), newRunsBlameCommand(&env.opener),
		newRunsForkCommand(env), newRunsEditCommand(&env.opener), newRunsPruneCommand(&env.opener), newRunsGCCommand(&env.opener), newRunsRmCommand(&env.opener),
		newRunsMigrateCommand(&env.opener), newRunsCancelCommand(&env.opener), newRunsMessageCommand(&env.opener), newRunsExportCommand(&env.opener), newRunsShareCommand(&env.opener), newRunsImportCommand(&env.opener))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		list.SetContext(cmd.Context())
		return list.RunE(list, nil)
	}
	return cmd
}

// runsLsOptions are the flags of "runs ls".
type runsLsOptions struct {
	output, status, agent string
	limit                 int // negative: not set
	tree                  bool
}

func newRunsLsCommand(op *opener) *cobra.Command {
	var opts runsLsOptions
	cmd := newCommand(op, &opts, runRunsLs, &cobra.Command{
		Use:   "ls",
		Short: "List runs, newest first",
		Example: `  raddle runs ls
  raddle runs ls --status waiting --output json`,
		Args: checkArgCount(0, 0, ""),
	})
	addOutputFlag(cmd, &opts.output, "write the list as `FORMAT`: text or json")
	cmd.Flags().StringVar(&opts.status, "status", "", "only runs with this `STATUS`: "+strings.Join(runs.Statuses(), ", "))
	cmd.Flags().StringVar(&opts.agent, "agent", "", "only runs of this `AGENT`")
	cmd.Flags().BoolVar(&opts.tree, "tree", false, "list runs, forks below what they were forked from, with the agents and nodes that worked in each")
	cmd.Flags().IntVarP(&opts.limit, "limit", "n", -1, "at most `N` runs; 0: all (default 100 as text, all as json)")
	completeWords(cmd, "status", runs.Statuses()...)
	return cmd
}

// defaultRuns is how many runs a list for people shows.
const defaultRuns = 100

func runRunsLs(ctx context.Context, con *console.Console, p *app.Process, opts runsLsOptions, _ []string) error {
	if opts.status != "" && !slices.Contains(runs.Statuses(), opts.status) {
		return ending.BadChoice("--status", opts.status, runs.Statuses())
	}
	if opts.limit < 0 && opts.output == console.FormatText {
		opts.limit = defaultRuns
	}
	if opts.tree {
		return printRunTree(ctx, con, p, opts)
	}
	list := []runs.Info{}
	more := 0
	for r, err := range p.Runs.EachRun(ctx, runs.RunRange{Status: opts.status, Agent: opts.agent}) {
		switch {
		case err != nil:
			return err
		case opts.limit <= 0 || len(list) < opts.limit:
			list = append(list, r)
			continue
		}
		if more++; more == mostCounted {
			break
		}
	}
	defer noteOlderRuns(con, more)
	if opts.output == console.FormatJSON {
		return con.PrintJSON(list)
	}
	sums, err := summarizeRuns(ctx, p, list)
	if err != nil {
		return err
	}
	rows := make([]runview.Row, len(list))
	for i := range list {
		rows[i] = runview.NewRow(p, list[i].Run, &list[i], sums[i], con.MarksStatus())
	}
	printRuns(con, rows)
	return nil
}

// wants reports whether a run is to be listed.
func (o *runsLsOptions) wants(r *runs.Info) bool {
	return (o.status == "" || r.Status == o.status) && (o.agent == "" || r.Agent == o.agent)
}

// summarizeRuns reads the summaries of runs for a list. A damaged run has none; one that turns out to be damaged
// becomes so in the list.
func summarizeRuns(ctx context.Context, p *app.Process, list []runs.Info) ([]runs.Summary, error) {
	sums := make([]runs.Summary, len(list))
	for i := range list {
		if list[i].Status == runs.Damaged {
			continue
		}
		var err error
		if sums[i], err = p.Runs.SummarizeRun(ctx, &list[i]); err != nil {
			if !runs.IsDamage(err) {
				return nil, err
			}
			list[i].Status, list[i].Reason = runs.Damaged, err.Error()
		}
	}
	return sums, nil
}

// mostCounted is how many runs are counted that a list leaves out.
const mostCounted = 300

// noteOlderRuns says how many runs a list has left out.
func noteOlderRuns(con *console.Console, n int) {
	switch {
	case n >= mostCounted:
		con.PrintNote("%d older runs or more not listed; see all with: -n 0", n)
	case n > 0:
		con.PrintNote("%s not listed; see all with: -n 0", wording.FormatCount(n, "older run"))
	}
}

// printRunTree implements "runs ls --tree".
func printRunTree(ctx context.Context, con *console.Console, p *app.Process, opts runsLsOptions) error {
	enough := 0
	if opts.limit > 0 && opts.status == "" && opts.agent == "" {
		enough = opts.limit + mostCounted
	}
	list, depths, err := p.Runs.ListRunTree(ctx, enough)
	if err != nil {
		return err
	}
	list, depths = opts.filterTree(list, depths)
	more := 0
	if opts.limit > 0 && len(list) > opts.limit {
		cut := opts.limit // after a run with all its forks
		for cut < len(list) && depths[cut] > 0 {
			cut++
		}
		list, more = list[:cut], len(list)-cut
	}
	listed, err := readTrees(ctx, p, list)
	if err != nil {
		return err
	}
	defer noteOlderRuns(con, more)
	if opts.output == console.FormatJSON {
		return con.PrintJSON(listed)
	}
	sums, err := summarizeRuns(ctx, p, list)
	if err != nil {
		return err
	}
	var rows []runview.Row
	for i := range list {
		id := strings.Repeat("  ", depths[i]) + list[i].Run
		if from := list[i].From; depths[i] > 0 && from != nil {
			id += fmt.Sprintf(" (from @%d)", from.At)
		}
		rows = append(rows, runview.NewRow(p, id, &list[i], sums[i], con.MarksStatus()))
		rows = runview.AppendBranches(rows, &listed[i].Tree, depths[i])
	}
	printRuns(con, rows)
	return nil
}

// filterTree leaves out the runs that are not wanted; a fork of one of them has the depth of the nearest listed run
// above it.
func (o *runsLsOptions) filterTree(all []runs.Info, depths []int) (list []runs.Info, kept []int) {
	var above []int // depths in the whole tree of the listed runs above
	for i := range all {
		for len(above) > 0 && above[len(above)-1] >= depths[i] {
			above = above[:len(above)-1]
		}
		if o.wants(&all[i]) {
			list = append(list, all[i])
			kept = append(kept, len(above))
			above = append(above, depths[i])
		}
	}
	return list, kept
}

// printRuns writes a list of runs as a table.
func printRuns(con *console.Console, rows []runview.Row) {
	if len(rows) == 0 {
		con.PrintNote("no runs")
		return
	}
	table := term.NewTable(runview.Columns...)
	for _, r := range rows {
		table.AddRow(r)
	}
	con.PrintTable(table)
}

// listedRun is a run as "runs ls --tree --output json" writes it.
type listedRun struct {
	runs.Info
	Tree overview.Branch `json:"tree"`
}

// readTrees reads the parts that worked in each of some runs.
func readTrees(ctx context.Context, p *app.Process, list []runs.Info) ([]listedRun, error) {
	listed := []listedRun{}
	for _, r := range list {
		tree, err := readTree(ctx, p, r.Run)
		if runs.IsDamage(err) {
			r.Status, r.Reason = runs.Damaged, err.Error()
			err = nil
		}
		if err != nil {
			return nil, err
		}
		listed = append(listed, listedRun{r, tree})
	}
	return listed, nil
}

// readTree returns the parts that worked in a run.
func readTree(ctx context.Context, p *app.Process, run string) (overview.Branch, error) {
	v, err := p.Runs.ReadView(ctx, run)
	if err != nil {
		return overview.Branch{}, err
	}
	tree, err := v.ReadTree(ctx)
	if err != nil {
		return overview.Branch{}, err
	}
	return overview.TreeOf(p, tree), nil
}
