package graph

import (
	"context"
	"sync/atomic"
)

// taskCtx is the context a node gets: the step's, and the task inside. It knows
// whether anybody has looked for the task, and outlives it otherwise.
type taskCtx struct {
	context.Context
	t                 *task
	frame             *frame
	node, index, step int32
	attempt, visit    int32
	state             atomic.Uint32
}

// The states of a taskCtx.
const (
	ctxFresh uint32 = iota // nobody has looked for the task
	ctxHeld                // somebody has, and may keep it
	ctxOver                // nobody had when the node returned: the task is another one now
)

type taskKey struct{}

func (c *taskCtx) Value(k any) any {
	if k == (taskKey{}) {
		return c
	}
	return c.Context.Value(k)
}

// callerOf is the attempt that a node's context belongs to, or nil.
func callerOf(ctx context.Context) *taskCtx {
	c, _ := ctx.Value(taskKey{}).(*taskCtx)
	return c
}

// taskOf is the task that a node's context belongs to, or nil.
func taskOf(ctx context.Context) *task {
	if c := callerOf(ctx); c != nil {
		return c.task()
	}
	return nil
}

// task is the task inside, held from now on. A goroutine that looks for it only
// after its node has returned gets one that refuses everything.
func (c *taskCtx) task() *task {
	if c.state.Load() == ctxHeld || c.state.CompareAndSwap(ctxFresh, ctxHeld) {
		return c.t
	}
	if c.state.Load() == ctxHeld { // another goroutine was faster
		return c.t
	}
	return &task{drive: c.frame.drive, frame: c.frame, step: int(c.step), base: c.Context,
		ref: taskRef{node: int(c.node), index: int(c.index)}, attempt: 1, held: true, ended: 1}
}

// end tells that the node has returned, and whether nobody holds the task.
func (c *taskCtx) end() bool { return c.state.CompareAndSwap(ctxFresh, ctxOver) }

// into makes c the context of t.
func (c *taskCtx) into(t *task) {
	c.Context, c.t, c.frame = t.base, t, t.frame
	c.node, c.index, c.step = int32(t.ref.node), int32(t.ref.index), int32(t.step)
	c.attempt, c.visit = 1, int32(t.frame.visits[t.ref.node])
}

// another is a context for one more attempt.
func (t *task) another(attempt int) *taskCtx {
	c := &taskCtx{}
	c.into(t)
	c.attempt = int32(attempt)
	c.state.Store(ctxHeld)
	return c
}
