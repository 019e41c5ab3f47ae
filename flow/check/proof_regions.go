package check

import (
	"slices"

	"raddle.dev/flow/spec"
)

// maxRegionWork limits the total number of nodes in the steps of all regions.
const maxRegionWork = 500_000

// regions are the parts of a graph where several branches run in parallel.
type regions struct {
	list   []region
	size   int // number of nodes in all steps that were examined
	opaque []bool
	mapsOf map[int][]int // by branch node: the map nodes that run it
}

// region is what may run after one fan-out, super-step by super-step, for all
// paths together. If all paths meet in one node, that node is the last step.
type region struct {
	steps [][]int
}

// findRegions follows every fan-out until its branches meet or end. If that
// takes too many steps, everything after the fan-out becomes opaque: nothing is
// known about what is set there.
func (p *prover) findRegions() *regions {
	r := &regions{opaque: make([]bool, len(p.f.Nodes)), mapsOf: map[int][]int{}}
	work := 0
	for i, n := range p.f.Nodes {
		if n.Branch != nil {
			for _, id := range n.Branch.Nodes() {
				if branch, ok := p.index[id]; ok {
					r.mapsOf[branch] = append(r.mapsOf[branch], i)
				}
			}
		}
		members := p.fanOut(i, n)
		if len(members) < 2 {
			continue
		}
		found, ok := p.traceRegion(members, maxRegionWork-work)
		for _, step := range found.steps {
			work += len(step)
		}
		if ok {
			r.list = append(r.list, found)
		} else {
			p.markOpaque(members, r.opaque)
		}
	}
	r.size = work
	return r
}

// fanOut returns the nodes that a node starts in one super-step.
func (p *prover) fanOut(i int, n *spec.Node) []int {
	if r := n.Type.Routing; r.IgnoresNext() || r == spec.RouteFirst {
		return nil
	}
	var members []int
	for _, id := range n.Next {
		if to, ok := p.index[id]; ok {
			members = append(members, to)
		}
	}
	slices.Sort(members)
	return slices.Compact(members)
}

// traceRegion returns the steps after a fan-out; ok is false if there are too many.
func (p *prover) traceRegion(members []int, budget int) (region, bool) {
	var r region
	for step := members; len(step) > 0; {
		r.steps = append(r.steps, step)
		if budget -= len(step); budget < 0 || len(r.steps) > len(p.f.Nodes)+1 {
			return r, false
		}
		if len(step) == 1 {
			break
		}
		var next []int
		for _, n := range step {
			for _, e := range p.exits[n] {
				next = append(next, e.to)
			}
		}
		slices.Sort(next)
		step = slices.Compact(next)
	}
	return r, true
}

// markOpaque marks everything after a fan-out as opaque.
func (p *prover) markOpaque(members []int, opaque []bool) {
	queue := slices.Clone(members)
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if opaque[n] {
			continue
		}
		opaque[n] = true
		for _, e := range p.exits[n] {
			queue = append(queue, e.to)
		}
	}
}
