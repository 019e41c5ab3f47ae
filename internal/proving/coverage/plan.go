package coverage

import (
	"maps"
	"slices"
	"strings"

	"raddle.dev/graph"
)

// An edgeKey is an edge: the nodes at its ends and its label.
type edgeKey struct{ from, to, label string }

// A plan is what there is to reach: the nodes and edges of one graph, without those of the agents that it runs.
type plan struct {
	nodes map[string]*planNode
	order []string        // names of nodes, in the order of the structure
	edges []edgeKey       // in the order of the structure, without those to the end
	loops map[string]loop // by name
}

// A planNode is a node and the edges that leave it.
type planNode struct {
	labels      map[string][]string // of the edges to each target, in order
	branch      string              // of a map: the node that it runs for each item
	branchLabel string
}

// A loop is an edge that leads back to a node which comes before it.
type loop struct{ from, to string }

// mapKind is the kind of nodes that run another node for each item of a list.
const mapKind = "map"

func newPlan(s *graph.Structure) *plan {
	p := &plan{nodes: map[string]*planNode{}, loops: map[string]loop{}}
	kinds := map[string]string{}
	for i := range s.Nodes {
		name := s.Nodes[i].Name
		p.nodes[name], p.order, kinds[name] = &planNode{labels: map[string][]string{}}, append(p.order, name), s.Nodes[i].Kind
	}
	for _, e := range s.Edges {
		from := p.nodes[e.From]
		key := edgeKey{e.From, e.To, e.Label}
		if from == nil || e.To == graph.End || slices.Contains(from.labels[e.To], e.Label) {
			continue
		}
		p.edges = append(p.edges, key)
		if e.Kind == graph.EdgeRoute && kinds[e.From] == mapKind {
			from.branch = e.To
			from.branchLabel = e.Label
			continue
		}
		from.labels[e.To] = append(from.labels[e.To], e.Label)
	}
	p.addLoops(s)
	return p
}

// addLoops finds the edges that lead back, by a search in depth from the start.
func (p *plan) addLoops(s *graph.Structure) {
	targets := map[string][]string{}
	for _, e := range s.Edges {
		targets[e.From] = append(targets[e.From], e.To)
	}
	const open, done = 1, 2
	seen := map[string]int{}
	var visit func(name string)
	visit = func(name string) {
		seen[name] = open
		for _, to := range targets[name] {
			switch seen[to] {
			case open:
				p.loops[name+" → "+to] = loop{name, to}
			case 0:
				visit(to)
			}
		}
		seen[name] = done
	}
	for _, name := range s.Start {
		if seen[name] == 0 {
			visit(name)
		}
	}
}

// findMap returns the name of the map whose branches run in a frame, "" if the frame is of another kind. Maps may be
// inside maps.
func (p *plan) findMap(frame string) string {
	var last string
	for part := range strings.SplitSeq(strings.TrimSuffix(frame, "/"), "/") {
		last, _, _ = strings.Cut(part, "[")
		if n := p.nodes[last]; n == nil || n.branch == "" {
			return ""
		}
	}
	return last
}

// loopNames returns the names of loops in order.
func (p *plan) loopNames() []string { return slices.Sorted(maps.Keys(p.loops)) }
