package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"raddle.dev/graph/internal/panics"
)

// Info names the task that a hook is called for, or that a context belongs to.
type Info struct {
	// Run is the id of the run.
	Run string

	// Graph is the name of the graph that the node belongs to.
	Graph string

	// Path is that of the child frame; "" at the root.
	Path string

	// Node and Kind are Node.Name and Node.Kind.
	Node string
	Kind string

	// Step is the number of the step, from 0.
	Step int

	// Index is the task's place among those of a Send; 0 for the others.
	Index int

	// Attempt is the number of the attempt, from 1.
	Attempt int

	// Tasks is how many tasks the step has, with those that have ended.
	Tasks int
}

// Hooks are called around attempts: those of every node of a graph (Def.Hooks), or of
// one node (Node.Hooks). They run on the node's goroutine, with its context: Do, Emit
// and the rest work in them. A panic in a hook is an error of the node. Fields may be
// nil.
type Hooks struct {
	// Before is called first and returns how the attempt continues: the zero Setup
	// changes nothing. Hooks of the graph come before those of the node.
	Before func(ctx context.Context, i Info, s State) (Setup, error)
	// After gets what the node returned, or what the previous After returned: it may
	// replace the update, and turn an error into an update. Key.WrittenValue reads the
	// values of Update.Writes. Hooks of the node come before those of the graph. It is
	// not called for a node that waits.
	After func(ctx context.Context, i Info, s State, u Update, err error) (Update, error)
	// Error is called for every attempt that failed. Hooks of the graph come first.
	Error func(ctx context.Context, i Info, err error)
	// Emit gets every value that the node emits, and every value that nodes of its
	// child graphs emit at any depth, whether or not the run's events are read. Info
	// says which node emitted it. Hooks of the node come before those of the graph,
	// and inner nodes before outer ones. It runs where Emit is called, which waits for
	// it, and may run on several goroutines at once. What it emits with its own context
	// reaches the reader of the events only.
	Emit func(ctx context.Context, i Info, v any)
}

// Setup is how a Before hook changes an attempt. The zero Setup changes nothing.
type Setup struct {
	// Context is for the later hooks, the node and its children, instead of the one
	// that Before got: for a value such as the span of a trace. It must be derived from
	// that one; any other context is an error of the node. If nil, nothing changes.
	Context context.Context

	// See is folded into the state that only this attempt sees.
	See []Write

	// Result, if not nil, is the attempt's result: the node, its cache and After are
	// skipped.
	Result *Update

	// End is called when the attempt has ended, in any way, with its error: nil, what
	// the node returned, ErrWaiting or ErrPaused for a node that has asked or whose
	// child has stopped, and an error for a panic. End may be nil.
	End func(err error)
}

// TaskInfo returns the task that ctx belongs to; the zero Info outside a node.
func TaskInfo(ctx context.Context) Info {
	a, ok := attemptOf(ctx)
	if !ok {
		return Info{}
	}
	return a.info()
}

// info names the task for hooks.
func (a attempt) info() Info {
	n := a.node()
	return Info{Run: a.drive.run, Graph: a.frame.g.def.Name, Path: a.frame.public, Node: n.Name, Kind: n.Kind, Step: a.step, Index: a.ref.index, Attempt: a.n, Tasks: len(a.frame.next.tasks)}
}

// runWithHooks calls the node within its hooks.
func (a attempt) runWithHooks(ctx context.Context, st State) (Update, error) {
	if a.node().hooks == nil {
		return a.runWithCache(ctx, st)
	}
	var ends []func(error)
	outcome := errPanicked
	defer func() {
		for _, end := range slices.Backward(ends) {
			end(outcome)
		}
	}()
	u, err := a.runBetweenHooks(ctx, st, &ends)
	outcome = err
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.waiting:
		outcome = ErrWaiting
	case a.paused:
		outcome = ErrPaused
	}
	return u, err
}

// errPanicked is what Setup.End gets if there is no other error.
var errPanicked = errors.New("graph: the node panicked")

// runBetweenHooks calls a node with hooks. It appends to ends the functions to call when
// the attempt has ended.
func (a attempt) runBetweenHooks(ctx context.Context, st State, ends *[]func(error)) (Update, error) {
	n := a.node()
	for _, h := range n.hooks {
		if h.Before == nil {
			continue
		}
		set, err := h.Before(ctx, a.info(), a.forNextReader(st))
		if set.End != nil {
			*ends = append(*ends, set.End)
		}
		if err != nil {
			return Update{}, fmt.Errorf("hook before node %s: %w", n.Name, err)
		}
		if set.Context != nil {
			if callerOf(set.Context) != callerOf(ctx) {
				return Update{}, fmt.Errorf("hook before node %s: Setup.Context was not made from the context that the hook got", n.Name)
			}
			ctx = set.Context
		}
		if set.Result != nil {
			return *set.Result, nil
		}
		if st, err = applyOverlay(st, set.See, a.drive.settings.Debug); err != nil {
			return Update{}, err
		}
		st = a.forNextReader(st)
	}
	u, err := a.runWithCache(ctx, st)
	for i := len(n.hooks) - 1; i >= 0 && !a.isSuspended(); i-- {
		if after := n.hooks[i].After; after != nil {
			u, err = after(ctx, a.info(), a.forNextReader(st), u, err)
		}
	}
	return u, err
}

// forNextReader returns the state of the attempt for one more function. With Runner.Debug all
// share one copy, which then is checked.
func (a attempt) forNextReader(st State) State {
	if a.drive.settings.Debug {
		return st
	}
	return st.forReader()
}

// isSuspended reports whether the node asked, or its child was paused: then it has no
// result yet.
func (t *task) isSuspended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting || t.paused
}

// callErrorHooks calls the Error hooks for a failed attempt.
func (a attempt) callErrorHooks(ctx context.Context, err error) {
	for _, h := range a.node().hooks {
		if h.Error != nil {
			h.Error(ctx, a.info(), err)
		}
	}
}

// listener holds the hooks of a node that get what is emitted at the node or below it.
type listener struct {
	hooks []Hooks
	above *listener
}

// listening marks the context of a Hooks.Emit.
type listening struct{}

// listeners returns the listeners that get what the task emits, in addition to the
// reader of events; nil if there are none.
func (t *task) listeners() *listener {
	if n := t.node(); n.listens {
		return &listener{n.hooks, t.frame.listener}
	}
	return t.frame.listener
}

// callListeners passes an emitted value to the hooks, from the inside out. A panic of
// one hook fails the node, whatever goroutine has called Emit.
func (a attempt) callListeners(ctx context.Context, l *listener, v any) {
	if l == nil || ctx.Value(listening{}) != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.ensureInner().fault = panics.NewError("Hooks.Emit of node "+a.node().Name, p)
		}
	}()
	i := a.info()
	ctx = context.WithValue(ctx, listening{}, true)
	for ; l != nil; l = l.above {
		for _, h := range slices.Backward(l.hooks) {
			if h.Emit != nil {
				h.Emit(ctx, i, v)
			}
		}
	}
}

// listenerFault returns the panic of a Hooks.Emit in this attempt, or nil.
func (a attempt) listenerFault() error {
	if a.frame.listener == nil && !a.node().listens {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inner == nil {
		return nil
	}
	return a.inner.fault
}
