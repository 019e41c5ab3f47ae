package check

import (
	"slices"
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/strictyaml"
)

const deadlock = "must be >= 1 (got 0); a zero cap would deadlock the executor"

func (c *checker) checkConcurrency() {
	if c.f.Settings.MaxConcurrency == 0 {
		c.addGraphFinding(strictyaml.SeverityError, c.f.SettingsSource.FieldPosition("max_concurrency"), "concurrency", "settings.max_concurrency "+deadlock)
	}
	for _, n := range c.f.Nodes {
		if m, ok := n.Body.(*spec.MapNode); ok && m.MaxConcurrency != nil && *m.MaxConcurrency == 0 {
			c.errorAt(n, n.At("max_concurrency"), "concurrency", "map node's `max_concurrency` %s", deadlock)
		}
	}
}

// branchFaults says why a map may not run certain types of nodes.
var branchFaults = map[string]string{
	"approval": "which is an approval node; approval/input nodes cannot run inside a parallel map branch (the CLI would prompt the user N times concurrently)",
	"input":    "which is an input node; input nodes cannot run inside a parallel map branch",
	"end":      "which is an end node; map branches terminate via the map's collect mechanism, not via end nodes",
	"map":      "which is itself a map node; nested map fan-outs are not supported in v1",
}

func (c *checker) mapBranches() {
	for _, n := range c.f.Nodes {
		m, ok := n.Body.(*spec.MapNode)
		if !ok {
			continue
		}
		branch := c.f.Node(m.Branch)
		if branch == nil {
			continue // reported as a target
		}
		if fault := branchFaults[branch.Kind()]; fault != "" {
			c.errorAt(n, n.At("branch"), "map-branch", "map node points to branch '%s' %s", m.Branch, fault)
			continue
		}
		c.branchNode(branch, m.OutputKey)
	}
}

// branchNode checks the requirements for a node that a map runs.
func (c *checker) branchNode(n *spec.Node, output string) {
	if n.Next != nil {
		c.errorAt(n, n.At("next"), "map-branch-next",
			"branch node '%s' has a `next` declared, but map branches must be atomic (one node, one execution per item). "+
				"Remove `next` or restructure the workflow so any chaining happens after the map.", n.ID)
	}
	place := n.Src.KeyPositions("state_updates")
	for i, u := range n.Updates {
		if u.Key != output {
			c.errorAt(n, place(i), "map-branch-write",
				"branch node '%s' writes state key '%s' via state_updates, but map branches may only write through their `output_key` ('%s'). "+
					"Rename the write, or move the side effect outside the map.", n.ID, u.Key, output)
		}
	}
	if properties := n.SchemaProperties(); properties != nil {
		slices.Sort(properties)
		c.errorAt(n, n.At("output_schema"), "map-branch-schema",
			"branch node '%s' has an `output_schema` with top-level properties (%s); map branches must write only through their `output_key` ('%s'). "+
				"Remove `output_schema`, or use state_updates to map the output explicitly.", n.ID, strings.Join(properties, ", "), output)
	}
}
