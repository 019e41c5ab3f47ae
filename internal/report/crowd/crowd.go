// Package crowd makes large graphs readable: nodes that are alike become one, and graphs inside of nodes are closed. It
// changes structures, and draws nothing.
package crowd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"raddle.dev/graph"
)

// The limits of what a picture shows openly.
const (
	fewestAlike = 5  // nodes that become one
	mostNodes   = 60 // of a picture in which all graphs inside of nodes are open
)

// endKind is the kind of nodes that are an end: each says how a run ends.
const endKind = "end"

// View says what of a structure is open. A place is the names of nodes from the outermost graph on, with slashes.
type View struct {
	Open   []string // nodes that are alike and stay apart, by the place of the node that they would be; and graphs inside of nodes
	Closed []string // graphs inside of nodes
}

// FoldGraph returns a structure with fewer nodes, and the places of those which a node of it is drawn for, by its place. The
// nodes of a graph are alike if they have one kind and the same edges, and run the same graph or none. A graph inside of
// a node is closed if the view says so, or if the picture is large and the view does not open it.
func FoldGraph(s graph.Structure, v View) (folded graph.Structure, members map[string][]string) {
	f := &folder{view: v, members: map[string][]string{}}
	folded = f.foldLevel(&s, "")
	for depth := 2; depth >= 1 && countNodes(&folded) > mostNodes; depth-- {
		f.closeBelow(&folded, "", depth)
	}
	return folded, f.members
}

// A folder builds a folded structure.
type folder struct {
	view    View
	members map[string][]string
}

// foldLevel returns a graph with its groups as single nodes. at is the place of the graph, with a slash at its end.
func (f *folder) foldLevel(s *graph.Structure, at string) graph.Structure {
	out := *s
	out.Nodes = nil
	shapes := edgesOfNodes(s)
	alike := map[string][]int{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Name == s.Finally || n.AnyRoute || n.Kind == endKind {
			continue
		}
		key := fmt.Sprintf("%q %v %s %s", n.Kind, slices.Contains(s.Start, n.Name), shapes[n.Name], shapeOf(n))
		alike[key] = append(alike[key], i)
	}
	group := map[string]string{} // by the names of its nodes
	first := map[int][]int{}     // the nodes of a group by its first one
	for _, list := range alike {
		name := groupName(s, list)
		isTaken := slices.ContainsFunc(s.Nodes, func(n graph.NodeInfo) bool { return n.Name == name })
		if len(list) < fewestAlike || isTaken || slices.Contains(f.view.Open, at+name) {
			continue
		}
		first[list[0]] = list
		for _, i := range list {
			group[s.Nodes[i].Name] = name
		}
	}
	for i := range s.Nodes {
		n := s.Nodes[i]
		if list := first[i]; list != nil {
			out.Nodes = append(out.Nodes, f.newGroup(s, list, at))
			continue
		}
		if group[n.Name] == "" {
			out.Nodes = append(out.Nodes, f.foldInside(n, at+n.Name))
		}
	}
	if len(group) == 0 {
		return out
	}
	out.Start = renameAll(s.Start, group)
	out.Edges = nil
	known := map[graph.EdgeInfo]bool{}
	for _, e := range s.Edges {
		from, grouped := group[e.From]
		if grouped {
			e.From = from
		}
		if to, ok := group[e.To]; ok {
			e.To = to
			grouped = true
			e.Label = "" // each of them had its own
		}
		if !grouped || !known[e] {
			out.Edges = append(out.Edges, e)
			known[e] = true
		}
	}
	return out
}

// groupName returns the name of the node that some nodes of a graph become.
func groupName(s *graph.Structure, list []int) string {
	return s.Nodes[list[0]].Name + " … " + s.Nodes[list[len(list)-1]].Name
}

// newGroup returns the node that some nodes of a graph become.
func (f *folder) newGroup(s *graph.Structure, list []int, at string) graph.NodeInfo {
	first := &s.Nodes[list[0]]
	name := groupName(s, list)
	for _, i := range list {
		place := at + s.Nodes[i].Name
		f.members[at+name] = append(f.members[at+name], place)
	}
	what := first.Kind
	if what == "" {
		what = "node"
	}
	return graph.NodeInfo{Name: name, Kind: first.Kind, Title: fmt.Sprintf("%d × %s", len(list), what)}
}

// foldInside returns a node whose graphs are folded, or closed if the view says so.
func (f *folder) foldInside(n graph.NodeInfo, place string) graph.NodeInfo {
	if n.Child == nil && len(n.Children) == 0 {
		return n
	}
	if slices.Contains(f.view.Closed, place) {
		return f.closeNode(n, place)
	}
	if n.Child != nil {
		child := f.foldLevel(n.Child, insideOf(&n, place, n.Child.Name))
		n.Child = &child
	}
	children := make(map[string]graph.Structure, len(n.Children))
	for kind, s := range n.Children {
		children[kind] = f.foldLevel(&s, place+"/"+kind+"/")
	}
	if len(children) > 0 {
		n.Children = children
	}
	return n
}

