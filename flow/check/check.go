package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
)

// Body is what the checks ask the body of a node. The bodies of all nodes of a
// file must have it: those of the types of package flow do.
type Body interface {
	// Checks returns the checks of the validator that only this type of node
	// needs; nil: none.
	Checks() Checks
	// Advise reports what the format allows in the fields of the type, but is
	// probably a mistake.
	Advise(a *Adviser, n *spec.Node)
}

// Checks are checks of one node by the pass of the validator that makes them.
type Checks map[Pass]func(c *Checker, n *spec.Node)

// Pass is one way of the validator through all nodes in file order. The file
// format defines the order of its findings.
type Pass int

// These are the passes for checks of nodes, in their order.
const (
	Scripts  Pass = iota // files of scripts; only if the agent's directory is known
	Agents               // other agents; only if the agent's directory is known
	Answers              // answers and where they lead
	Sources              // sources of documents
	Names                // names of tools, servers and models; only if the agent is loaded
	Parallel             // of a node that runs at the same time as others, once
)

// ValidateFile runs the validator of the file format on a graph: all checks in a fixed
// order, each through the nodes in file order. The findings and their texts are
// defined by the format. A graph with errors is not run unless it disables the
// validator. See also [ProvePlaceholders] and [AdviseFile].
func ValidateFile(f *spec.File, k Context) []strictyaml.Finding {
	c := &Checker{File: f, Context: k, network: f.BuildNetwork(), Report: strictyaml.Report{Class: strictyaml.ClassValidate}, checks: make(map[*spec.Node]Checks, len(f.Nodes))}
	for _, n := range f.Nodes {
		c.checks[n] = n.Body.(Body).Checks()
	}
	c.checkTargets()
	c.checkFinally()
	c.checkCycles()
	c.checkReachability()
	if k.Dir != "" {
		c.runPass(Scripts)
		c.runPass(Agents)
	}
	c.runPass(Answers)
	c.runPass(Sources)
	if k.Loaded {
		c.knowTools()
		c.runPass(Names)
	}
	c.checkSkills()
	c.checkConcurrency()
	c.checkQueues()
	c.mapBranches()
	c.checkInteraction()
	c.parallelWrites()
	c.parallelReads()
	return c.Findings
}

// Checker is one run of the validator.
type Checker struct {
	strictyaml.Report
	File    *spec.File
	Context Context

	network        *spec.Network
	checks         map[*spec.Node]Checks
	tools, servers map[string]bool // that llm nodes may list
}

// runPass makes the checks of a pass.
func (c *Checker) runPass(p Pass) {
	for _, n := range c.File.Nodes {
		c.runCheck(p, n)
	}
}

func (c *Checker) runCheck(p Pass, n *spec.Node) {
	if check := c.checks[n][p]; check != nil {
		check(c, n)
	}
}

// ErrorAt reports an error of a node.
func (c *Checker) ErrorAt(n *spec.Node, at strictyaml.Pos, code, format string, args ...any) {
	c.Add(strictyaml.Finding{Severity: strictyaml.SeverityError, Code: code, Node: n.ID, Message: fmt.Sprintf(format, args...), Pos: at})
}

// WarnAt reports a warning about a node.
func (c *Checker) WarnAt(n *spec.Node, at strictyaml.Pos, code, message string) {
	c.Add(strictyaml.Finding{Severity: strictyaml.SeverityWarning, Code: code, Node: n.ID, Message: message, Pos: at})
}

// addGraphFinding reports a finding that is not about a single node.
func (c *Checker) addGraphFinding(s strictyaml.Severity, at strictyaml.Pos, code, message string) {
	c.Add(strictyaml.Finding{Severity: s, Code: code, Message: message, Pos: at})
}

