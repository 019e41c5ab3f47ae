package graph

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/value"
)

// State is a read-only view of all keys at one moment. It is a small value, may be kept
// and shared, and never changes. The values of its keys must not be changed either: the
// elements of slices and the targets of pointers are shared with every other reader, and
// Runner.Debug finds who changes one. Two things are safe because they are easily done
// by mistake: no slice has spare capacity, so append copies it; and each attempt of a
// node, each hook, the branch functions of a step, each event and the Result get maps of
// their own.
type State struct {
	t   *table
	v   []any    // by slot of t; nil: absent
	own *ownMaps // nil: its reader gets the maps themselves
}

// ownMaps holds the copies of maps that one reader of a state has got. It is safe for
// concurrent use.
type ownMaps struct {
	mu   sync.Mutex
	made map[int]any // by slot
}

// forReader returns the state for one more function of the user: its maps are copied when
// they are first read.
func (s State) forReader() State {
	if s.own = nil; s.t != nil && s.t.maps {
		s.own = &ownMaps{}
	}
	return s
}

// slotValue returns the value of a slot as the state's reader gets it.
func (s State) slotValue(slot int) any {
	v := s.v[slot]
	if s.own == nil || !s.t.keys[slot].mayHoldMap() || reflect.TypeOf(unboxNil(v)) == nil || reflect.TypeOf(v).Kind() != reflect.Map {
		return unboxNil(v)
	}
	s.own.mu.Lock()
	defer s.own.mu.Unlock()
	if s.own.made[slot] == nil {
		clone := value.Copy
		if k := s.t.keys[slot]; k.clone != nil {
			clone = k.clone
		}
		fold.SetEntry(&s.own.made, slot, clone(v))
	}
	return s.own.made[slot]
}

// A table maps keys to slots. Tables are immutable: an open graph that gets a new key
// makes a longer copy.
type table struct {
	keys  []*keyDef
	index map[string]int
	open  func(name string) AnyKey // nil: only declared keys
	maps  bool                     // a key may hold a map
}

// addKey gives a key the next slot.
func (t *table) addKey(d *keyDef) {
	t.index[d.name] = len(t.keys)
	t.keys = append(t.keys, d)
	t.maps = t.maps || d.mayHoldMap()
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
			n = &table{keys: slices.Grow(slices.Clip(t.keys), len(keys)), index: maps.Clone(t.index), open: t.open, maps: t.maps}
			if n.index == nil {
				n.index = map[string]int{}
			}
		} else if _, taken := n.index[d.name]; taken {
			continue
		}
		n.addKey(d)
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
	return s.slotValue(i), true
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
	return State{t: t, v: v}
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
	s = State{t: s.t, v: slices.Clone(s.v)}
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

// NewState returns a state made of writes, folded in their order by the reducers of
// their keys. Use it to call the function of a node, a hook or a branch in a test
// without a run. Keys without a write are absent. The error comes from a reducer, or
// says that a write does not belong to a key.
//
// What a node does through its context (Do, Interrupt, Call) needs a run.
func NewState(set ...Write) (State, error) {
	t := &table{index: map[string]int{}, open: func(string) AnyKey { return nil }}
	st, _, err := applyWrites(State{t: t}, [][]Write{set}, nil, nil, false)
	return st, err
}

// WrittenValue returns what a write puts into the key, and whether it is a write of this
// key. For an Append or Merge key it returns what is added, unless the write is a
// Reset.
func (k Key[T]) WrittenValue(w Write) (v T, ok bool) {
	if w.key == nil || w.key != k.d && (w.key.name != k.d.name || w.key.tag != k.d.tag) {
		return v, false
	}
	v, _ = unboxNil(w.val).(T)
	return v, true
}

// Value returns what the write puts into its key. It is for readers that do not know
// the key. The caller must not change it. See Key.WrittenValue.
func (w Write) Value() any { return unboxNil(w.val) }