// insideOf returns the place of a node's own graph, with a slash at its end: beside the graphs that the node may run
// under names, it has a name too.
func insideOf(n *graph.NodeInfo, place, name string) string {
	if len(n.Children) > 0 {
		return place + "/" + name + "/"
	}
	return place + "/"
}

// closeNode returns a node without what is inside.
func (f *folder) closeNode(n graph.NodeInfo, place string) graph.NodeInfo {
	var inside []string
	listInside(&n, place, &inside)
	if len(inside) == 0 {
		return n
	}
	maps.DeleteFunc(f.members, func(at string, _ []string) bool { return strings.HasPrefix(at, place+"/") })
	f.members[place] = inside
	name := n.Title
	if name == "" {
		name = n.Name
	}
	n.Title = fmt.Sprintf("%s\n%d inside", name, len(inside))
	n.Child = nil
	n.Children = nil
	return n
}

// listInside adds the places of the nodes inside of a node.
func listInside(n *graph.NodeInfo, place string, list *[]string) {
	add := func(s *graph.Structure, at string) {
		for i := range s.Nodes {
			inner := at + s.Nodes[i].Name
			*list = append(*list, inner)
			listInside(&s.Nodes[i], inner, list)
		}
	}
	if n.Child != nil {
		add(n.Child, insideOf(n, place, n.Child.Name))
	}
	for _, kind := range slices.Sorted(maps.Keys(n.Children)) {
		s := n.Children[kind]
		*list = append(*list, place+"/"+kind)
		add(&s, place+"/"+kind+"/")
	}
}

// closeBelow closes the graphs inside of nodes that are at least so many levels down and that the view does not open.
func (f *folder) closeBelow(s *graph.Structure, at string, depth int) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		place := at + n.Name
		isOpen := slices.ContainsFunc(f.view.Open, func(open string) bool { return open == place || strings.HasPrefix(open, place+"/") })
		switch {
		case n.Child == nil && len(n.Children) == 0:
		case depth <= 1 && !isOpen:
			*n = f.closeNode(*n, place)
		default:
			if n.Child != nil {
				f.closeBelow(n.Child, insideOf(n, place, n.Child.Name), depth-1)
			}
			for kind, inner := range n.Children {
				f.closeBelow(&inner, place+"/"+kind+"/", depth-1)
				n.Children[kind] = inner
			}
		}
	}
}

// countNodes returns the number of nodes of a structure, inner ones included.
func countNodes(s *graph.Structure) int {
	n := len(s.Nodes)
	for i := range s.Nodes {
		if c := s.Nodes[i].Child; c != nil {
			n += countNodes(c)
		}
		for _, c := range s.Nodes[i].Children {
			n += 1 + countNodes(&c)
		}
	}
	return n
}

// edgesOfNodes returns a text for the edges of each node, which is the same for nodes with the same ones. What chooses
// one of several targets does not count, because each of them has a label of its own.
func edgesOfNodes(s *graph.Structure) map[string]string {
	lists := map[string][]string{}
	for _, e := range s.Edges {
		lists[e.From] = append(lists[e.From], fmt.Sprintf("to %q %s %d %q", e.To, e.Kind, e.Join, e.Label))
		lists[e.To] = append(lists[e.To], fmt.Sprintf("from %q %s %d", e.From, e.Kind, e.Join))
	}
	texts := map[string]string{}
	for name, list := range lists {
		slices.Sort(list)
		texts[name] = strings.Join(list, ";")
	}
	return texts
}

// shapeOf returns a text for what is inside of a node, which is the same for nodes with the same inside.
func shapeOf(n *graph.NodeInfo) string {
	if n.Child == nil && len(n.Children) == 0 {
		return ""
	}
	var b strings.Builder
	if n.Child != nil {
		writeShape(&b, n.Child)
	}
	for _, kind := range slices.Sorted(maps.Keys(n.Children)) {
		s := n.Children[kind]
		fmt.Fprintf(&b, "%q", kind)
		writeShape(&b, &s)
	}
	return b.String()
}

func writeShape(b *strings.Builder, s *graph.Structure) {
	fmt.Fprintf(b, "{%q %v", s.Start, s.Edges)
	for i := range s.Nodes {
		fmt.Fprintf(b, " %q %q %s", s.Nodes[i].Name, s.Nodes[i].Kind, shapeOf(&s.Nodes[i]))
	}
	b.WriteString("}")
}

// renameAll returns names with those of groups in the place of their nodes, each once.
func renameAll(names []string, group map[string]string) (list []string) {
	for _, name := range names {
		if g, ok := group[name]; ok {
			name = g
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}