func (c *Checker) checkTargets() {
	var ids []string
	for _, n := range c.File.Nodes {
		ids = append(ids, n.ID)
	}
	for _, n := range c.File.Nodes {
		for _, e := range n.DeclaredEdges() {
			if c.File.Node(e.To) != nil || c.IsFull() {
				continue
			}
			c.Add(strictyaml.Finding{
				Severity: strictyaml.SeverityError, Code: "unknown-target", Node: n.ID,
				Message: fmt.Sprintf("References non-existent node '%s' in %s", e.To, n.Label(e)),
				Hint:    suggestTarget(e, ids), Pos: n.Source.ItemPositions(e.Field)(e.Item),
			})
		}
		for i, target := range n.Targets {
			if c.File.Node(target) == nil && !c.IsFull() {
				c.Add(strictyaml.Finding{
					Severity: strictyaml.SeverityError, Code: "unknown-target", Node: n.ID,
					Message: fmt.Sprintf("References non-existent node '%s' in %s 'targets'", target, n.Kind()),
					Hint:    wording.SuggestNearest(target, ids, "`"), Pos: n.Source.ItemPositions("targets")(i),
				})
			}
		}
	}
}

// checkFinally checks that the node of finally is no part of the graph's paths: it runs after the end was decided.
func (c *Checker) checkFinally() {
	f := c.File
	n := f.Node(f.Finally)
	if n == nil {
		return
	}
	report := func(by *spec.Node, at strictyaml.Pos, message, fix string) {
		c.Add(strictyaml.Finding{Severity: strictyaml.SeverityError, Code: "finally", Node: by.ID, Message: message, Fix: fix, Pos: at})
	}
	if n.Type.Routing == spec.RouteEnd || f.Start == n.ID {
		report(n, f.At("finally"), fmt.Sprintf("'%s' cannot be the node of 'finally': it is the start or an end of the graph", n.ID), "name a node that cleans up, for example a script")
		return
	}
	for _, e := range n.DeclaredEdges() {
		if e.Role != spec.EdgeBranch {
			report(n, n.Source.ItemPositions(e.Field)(e.Item), fmt.Sprintf("the node of 'finally' leads to '%s' in %s, but nothing runs after it", e.To, n.Label(e)), fmt.Sprintf("remove `%s`", e.Field))
		}
	}
	for _, by := range f.Nodes {
		for _, e := range by.DeclaredEdges() {
			if e.To == n.ID && by != n {
				report(by, by.Source.ItemPositions(e.Field)(e.Item), fmt.Sprintf("leads to '%s' in %s, which is the node of 'finally': it runs after the end was decided, and by itself", n.ID, by.Label(e)), "name another node; two nodes may run the same script")
			}
		}
		if i := slices.Index(by.Targets, n.ID); i >= 0 {
			report(by, by.Source.ItemPositions("targets")(i), fmt.Sprintf("names '%s' in 'targets', which is the node of 'finally': it runs after the end was decided, and by itself", n.ID), "remove it")
		}
	}
}

// suggestTarget returns what the target of an edge probably means, among the ids of the nodes and the words of the field.
func suggestTarget(e spec.Edge, ids []string) string {
	if e.Field != "on_failure" {
		return wording.SuggestNearest(e.To, ids, "`")
	}
	words := strings.Join(spec.FailureWords, ", ") + " or the id of a node"
	return cmp.Or(wording.SuggestNearest(e.To, slices.Concat(spec.FailureWords, ids), "`"), "write "+words)
}

func (c *Checker) checkCycles() {
	loop := c.network.FindCycle()
	if loop == nil {
		return
	}
	var ids []string
	for _, i := range append(loop, loop[0]) {
		ids = append(ids, c.File.Nodes[i].ID)
	}
	c.Add(strictyaml.Finding{
		Severity: strictyaml.SeverityError, Code: "cycle", Message: "Cycle detected: " + strings.Join(ids, " -> "),
		Hint: "a loop goes through a script node that emits `_next`", Pos: c.File.Nodes[loop[0]].Pos(),
	})
}

