package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/team"
)

// Structure returns the structure of the agent as its file declares it,
// including unreachable nodes, targets that do not exist and the graphs of
// agent nodes. Secrets are removed from descriptions and labels, because a
// picture splits its texts into lines, in which secrets would not be found.
func (a *Agent) Structure() graph.Structure {
	s := buildStructure(a, map[string]bool{})
	a.host.redactStructure(&s)
	return s
}

// Picture returns the structure as people know it: an agent of a config.yaml is its model, its tools, its servers and
// the agents that it may start, instead of the steps of its loop. Secrets are removed as in Structure.
func (a *Agent) Picture() graph.Structure {
	s := (&illustrator{above: map[string]bool{}}).picture(a)
	a.host.redactStructure(&s)
	return s
}

// These are the names of the nodes in the Picture of a config.yaml's agent: its
// model, its tools and its documents.
const (
	PictureModel     = "model"
	PictureTools     = "tools"
	PictureDocuments = "documents"
)

// An illustrator makes pictures of agents. above are the directories of the agents around the current one.
type illustrator struct{ above map[string]bool }

func (p *illustrator) picture(a *Agent) graph.Structure {
	p.above[a.Dir] = true
	defer delete(p.above, a.Dir)
	if a.Config == nil {
		s := buildStructure(a, map[string]bool{})
		for i := range s.Nodes {
			n := a.File.Node(s.Nodes[i].Name)
			if child := a.children[needsOf(n).agent]; child != nil && !p.above[child.Dir] {
				s.Nodes[i].Child = new(p.picture(child))
			}
		}
		return s
	}
	return p.pictureConfig(a)
}

// maxToolNames is how many tools a picture names.
const maxToolNames = 3

// pictureConfig returns the picture of an agent of a config.yaml.
func (p *illustrator) pictureConfig(a *Agent) graph.Structure {
	s := graph.Structure{Name: a.Name, Start: []string{PictureModel}}
	title := a.Name
	if id := a.modelID(""); id != "" {
		title += "\n" + id
	}
	s.Nodes = append(s.Nodes, graph.NodeInfo{Name: PictureModel, Kind: "model", Title: title, Doc: a.Config.Description})
	add := func(name, kind, title, label string) {
		s.Nodes = append(s.Nodes, graph.NodeInfo{Name: name, Kind: kind, Title: title})
		s.Edges = append(s.Edges, graph.EdgeInfo{From: PictureModel, To: name, Label: label, Kind: graph.EdgeRoute})
	}
	if a.Tools != nil {
		if names := a.Tools.toolNames(); len(names) > 0 {
			title := strings.Join(names[:min(len(names), maxToolNames)], "\n")
			if more := len(names) - maxToolNames; more > 0 {
				title = strings.Join(names[:2], "\n") + fmt.Sprintf("\nand %d more", len(names)-2)
			}
			add(PictureTools, "tools", title, "")
		}
		for _, server := range a.Tools.Servers {
			if server != PictureModel && server != PictureTools && server != PictureDocuments {
				add(server, "server", "", "")
			}
		}
	}
	if len(a.Config.Documents.Paths) > 0 {
		add(PictureDocuments, "rag", PictureDocuments, "")
	}
	if a.spawnSet != nil {
		for _, name := range slices.Sorted(maps.Keys(a.spawnSet.agents)) {
			if slices.ContainsFunc(s.Nodes, func(n graph.NodeInfo) bool { return n.Name == name }) {
				continue // its box would be another one
			}
			add(name, "agent", name, "")
			if m := a.spawnSet.agents[name]; slices.Contains(a.spawnSet.named, name) && !p.above[m.Dir] {
				s.Nodes[len(s.Nodes)-1].Child = new(p.picture(m))
			}
		}
	}
	return s
}

func (h *Host) redactStructure(s *graph.Structure) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Title, n.Doc = h.redact(n.Title), h.redact(n.Doc)
		if n.Child != nil {
			h.redactStructure(n.Child)
		}
		for kind, child := range n.Children {
			h.redactStructure(&child)
			n.Children[kind] = child
		}
	}
	for i := range s.Edges {
		s.Edges[i].Label = h.redact(s.Edges[i].Label)
	}
}

func buildStructure(a *Agent, above map[string]bool) graph.Structure {
	above[a.Dir] = true
	defer delete(above, a.Dir)
	if a.Config != nil {
		return conversationStructure(a, above)
	}
	s := graph.Structure{Name: a.File.Name, Start: []string{a.File.Start}, Finally: a.File.Finally}
	for _, n := range a.File.Nodes {
		info := graph.NodeInfo{Name: n.ID, Kind: n.Kind(), Doc: n.Description}
		needs := needsOf(n)
		if child := a.children[needs.agent]; child != nil && !above[child.Dir] {
			info.Child = new(buildStructure(child, above))
		}
		if r := needs.request; r != nil && a.spawnSet != nil && listsSpawnTool(r.Tools) {
			info.Children = a.spawnSet.memberStructures(above)
		}
		s.Nodes = append(s.Nodes, info)
		s.Edges = append(s.Edges, pictureEdges(a, n)...)
	}
	return s
}

