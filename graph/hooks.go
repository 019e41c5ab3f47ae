package graph

import (
	"context"
	"fmt"
)

// Info says which task a hook is called for, or a context belongs to.
type Info struct {
	Run     string
	Graph   string
	Path    string // of the child frame, "" at the root
	Node    string
	Kind    string
	Step    int
	Index   int // among the tasks of a Send; 0 for the others
	Attempt int
}

// Hooks are called around attempts: around those of every node of a graph
// (Def.Hooks), or of one (Node.Hooks). They run on the node's goroutine, with its
// context: Do, Emit and the rest work in them. A panic in one is an error of the
// node. Fields may be nil.
type Hooks struct {
	// Before may replace the call: with a result the node, its cache and After are
	// skipped. The writes are folded into what this attempt alone sees. Hooks of
	// the graph come before those of the node.
	Before func(ctx context.Context, i Info, s State) (see []Write, result *Update, err error)
	// After sees what the node returned, or what an After before it made of that:
	// it may replace the update, and turn an error into an update. Hooks of the
	// node come before those of the graph. It is not called for a node that waits.
	After func(ctx context.Context, i Info, s State, u Update, err error) (Update, error)
	// Error is told of every attempt that failed. Hooks of the graph come first.
	Error func(ctx context.Context, i Info, err error)
}

// TaskInfo says which task ctx belongs to; the zero Info outside a node.
func TaskInfo(ctx context.Context) Info {
	t := taskOf(ctx)
	if t == nil {
		return Info{}
	}
	return t.info()
}

func (t *task) info() Info {
	n := t.node()
	return Info{Run: t.drive.run, Graph: t.frame.g.def.Name, Path: t.frame.public, Node: n.Name, Kind: n.Kind, Step: t.step, Index: t.ref.index, Attempt: t.attempt}
}

// around calls the node within its hooks.
func (t *task) around(ctx context.Context, n *cnode, st State) (Update, error) {
	for _, h := range n.hooks {
		if h.Before == nil {
			continue
		}
		see, result, err := h.Before(ctx, t.info(), st)
		if err != nil {
			return Update{}, fmt.Errorf("hook before node %s: %w", n.Name, err)
		}
		if result != nil {
			return *result, nil
		}
		if st, err = overlay(st, see); err != nil {
			return Update{}, err
		}
	}
	u, err := t.cached(ctx, n, st)
	for i := len(n.hooks) - 1; i >= 0 && !t.stopped(); i-- {
		if after := n.hooks[i].After; after != nil {
			u, err = after(ctx, t.info(), st, u, err)
		}
	}
	return u, err
}

// stopped tells whether the node asked, or its child was paused: then it has no
// result yet.
func (t *task) stopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting || t.paused
}

// tellHooks tells the hooks of a failed attempt.
func (t *task) tellHooks(ctx context.Context, err error) {
	for _, h := range t.node().hooks {
		if h.Error != nil {
			h.Error(ctx, t.info(), err)
		}
	}
}
