package runs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/team"
)

// finishTree moves each branch to its place in the tree, and sets its status.
func (g *treeBuilder) finishTree(d *Detail) *Branch {
	g.root.Status, g.root.Error, g.root.Updated = d.Status, d.Reason, d.Updated
	if d.At > 0 {
		g.root.Status, g.root.Updated = d.Snapshot.Status.String(), d.Snapshot.Updated
		g.root.Error = d.Snapshot.Reason
	}
	if d.Snapshot.Status.Final() {
		g.root.Ended = g.root.Updated
	}
	for _, c := range g.teams {
		g.addTeamAgents(c)
	}
	slices.SortStableFunc(g.order, compareBranches)
	g.assignQuestions(d)
	for _, b := range g.order {
		b.Status = g.branchStatus(b)
	}
	for _, b := range g.order {
		above := g.parentBranch(b)
		above.Children = append(above.Children, b)
	}
	for _, c := range g.teams {
		g.addQueuedTasks(c)
	}
	return g.root
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
func (g *treeBuilder) addTeamAgents(c *teamLog) {
	for i := range c.past.Agents {
		a := &c.past.Agents[i]
		b := g.openBranch(c.agentPath(a.ID), a.Began)
		g.by[b.Path] = c.agentPath(a.Parent)
		b.Agent, b.Error, b.Purpose, b.Ended, b.Started = a.Agent, a.Error, a.Purpose, a.Ended, a.Began
		if b.Updated.Before(a.Began) {
			b.Updated = a.Began
		}
		if a.Status != "running" {
			b.Status = strings.Replace(a.Status, "completed", graph.Done.String(), 1)
		}
		for _, t := range c.past.Tasks {
			if t.AgentID == a.ID {
				b.Task = &t
			}
		}
	}
}

// addQueuedTasks adds the tasks that no agent works on, below the agent that owns them.
func (g *treeBuilder) addQueuedTasks(c *teamLog) {
	for _, t := range c.past.Tasks {
		if t.AgentID != "" || t.Status == "completed" {
			continue
		}
		above := g.nearestBranch(c.agentPath(t.Parent))
		above.Children = append(above.Children, &Branch{Path: above.Path, Agent: t.Agent, Status: t.Status, Task: &t})
	}
}

// agentPath returns the path of an agent of a team: that of the lead is the path of the branch that has the team.
func (c *teamLog) agentPath(id string) string {
	if id == team.Lead {
		return parentPath(c.path)
	}
	return c.path + "/" + id
}

func parentPath(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// nearestBranch returns the innermost branch around a path.
func (g *treeBuilder) nearestBranch(path string) *Branch {
	for {
		if b := g.paths[path]; b != nil {
			return b
		}
		path = parentPath(path)
	}
}

// parentBranch returns the parent of a branch: of a spawned agent the agent that has spawned it.
func (g *treeBuilder) parentBranch(b *Branch) *Branch {
	if by, ok := g.by[b.Path]; ok {
		return g.nearestBranch(by)
	}
	return g.nearestBranch(parentPath(b.Path))
}

// assignQuestions assigns each open question to the innermost branch that it comes from.
func (g *treeBuilder) assignQuestions(d *Detail) {
	if d.Snapshot.Status.Final() {
		return
	}
	for _, q := range d.Snapshot.Questions {
		path, _, _ := strings.Cut(q.ID, "#")
		path = strings.ReplaceAll(path, team.Node+"/"+team.Lead+"/", "")
		b := g.nearestBranch(path)
		b.Questions = append(b.Questions, q.ID)
	}
}

// branchStatus returns the status of a branch that is not the run.
func (g *treeBuilder) branchStatus(b *Branch) string {
	switch {
	case b.Status != "":
		return b.Status
	case !b.Ended.IsZero():
		return graph.Done.String()
	case g.hasOpenQuestion(b):
		return graph.Waiting.String()
	case g.root.Status == graph.Waiting.String(): // for one that works
		return graph.Paused.String()
	}
	return g.root.Status
}

// hasOpenQuestion reports whether a branch, or one below it, has an open question.
func (g *treeBuilder) hasOpenQuestion(b *Branch) bool {
	for _, o := range g.order {
		if len(o.Questions) > 0 && (o == b || strings.HasPrefix(o.Path, b.Path+"/")) {
			return true
		}
	}
	return false
}
