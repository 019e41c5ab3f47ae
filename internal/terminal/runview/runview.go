// Package runview shows runs on a terminal: the rows of their lists, the tree of what worked in one, and what it cost.
package runview

import (
	"fmt"
	"math"
	"strings"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/report/story"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/team"
)

// A Row is a row of a list of runs: a run, or a part of one that worked in it.
type Row struct {
	id, agent, status   string
	style               term.Style // of the status
	started, took, cost string
	what                string // a prompt, a question or a reason
	part                bool   // it is a part of a run
}

// leastAgent is how many columns of a narrow terminal the name of an agent keeps.
const leastAgent = 6

// keep returns how many columns a cell of the row keeps in a narrow terminal, of at most limit: those of a run are of
// use only as a whole.
func (r Row) keep(cell string, limit int) int {
	if r.part {
		return 1
	}
	return min(term.TextWidth(cell), limit)
}

// wholeColumn returns a column whose cells are not cut.
func wholeColumn(heading string, cell func(r Row) string) term.Column[Row] {
	keep := func(r Row) int { return r.keep(cell(r), math.MaxInt) }
	return term.Column[Row]{Heading: heading, Cell: cell, Keep: keep}
}

// statusColumn returns the column of the statuses.
func statusColumn() term.Column[Row] {
	c := wholeColumn("STATUS", func(r Row) string { return r.status })
	c.Style = func(r Row) term.Style { return r.style }
	return c
}

// Columns are the columns of a list of runs.
var Columns = []term.Column[Row]{
	wholeColumn("RUN", func(r Row) string { return r.id }),
	{
		Heading: "AGENT",
		Cell:    func(r Row) string { return r.agent },
		Keep:    func(r Row) int { return r.keep(r.agent, leastAgent) },
	},
	statusColumn(),
	wholeColumn("STARTED", func(r Row) string { return r.started }),
	wholeColumn("TOOK", func(r Row) string { return r.took }),
	wholeColumn("COST", func(r Row) string { return r.cost }),
	{Heading: "PROMPT OR QUESTION", Cell: func(r Row) string { return r.what }},
}

// NewRow returns the row of a run with what it is called in the list. marked puts a sign before its status.
func NewRow(p *app.Process, id string, r *runs.Info, sum runs.Summary, marked bool) Row {
	mark, style := markStatus(r.Status)
	row := Row{
		id:      id,
		agent:   NameAgent(r),
		status:  r.Status,
		style:   style,
		started: FormatAge(time.Since(r.Started)),
		what:    DescribeWait(*r),
	}
	if marked {
		row.status = mark + " " + r.Status
	}
	if r.Status == runs.Running {
		sum.Active += max(0, time.Since(r.Updated))
	}
	if sum.Active > 0 {
		row.took = story.FormatSeconds(sum.Active)
	}
	if u := overview.UsageOf(p, sum.Calls); u.Calls > 0 && u.Cost != nil && *u.Cost > 0 {
		row.cost = formatCost(*u.Cost)
	}
	if r.Status != graph.Waiting.String() && sum.Prompt != "" {
		row.what = strings.TrimRight(story.QuoteText(term.CleanText(sum.Prompt))+" "+row.what, " ")
	}
	return row
}

// NameAgent returns the agent of a run, with its session.
func NameAgent(r *runs.Info) string {
	if r.Session != "" {
		return r.Agent + " -s " + r.Session
	}
	return r.Agent
}

// markStatus returns the sign and the colour of a status. The word is always shown with it.
func markStatus(status string) (mark string, style term.Style) {
	switch status {
	case graph.Done.String():
		return "✓", term.Green
	case graph.Waiting.String(), graph.Paused.String(), "pending", runs.Queued:
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

// FormatUntil returns when a run that waits is to be continued, in a form for people.
func FormatUntil(due time.Time) string {
	text := "until " + due.Local().Format(time.DateTime)
	left := time.Until(due)
	switch {
	case left <= 0:
		return text + " (due)"
	case left < time.Minute:
		return fmt.Sprintf("%s (in %ds)", text, int(left.Seconds())+1)
	case left < 2*time.Hour:
		return fmt.Sprintf("%s (in %dm)", text, int(left.Minutes()+0.5))
	case left < 48*time.Hour:
		return fmt.Sprintf("%s (in %dh)", text, int(left.Hours()+0.5))
	}
	return fmt.Sprintf("%s (in %dd)", text, int(left.Hours()/24+0.5))
}

// DescribeWait returns the last column of the list: what a run waits for, or why it failed.
func DescribeWait(r runs.Info) string {
	switch {
	case r.Status == runs.Running && r.Host != "":
		return fmt.Sprintf("(process %d on %s)", r.PID, term.CleanText(r.Host))
	case r.Status == runs.Running && r.PID != 0:
		return fmt.Sprintf("(process %d)", r.PID)
	case len(r.Questions) > 0 && !r.Final:
		first, _, _ := strings.Cut(r.Questions[0].Prompt, "\n")
		text := r.Questions[0].ID + ": " + wording.CutText(first, 60, "…")
		if more := len(r.Questions) - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more)", more)
		}
		if !r.Due.IsZero() {
			text += ", " + FormatUntil(r.Due)
		}
		return text
	case !r.Due.IsZero() && !r.Final:
		return FormatUntil(r.Due)
	case r.Reason != "" && (r.Status == graph.Failed.String() || r.Status == runs.GivenUp || r.Status == runs.Damaged):
		first, _, _ := strings.Cut(r.Reason, "\n")
		return "(" + wording.CutText(first, 70, "…") + ")"
	}
	return ""
}

