// Package reach finds which nodes of a graph can run.
package reach

// A Join is passed when all its sources have been reached.
type Join struct{ Sources, To int }

// Nodes is a graph whose nodes are numbers; negative ones are no nodes.
type Nodes struct {
	Targets func(node int) []int // that may follow a node, except those behind joins
	Joins   func(node int) []int // the places of the joins that it is a source of
	Passed  []Join
}

// Walk returns which of n nodes can be reached from some, and for each join how many of its sources can.
func (g *Nodes) Walk(start []int, n int) (seen []bool, arrived []int) {
	seen = make([]bool, n)
	arrived = make([]int, len(g.Passed))
	todo := append([]int(nil), start...)
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if i < 0 || seen[i] {
			continue
		}
		seen[i] = true
		todo = append(todo, g.Targets(i)...)
		for _, j := range g.Joins(i) {
			if arrived[j]++; arrived[j] == g.Passed[j].Sources {
				todo = append(todo, g.Passed[j].To)
			}
		}
	}
	return seen, arrived
}
