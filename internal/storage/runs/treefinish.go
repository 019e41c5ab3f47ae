package runs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/team"
)

// buildTree returns the tree of a run, and the branches in it that are runs of their own. Records may be added after
// that.
func (tb *treeBuilder) buildTree(d *Detail) (root *Branch, remote []*Branch) {
	whole := tb.cloneBranches()
	whole.root.Agent = d.Agent
	whole.root.Started = d.Started
	whole.root.Updated = d.Updated
	for _, q := range tb.remote {
		b := whole.openBranch(q.path, q.asked)
		b.Run = q.run
		remote = append(remote, b)
	}
	return whole.finishTree(d), remote
}

// cloneBranches returns a builder with branches of its own, to which no record is added.
func (tb *treeBuilder) cloneBranches() *treeBuilder {
	c := &treeBuilder{course: tb.course, paths: map[string]*Branch{}, by: map[string]string{}}
	copyOf := func(b *Branch) *Branch {
		made := *b
		made.Calls.Models = slices.Clone(b.Calls.Models)
		if b.failed > 0 && b.failed == b.failure.record {
			made.Error = b.failure.reason
		}
		c.paths[b.Path] = &made
		return &made
	}
	c.root = copyOf(tb.root)
	for _, b := range tb.order {
		c.order = append(c.order, copyOf(b))
	}
	return c
}

// finishTree moves each branch to its place in the tree, and sets its status.
func (tb *treeBuilder) finishTree(d *Detail) *Branch {
	tb.root.Status = d.Status
	tb.root.Error = d.Reason
	tb.root.Updated = d.Updated
	if d.At > 0 {
		tb.root.Status = d.Snapshot.Status.String()
		tb.root.Updated = d.Snapshot.Updated
		tb.root.Error = d.Snapshot.Reason
	}
	if d.Snapshot.Status.Final() {
		tb.root.Ended = tb.root.Updated
	}
	for _, l := range tb.teams {
		tb.addTeamAgents(l)
	}
	if tb.root.Status == graph.Failed.String() {
		tb.addFailedItems(d)
	}
	slices.SortStableFunc(tb.order, compareBranches)
	tb.assignQuestions(d)
	for _, b := range tb.order {
		b.Status = tb.branchStatus(b)
	}
	for _, b := range tb.order {
		above := tb.parentBranch(b)
		above.Children = append(above.Children, b)
	}
	for _, l := range tb.teams {
		tb.addQueuedTasks(l)
	}
	return tb.root
}

// addFailedItems adds the items of maps with which the run has failed, also those that have not called a model.
func (tb *treeBuilder) addFailedItems(d *Detail) {
	var questions []string
	for _, q := range d.Snapshot.Questions {
		questions = append(questions, q.ID)
	}
	for _, path := range listFailed(tb.front, questions) {
		if _, index := splitIndex(path); index > 0 || tb.paths[path] != nil {
			b := tb.openBranch(path, tb.root.Updated)
			b.failed = max(b.failed, 1)
			b.Updated = tb.root.Updated
		}
	}
}

// compareBranches compares branches by their start. Branches of one step start together,
// so that their names and numbers decide, not which of them the journal names first.
func compareBranches(a, b *Branch) int {
	node, at := splitIndex(a.Path)
	other, then := splitIndex(b.Path)
	switch { // those that wait for a place come last, in the order in which they were spawned
	case a.Started.IsZero() && b.Started.IsZero():
		return 0
	case a.Started.IsZero():
		return 1
	case b.Started.IsZero():
		return -1
	}
	return cmp.Or(a.Started.Compare(b.Started), strings.Compare(node, other), cmp.Compare(at, then))
}

// splitIndex splits "fan/each[2]" into its name and its number.
func splitIndex(path string) (node string, index int) {
	if i := strings.LastIndexByte(path, '['); i >= 0 {
		if n, err := strconv.Atoi(strings.TrimSuffix(path[i+1:], "]")); err == nil {
			return path[:i], n
		}
	}
	return path, 0
}

// addTeamAgents adds what a team's log says about its agents.
func (tb *treeBuilder) addTeamAgents(l *teamLog) {
	for i := range l.past.Agents {
		a := &l.past.Agents[i]
		b := tb.openBranch(l.agentPath(a.ID), a.Began)
		tb.by[b.Path] = l.agentPath(a.Parent)
		b.Agent = a.Agent
		b.Error = a.Error
		b.Purpose = a.Purpose
		b.Ended = a.Ended
		b.Started = a.Began
		if b.Updated.Before(a.Began) {
			b.Updated = a.Began
		}
		if a.Status != "running" {
			b.Status = strings.Replace(a.Status, "completed", graph.Done.String(), 1)
		}
		for _, t := range l.past.Tasks {
			if t.AgentID == a.ID {
				b.Task = &t
			}
		}
	}
}

// addQueuedTasks adds the tasks that no agent works on, below the agent that owns them.
func (tb *treeBuilder) addQueuedTasks(l *teamLog) {
	for _, t := range l.past.Tasks {
		if t.AgentID != "" || t.Status == "completed" {
			continue
		}
		above := tb.nearestBranch(l.agentPath(t.Parent))
		above.Children = append(above.Children, &Branch{Path: above.Path, Agent: t.Agent, Status: t.Status, Task: &t})
	}
}

// agentPath returns the path of an agent of a team: that of the lead is the path of the branch that has the team.
func (l *teamLog) agentPath(id string) string {
	if id == team.Lead {
		return parentPath(l.path)
	}
	return l.path + "/" + id
}

func parentPath(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// nearestBranch returns the innermost branch around a path.
func (tb *treeBuilder) nearestBranch(path string) *Branch {
	for {
		if b := tb.paths[path]; b != nil {
			return b
		}
		path = parentPath(path)
	}
}

// parentBranch returns the parent of a branch: of a spawned agent the agent that has spawned it.
func (tb *treeBuilder) parentBranch(b *Branch) *Branch {
	if by, ok := tb.by[b.Path]; ok {
		return tb.nearestBranch(by)
	}
	return tb.nearestBranch(parentPath(b.Path))
}

// assignQuestions assigns each open question to the innermost branch that it comes from.
func (tb *treeBuilder) assignQuestions(d *Detail) {
	if d.Snapshot.Status.Final() {
		return
	}
	for _, q := range d.Snapshot.Questions {
		path, _, _ := strings.Cut(q.ID, "#")
		path = strings.ReplaceAll(path, team.Node+"/"+team.Lead+"/", "")
		b := tb.nearestBranch(path)
		b.Questions = append(b.Questions, q.ID)
	}
}

// branchStatus returns the status of a branch that is not the run.
func (tb *treeBuilder) branchStatus(b *Branch) string {
	switch {
	case b.Status != "":
		return b.Status
	case b.failed > 0:
		return graph.Failed.String()
	case !b.Ended.IsZero():
		return graph.Done.String()
	case tb.hasOpenQuestion(b):
		return graph.Waiting.String()
	case tb.root.Status == graph.Waiting.String(): // for one that works
		return graph.Paused.String()
	}
	return tb.root.Status
}

// hasOpenQuestion reports whether a branch, or one below it, has an open question.
func (tb *treeBuilder) hasOpenQuestion(b *Branch) bool {
	for _, o := range tb.order {
		if len(o.Questions) > 0 && (o == b || strings.HasPrefix(o.Path, b.Path+"/")) {
			return true
		}
	}
	return false
}
