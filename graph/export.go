package graph

import (
	"maps"
	"slices"
)

// Structure returns the shape of the graph as plain data, children included.
func (g *Graph) Structure() Structure {
	s := Structure{Name: g.def.Name, Start: slices.Clone(g.def.Start)}
	for i := range g.nodes {
		n := &g.nodes[i]
		info := NodeInfo{Name: n.Name, Kind: n.Kind, Title: n.Title, Doc: n.Doc, AnyRoute: n.AnyRoute}
		if n.Graph != nil {
			child := n.Graph.Structure()
			info.Child = &child
		}
		for kind, sub := range n.Children {
			setEntry(&info.Children, kind, sub.Graph.Structure())
		}
		s.Nodes = append(s.Nodes, info)
		s.Edges = append(s.Edges, g.outgoingEdges(n)...)
	}
	for i, j := range g.joins {
		for _, from := range j.from {
			s.Edges = append(s.Edges, EdgeInfo{From: from, To: g.nameOf(j.to), Kind: EdgeJoin, Join: i + 1})
		}
	}
	return s
}

// outgoingEdges lists the edges that leave a node, except joins.
func (g *Graph) outgoingEdges(n *cnode) (es []EdgeInfo) {
	for _, to := range n.to {
		es = append(es, EdgeInfo{From: n.Name, To: g.nameOf(to), Kind: EdgePlain})
	}
	for _, p := range n.picks {
		for _, label := range slices.Sorted(maps.Keys(p.cases)) {
			es = append(es, EdgeInfo{From: n.Name, To: g.nameOf(p.cases[label]), Label: label, Kind: EdgeBranch})
		}
	}
	for _, r := range n.Routes {
		es = append(es, EdgeInfo{From: n.Name, To: r, Kind: EdgeRoute})
	}
	for _, label := range slices.Sorted(maps.Keys(n.Ends)) {
		es = append(es, EdgeInfo{From: n.Name, To: n.Ends[label], Label: label, Kind: EdgeRoute})
	}
	if n.OnError != "" {
		es = append(es, EdgeInfo{From: n.Name, To: n.OnError, Kind: EdgeError})
	}
	return es
}
