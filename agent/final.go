package agent

import (
	"slices"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// Final is the reply that an event completes, if it is one without calls: what a
// model says last in its loop. Everything that it said before in this loop has
// calls, and pieces of text come as TextDelta before they are part of a reply.
func Final(e graph.Event) (llm.Message, bool) {
	sent, ok := e.Body.(graph.Emitted)
	if !ok {
		return llm.Message{}, false
	}
	r, ok := sent.Value.(Replied)
	if !ok || len(r.Message.ToolCalls()) > 0 {
		return llm.Message{}, false
	}
	return r.Message, true
}

// Terminal makes a filter for the events of a graph. It keeps from a reader what
// models say in the middle of it: deltas and replies of nodes that lead on to
// others, or are inside an agent that does. A loop back to the node, such as that
// of its tools, does not count, nor does what follows a failure. Of a team the lead
// is heard. All other events pass.
func Terminal(g *graph.Graph) func(e graph.Event) bool {
	ends := map[string]bool{}
	shape := g.Structure()
	terminals(&shape, "", true, ends)
	return func(e graph.Event) bool {
		sent, ok := e.Body.(graph.Emitted)
		if !ok {
			return true
		}
		switch sent.Value.(type) {
		case TextDelta, ReasoningDelta, Replied:
			return ends[e.Path+e.Node]
		}
		return true
	}
}

// terminals finds the nodes, by path, behind which nothing comes.
func terminals(s *graph.Structure, path string, outer bool, ends map[string]bool) {
	for _, n := range s.Nodes {
		last := outer && !leadsOn(s, n.Name)
		ends[path+n.Name] = last
		if n.Child != nil {
			terminals(n.Child, path+n.Name+"/", last, ends)
		}
		for kind, child := range n.Children { // a child that is named like its kind speaks for the node
			terminals(&child, path+n.Name+"/"+kind+"/", last, ends)
		}
	}
}

// leadsOn tells whether a node leads to another one, other than on a detour that
// only leads back.
func leadsOn(s *graph.Structure, node string) bool {
	for _, to := range targets(s, node) {
		if to != graph.End && to != node && !detour(s, to, node) {
			return true
		}
	}
	return false
}

// detour tells whether all ways from a node lead to another one, and no model
// speaks on them. A node that leads back or to the end, and nowhere else, has
// the other one speak again or leaves it the last word.
func detour(s *graph.Structure, from, back string) bool {
	seen := map[string]bool{from: true}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		if next[0] == graph.End || speaks(s, next[0]) {
			return false
		}
		for _, to := range targets(s, next[0]) {
			last := to == graph.End && slices.Contains(targets(s, next[0]), back)
			if to != back && !last && !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	return true
}

// targets lists the nodes that may follow a node.
func targets(s *graph.Structure, node string) (to []string) {
	for _, n := range s.Nodes {
		if n.Name == node && n.AnyRoute {
			to = []string{graph.End}
			for _, other := range s.Nodes {
				to = append(to, other.Name)
			}
			return to
		}
	}
	for _, e := range s.Edges {
		if e.From == node && e.Kind != graph.EdgeError {
			to = append(to, e.To)
		}
	}
	return to
}

func speaks(s *graph.Structure, node string) bool {
	for _, n := range s.Nodes {
		if n.Name == node {
			return n.Child != nil || n.Children != nil && n.Kind != "tools" || n.Kind == "llm"
		}
	}
	return false
}
