package graph

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/value"
)

// A watchedState is a state with the stored form of its values at one moment.
type watchedState struct {
	st    State
	forms [][]byte // by slot
}

// watchState records what a state holds now.
func watchState(st State) (*watchedState, error) {
	w := &watchedState{st, make([][]byte, len(st.v))}
	for i, v := range st.v {
		if v == nil {
			continue
		}
		b, err := st.t.keys[i].encodeStored(nil, v)
		if err != nil {
			return nil, err
		}
		w.forms[i] = b
	}
	return w, nil
}

// watchCopy watches a copy of a state that shares nothing with the original.
func watchCopy(st State) (*watchedState, error) {
	w, err := watchState(st)
	if err != nil {
		return nil, err
	}
	w.st.v = make([]any, len(st.v))
	for i, b := range w.forms {
		if st.v[i] == nil {
			continue
		}
		v, err := st.t.keys[i].decodeStored(b)
		if err != nil {
			return nil, err
		}
		w.st.v[i] = boxNil(v)
	}
	return w, nil
}

// checkUnmodified returns an error that names the keys whose values have changed since, or
// nil.
func (w *watchedState) checkUnmodified(by string) error {
	var keys []string
	for i, was := range w.forms {
		if k := w.st.t.keys[i]; w.st.v[i] != nil && !k.stillHolds(w.st.v[i], was) {
			keys = append(keys, k.name)
		}
	}
	if keys == nil {
		return nil
	}
	slices.Sort(keys)
	return &ModifiedError{By: by, Keys: keys}
}

// stillHolds reports whether the stored form of a value is unchanged. A Codec may store
// one value in several forms: then the decoded values are compared.
func (k *keyDef) stillHolds(v any, was []byte) bool {
	is, err := k.encodeStored(nil, v)
	if err != nil {
		return false
	}
	if bytes.Equal(is, was) {
		return true
	}
	if !k.custom {
		return false
	}
	a, errA := k.decodeStored(was)
	b, errB := k.decodeStored(is)
	return errA == nil && errB == nil && reflect.DeepEqual(a, b)
}

// readBack returns what a resumed run would read instead of a value.
func (k *keyDef) readBack(v any) (any, error) {
	b, err := k.encodeStored(nil, v)
	if err != nil {
		return nil, err
	}
	r, err := k.decodeStored(b)
	if err != nil {
		return nil, fmt.Errorf("%w (what was written cannot be read again)", err)
	}
	r = boxNil(r)
	if !k.stillHolds(r, b) {
		return nil, fmt.Errorf("key %q: the value changes when it is stored and read back, from %.200s", k.name, b)
	}
	return r, nil
}

// readBackWrites returns writes as a resumed run would read them.
func readBackWrites(ws []Write) ([]Write, error) {
	if ws == nil {
		return nil, nil
	}
	out := make([]Write, len(ws))
	for i, w := range ws {
		if w.key != nil {
			v, err := w.key.readBack(w.val)
			if err != nil {
				return nil, err
			}
			w.val = v
		}
		out[i] = w
	}
	return out, nil
}

// readBack returns readBackWrites of the writes if Runner.Debug is set, else the
// writes.
func (d *drive) readBack(ws []Write) ([]Write, error) {
	if !d.settings.Debug {
		return ws, nil
	}
	return readBackWrites(ws)
}

// readBackUpdate returns a node's update as a resumed run would read it.
func readBackUpdate(u Update) (_ Update, err error) {
	if u.Writes, err = readBackWrites(u.Writes); err != nil {
		return u, err
	}
	sends := u.Send
	if u.Send = nil; sends != nil {
		u.Send = make([]Send, len(sends))
	}
	for i, s := range sends {
		if s.Overlay, err = readBackWrites(s.Overlay); err != nil {
			return u, err
		}
		u.Send[i] = s
	}
	if u.Halt != nil {
		b, err := value.EncodeAny(nil, u.Halt.Value)
		if err != nil {
			return u, fmt.Errorf("halt: %w", err)
		}
		v, err := value.DecodeAny(b)
		if err != nil {
			return u, fmt.Errorf("halt: %w", err)
		}
		u.Halt = &Halt{Value: v}
	}
	return u, nil
}

// runWithDebugChecks is runWithHooks with the checks of Runner.Debug: the attempt gets a
// state of its own, must not change it, and continues with what a resume would read.
func (a attempt) runWithDebugChecks(ctx *taskCtx, st State) (Update, error) {
	w, err := watchCopy(st)
	if err != nil {
		return Update{}, err
	}
	u, err := a.runWithHooks(ctx, w.st)
	if m := w.checkUnmodified("the node"); m != nil {
		return u, m
	}
	if err != nil || a.isSuspended() {
		return u, err
	}
	return readBackUpdate(u)
}

// callWatched calls the key's reducer. If the reducer changes what it gets, the error is a
// *ModifiedError.
func (k *keyDef) callWatched(old, upd any) (any, error) {
	given := []any{old, upd}
	forms := make([][]byte, len(given))
	for i, v := range given {
		if v == nil {
			continue
		}
		var err error
		if forms[i], err = k.encodeStored(nil, v); err != nil {
			return nil, err
		}
	}
	folded, err := k.add(unboxNil(old), old != nil, unboxNil(upd))
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", k.name, err)
	}
	for i, v := range given {
		if v != nil && !k.stillHolds(v, forms[i]) {
			return nil, &ModifiedError{By: "a reducer", Keys: []string{k.name}}
		}
	}
	return folded, nil
}

// foldStepWrites folds the writes of a step. With Runner.Debug, reducers must not change their
// arguments, and their results are read back.
func (f *frame) foldStepWrites() (State, int, error) {
	d := f.drive
	next, by, err := applyWrites(f.st, f.writes, &f.bufs, f.patchBuffer(), d.settings.Debug)
	if err != nil {
		return f.st, by, err
	}
	if !d.settings.Debug {
		return next, 0, nil
	}
	for by, list := range f.writes {
		for _, wr := range list {
			if k := wr.key; k.fold == record.Set && k.add != nil {
				i := next.t.findSlot(k)
				if next.v[i], err = k.readBack(next.v[i]); err != nil {
					return f.st, by, err
				}
			}
		}
	}
	return next, 0, nil
}

// routeStep computes what runs next. With Runner.Debug, branch functions must not change
// what they read.
func (f *frame) routeStep(st State, was *frontier) (frontier, int, error) {
	d := f.drive
	if !d.settings.Debug {
		return routeTasks(f.g, st.forReader(), was, f.ts, f.tasks, &f.arrivals)
	}
	w, err := watchCopy(st)
	if err != nil {
		return frontier{}, 0, err
	}
	next, by, err := routeTasks(f.g, w.st, was, f.ts, f.tasks, &f.arrivals)
	if err != nil {
		return next, by, err
	}
	for i := range was.tasks {
		if n := &f.g.nodes[was.tasks[i].node]; len(n.picks) > 0 {
			if m := w.checkUnmodified("the branch function of node " + n.Name); m != nil {
				return next, i, m
			}
		}
	}
	return next, 0, nil
}