// conversationStructure returns the structure of a conversation with tools: one loop, or a team
// with a lead.
func conversationStructure(a *Agent, above map[string]bool) graph.Structure {
	inner := loopShape(a.Config.Continue.Auto)
	if a.spawnSet != nil {
		node := graph.NodeInfo{Name: team.Node, Kind: "team", Children: a.spawnSet.memberStructures(above)}
		node.Children[team.Lead] = inner
		inner = graph.Structure{Start: []string{team.Node}, Nodes: []graph.NodeInfo{node}, Edges: []graph.EdgeInfo{{From: team.Node, To: graph.End, Kind: graph.EdgePlain}}}
	}
	s := graph.Structure{Name: a.Name, Start: []string{nodeBegin}}
	s.Nodes = append(append([]graph.NodeInfo{{Name: nodeBegin, Kind: "begin"}}, inner.Nodes...), graph.NodeInfo{Name: nodeDone, Kind: "end"})
	s.Edges = []graph.EdgeInfo{{From: nodeBegin, To: inner.Start[0], Kind: graph.EdgePlain}}
	for _, e := range inner.Edges {
		if e.To == graph.End {
			e.To = nodeDone
		}
		s.Edges = append(s.Edges, e)
	}
	s.Edges = append(s.Edges, graph.EdgeInfo{From: nodeDone, To: graph.End, Kind: graph.EdgePlain})
	return s
}

// memberStructures returns the structures of the agents that files name. Other agents
// are only boxes, because all agents of the directories would make the picture
// unreadable.
func (s *spawnSet) memberStructures(above map[string]bool) map[string]graph.Structure {
	shapes := map[string]graph.Structure{}
	for name, m := range s.agents {
		shapes[name] = graph.Structure{Name: name}
		if slices.Contains(s.named, name) && !above[m.Dir] {
			shapes[name] = buildStructure(m, above)
		}
	}
	return shapes
}

// loopShape returns the structure of a model with its tools.
func loopShape(continues bool) graph.Structure {
	s := graph.Structure{Start: []string{agent.NodeThink}, Nodes: []graph.NodeInfo{{Name: agent.NodeThink, Kind: "llm"}, {Name: agent.NodeAct, Kind: "tools"}}}
	arrow := func(from, to, label string) {
		kind := graph.EdgePlain
		if label != "" {
			kind = graph.EdgeBranch
		}
		s.Edges = append(s.Edges, graph.EdgeInfo{From: from, To: to, Label: label, Kind: kind})
	}
	arrow(agent.NodeThink, agent.NodeAct, "tools")
	arrow(agent.NodeAct, agent.NodeThink, "")
	if continues {
		s.Nodes = append(s.Nodes, graph.NodeInfo{Name: agent.NodeContinue, Kind: "continue"})
		arrow(agent.NodeThink, agent.NodeContinue, "open todos")
		arrow(agent.NodeContinue, agent.NodeThink, "")
	}
	arrow(agent.NodeThink, graph.End, "done")
	return s
}

// pictureEdges returns the edges of a node as a picture shows them.
func pictureEdges(a *Agent, n *spec.Node) (list []graph.EdgeInfo) {
	add := func(to, label string, kind graph.EdgeKind) {
		list = append(list, graph.EdgeInfo{From: n.ID, To: to, Label: label, Kind: kind})
	}
	own := map[spec.EdgeRole]graph.EdgeKind{spec.EdgeChoice: graph.EdgeBranch, spec.EdgeFailure: graph.EdgeError, spec.EdgeBranch: graph.EdgeRoute}
	addRole := func(role spec.EdgeRole) {
		for _, e := range n.DeclaredEdges() {
			if e.Role == role {
				add(e.To, e.Picture, own[role])
			}
		}
	}
	addRole(spec.EdgeChoice)
	addRole(spec.EdgeBranch)
	switch r := n.Type.Routing; {
	case r == spec.RouteEnd:
		add(graph.End, "", graph.EdgePlain)
	case !r.IgnoresNext():
		for _, to := range slices.Compact(slices.Clone(n.Next)) {
			add(to, "", graph.EdgePlain)
		}
	}
	if b, ok := n.Body.(*scriptNode); ok {
		for _, to := range b.chosenTargets(a, n) {
			if !slices.Contains(n.Next, to) && a.File.Node(to) != nil {
				add(to, "", graph.EdgeRoute)
			}
		}
	}
	addRole(spec.EdgeFailure)
	return list
}
