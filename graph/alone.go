package graph

// NewState returns a state made of writes, folded in their order by the reducers of
// their keys. Use it to call the function of a node, a hook or a branch in a test
// without a run. Keys without a write are absent. The error comes from a reducer, or
// says that a write does not belong to a key.
//
// What a node does through its context (Do, Interrupt, Call) needs a run.
func NewState(set ...Write) (State, error) {
	t := &table{index: map[string]int{}, open: func(string) AnyKey { return nil }}
	st, _, err := applyWrites(State{t: t}, [][]Write{set}, nil, nil)
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
