package graph

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
)

// A SharedValue is a value that the tasks of a run share, at every depth, for example a
// budget. It belongs to the run, not to a step, and the journal keeps it: a drive
// starts with what the previous one has recorded. It is safe for concurrent use.
type SharedValue[T any] struct {
	x     *drive
	t     *task // the task that shares it
	nth   int   // the task's attempt
	name  string
	of    *sharedCell
	value *T
}

// sharedCell is the part of a shared value that all its users have in common.
type sharedCell struct {
	mu      sync.Mutex // guards the fields below, and the value
	value   any        // a *T
	size    int        // size of the recorded value
	changed chan struct{}
}

// sharedValues holds the shared values of a drive.
type sharedValues struct {
	sharedMu sync.Mutex // guards the fields below
	shared   map[string]*sharedCell
	kept     map[string][]byte // the values in the journal when the drive started
}

// sharedPath is the frame under which the journal keeps shared values, and the consents
// to changed children: no task has such a path. The end of a step does not remove it; a
// new run, a fork or an edit does.
const sharedPath = "shared/"

// Share returns the value of the run with a name, or makes it: T's zero value if
// neither this drive nor an earlier one has recorded another. After a Fork or an Edit
// it starts with the zero value again. All uses of one name must have the same type.
func Share[T any](ctx context.Context, name string) (*SharedValue[T], error) {
	caller := callerOf(ctx)
	if caller == nil {
		return nil, errors.New("graph: Share needs the context of a node")
	}
	t, nth := caller.holdTask(), int(caller.attempt)
	if err := t.checkNotHung(nth); err != nil {
		return nil, err
	}
	if err := value.CheckType[T](); err != nil {
		return nil, fmt.Errorf("shared value %q: %w", name, err)
	}
	x := t.drive
	x.sharedMu.Lock()
	defer x.sharedMu.Unlock()
	c := x.shared[name]
	if c == nil {
		v := new(T)
		if b, ok := x.kept[sharedID(name)]; ok {
			var err error
			if *v, err = value.Decode[T](b); err != nil {
				return nil, fmt.Errorf("shared value %q: %w", name, err)
			}
		}
		c = &sharedCell{value: v, changed: make(chan struct{})}
		setEntry(&x.shared, name, c)
	}
	v, ok := c.value.(*T)
	if !ok {
		return nil, fmt.Errorf("graph: the shared value %q is a %s, not a %s", name, reflect.TypeOf(c.value).Elem(), reflect.TypeFor[T]())
	}
	return &SharedValue[T]{x, t, nth, name, c, v}, nil
}

func sharedID(name string) string { return "\x00shared\x00=" + name }

// Use calls fn with the value while no other task uses it, and wakes the tasks that
// wait for a change. If fn returns true, the value is recorded before Use returns, as
// JSON: what is not in its JSON belongs to this drive only. fn must not block.
func (s *SharedValue[T]) Use(fn func(v *T) (record bool)) error {
	if err := s.t.checkNotHung(s.nth); err != nil {
		return err
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	defer s.wakeWaiters()
	if !fn(s.value) {
		return nil
	}
	return s.recordValue()
}

// Await calls fn with the value, at once and then after each Use by any task, until it
// returns true or an error; what it does to the value is not recorded. If ctx ends
// first, the error is its cause.
func (s *SharedValue[T]) Await(ctx context.Context, fn func(v *T) (done bool, err error)) error {
	for {
		if err := s.t.checkNotHung(s.nth); err != nil {
			return err
		}
		s.of.mu.Lock()
		done, err := fn(s.value)
		changed := s.of.changed
		s.of.mu.Unlock()
		if done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// wakeWaiters wakes all tasks that wait. The caller must hold mu.
func (s *SharedValue[T]) wakeWaiters() {
	close(s.of.changed)
	s.of.changed = make(chan struct{})
}

// recordValue journals the value. The caller must hold mu.
func (s *SharedValue[T]) recordValue() error {
	j := s.x.j
	if j == nil {
		return nil
	}
	b, err := value.Encode(nil, *s.value)
	if err != nil {
		return fmt.Errorf("shared value %q: %w", s.name, err)
	}
	j.addStateSize(len(b) - s.of.size)
	s.of.size = len(b)
	return j.addRecord(KindEffect, wire.PutTexts(nil, sharedPath, sharedID(s.name)), b, j.level == EveryEffect)
}
