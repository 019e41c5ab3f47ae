package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/report/story"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/team"
)

func newRunsCommand(env *environment) *cobra.Command {
	list := newRunsLsCommand(env)
	cmd := newGroup(env, &cobra.Command{
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
		list, newRunsShowCommand(env), newRunsHistoryCommand(env), newRunsDiffCommand(env), newRunsBlameCommand(env),
		newRunsForkCommand(env), newRunsEditCommand(env), newRunsPruneCommand(env), newRunsGCCommand(env), newRunsRmCommand(env),
		newRunsCancelCommand(env), newRunsExportCommand(env), newRunsImportCommand(env))
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

// statusNames returns the statuses by which runs can be listed.
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
		case !opts.wants(&r):
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
	sums, err := summarizeRuns(ctx, env, list)
	if err != nil {
		return err
	}
	rows := make([]runRow, len(list))
	for i := range list {
		rows[i] = newRunRow(env, list[i].Run, &list[i], sums[i])
	}
	printRuns(env, rows)
	return nil
}

// wants reports whether a run is to be listed.
func (o *runsLsOptions) wants(r *runs.Info) bool {
	return (o.status == "" || r.Status == o.status) && (o.agent == "" || r.Agent == o.agent)
}

// summarizeRuns reads the summaries of runs for a list. A damaged run has none; one that turns out to be damaged becomes so in the list.
func summarizeRuns(ctx context.Context, env *environment, list []runs.Info) ([]runs.Summary, error) {
	sums := make([]runs.Summary, len(list))
	for i := range list {
		if list[i].Status == runs.Damaged {
			continue
		}
		var err error
		if sums[i], err = env.process.Runs.SummarizeRun(ctx, &list[i]); err != nil {
			if !runs.IsDamage(err) {
				return nil, err
			}
			list[i].Status, list[i].Reason = runs.Damaged, err.Error()
		}
	}
	return sums, nil
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
	list, depths = opts.filterTree(list, depths)
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
	sums, err := summarizeRuns(ctx, env, list)
	if err != nil {
		return err
	}
	var rows []runRow
	for i := range list {
		id := strings.Repeat("  ", depths[i]) + list[i].Run
		if from := list[i].From; depths[i] > 0 && from != nil {
			id += fmt.Sprintf(" (from @%d)", from.At)
		}
		rows = append(rows, newRunRow(env, id, &list[i], sums[i]))
		rows = appendBranchRows(rows, &listed[i].Tree, depths[i])
	}
	printRuns(env, rows)
	return nil
}

// filterTree leaves out the runs that are not wanted; a fork of one of them has the depth of the nearest listed run above it.
func (o *runsLsOptions) filterTree(all []runs.Info, depths []int) (list []runs.Info, kept []int) {
	var above []int // depths in the whole tree of the listed runs above
	for i := range all {
		for len(above) > 0 && above[len(above)-1] >= depths[i] {
			above = above[:len(above)-1]
		}
		if o.wants(&all[i]) {
			list, kept = append(list, all[i]), append(kept, len(above))
			above = append(above, depths[i])
		}
	}
	return list, kept
}

// A runRow is a row of a list of runs: a run, or a part of one that worked in it.
type runRow struct {
	id, agent, status   string
	style               term.Style // of the status
	started, took, cost string
	what                string // a prompt, a question or a reason
}

// runColumns are the columns of a list of runs.
var runColumns = []term.Column[runRow]{
	{Heading: "RUN", Cell: func(r runRow) string { return r.id }},
	{Heading: "AGENT", Cell: func(r runRow) string { return r.agent }},
	{Heading: "STATUS", Cell: func(r runRow) string { return r.status }, Style: func(r runRow) term.Style { return r.style }},
	{Heading: "STARTED", Cell: func(r runRow) string { return r.started }},
	{Heading: "TOOK", Cell: func(r runRow) string { return r.took }},
	{Heading: "COST", Cell: func(r runRow) string { return r.cost }},
	{Heading: "PROMPT OR QUESTION", Cell: func(r runRow) string { return r.what }},
}

// printRuns writes a list of runs as a table.
func printRuns(env *environment, rows []runRow) {
	if len(rows) == 0 {
		env.printNote("no runs")
		return
	}
	table := term.NewTable(runColumns...)
	for _, r := range rows {
		table.AddRow(r)
	}
	env.printTable(table)
}

// printTable writes a table; on a terminal it is cut to its width.
func (env *environment) printTable(table interface {
	Paint(width int, colors term.Colors) string
}) {
	width := 0
	if env.out.IsTerminal() {
		width, _ = env.out.Size()
	}
	env.out.PrintText(table.Paint(width, env.out.Colors))
}

// newRunRow returns the row of a run.
func newRunRow(env *environment, id string, r *runs.Info, sum runs.Summary) runRow {
	mark, style := statusMark(r.Status)
	row := runRow{
		id: id, agent: nameAgent(r),
		status: r.Status, style: style,
		started: formatAge(time.Since(r.Started)),
		what:    waitsFor(*r),
	}
	if env.out.IsTerminal() && !term.IsDumb() {
		row.status = mark + " " + r.Status
	}
	if r.Status == runs.Running {
		sum.Active += max(0, time.Since(r.Updated))
	}
	if sum.Active > 0 {
		row.took = story.FormatSeconds(sum.Active)
	}
	if u := overview.UsageOf(env.process, sum.Calls); u.Calls > 0 && u.Cost != nil && *u.Cost > 0 {
		row.cost = formatCost(*u.Cost)
	}
	if r.Status != graph.Waiting.String() && sum.Prompt != "" {
		row.what = strings.TrimRight(story.QuoteText(plainText(sum.Prompt))+" "+row.what, " ")
	}
	return row
}

// nameAgent returns the agent of a run, with its session.
func nameAgent(r *runs.Info) string {
	if r.Session != "" {
		return r.Agent + " -s " + r.Session
	}
	return r.Agent
}

// statusMark returns the sign and the colour of a status. The word is always shown with it.
func statusMark(status string) (mark string, style term.Style) {
	switch status {
	case graph.Done.String():
		return "✓", term.Green
	case graph.Waiting.String(), graph.Paused.String(), "pending", "queued":
		return "⏸", term.Yellow
	case runs.Running:
		return "◐", term.Cyan
	case graph.Abandoned.String(), graph.Canceled.String(), "cancelled":
		return "■", term.Dim
	}
	return "✗", term.Red
}

// formatCost returns an amount in US dollars with as many digits as it needs.
func formatCost(dollars float64) string {
	if dollars < 0.01 {
		return fmt.Sprintf("$%.4f", dollars)
	}
	return fmt.Sprintf("$%.2f", dollars)
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

// nameBranch returns the name of a node of the tree for people.
func nameBranch(n *overview.Branch) string {
	id := n.Path[strings.LastIndexByte(n.Path, '/')+1:]
	switch {
	case n.Task != nil && n.Started == nil:
		return fmt.Sprintf("task %s: %s", n.Task.ID, plainText(n.Task.Subject))
	case team.AgentOf(id) != "":
		return n.Agent + " (" + id + ")"
	case n.Path == "":
		return n.Agent
	}
	return id
}

// describeBranch returns the state of a node of the tree, in a few words.
func describeBranch(n *overview.Branch) string {
	switch {
	case n.Task == nil && n.Status == "queued", n.Task != nil && n.Started == nil && n.Task.Agent != "" && n.Status == "pending":
		return "waiting for a place"
	case n.Task == nil || n.Started != nil:
		return n.Status
	case len(n.Task.BlockedForEver) > 0:
		return "permanently blocked by " + joinWords(n.Task.BlockedForEver)
	case len(n.Task.BlockedBy) > 0:
		return "blocked by " + joinWords(n.Task.BlockedBy)
	}
	return strings.ReplaceAll(n.Status, "_", " ")
}

// purposeOf returns the purpose of an agent: its task, or the first words of its prompt.
func purposeOf(n *overview.Branch) string {
	switch {
	case n.Task != nil && n.Started != nil:
		return fmt.Sprintf("task %s: %s", n.Task.ID, plainText(n.Task.Subject))
	case n.Purpose != "":
		return plainText(n.Purpose)
	}
	return ""
}

// formatFacts returns the rest of a line of the tree; with models it names those that answered.
func formatFacts(n *overview.Branch, models bool) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if n.Started != nil {
		add("%6.2fs", n.Seconds)
	}
	if u := n.Usage; u.Calls > 0 {
		add("%s", wording.FormatCount(u.Calls, "call"))
		if n := u.Input + u.Output; n > 0 {
			add("%s tokens", wording.FormatTokens(n))
		}
		if u.Cost != nil {
			add("%.4f USD", *u.Cost)
		}
		if models && len(u.Models) > 0 {
			add("%s", plainText(joinWords(u.Models)))
		}
	}
	if n.Tools > 0 {
		add("%s", wording.FormatCount(n.Tools, "tool call"))
		if n.Failed > 0 {
			add("%d failed", n.Failed)
		}
	}
	if text := purposeOf(n); text != "" {
		add("%s", text)
	}
	if n.Run != "" {
		add("run %s", n.Run)
	}
	for _, q := range n.Questions {
		add("asks %s", plainText(q))
	}
	if n.Error != "" {
		add("%s", story.ShortenLine(n.Error))
	}
	return strings.Join(parts, "  ")
}

// treeText draws a tree, a line for each node. It returns "" for a run that has only
// one node.
func treeText(top *overview.Branch) string {
	if len(top.Children) == 0 {
		return ""
	}
	var names []string
	var nodes []*overview.Branch
	models := map[string]bool{}
	var add func(n *overview.Branch, first, rest string)
	add = func(n *overview.Branch, first, rest string) {
		names, nodes = append(names, first+term.CleanLine(nameBranch(n))), append(nodes, n)
		for _, m := range n.Usage.Models {
			models[m] = true
		}
		children := n.FoldItems()
		for i, c := range children {
			if i == len(children)-1 {
				add(c, rest+"└─ ", rest+"   ")
			} else {
				add(c, rest+"├─ ", rest+"│  ")
			}
		}
	}
	add(top, "", "")
	const widest = 60
	name, state := 0, 0
	for i, n := range nodes {
		name, state = max(name, min(term.TextWidth(names[i]), widest)), max(state, term.TextWidth(describeBranch(n)))
	}
	var b strings.Builder
	for i, n := range nodes {
		b.WriteString(strings.TrimRight(term.PadText(names[i], name)+"  "+term.PadText(describeBranch(n), state)+"  "+formatFacts(n, len(models) > 1), " ") + "\n")
	}
	return b.String()
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
	d, err := p.Runs.ReadRunDetail(ctx, run)
	if err != nil {
		return overview.Branch{}, err
	}
	tree, err := p.Runs.ReadTree(ctx, d)
	if err != nil {
		return overview.Branch{}, err
	}
	return overview.TreeOf(p, tree), nil
}

// appendBranchRows adds the parts that worked in a run below its row in a list.
func appendBranchRows(rows []runRow, n *overview.Branch, depth int) []runRow {
	for _, c := range n.FoldItems() {
		var notes []string
		if text := purposeOf(c); text != "" {
			notes = append(notes, wording.CutText(text, 70, "…"))
		}
		if len(c.Questions) > 0 {
			notes = append(notes, "asks "+joinWords(c.Questions))
		}
		if c.Error != "" {
			notes = append(notes, "("+wording.CutText(story.ShortenLine(c.Error), 70, "…")+")")
		}
		row := runRow{
			id: strings.Repeat("  ", depth+1) + "- " + nameBranch(c), agent: c.Agent,
			status: describeBranch(c),
			what:   strings.Join(notes, "; "),
		}
		if c.Started != nil {
			row.started = formatAge(time.Since(*c.Started))
			row.took = story.FormatSeconds(time.Duration(c.Seconds * float64(time.Second)))
		}
		if u := c.Usage; u.Cost != nil && *u.Cost > 0 {
			row.cost = formatCost(*u.Cost)
		}
		rows = appendBranchRows(append(rows, row), c, depth+1)
	}
	return rows
}
