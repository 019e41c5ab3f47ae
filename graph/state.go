package graph

import (
	"maps"
	"slices"
)

// State is a read-only view of all keys at one moment. It is a small value, may be kept
// and shared, and never changes. The values of its keys must not be changed either:
// slices and maps are shared with every other reader.
type State struct {
	t *table
	v []any // by slot of t; nil: absent
}

// A table maps keys to slots. Tables are immutable: an open graph that gets a new key
// makes a longer copy.
type table struct {
	keys  []*keyDef
	index map[string]int
	open  func(name string) AnyKey // nil: only declared keys
}

// fewKeys is the number of keys up to which comparing pointers is faster than a map.
const fewKeys = 8

// findSlot returns the place of a key, or -1. Another Key of the same name and type is the
// same key.
func (t *table) findSlot(d *keyDef) int {
	if t == nil {
		return -1
	}
	if len(t.keys) <= fewKeys {
		for i, k := range t.keys {
			if k == d {
				return i
			}
		}
	}
	if i, ok := t.index[d.name]; ok && (t.keys[i] == d || t.keys[i].tag == d.tag) {
		return i
	}
	return -1
}

// withKeys returns a table that also has the keys. Keys that the table already has, even
// with another type, do not change; if there are no new keys it returns t.
func (t *table) withKeys(keys ...*keyDef) *table {
	var n *table
	for _, d := range keys {
		if n == nil {
			if _, taken := t.index[d.name]; taken {
				continue
			}
			n = &table{keys: slices.Grow(slices.Clip(t.keys), len(keys)), index: maps.Clone(t.index), open: t.open}
			if n.index == nil {
				n.index = map[string]int{}
			}
		} else if _, taken := n.index[d.name]; taken {
			continue
		}
		n.index[d.name] = len(n.keys)
		n.keys = append(n.keys, d)
	}
	if n == nil {
		return t
	}
	return n
}

// Value returns the value of a key by name. It is for readers that do not know the
// keys.
func (s State) Value(name string) (v any, present bool) {
	if s.t == nil {
		return nil, false
	}
	i, ok := s.t.index[name]
	if !ok || s.v[i] == nil {
		return nil, false
	}
	return unboxNil(s.v[i]), true
}

// Keys lists the names of the present keys, sorted.
func (s State) Keys() []string {
	if s.t == nil {
		return nil
	}
	names := make([]string, 0, len(s.v))
	for i, v := range s.v {
		if v != nil {
			names = append(names, s.t.keys[i].name)
		}
	}
	slices.Sort(names)
	return names
}

// ensureSlot finds the slot of a key or, in an open graph, makes it. If grown is true, the
// returned state has its own vector.
func (s State) ensureSlot(d *keyDef) (_ State, slot int) {
	if i := s.t.findSlot(d); i >= 0 {
		return s, i
	}
	if _, taken := s.t.index[d.name]; taken || s.t.open == nil {
		return s, -1
	}
	return s.withSlots(d), len(s.v)
}

// withSlots returns the state with slots for all keys, if the graph is open. Making them
// together costs as much as making one.
func (s State) withSlots(keys ...*keyDef) State {
	if s.t == nil || s.t.open == nil {
		return s
	}
	t := s.t.withKeys(keys...)
	if t == s.t {
		return s
	}
	v := make([]any, len(t.keys))
	copy(v, s.v)
	return State{t, v}
}

// findKey returns the definition of a key by name; an open graph knows every name.
func (s State) findKey(name string) *keyDef {
	if i, ok := s.t.index[name]; ok {
		return s.t.keys[i]
	}
	if s.t.open == nil {
		return nil
	}
	if k := s.t.open(name); k != nil {
		return k.def()
	}
	return nil
}

// inheritKeys adds the present keys of a parent to a child's state, which is empty.
func (s State) inheritKeys(parent State) State {
	s = State{s.t, slices.Clone(s.v)}
	var present []*keyDef
	for i, val := range parent.v {
		if val != nil {
			present = append(present, parent.t.keys[i])
		}
	}
	s = s.withSlots(present...)
	for i, val := range parent.v {
		if val == nil {
			continue
		}
		d := parent.t.keys[i]
		next, slot := s.ensureSlot(d)
		if slot < 0 {
			continue
		}
		s = next
		s.v[slot] = val
	}
	return s
}
