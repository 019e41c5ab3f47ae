package check

import (
	"cmp"
	"fmt"
	"slices"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
)

// maxProofWork limits the steps of the analysis. A graph that needs more is
// only analyzed in part.
const maxProofWork = 200_000_000

// findMisses finds all misses, 64 keys at a time, and reports the first ones.
func (p *prover) findMisses() {
	if len(p.keys) == 0 {
		return
	}
	count := p.groupSets()
	readers := make([][]read, count)
	for _, r := range p.reads {
		readers[r.key/64] = append(readers[r.key/64], r)
	}
	size := len(p.f.Nodes) + p.regions.size
	for _, list := range p.exits {
		size += len(list)
	}
	for b := range min(count, 1+maxProofWork/size) {
		flow := p.newBlock(b)
		flow.propagateUnset()
		for _, r := range readers[b] {
			p.checkRead(flow, r)
		}
		if len(p.found) > maxProof {
			break // keys are in the order of their first use, so the first misses are found
		}
	}
	slices.SortStableFunc(p.found, func(a, b miss) int { return cmp.Compare(a.read.node, b.read.node) })
	l := newLocator(p.f)
	for _, m := range p.found[:min(len(p.found), maxProof)] {
		p.reportMiss(m, l)
	}
	if len(p.found) > maxProof {
		n := p.f.Nodes[p.found[maxProof].read.node]
		p.Add(strictyaml.Finding{
			Severity: strictyaml.SeverityWarning, Code: "too-many-findings", Node: n.ID, Pos: n.Pos(),
			Message: fmt.Sprintf("more than %d placeholders have no value on some path; the rest is not listed", maxProof),
		})
	}
}

// groupSets fills bySet, and returns how many groups there are.
func (p *prover) groupSets() int {
	count := (len(p.keys) + 63) / 64
	for kind, sets := range p.sets {
		p.bySet[kind] = make([][]setKey, count)
		for _, s := range sets {
			p.bySet[kind][s.key/64] = append(p.bySet[kind][s.key/64], s)
		}
	}
	return count
}

// checkRead records a read without a value, either in a node itself or in a node
// that is the branch of a map.
func (p *prover) checkRead(flow *block, r read) {
	bit := uint64(1) << (r.key % 64)
	if p.keys[r.key] == spec.ReasonKey && (p.isFinally(r.node) || slices.ContainsFunc(p.regions.mapsOf[r.node], p.isFinally)) {
		return
	}
	if flow.unset[r.node]&bit != 0 {
		p.found = append(p.found, miss{r, -1})
		return
	}
	for _, m := range p.regions.mapsOf[r.node] {
		if flow.unset[m]&bit != 0 && !p.isOfItem(m, r) {
			p.found = append(p.found, miss{r, m})
			return
		}
	}
}

// isFinally reports whether a node is the one of finally.
func (p *prover) isFinally(n int) bool { return p.f.Finally != "" && p.f.Nodes[n].ID == p.f.Finally }

// isOfItem reports whether what a node reads is set by the map that runs it: the item, and for the handler of failed
// items the reason.
func (p *prover) isOfItem(m int, r read) bool {
	b := p.f.Nodes[m].Branch
	key := p.keys[r.key]
	return key == b.As || key == spec.ReasonKey && p.f.Nodes[r.node].ID == b.Handler()
}

// block is the analysis of 64 keys, with one bit for each key.
type block struct {
	p     *prover
	all   uint64      // the keys of the block
	sets  [3][]uint64 // by kind and node
	extra []uint64    // keys that a parallel branch may have set when a node starts
	unset []uint64    // keys that are not set on some path to a node
}

func (p *prover) newBlock(b int) *block {
	n := len(p.f.Nodes)
	f := &block{p: p, all: ^uint64(0), unset: make([]uint64, n), extra: make([]uint64, n)}
	if keys := len(p.keys) - 64*b; keys < 64 {
		f.all = 1<<keys - 1
	}
	for kind := range p.bySet {
		f.sets[kind] = make([]uint64, n)
		for _, s := range p.bySet[kind][b] {
			f.sets[kind][s.node] |= 1 << (s.key % 64)
		}
	}
	f.addExtra()
	return f
}

// addExtra adds to every node of a parallel region the keys that earlier steps
// of the region may have set.
func (f *block) addExtra() {
	for _, r := range f.p.regions.list {
		visible := uint64(0)
		for _, step := range r.steps {
			for _, n := range step {
				f.extra[n] |= visible
			}
			for _, n := range step {
				visible |= f.possibleWrites(n)
			}
		}
	}
	for n, opaque := range f.p.regions.opaque {
		if opaque {
			f.extra[n] = f.all
		}
	}
}

// possibleWrites returns all keys that a node may set.
func (f *block) possibleWrites(n int) uint64 {
	if f.p.free[n] {
		return f.all
	}
	return f.sets[byUpdates][n] | f.sets[byProperties][n] | f.sets[byCollect][n]
}

// writesOnExit returns the keys that are set when a node is left by an exit.
func (f *block) writesOnExit(n int, e exit) uint64 {
	if e.any {
		return f.all
	}
	bits := uint64(0)
	for _, kind := range e.by {
		bits |= f.sets[kind][n]
	}
	return bits
}

// propagateUnset follows all paths from the start until nothing changes. A run may end at its first node, so that
// nothing is set at the node of finally.
func (f *block) propagateUnset() {
	start := f.p.index[f.p.f.Start]
	for _, id := range f.p.f.Entries() {
		f.unset[f.p.index[id]] = f.all
	}
	waiting := make([]bool, len(f.unset))
	queue := []int{start}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		waiting[n] = false
		for _, e := range f.p.exits[n] {
			left := f.unset[n] &^ f.writesOnExit(n, e) &^ f.extra[e.to]
			if left&^f.unset[e.to] == 0 {
				continue
			}
			f.unset[e.to] |= left
			if !waiting[e.to] {
				waiting[e.to] = true
				queue = append(queue, e.to)
			}
		}
	}
}

// pathTo returns the shortest path on which a read has no value, as node ids.
func (p *prover) pathTo(m miss) []string {
	flow := p.newBlock(m.read.key / 64)
	bit := uint64(1) << (m.read.key % 64)
	goal := m.read.node
	if m.via >= 0 {
		goal = m.via
	}
	start := p.index[p.f.Start]
	if p.isFinally(goal) {
		ids := []string{p.f.Start, p.f.Finally}
		if m.via >= 0 {
			ids = append(ids, p.f.Nodes[m.read.node].ID)
		}
		return ids
	}
	const unseen, first = -2, -1
	from := slices.Repeat([]int{unseen}, len(p.f.Nodes))
	from[start] = first
	queue := []int{start}
	for len(queue) > 0 {
		n := queue[0]
		if n == goal {
			break
		}
		queue = queue[1:]
		for _, e := range p.exits[n] {
			if from[e.to] == unseen && (flow.writesOnExit(n, e)|flow.extra[e.to])&bit == 0 {
				from[e.to] = n
				queue = append(queue, e.to)
			}
		}
	}
	if from[goal] == unseen {
		return nil
	}
	var ids []string
	if m.via >= 0 {
		ids = append(ids, p.f.Nodes[m.read.node].ID)
	}
	for n := goal; n >= 0; n = from[n] {
		ids = append(ids, p.f.Nodes[n].ID)
	}
	slices.Reverse(ids)
	return ids
}