// IsReset reports whether the write replaces the value without calling the key's
// reducer.
func (w Write) IsReset() bool { return w.reset }

// A patch is the effect of one step on one key, as the journal stores it.
type patch struct {
	key  *keyDef
	slot int
	fold record.Mode // record.Set: val replaces the old value
	val  any
	by   int // the task that wrote it, by its place in the step
}

// buffers hold what apply reuses from step to step of one frame. Only the frame that
// owns them may pass them to apply.
type buffers struct {
	grown []any // by slot: the slice of an Append key that grows
	marks []mark
}

func (b *buffers) getBuffer(slot int) any {
	if b != nil && slot < len(b.grown) {
		return b.grown[slot]
	}
	return nil
}

func (b *buffers) setBuffer(slot int, buf any) {
	for len(b.grown) <= slot {
		b.grown = append(b.grown, nil)
	}
	b.grown[slot] = buf
}

// mark records that a slot was written in this step: by is the last task that wrote it,
// reset the one that reset it, -1 if there is none.
type mark struct{ slot, by, reset int }

// An applyState holds what one call of apply works on.
type applyState struct {
	st    State
	own   bool // apply may write st.v
	marks []mark
	bufs  *buffers // nil: nothing is reused after the call
	rec   *[]patch
	watch bool        // reducers must not change what they get
	known int         // number of slots before the call
	at    map[int]int // the place of a slot's mark, if there are many; nil: few
}

// manyMarks is the number of marks from which a map finds them faster than a search.
const manyMarks = 16

// findMark returns the place of a slot's mark, or -1.
func (s *applyState) findMark(slot int) int {
	if len(s.marks) < manyMarks {
		return slices.IndexFunc(s.marks, func(m mark) bool { return m.slot == slot })
	}
	if s.at == nil {
		s.at = make(map[int]int, 2*manyMarks)
		for i, m := range s.marks {
			s.at[m.slot] = i
		}
	}
	if i, ok := s.at[slot]; ok {
		return i
	}
	return -1
}

// addNewSlots adds the slots of keys that an open graph does not know yet, all at once.
func (s *applyState) addNewSlots(writes [][]Write) {
	if s.st.t == nil || s.st.t.open == nil {
		return
	}
	var fresh []*keyDef
	for _, list := range writes {
		for _, w := range list {
			if w.key != nil && s.st.t.findSlot(w.key) < 0 {
				fresh = append(fresh, w.key)
			}
		}
	}
	if len(fresh) > 0 {
		st := s.st.withSlots(fresh...)
		s.own, s.st = st.t != s.st.t, st
	}
}

// applyWrites is the second half of the engine's pure core: it folds the writes of the tasks
// of a step, in task order, into a new state. If rec is not nil, it appends the patches
// for the journal to it. On an error, by is the task whose write failed. If watch is true,
// a reducer that changes what it gets is a *ModifiedError.
func applyWrites(st State, writes [][]Write, bufs *buffers, rec *[]patch, watch bool) (_ State, by int, err error) {
	s := applyState{st: State{t: st.t, v: st.v}, bufs: bufs, rec: rec, watch: watch, known: len(st.v)}
	s.addNewSlots(writes)
	if bufs != nil {
		s.marks = bufs.marks[:0]
	}
	for by, list := range writes {
		for _, w := range list {
			if err := s.foldWrite(w, by); err != nil {
				if c, ok := err.(*ConflictError); ok {
					c.tasks = writersOf(writes, w.key)
				}
				return st, by, err
			}
		}
	}
	s.finishAccumulators()
	if bufs != nil {
		bufs.marks = s.marks
	}
	return s.st, 0, nil
}

