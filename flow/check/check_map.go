package check

import (
	"slices"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/strictyaml"
)

const deadlock = "must be >= 1 (got 0); a zero cap would deadlock the executor"

func (c *Checker) checkConcurrency() {
	if c.File.Settings.MaxConcurrency == 0 {
		c.addGraphFinding(strictyaml.SeverityError, c.File.SettingsSource.FieldPosition("max_concurrency"), "concurrency", "settings.max_concurrency "+deadlock)
	}
	for _, n := range c.File.Nodes {
		if b := n.Branch; b != nil && b.MaxConcurrency != nil && *b.MaxConcurrency == 0 {
			c.ErrorAt(n, n.At("max_concurrency"), "concurrency", "%s node's `max_concurrency` %s", n.Kind(), deadlock)
		}
	}
}

// queueName matches the names of queues.
var queueName = pattern.CompileLater(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// checkQueues checks the names of queues.
func (c *Checker) checkQueues() {
	for _, n := range c.File.Nodes {
		if n.Queue != nil && !queueName().MatchString(*n.Queue) {
			c.ErrorAt(n, n.At("queue"), "queue-name", "%s node's `queue` must be a plain name: up to 64 letters, digits, '-', '_' and '.', and the first is a letter or a digit", n.Kind())
		}
	}
}

func (c *Checker) mapBranches() {
	for _, n := range c.File.Nodes {
		if n.Branch == nil {
			continue
		}
		c.branchOf(n, "branch", n.Branch.To)
		if h := n.Branch.Handler(); h == n.Branch.To {
			c.ErrorAt(n, n.At("on_failure"), "map-handler", "%s node's `on_failure` names its own branch '%s', which has just failed; name another node, or stop, collect or skip", n.Kind(), h)
		} else if h != "" {
			c.branchOf(n, "on_failure", h)
		}
		c.countsKey(n)
	}
}

// branchOf checks the node that a field of a map names.
func (c *Checker) branchOf(n *spec.Node, field, id string) {
	branch := c.File.Node(id)
	switch {
	case branch == nil: // reported as a target
	case branch.Type.BranchFault != "" && field == "branch":
		c.ErrorAt(n, n.At(field), "map-branch", "%s node points to branch '%s' %s", n.Kind(), branch.ID, branch.Type.BranchFault)
	case branch.Type.BranchFault != "":
		c.ErrorAt(n, n.At(field), "map-branch", "%s node's `%s` names '%s' %s", n.Kind(), field, branch.ID, branch.Type.BranchFault)
	default:
		c.branchNode(branch, n.Branch.OutputKey)
	}
}

// countsKey checks that nothing else has the key under which a map keeps how many of its items have failed.
func (c *Checker) countsKey(n *spec.Node) {
	key := n.CountsKey()
	if key == "" {
		return
	}
	b := n.Branch
	_, initial := c.File.InitialState.Get(key)
	var other string
	switch {
	case b.CollectInto == key:
		other = "its own `collect_into`"
	case b.As == key:
		other = "its own `as`"
	case b.OutputKey == key:
		other = "its own `output_key`"
	case initial:
		other = "`initial_state`"
	case c.File.Reducer(key) != "":
		other = "`reducers`"
	}
	for _, w := range c.File.Nodes {
		if slices.Contains(writtenKeys(w), key) || w != n && w.Branch != nil && w.Branch.CollectInto == key {
			other = "node '" + w.ID + "'"
		}
	}
	if other != "" {
		c.ErrorAt(n, n.At("on_failure"), "map-counts", "%s node with `on_failure` keeps its counts under its id, {{%s.failed}}, and %s has a key of that name; rename one of them", n.Kind(), key, other)
	}
}

// branchNode checks the requirements for a node that a map runs.
func (c *Checker) branchNode(n *spec.Node, output string) {
	if n.Next != nil {
		c.ErrorAt(n, n.At("next"), "map-branch-next",
			"branch node '%s' has a `next` declared, but map branches must be atomic (one node, one execution per item). "+
				"Remove `next` or restructure the workflow so any chaining happens after the map.", n.ID)
	}
	place := n.Source.KeyPositions("state_updates")
	for i, u := range n.Updates {
		if u.Key != output {
			c.ErrorAt(n, place(i), "map-branch-write",
				"branch node '%s' writes state key '%s' via state_updates, but map branches may only write through their `output_key` ('%s'). "+
					"Rename the write, or move the side effect outside the map.", n.ID, u.Key, output)
		}
	}
}
