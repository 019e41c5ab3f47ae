package flow

import (
	"slices"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// Structure is the shape of the agent as its file declares it: unreachable nodes,
// targets that do not exist and the graphs of agent nodes included.
func (a *Agent) Structure() graph.Structure { return a.structure(map[string]bool{}) }

func (a *Agent) structure(above map[string]bool) graph.Structure {
	if a.Config != nil {
		return a.talk()
	}
	above[a.Dir] = true
	defer delete(above, a.Dir)
	s := graph.Structure{Name: a.File.Name, Start: []string{a.File.Start}}
	for _, n := range a.File.Nodes {
		info := graph.NodeInfo{Name: n.ID, Kind: n.Kind(), Doc: n.Description}
		if b, ok := n.Body.(*AgentNode); ok {
			if child := a.children[b.Agent]; child != nil && !above[child.Dir] {
				inner := child.structure(above)
				info.Child = &inner
			}
		}
		s.Nodes = append(s.Nodes, info)
		s.Edges = append(s.Edges, n.arrows()...)
	}
	return s
}

// talk is the shape of a conversation with tools.
func (a *Agent) talk() graph.Structure {
	s := graph.Structure{Name: a.Name, Start: []string{nodeBegin}}
	arrow := func(from, to, label string) {
		kind := graph.EdgePlain
		if label != "" {
			kind = graph.EdgeBranch
		}
		s.Edges = append(s.Edges, graph.EdgeInfo{From: from, To: to, Label: label, Kind: kind})
	}
	s.Nodes = []graph.NodeInfo{{Name: nodeBegin, Kind: "begin"}, {Name: agent.NodeThink, Kind: "llm"}, {Name: agent.NodeAct, Kind: "tools"}}
	arrow(nodeBegin, agent.NodeThink, "")
	arrow(agent.NodeThink, agent.NodeAct, "tools")
	arrow(agent.NodeAct, agent.NodeThink, "")
	if a.Config.Continue.Auto {
		s.Nodes = append(s.Nodes, graph.NodeInfo{Name: agent.NodeContinue, Kind: "continue"})
		arrow(agent.NodeThink, agent.NodeContinue, "open todos")
		arrow(agent.NodeContinue, agent.NodeThink, "")
	}
	s.Nodes = append(s.Nodes, graph.NodeInfo{Name: nodeDone, Kind: "end"})
	arrow(agent.NodeThink, nodeDone, "done")
	arrow(nodeDone, graph.End, "")
	return s
}

// arrows are the edges of a node as a picture shows them.
func (n *Node) arrows() (list []graph.EdgeInfo) {
	add := func(to, label string, kind graph.EdgeKind) {
		list = append(list, graph.EdgeInfo{From: n.ID, To: to, Label: label, Kind: kind})
	}
	switch b := n.Body.(type) {
	case *EndNode:
		add(graph.End, "", graph.EdgePlain)
		return list
	case *ApprovalNode:
		for _, r := range b.Routes {
			add(r.Target, r.Answer, graph.EdgeBranch)
		}
		add(b.OnOther, "other", graph.EdgeBranch)
		return list
	case *LLMNode:
		if b.Fallback != "" {
			defer add(b.Fallback, "fallback", graph.EdgeError)
		}
	case *ScriptNode:
		if b.Fallback != "" {
			defer add(b.Fallback, "fallback", graph.EdgeError)
		}
	case *MapNode:
		add(b.Branch, "for each "+b.As, graph.EdgeRoute)
	}
	for _, to := range slices.Compact(slices.Clone(n.Next)) {
		add(to, "", graph.EdgePlain)
	}
	return list
}
