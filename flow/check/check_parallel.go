package check

import (
	"fmt"
	"slices"
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
)

// fanOut is the distinct targets of one fan-out, in the order of the list.
type fanOut struct {
	from    *spec.Node
	members []*spec.Node
}

// fanOutGroups returns the fan-outs of a graph: every next with more than one target.
func fanOutGroups(f *spec.File) []fanOut {
	var list []fanOut
	for _, n := range f.Nodes {
		if len(n.Next) < 2 {
			continue
		}
		g := fanOut{from: n}
		seen := map[string]bool{}
		for _, id := range n.Next {
			if to := f.Node(id); to != nil && !seen[id] {
				seen[id] = true
				g.members = append(g.members, to)
			}
		}
		if len(g.members) > 1 {
			list = append(list, g)
		}
	}
	return list
}

// checkInteraction reports nodes that may not run in parallel with other branches,
// each node once.
func (c *Checker) checkInteraction() {
	seen := map[string]bool{}
	for _, g := range fanOutGroups(c.File) {
		for _, n := range g.members {
			if seen[n.ID] {
				continue
			}
			seen[n.ID] = true
			c.runCheck(Parallel, n)
		}
	}
}

// writtenKeys returns the keys that a node is known to write, each once.
func writtenKeys(n *spec.Node) []string {
	var keys []string
	seen := map[string]bool{}
	add := func(key string) {
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	for _, u := range n.Updates {
		add(u.Key)
	}
	for _, key := range n.SchemaProperties() {
		add(key)
	}
	return keys
}

// readKeys returns the keys that a node's templates read, each once, without its
// scoped variable.
func readKeys(n *spec.Node) []string {
	var keys []string
	seen := map[string]bool{n.Type.Scoped: true}
	for _, t := range n.AllTemplates() {
		for _, key := range t.Template.Keys() {
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// maxGroupWork limits the number of keys that the checks of parallel groups
// examine, so that the checks end even for a hostile file with huge groups of
// huge nodes.
const maxGroupWork = 1_000_000

// groupKeys caches the keys of the nodes in groups.
type groupKeys struct {
	reads, writes map[*spec.Node][]string
	work          int
}

func (k *groupKeys) cachedKeys(memo map[*spec.Node][]string, n *spec.Node, compute func(*spec.Node) []string) []string {
	keys, ok := memo[n]
	if !ok {
		keys = compute(n)
		slices.Sort(keys)
		memo[n] = keys
	}
	if k.work += 1 + len(keys); k.work > maxGroupWork {
		return nil
	}
	return keys
}

func (k *groupKeys) readsOf(n *spec.Node) []string  { return k.cachedKeys(k.reads, n, readKeys) }
func (k *groupKeys) writesOf(n *spec.Node) []string { return k.cachedKeys(k.writes, n, writtenKeys) }

func newGroupKeys() *groupKeys {
	return &groupKeys{reads: map[*spec.Node][]string{}, writes: map[*spec.Node][]string{}}
}

// writersByKey returns the members of a group by the key that they write.
func (g fanOut) writersByKey(k *groupKeys) (keys []string, by map[string][]*spec.Node) {
	by = map[string][]*spec.Node{}
	for _, n := range g.members {
		for _, key := range k.writesOf(n) {
			if by[key] == nil {
				keys = append(keys, key)
			}
			by[key] = append(by[key], n)
		}
	}
	slices.Sort(keys)
	return keys, by
}

// parallelWrites reports keys with several writers and no reducer, once for
// each set of writers.
func (c *Checker) parallelWrites() {
	seen := map[string]bool{}
	known := newGroupKeys()
	for _, g := range fanOutGroups(c.File) {
		keys, by := g.writersByKey(known)
		for _, key := range keys {
			if len(by[key]) < 2 || c.File.Reducer(key) != "" || c.IsFull() {
				continue
			}
			var ids []string
			for _, n := range by[key] {
				ids = append(ids, n.ID)
			}
			slices.Sort(ids)
			message := fmt.Sprintf("nodes [%s] all write key '%s' in the same parallel super-step but no reducer is declared for '%s'. "+
				"Add `reducers: { %s: <reducer> }` at the graph root (built-ins: append, extend, concat, sum, max, min, merge, overwrite), "+
				"or rename one node's output.", strings.Join(ids, ", "), key, key, key)
			if !seen[message] {
				seen[message] = true
				c.addGraphFinding(strictyaml.SeverityError, g.from.At("next"), "parallel-writes", message)
			}
		}
	}
}

// parallelReads reports members of a group that read what another member writes
// in the same super-step, with one finding for each pair of nodes.
func (c *Checker) parallelReads() {
	type pair struct{ reader, writer string }
	seen := map[pair]bool{}
	known := newGroupKeys()
	for _, g := range fanOutGroups(c.File) {
		_, by := g.writersByKey(known)
		for _, n := range g.members {
			for _, sibling := range c.siblingReads(n, known.readsOf(n), by) {
				p := pair{n.ID, sibling.node.ID}
				if seen[p] {
					continue
				}
				seen[p] = true
				c.ErrorAt(n, n.Pos(), "parallel-reads",
					"node '%s' reads state key(s) %s which sibling parallel branch '%s' writes in the same super-step; "+
						"parallel branches see a state snapshot taken BEFORE the super-step and cannot observe each other's writes. "+
						"Move the dependent read to a later super-step (or remove the cross-branch reference).",
					n.ID, "`"+strings.Join(sibling.keys, "`, `")+"`", sibling.node.ID)
			}
		}
	}
}

// siblingKeys contains the keys that one node reads and another one writes.
type siblingKeys struct {
	node *spec.Node
	keys []string
}

// siblingReads returns the other members of the group whose writes a node
// reads, in file order.
func (c *Checker) siblingReads(n *spec.Node, reads []string, by map[string][]*spec.Node) []siblingKeys {
	var list []siblingKeys
	at := map[*spec.Node]int{}
	for _, key := range reads {
		for _, writer := range by[key] {
			if writer == n || c.IsFull() {
				continue
			}
			i, ok := at[writer]
			if !ok {
				i = len(list)
				at[writer] = i
				list = append(list, siblingKeys{node: writer})
			}
			list[i].keys = append(list[i].keys, key)
		}
	}
	slices.SortFunc(list, func(a, b siblingKeys) int { return c.network.Index[a.node.ID] - c.network.Index[b.node.ID] })
	return list
}
