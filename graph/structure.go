package graph

// EdgeKind says how a connection of a [Structure] is taken at run time.
type EdgeKind string

// The kinds of edges.
const (
	// EdgePlain is always taken when its source is done.
	EdgePlain EdgeKind = "edge"
	// EdgeBranch is one possible target of a conditional edge; its label is the case that picks it.
	EdgeBranch EdgeKind = "branch"
	// EdgeJoin is one source of a join: the target starts when every source of the group is done.
	EdgeJoin EdgeKind = "join"
	// EdgeRoute is a target that a node may name itself.
	EdgeRoute EdgeKind = "route"
	// EdgeError is taken when the source has failed.
	EdgeError EdgeKind = "error"
)

// Structure is the shape of a graph as plain data: what is drawn, exported and shown in
// a studio. It contains nothing that runs and has no methods. The order of its slices
// is the order of declaration, so equal graphs give equal bytes.
type Structure struct {
	// Name is the name of the graph.
	Name string `json:"name,omitempty"`
	// Start names the nodes that run first.
	Start []string `json:"start,omitempty"`
	// Nodes are the nodes of this graph, without those of its children.
	Nodes []NodeInfo `json:"nodes,omitempty"`
	// Edges are the connections between these nodes, and from them to [End].
	Edges []EdgeInfo `json:"edges,omitempty"`
}

// NodeInfo describes one node of a [Structure].
type NodeInfo struct {
	// Name is unique within its Structure.
	Name string `json:"name"`
	// Kind is a word such as "llm", "script" or "approval"; empty for a plain function.
	Kind string `json:"kind,omitempty"`
	// Title is shown instead of the name if it is set.
	Title string `json:"title,omitempty"`
	// Doc says in a sentence what the node is for.
	Doc string `json:"doc,omitempty"`
	// AnyRoute reports whether the node may name every node of the Structure as the
	// next one; there are no edges for that.
	AnyRoute bool `json:"any_route,omitempty"`
	// Child is the graph that the node runs, nil for every other node.
	Child *Structure `json:"child,omitempty"`
	// Children are the graphs that the node may run under names, by kind; nil for every other node.
	Children map[string]Structure `json:"children,omitempty"`
}

// EdgeInfo describes one connection of a [Structure].
type EdgeInfo struct {
	// From names a node of the same Structure.
	From string `json:"from"`
	// To names a node of the same Structure, or is [End].
	To string `json:"to"`
	// Label is the case, option or reason for which the edge is taken; empty for an
	// unconditional edge.
	Label string `json:"label,omitempty"`
	// Kind says how the edge is taken.
	Kind EdgeKind `json:"kind"`
	// Join groups the sources of one join: edges with Kind "join", the same To and the same Join belong together.
	// It is 0 for every other edge.
	Join int `json:"join,omitempty"`
}
