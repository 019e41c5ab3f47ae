package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"raddle.dev/internal/app"
	"raddle.dev/internal/runs"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
	"raddle.dev/team"
)

// treeNode is a part of a run that worked, as "--output json" writes it.
type treeNode struct {
	Path      string      `json:"path"`            // of nodes and agents; "": the run
	Agent     string      `json:"agent,omitempty"` // name of the run's agent, or of a spawned agent
	Status    string      `json:"status"`
	Error     string      `json:"error,omitempty"`
	Started   *time.Time  `json:"started"` // null if it has not started
	Ended     *time.Time  `json:"ended"`   // null if it has not ended
	Seconds   float64     `json:"seconds"` // from its start to its end, or to its newest record
	Usage     usageReport `json:"usage"`   // its own, without that of its children
	Tools     int         `json:"tool_calls"`
	Purpose   string      `json:"purpose,omitempty"` // of a spawned agent
	Task      *team.Task  `json:"task,omitempty"`    // the task of a queue that it works on, or that no agent works on yet
	Questions []string    `json:"questions"`         // ids of its own open questions
	Children  []treeNode  `json:"children"`
}

// treeOf gathers what to show of a branch and everything below it.
func treeOf(p *app.Process, b *runs.Branch) treeNode {
	n := treeNode{Path: b.Path, Agent: b.Agent, Status: b.Status, Error: b.Error, Usage: usageOf(p, b.Calls), Tools: b.Tools, Purpose: b.Purpose, Task: b.Task,
		Questions: append([]string{}, b.Questions...), Children: []treeNode{}}
	if !b.Started.IsZero() {
		n.Started, n.Seconds = &b.Started, max(0, b.Updated.Sub(b.Started).Seconds())
	}
	if !b.Ended.IsZero() {
		n.Ended, n.Seconds = &b.Ended, max(0, b.Ended.Sub(b.Started).Seconds())
	}
	for _, c := range b.Children {
		n.Children = append(n.Children, treeOf(p, c))
	}
	return n
}

// displayName returns the name of a node of the tree for people.
func (n *treeNode) displayName() string {
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

// describeState returns the state of a node of the tree, in a few words.
func (n *treeNode) describeState() string {
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

// purpose returns the purpose of an agent: its task, or the first words of its prompt.
func (n *treeNode) purpose() string {
	switch {
	case n.Task != nil && n.Started != nil:
		return fmt.Sprintf("task %s: %s", n.Task.ID, plainText(n.Task.Subject))
	case n.Purpose != "":
		return plainText(n.Purpose)
	}
	return ""
}

// describeBlocked describes the tasks below a node that stay blocked permanently, one sentence each.
func (n *treeNode) describeBlocked() (sentences []string) {
	for i := range n.Children {
		c := &n.Children[i]
		if t := c.Task; t != nil && c.Started == nil && len(t.BlockedForEver) > 0 {
			sentences = append(sentences, fmt.Sprintf("task %s (%s) stays blocked permanently: it needs task %s, which failed or was cancelled", t.ID, t.Subject, joinWords(t.BlockedForEver)))
		}
		sentences = append(sentences, c.describeBlocked()...)
	}
	return sentences
}

// formatFacts returns the rest of a line of the tree; with models it names those that answered.
func (n *treeNode) formatFacts(models bool) string {
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
	}
	if text := n.purpose(); text != "" {
		add("%s", text)
	}
	for _, q := range n.Questions {
		add("asks %s", plainText(q))
	}
	if n.Error != "" {
		add("%s", shortenLine(n.Error))
	}
	return strings.Join(parts, "  ")
}

// treeText draws a tree, a line for each node. It returns "" for a run that has only
// one node.
func treeText(top *treeNode) string {
	if len(top.Children) == 0 {
		return ""
	}
	var names []string
	var nodes []*treeNode
	models := map[string]bool{}
	var add func(n *treeNode, first, rest string)
	add = func(n *treeNode, first, rest string) {
		names, nodes = append(names, first+term.CleanLine(n.displayName())), append(nodes, n)
		for _, m := range n.Usage.Models {
			models[m] = true
		}
		for i := range n.Children {
			if i == len(n.Children)-1 {
				add(&n.Children[i], rest+"└─ ", rest+"   ")
			} else {
				add(&n.Children[i], rest+"├─ ", rest+"│  ")
			}
		}
	}
	add(top, "", "")
	const widest = 60
	name, state := 0, 0
	for i, n := range nodes {
		name, state = max(name, min(term.TextWidth(names[i]), widest)), max(state, term.TextWidth(n.describeState()))
	}
	var b strings.Builder
	for i, n := range nodes {
		b.WriteString(strings.TrimRight(term.PadText(names[i], name)+"  "+term.PadText(n.describeState(), state)+"  "+n.formatFacts(len(models) > 1), " ") + "\n")
	}
	return b.String()
}

// listedRun is a run as "runs ls --tree --output json" writes it.
type listedRun struct {
	runs.Info
	Tree treeNode `json:"tree"`
}

// readTrees reads the parts that worked in each of some runs.
func readTrees(ctx context.Context, p *app.Process, list []runs.Info) ([]listedRun, error) {
	listed := []listedRun{}
	for _, r := range list {
		d, err := p.Runs.ReadRunDetail(ctx, r.Run)
		if err != nil {
			return nil, err
		}
		tree, err := p.Runs.ReadTree(ctx, d)
		if err != nil {
			return nil, err
		}
		listed = append(listed, listedRun{r, treeOf(p, tree)})
	}
	return listed, nil
}

// addBranchRows adds the parts that worked in a run below its row in a list.
func addBranchRows(table *term.Table, n *treeNode, depth int) {
	for i := range n.Children {
		c := &n.Children[i]
		var notes []string
		if text := c.purpose(); text != "" {
			notes = append(notes, wording.CutText(text, 70, "…"))
		}
		if len(c.Questions) > 0 {
			notes = append(notes, "asks "+joinWords(c.Questions))
		}
		if c.Error != "" {
			notes = append(notes, "("+wording.CutText(shortenLine(c.Error), 70, "…")+")")
		}
		why := strings.Join(notes, "; ")
		began := ""
		if c.Started != nil {
			began = formatAge(time.Since(*c.Started))
		}
		table.AddRow(strings.Repeat("  ", depth+1)+"- "+c.displayName(), c.Agent, c.describeState(), began, why)
		addBranchRows(table, c, depth+1)
	}
}
