package flow

// BreakPlace is a node at which a run can stop.
type BreakPlace struct {
	Path  string // as [raddle.dev/graph.Break] names it
	Place string // as the picture of the agent names it: the node that a map runs is next to the map
}

// ListBreakPlaces returns the nodes at which a run of an agent can stop, those of the graphs that it calls included, in
// the order of the files. A conversation has no nodes at which it could stop.
func ListBreakPlaces(a *Agent) []BreakPlace {
	return appendBreakPlaces(nil, a, BreakPlace{}, map[string]bool{})
}

// appendBreakPlaces adds the nodes of an agent below a node; above are the directories of the agents around it.
func appendBreakPlaces(list []BreakPlace, a *Agent, below BreakPlace, above map[string]bool) []BreakPlace {
	if a.File == nil || above[a.Dir] {
		return list
	}
	above[a.Dir] = true
	defer delete(above, a.Dir)
	maps := map[string]string{} // the map that runs a node, by the node
	for _, n := range a.File.Nodes {
		if n.Branch != nil {
			for _, id := range n.Branch.Nodes() {
				maps[id] = n.ID + "/"
			}
		}
	}
	for _, n := range a.File.Nodes {
		at := BreakPlace{Path: below.Path + maps[n.ID] + n.ID, Place: below.Place + n.ID}
		list = append(list, at)
		if name := needsOf(n).agent; a.children[name] != nil && a.childFault(name) == nil {
			list = appendBreakPlaces(list, a.children[name], BreakPlace{Path: at.Path + "/", Place: at.Place + "/"}, above)
		}
	}
	return list
}
