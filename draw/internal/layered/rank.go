package layered

import "fmt"

// breakCycles finds the edges that close a cycle: those that lead back to a node of the path on which a depth-first
// walk has come. Nodes and edges are walked in the given order, so that what is declared first flows downwards.
func (s *layoutState) breakCycles() {
	const (
		fresh = iota
		open
		done
	)
	out := make([][]int, len(s.g.Nodes))
	for i, e := range s.g.Edges {
		if e.From != e.To {
			out[e.From] = append(out[e.From], i)
		}
	}
	state := make([]int, len(s.g.Nodes))
	next := make([]int, len(s.g.Nodes))
	for root := range s.g.Nodes {
		if state[root] != fresh {
			continue
		}
		path := []int{root}
		state[root] = open
		for len(path) > 0 {
			n := path[len(path)-1]
			if next[n] == len(out[n]) {
				state[n] = done
				path = path[:len(path)-1]
				continue
			}
			e := out[n][next[n]]
			next[n]++
			switch to := s.g.Edges[e].To; state[to] {
			case open:
				s.reversed[e] = true
			case fresh:
				state[to] = open
				path = append(path, to)
			}
		}
	}
}

// assignLayers gives every node the first layer below all its predecessors, then moves nodes between their
// neighbours where that makes the edges shorter.
func (s *layoutState) assignLayers() {
	n := len(s.g.Nodes)
	in := make([][]int, n)
	out := make([][]int, n)
	for e := range s.g.Edges {
		if !s.isLoop(e) {
			u, v := s.edgeNodes(e)
			out[u] = append(out[u], e)
			in[v] = append(in[v], e)
		}
	}
	s.layerOf = make([]int, n)
	order := s.topologicalOrder(in, out)
	for _, v := range order {
		for _, e := range in[v] {
			u, _ := s.edgeNodes(e)
			s.layerOf[v] = max(s.layerOf[v], s.layerOf[u]+1)
		}
	}
	for range 8 {
		moved := false
		for i := range order {
			v := order[len(order)-1-i]
			moved = s.balanceNode(v, in[v], out[v]) || moved
		}
		if !moved {
			break
		}
	}
	s.removeEmptyLayers()
}

// topologicalOrder returns the nodes so that every edge leads forward.
func (s *layoutState) topologicalOrder(in, out [][]int) []int {
	waits := make([]int, len(in))
	var order []int
	for v := range in {
		if waits[v] = len(in[v]); waits[v] == 0 {
			order = append(order, v)
		}
	}
	for i := 0; i < len(order); i++ {
		for _, e := range out[order[i]] {
			_, w := s.edgeNodes(e)
			if waits[w]--; waits[w] == 0 {
				order = append(order, w)
			}
		}
	}
	return order
}

// balanceNode moves one node as near to the heavier of its two sides as its neighbours allow.
func (s *layoutState) balanceNode(v int, in, out []int) bool {
	pull := 0
	lo := 0
	hi := s.layerOf[v]
	for i, e := range out {
		_, w := s.edgeNodes(e)
		pull += s.edgeWeight(e)
		if i == 0 || s.layerOf[w]-1 < hi {
			hi = s.layerOf[w] - 1
		}
	}
	for _, e := range in {
		u, _ := s.edgeNodes(e)
		pull -= s.edgeWeight(e)
		lo = max(lo, s.layerOf[u]+1)
	}
	to := s.layerOf[v]
	switch {
	case pull > 0:
		to = hi
	case pull < 0:
		to = lo
	}
	moved := to != s.layerOf[v]
	s.layerOf[v] = to
	return moved
}

// removeEmptyLayers removes layers without nodes.
func (s *layoutState) removeEmptyLayers() {
	last := 0
	for _, l := range s.layerOf {
		last = max(last, l)
	}
	used := make([]int, last+1)
	for _, l := range s.layerOf {
		used[l] = 1
	}
	count := 0
	for l, u := range used {
		used[l] = count
		count += u
	}
	for v, l := range s.layerOf {
		s.layerOf[v] = used[l]
	}
	s.isLabel = make([]bool, count)
}

// cutEdges opens a layer for labels where one is needed and cuts every edge into pieces, one for each layer it
// passes.
func (s *layoutState) cutEdges() error {
	s.openLabelLayers()
	for i, n := range s.g.Nodes {
		half := n.W / 2
		s.addVertex(vertex{node: i, edge: -1, left: half, right: half + s.loopRoom(i), height: n.H, layer: s.layerOf[i]})
	}
	s.chains = make([][]int, len(s.g.Edges))
	for e := range s.g.Edges {
		if s.isLoop(e) {
			continue
		}
		u, v := s.edgeNodes(e)
		chain := []int{u}
		at := s.labelLayer(e)
		for l := s.layerOf[u] + 1; l < s.layerOf[v]; l++ {
			piece := vertex{node: -1, edge: e, layer: l}
			if l == at {
				half := (s.g.Edges[e].LabelW + 1) / 2
				piece.left, piece.right, piece.height, piece.label = half, half, s.g.Edges[e].LabelH, true
			}
			chain = append(chain, s.addVertex(piece))
		}
		if len(s.vs) > maxPieces {
			return fmt.Errorf("layered: %d nodes and %d edges make more than %d pieces, too many to lay out",
				len(s.g.Nodes), len(s.g.Edges), maxPieces)
		}
		s.chains[e] = append(chain, v)
	}
	return nil
}

// labelLayer returns the layer of the label of an edge, -1 without a label: next to the node from which the edge
// comes.
func (s *layoutState) labelLayer(e int) int {
	if s.g.Edges[e].LabelW <= 0 {
		return -1
	}
	if from := s.layerOf[s.g.Edges[e].From]; s.reversed[e] {
		return from - 1
	} else {
		return from + 1
	}
}

// openLabelLayers inserts a layer below every layer of nodes from which a label hangs, or between whose nodes an edge
// needs a bend to be distinguished from another.
func (s *layoutState) openLabelLayers() {
	type pair struct{ u, v int }
	count := make(map[pair]int)
	for e := range s.g.Edges {
		u, v := s.edgeNodes(e)
		count[pair{u, v}]++
	}
	open := make([]bool, len(s.isLabel))
	for e, edge := range s.g.Edges {
		if s.isLoop(e) {
			continue
		}
		u, v := s.edgeNodes(e)
		short := s.layerOf[v] == s.layerOf[u]+1
		switch {
		case edge.LabelW > 0 && s.reversed[e]:
			open[s.layerOf[v]-1] = true
		case edge.LabelW > 0, short && (s.reversed[e] || count[pair{u, v}] > 1):
			open[s.layerOf[u]] = true
		}
	}
	shift := make([]int, len(open))
	var isLabel []bool
	for l, o := range open {
		shift[l] = len(isLabel)
		isLabel = append(isLabel, false)
		if o {
			isLabel = append(isLabel, true)
		}
	}
	s.isLabel = isLabel
	for v, l := range s.layerOf {
		s.layerOf[v] = shift[l]
	}
}
