package spec

import "slices"

// Edge is a declared edge from one node to another.
type Edge struct {
	To      string
	Field   string // that declares it
	Item    int    // index in the field
	Role    EdgeRole
	Updates bool   // of a failure: state_updates run before the edge is followed
	Picture string // its label in pictures
}

// EdgeRole says when an edge is followed.
type EdgeRole int

const (
	EdgeNext    EdgeRole = iota // when the node has succeeded
	EdgeChoice                  // when the node selects it
	EdgeFailure                 // when the node has failed
	EdgeBranch                  // never: the node itself runs the other one
)

// Label returns the field that declares an edge of the node, for messages.
func (n *Node) Label(e Edge) string {
	if e.Role == EdgeNext {
		return "'" + e.Field + "'"
	}
	return n.Kind() + " '" + e.Field + "'"
}

// DeclaredEdges returns the declared edges of a node, including ignored ones: next,
// then those of its type, in file order.
func (n *Node) DeclaredEdges() []Edge {
	list := make([]Edge, 0, len(n.Next)+len(n.edges))
	for i, to := range n.Next {
		list = append(list, Edge{To: to, Field: "next", Item: i})
	}
	return append(list, n.edges...)
}

// FollowedEdges returns the edges of a node that lead to a next node at run
// time, in the order of [Node.DeclaredEdges].
func (n *Node) FollowedEdges() []Edge {
	var list []Edge
	for _, e := range n.DeclaredEdges() {
		switch {
		case e.Role == EdgeBranch || e.Role == EdgeNext && n.Type.Routing.IgnoresNext():
		case e.Role == EdgeNext && n.Type.Routing == RouteFirst && e.Item > 0:
		default:
			list = append(list, e)
		}
	}
	return list
}

// Network contains the declared edges of a graph as indices of nodes in file
// order. Edges to nodes that do not exist are left out.
type Network struct {
	Index  map[string]int
	next   [][]int
	chosen [][]int // those that a node chooses itself, which may lead back
}

// BuildNetwork returns the declared edges of the file.
func (f *File) BuildNetwork() *Network {
	w := &Network{Index: make(map[string]int, len(f.Nodes)), next: make([][]int, len(f.Nodes)), chosen: make([][]int, len(f.Nodes))}
	for i, n := range f.Nodes {
		w.Index[n.ID] = i
	}
	for i, n := range f.Nodes {
		for _, e := range n.DeclaredEdges() {
			if to, ok := w.Index[e.To]; ok {
				w.next[i] = append(w.next[i], to)
			}
		}
		w.AddChosen(n.ID, n.Targets)
	}
	return w
}

// AddChosen adds nodes that a node may choose, in addition to its declared targets. Unknown names are left out.
func (w *Network) AddChosen(node string, targets []string) {
	i := w.Index[node]
	for _, target := range targets {
		if to, ok := w.Index[target]; ok {
			w.chosen[i] = append(w.chosen[i], to)
		}
	}
}

// FindRoots returns the nodes outside of seen to which no other node outside of seen leads. Of nodes that lead to each
// other it is the first.
func (w *Network) FindRoots(seen []bool) []bool {
	roots := make([]bool, len(seen))
	covered := slices.Clone(seen)
	for i := range seen {
		if covered[i] {
			continue
		}
		for at, reached := range w.ReachableFrom(i) {
			if reached && !seen[at] {
				covered[at] = true
				roots[at] = false
			}
		}
		roots[i] = true
	}
	return roots
}

// ReachableFromEntries returns, for each node, whether declared edges and declared targets lead to it from one of the
// entries of a file, which are reachable themselves.
func (w *Network) ReachableFromEntries(f *File) []bool {
	var from []int
	for _, id := range f.Entries() {
		from = append(from, w.Index[id])
	}
	return w.ReachableFrom(from...)
}

// ReachableFrom returns, for each node, whether declared edges and declared
// targets lead to it from some nodes. These themselves are reachable.
func (w *Network) ReachableFrom(from ...int) []bool {
	seen := make([]bool, len(w.next))
	queue := slices.Clone(from)
	for _, i := range from {
		seen[i] = true
	}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, to := range slices.Concat(w.next[i], w.chosen[i]) {
			if !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return seen
}

// FindCycle returns the nodes of the first cycle that a depth-first search from
// each node in file order finds, starting where the search enters it. It
// returns nil if there is none.
func (w *Network) FindCycle() []int {
	const (
		fresh = iota
		onPath
		done
	)
	state := make([]byte, len(w.next))
	for root := range w.next {
		if state[root] != fresh {
			continue
		}
		path := []int{root}
		turn := []int{0} // next edge to follow of each node on the path
		state[root] = onPath
		for len(path) > 0 {
			top := len(path) - 1
			node := path[top]
			if turn[top] == len(w.next[node]) {
				state[node] = done
				path = path[:top]
				turn = turn[:top]
				continue
			}
			to := w.next[node][turn[top]]
			turn[top]++
			switch state[to] {
			case fresh:
				state[to] = onPath
				path = append(path, to)
				turn = append(turn, 0)
			case onPath:
				for i, n := range path {
					if n == to {
						return path[i:]
					}
				}
			}
		}
	}
	return nil
}
