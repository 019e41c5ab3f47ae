package check

import (
	"slices"

	"raddle.dev/flow/spec"
)

// KeyFacts say where a key of the state gets its value, as far as the file says.
type KeyFacts struct {
	Initial bool     // initial_state has it, or the caller gives it
	Setters []string // ids of the nodes that are known to set it, in file order
	AnyKey  []string // ids of the nodes that may set any key, such as scripts, in file order
	Ways    int      // from how many nodes a run comes to the node, one that comes with and without a value twice; the start is one
	Set     int      // those of them on which it is certain, or a script may have done it, that the key is set
	Unset   []string // the shortest path to the node on which nothing sets it; nil: there is none
}

// ExplainKey returns where a key has its value from when a node of the file starts.
func ExplainKey(f *spec.File, node, key string) KeyFacts {
	p := newProver(f, key)
	var facts KeyFacts
	_, facts.Initial = f.InitialState.Get(key)
	facts.Initial = facts.Initial || key == spec.PromptKey
	at, known := p.index[node]
	bit := p.keyAt[key]
	for i, n := range f.Nodes {
		switch {
		case p.setsKey(i, bit):
			facts.Setters = append(facts.Setters, n.ID)
		case p.free[i]:
			facts.AnyKey = append(facts.AnyKey, n.ID)
		}
	}
	if !known {
		return facts
	}
	p.groupSets()
	flow := p.newBlock(bit / 64)
	flow.propagateUnset()
	p.countWays(flow, at, bit, &facts)
	if facts.Initial {
		facts.Set = facts.Ways
	}
	if facts.Set < facts.Ways {
		facts.Unset = p.pathTo(miss{read{node: at, key: bit}, -1})
	}
	return facts
}

// setsKey reports whether a node is known to set the key with an index.
func (p *prover) setsKey(node, key int) bool {
	for _, sets := range p.sets {
		if slices.Contains(sets, setKey{node, key}) {
			return true
		}
	}
	return false
}

// countWays counts the ways over which a run comes to a node, and those on which the key is set.
func (p *prover) countWays(flow *block, node, key int, facts *KeyFacts) {
	bit := uint64(1) << (key % 64)
	reached := p.f.BuildNetwork().ReachableFromEntries(p.f)
	if slices.Contains(p.f.Entries(), p.f.Nodes[node].ID) {
		facts.Ways++
	}
	for from := range p.f.Nodes {
		if !reached[from] {
			continue
		}
		var ways [2]bool // without and with a value
		for _, e := range p.exits[from] {
			if e.to == node {
				set := 0
				if (flow.unset[from]&^flow.writesOnExit(from, e)&^flow.extra[node])&bit == 0 {
					set = 1
				}
				ways[set] = true
			}
		}
		for set, is := range ways {
			if is {
				facts.Ways++
				facts.Set += set
			}
		}
	}
}