func (s *applyState) foldWrite(w Write, by int) error {
	if w.key == nil {
		return errNoKey
	}
	slot := s.st.t.findSlot(w.key)
	if slot < 0 {
		return s.unknownKeyError(w)
	}
	if !s.own {
		s.st.v, s.own = slices.Clone(s.st.v), true
	}
	k, v := s.st.t.keys[slot], s.st.v
	m, val := s.findMark(slot), k.detach(w.val)
	if m < 0 && slot >= s.known { // a key that Def.Keys does not list
		if err := w.key.checkStorable(); err != nil {
			return err
		}
	}
	switch {
	case m < 0:
		m = len(s.marks)
		s.marks = append(s.marks, mark{slot, by, -1})
		if s.at != nil {
			s.at[slot] = m
		}
		if !w.reset {
			v[slot] = k.beginFold(v[slot], s.bufs.getBuffer(slot))
		}
	case k.single && s.marks[m].by != by, w.reset && s.marks[m].reset >= 0 && s.marks[m].reset != by:
		return &ConflictError{Key: k.name}
	}
	s.marks[m].by = by
	if w.reset {
		s.marks[m].reset = by
	}
	switch {
	case w.reset && k.begin != nil:
		v[slot] = k.begin(val, nil)
	case w.reset || k.add == nil:
		v[slot] = val
	default:
		folded, err := s.callReducer(k, v[slot], val)
		if err != nil {
			return err
		}
		v[slot] = boxNil(folded)
	}
	if s.rec != nil && k.fold != record.Set {
		p := patch{k, slot, k.fold, val, by}
		if w.reset {
			p.fold = record.Set
		}
		*s.rec = append(*s.rec, p)
	}
	return nil
}

// callReducer calls a reducer with slots of its own; a panic in it becomes an error of the
// task that wrote.
func (s *applyState) callReducer(k *keyDef, old, upd any) (v any, err error) {
	if k.begin == nil { // the reducers of Append and Merge belong to this package
		defer func() {
			if p := recover(); p != nil {
				v, err = nil, panics.NewError(fmt.Sprintf("the reducer of key %q", k.name), p)
			}
		}()
		if s.watch {
			return k.callWatched(old, upd)
		}
	}
	v, err = k.add(unboxNil(old), old != nil, unboxNil(upd))
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", k.name, err)
	}
	return v, nil
}

func (s *applyState) unknownKeyError(w Write) error {
	if i, ok := s.st.t.index[w.key.name]; ok {
		return fmt.Errorf("key %q is declared with type %s, written with type %s", w.key.name, s.st.t.keys[i].tag, w.key.tag)
	}
	return fmt.Errorf("key %q is not declared in the graph; add it to Def.Keys", w.key.name)
}

// finishAccumulators turns accumulators back into values.
func (s *applyState) finishAccumulators() {
	for _, m := range s.marks {
		k := s.st.t.keys[m.slot]
		switch {
		case k.end != nil:
			var buf any
			s.st.v[m.slot], buf = k.end(s.st.v[m.slot])
			if s.bufs != nil {
				s.bufs.setBuffer(m.slot, buf)
			}
		case k.isReduced(): // the reducer may have appended
			s.st.v[m.slot] = value.Clip(s.st.v[m.slot])
		}
		if s.rec != nil && k.fold == record.Set {
			*s.rec = append(*s.rec, patch{k, m.slot, record.Set, s.st.v[m.slot], m.by})
		}
	}
}

// writersOf lists the tasks, by place, that overwrite a key.
func writersOf(writes [][]Write, k *keyDef) []int {
	var by []int
	for i, list := range writes {
		if slices.ContainsFunc(list, func(w Write) bool { return w.Key() == k.name && (w.reset || k.single) }) {
			by = append(by, i)
		}
	}
	return by
}

// Overlay returns the state with writes folded into it, for the caller alone: nothing is recorded, and other tasks do not
// see it.
func Overlay(s State, set ...Write) (State, error) { return applyOverlay(s, set, false) }

// applyOverlay returns the state as one task of a Send sees it. For watch see applyWrites.
func applyOverlay(st State, ws []Write, watch bool) (State, error) {
	if len(ws) == 0 {
		return st, nil
	}
	s, _, err := applyWrites(st, [][]Write{ws}, nil, nil, watch)
	return s, err
}
