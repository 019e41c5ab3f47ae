package flow

import (
	"slices"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
)

// ListFindings returns the findings that people see: those of Findings without warnings that the scripts refute, and one
// for each cause. The format defines that nodes count as unreachable to which only a script leads; scripts name most of
// these. Of unreachable nodes that lead to each other, the first is named.
func (a *Agent) ListFindings() []strictyaml.Finding {
	if !slices.ContainsFunc(a.Findings, isAboutReach) {
		return a.Findings
	}
	network := a.File.BuildNetwork()
	for _, n := range a.File.Nodes {
		if b, is := n.Body.(*scriptNode); is && n.Targets == nil {
			network.AddChosen(n.ID, b.chosenTargets(a, n))
		}
	}
	seen := network.ReachableFromEntries(a.File)
	roots := network.FindRoots(seen)
	ends := slices.ContainsFunc(a.File.Nodes, func(n *spec.Node) bool {
		return n.Type.Routing == spec.RouteEnd && seen[network.Index[n.ID]]
	})
	return slices.DeleteFunc(slices.Clone(a.Findings), func(f strictyaml.Finding) bool {
		switch f.Code {
		case "unreachable":
			return !roots[network.Index[f.Node]]
		case "end-unreachable":
			return ends
		}
		return false
	})
}

// isAboutReach reports whether a finding says that nothing leads to a node.
func isAboutReach(f strictyaml.Finding) bool {
	return f.Code == "unreachable" || f.Code == "end-unreachable"
}