// FormatAge returns a time in the past in a form for people.
func FormatAge(d time.Duration) string {
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
		return fmt.Sprintf("task %s: %s", n.Task.ID, term.CleanText(n.Task.Subject))
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
		return "permanently blocked by " + strings.Join(n.Task.BlockedForEver, ", ")
	case len(n.Task.BlockedBy) > 0:
		return "blocked by " + strings.Join(n.Task.BlockedBy, ", ")
	}
	return strings.ReplaceAll(n.Status, "_", " ")
}

// purposeOf returns the purpose of an agent: its task, or the first words of its prompt.
func purposeOf(n *overview.Branch) string {
	switch {
	case n.Task != nil && n.Started != nil:
		return fmt.Sprintf("task %s: %s", n.Task.ID, term.CleanText(n.Task.Subject))
	case n.Purpose != "":
		return term.CleanText(n.Purpose)
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
			add("%s", term.CleanText(strings.Join(u.Models, ", ")))
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
		add("asks %s", term.CleanText(q))
	}
	if n.Error != "" {
		add("%s", story.ShortenLine(n.Error))
	}
	return strings.Join(parts, "  ")
}

// FormatTree draws a tree, a line for each node. It returns "" for a run that has only
// one node.
func FormatTree(top *overview.Branch) string {
	if len(top.Children) == 0 {
		return ""
	}
	var names []string
	var nodes []*overview.Branch
	models := map[string]bool{}
	var add func(n *overview.Branch, first, rest string)
	add = func(n *overview.Branch, first, rest string) {
		names = append(names, first+term.CleanLine(nameBranch(n)))
		nodes = append(nodes, n)
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
	name := 0
	state := 0
	for i, n := range nodes {
		name = max(name, min(term.TextWidth(names[i]), widest))
		state = max(state, term.TextWidth(describeBranch(n)))
	}
	var b strings.Builder
	for i, n := range nodes {
		b.WriteString(strings.TrimRight(term.PadText(names[i], name)+"  "+term.PadText(describeBranch(n), state)+"  "+formatFacts(n, len(models) > 1), " ") + "\n")
	}
	return b.String()
}

// AppendBranches adds the parts that worked in a run below its row in a list.
func AppendBranches(rows []Row, n *overview.Branch, depth int) []Row {
	for _, c := range n.FoldItems() {
		var notes []string
		if text := purposeOf(c); text != "" {
			notes = append(notes, wording.CutText(text, 70, "…"))
		}
		if len(c.Questions) > 0 {
			notes = append(notes, "asks "+strings.Join(c.Questions, ", "))
		}
		if c.Error != "" {
			notes = append(notes, "("+wording.CutText(story.ShortenLine(c.Error), 70, "…")+")")
		}
		row := Row{
			id:     strings.Repeat("  ", depth+1) + "- " + nameBranch(c),
			agent:  c.Agent,
			status: describeBranch(c),
			what:   strings.Join(notes, "; "),
			part:   true,
		}
		if c.Started != nil {
			row.started = FormatAge(time.Since(*c.Started))
			row.took = story.FormatSeconds(time.Duration(c.Seconds * float64(time.Second)))
		}
		if u := c.Usage; u.Cost != nil && *u.Cost > 0 {
			row.cost = formatCost(*u.Cost)
		}
		rows = AppendBranches(append(rows, row), c, depth+1)
	}
	return rows
}

// DescribeWoken returns how far a run came that was woken, in one line.
func DescribeWoken(w *app.WokenRun) string {
	text := fmt.Sprintf("%s  %s  %s", w.Run, term.CleanText(w.Agent), w.Status)
	switch {
	case w.Error != nil:
		text += ": " + term.CleanLine(*w.Error)
	case w.Due != nil:
		text += " " + FormatUntil(*w.Due)
	}
	return text
}

// DescribeListed returns what a run is about, on one line: its agent, its status, its age, and its first open
// question.
func DescribeListed(r *runs.Info) string {
	text := r.Agent + ", " + r.Status + ", " + FormatAge(time.Since(r.Started))
	if len(r.Questions) > 0 {
		first, _, _ := strings.Cut(r.Questions[0].Prompt, "\n")
		text += ": " + wording.CutText(first, 40, "…")
	} else if !r.Due.IsZero() {
		text += " " + FormatUntil(r.Due)
	}
	return text
}
