package agent

import (
	"slices"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// FinalReply returns the reply that an event completes, if that reply has no calls:
// it is the last one of the model's loop. All earlier replies of the loop have
// calls, and pieces of text arrive as TextDelta before the reply is complete.
func FinalReply(e graph.Event) (llm.Message, bool) {
	sent, _ := e.Body.(graph.ValueEmitted)
	r, ok := sent.Value.(ReplyDone)
	if !ok || len(r.Message.ToolCalls()) > 0 {
		return llm.Message{}, false
	}
	return r.Message, true
}

// TerminalFilter returns a filter for the events of a graph. The filter reports
// whether an event is for the reader of the final answer. It rejects deltas and
// replies of nodes that lead to other nodes, or that are inside an agent that
// does. Edges back to the same node, such as the loop with its tools, and edges
// for failures do not count. In a team, only the lead's replies pass. All other
// events pass.
func TerminalFilter(g *graph.Graph) func(e graph.Event) bool {
	ends := map[string]bool{}
	shape := g.Structure()
	findTerminals(&shape, "", true, ends)
	return func(e graph.Event) bool {
		sent, _ := e.Body.(graph.ValueEmitted)
		switch sent.Value.(type) {
		case TextDelta, ReasoningDelta, ReplyDone:
			return ends[e.Path+e.Node]
		}
		return true
	}
}

// findTerminals collects the paths of the nodes that no other node follows.
func findTerminals(s *graph.Structure, path string, outer bool, ends map[string]bool) {
	for _, n := range s.Nodes {
		last := outer && !leadsToNode(s, n.Name)
		ends[path+n.Name] = last
		if n.Child != nil {
			findTerminals(n.Child, path+n.Name+"/", last, ends)
		}
		// a child that has the name of its kind is the lead, which speaks for the node
		for kind, child := range n.Children {
			findTerminals(&child, path+n.Name+"/"+kind+"/", last, ends)
		}
	}
}

// leadsToNode reports whether a node leads to another node, not counting detours
// back to it.
func leadsToNode(s *graph.Structure, node string) bool {
	for _, to := range nodeTargets(s, node) {
		if to != graph.End && to != node && !isDetour(s, to, node) {
			return true
		}
	}
	return false
}

// isDetour reports whether every path from a node leads back to another one, and
// no model replies on the way. A node that leads only back or to the end either
// lets the other node reply again or leaves it the last reply.
func isDetour(s *graph.Structure, from, back string) bool {
	seen := map[string]bool{from: true}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		if next[0] == graph.End || hasModel(s, next[0]) {
			return false
		}
		for _, to := range nodeTargets(s, next[0]) {
			last := to == graph.End && slices.Contains(nodeTargets(s, next[0]), back)
			if to != back && !last && !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	return true
}

// nodeTargets returns the nodes that may follow a node.
func nodeTargets(s *graph.Structure, node string) (to []string) {
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

func hasModel(s *graph.Structure, node string) bool {
	for _, n := range s.Nodes {
		if n.Name == node {
			return n.Child != nil || n.Children != nil && n.Kind != "tools" || n.Kind == "llm"
		}
	}
	return false
}
