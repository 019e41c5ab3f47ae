package graph

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
)

// A Shared is a value that the tasks of a run have in common, at every depth: what
// they may use up together, for one. It belongs to the run, not to a step, and
// the journal keeps it: a drive begins with what the one before has recorded. It
// is safe for concurrent use.
type Shared[T any] struct {
	x     *drive
	t     *task // that shares it
	nth   int   // its attempt
	name  string
	of    *common
	value *T
}

// common is what all who share a value have of it.
type common struct {
	mu      sync.Mutex // guards what follows, and the value
	value   any        // a *T
	size    int        // of what is recorded
	changed chan struct{}
}

// sharing is the shared values of a drive.
type sharing struct {
	sharedMu sync.Mutex // guards what follows
	shared   map[string]*common
	kept     map[string][]byte // what the journal held of them when the drive began
}

// sharedPath is the frame under which the journal keeps shared values, and what was
// consented to of changed children: no task has such a path. What a step forgets
// stays there, and a new run, a fork or an edit forgets it.
const sharedPath = "shared/"

// Share finds the value of the run that has a name, or makes it: T's zero value,
// where neither this drive nor one before has recorded another. After a Fork or an
// Edit it begins anew. One name stands for one type.
func Share[T any](ctx context.Context, name string) (*Shared[T], error) {
	caller := callerOf(ctx)
	if caller == nil {
		return nil, errors.New("graph: Share needs the context of a node")
	}
	t, nth := caller.task(), int(caller.attempt)
	if err := t.refused(nth); err != nil {
		return nil, err
	}
	if err := checkStored[T](); err != nil {
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
			if *v, err = decodeValue[T](b); err != nil {
				return nil, fmt.Errorf("shared value %q: %w", name, err)
			}
		}
		c = &common{value: v, changed: make(chan struct{})}
		keep(&x.shared, name, c)
	}
	v, ok := c.value.(*T)
	if !ok {
		return nil, fmt.Errorf("graph: the shared value %q is a %s, not a %s", name, reflect.TypeOf(c.value).Elem(), reflect.TypeFor[T]())
	}
	return &Shared[T]{x, t, nth, name, c, v}, nil
}

func sharedID(name string) string { return "\x00shared\x00=" + name }

// Use calls fn with the value while nobody else has it, and wakes who waits for a
// change. Where fn returns true the value is recorded before Use returns, as
// JSON: what is not in its JSON belongs to this drive alone. fn must not block.
func (s *Shared[T]) Use(fn func(v *T) (record bool)) error {
	if err := s.t.refused(s.nth); err != nil {
		return err
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	defer s.tell()
	if !fn(s.value) {
		return nil
	}
	return s.record()
}

// Await calls fn with the value, at once and then after each Use of anybody, until
// it returns true or an error; what it did to the value is not recorded. When ctx
// ends first the error is its cause.
func (s *Shared[T]) Await(ctx context.Context, fn func(v *T) (done bool, err error)) error {
	for {
		if err := s.t.refused(s.nth); err != nil {
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

// tell wakes all who wait; the caller holds mu.
func (s *Shared[T]) tell() {
	close(s.of.changed)
	s.of.changed = make(chan struct{})
}

// record journals the value; the caller holds mu.
func (s *Shared[T]) record() error {
	j := s.x.j
	if j == nil {
		return nil
	}
	b, err := encodeValue(nil, *s.value)
	if err != nil {
		return fmt.Errorf("shared value %q: %w", s.name, err)
	}
	j.grew(len(b) - s.of.size)
	s.of.size = len(b)
	return j.add(KindEffect, putString(putString(nil, sharedPath), sharedID(s.name)), b, j.level == EveryEffect)
}
