package spec

// edge is a declared edge from one node to another.
type edge struct {
	To    string
	Label string // the field that declares it, for messages
	Field string
	Item  int // index in the field
}

// DeclaredEdges returns the declared edges of a node, including ignored ones: next,
// then those of its type, in file order.
func (n *Node) DeclaredEdges() []edge {
	var list []edge
	for i, to := range n.Next {
		list = append(list, edge{to, "'next'", "next", i})
	}
	switch b := n.Body.(type) {
	case *ApprovalNode:
		for i, r := range b.Routes {
			list = append(list, edge{r.Target, "approval 'routes'", "routes", i})
		}
		list = append(list, edge{b.OnOther, "approval 'on_other'", "on_other", 0})
	case *ScriptNode:
		if b.Fallback != "" {
			list = append(list, edge{b.Fallback, "script 'fallback'", "fallback", 0})
		}
	case *LLMNode:
		if b.Fallback != "" {
			list = append(list, edge{b.Fallback, "llm 'fallback'", "fallback", 0})
		}
	case *MapNode:
		list = append(list, edge{b.Branch, "map 'branch'", "branch", 0})
	}
	return list
}

// Network contains the declared edges of a graph as indices of nodes in file
// order. Edges to nodes that do not exist are left out.
type Network struct {
	Index map[string]int
	next  [][]int
}

// BuildNetwork returns the declared edges of the file.
func (f *File) BuildNetwork() *Network {
	w := &Network{Index: make(map[string]int, len(f.Nodes)), next: make([][]int, len(f.Nodes))}
	for i, n := range f.Nodes {
		w.Index[n.ID] = i
	}
	for i, n := range f.Nodes {
		for _, e := range n.DeclaredEdges() {
			if to, ok := w.Index[e.To]; ok {
				w.next[i] = append(w.next[i], to)
			}
		}
	}
	return w
}

// ReachableFrom returns, for each node, whether declared edges lead to it from a
// node. The node itself is reachable.
func (w *Network) ReachableFrom(from int) []bool {
	seen := make([]bool, len(w.next))
	seen[from] = true
	queue := []int{from}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, to := range w.next[i] {
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
				path, turn = path[:top], turn[:top]
				continue
			}
			to := w.next[node][turn[top]]
			turn[top]++
			switch state[to] {
			case fresh:
				state[to] = onPath
				path, turn = append(path, to), append(turn, 0)
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