func (c *Checker) checkReachability() {
	seen := c.network.ReachableFromEntries(c.File)
	ends := 0
	reached := false
	for i, n := range c.File.Nodes {
		if !seen[i] {
			c.Add(strictyaml.Finding{Severity: strictyaml.SeverityWarning, Code: "unreachable", Node: n.ID, Pos: n.Pos(), Fix: "let a node lead to it, name it in the `targets` of a script, or remove it",
				Message: "Node is unreachable from the start node via declared edges (script `_next` routing is not analyzed)"})
		}
		if n.Type.Routing == spec.RouteEnd {
			ends++
			reached = reached || seen[i]
		}
	}
	switch {
	case ends == 0:
		c.Add(strictyaml.Finding{Severity: strictyaml.SeverityError, Code: "no-end", Pos: c.File.At("nodes"), Message: "Graph has no end nodes; execution would never terminate",
			Fix: "add `done: {type: end, output: ...}`, and let a node lead to it"})
	case !reached:
		c.addGraphFinding(strictyaml.SeverityWarning, c.File.At("start"), "end-unreachable",
			"No end node is reachable from the start node via declared edges (a script's `_next` may still route to one)")
	}
}

// knowTools collects the names of tools and servers that nodes may list.
func (c *Checker) knowTools() {
	known := c.Context
	known.Servers = slices.Concat(known.Servers, NamedServers(c.File))
	c.tools = known.toolNames(c.File.CanSpawn())
	c.servers = map[string]bool{}
	for _, s := range known.Servers {
		c.servers[s] = true
	}
}

// CheckTools checks the tools and servers that a node lists. It may only be
// called in the pass [Names].
func (c *Checker) CheckTools(n *spec.Node, tools []string) {
	place := n.Source.ItemPositions("tools")
	for i, tool := range tools {
		server, isServer := strings.CutPrefix(tool, "mcp:")
		switch {
		case isServer && !c.servers[server] && WantsAllServers(c.File):
			c.WarnAt(n, place(i), "unknown-server", fmt.Sprintf("there is no MCP server '%s'; the node runs without it", server))
		case isServer && !c.servers[server]:
			c.addUnknownName(n, place(i), "unknown-server", fmt.Sprintf("%s node references unknown MCP server '%s'", n.Kind(), tool), suggestName(server, c.servers))
		case !isServer && !c.tools[spec.ToolStem(tool)]:
			c.addUnknownName(n, place(i), "unknown-tool", fmt.Sprintf("%s node references unknown tool '%s'", n.Kind(), tool), suggestName(tool, c.tools))
		}
	}
}

// addUnknownName reports a name that does not exist.
func (c *Checker) addUnknownName(n *spec.Node, at strictyaml.Pos, code, message, fix string) {
	c.Add(strictyaml.Finding{Severity: strictyaml.SeverityError, Code: code, Node: n.ID, Message: message, Pos: at, Fix: cmp.Or(fix, "name it in the graph's list, too; raddle tools ls lists what there is")})
}

// suggestName asks whether the nearest known name is meant.
func suggestName(wrong string, known map[string]bool) string {
	return wording.SuggestNearest(wrong, slices.Sorted(maps.Keys(known)), "`")
}

// IsUnknownModel reports whether a field names a model that does not exist. "" is
// not the name of a model.
func (c *Checker) IsUnknownModel(id string) bool {
	return id != "" && (c.Context.Model == nil || !c.Context.Model(id))
}

// WantsAllServers reports whether mcp_servers requests every server. Then a node
// may name a server that exists only on other machines: the graph runs without
// it.
func WantsAllServers(f *spec.File) bool { return slices.Equal(f.MCPServers, []string{"all"}) }

// NamedServers returns the ids in the graph's mcp_servers. They count as known
// even if no mcp.json defines them: the graph then runs without these servers.
func NamedServers(f *spec.File) []string {
	if WantsAllServers(f) {
		return nil
	}
	return f.MCPServers
}
