package graph

import (
	"context"
	"sync/atomic"
)

// taskCtx is the context that a node gets: the step's context with the task inside. It
// records whether the task was looked up. If it was not, the context can be reused.
type taskCtx struct {
	context.Context
	t                 *task
	frame             *frame
	node, index, step int32
	attempt, visit    int32
	state             atomic.Uint32
}

// States of a taskCtx.
const (
	ctxFresh uint32 = iota // the task was not looked up
	ctxHeld                // the task was looked up, and a caller may keep it
	ctxOver                // the node has returned without a lookup: the context may hold another task now
)

type taskKey struct{}

func (c *taskCtx) Value(k any) any {
	if k == (taskKey{}) {
		return c
	}
	return c.Context.Value(k)
}

// callerOf returns the attempt that a node's context belongs to, or nil.
func callerOf(ctx context.Context) *taskCtx {
	c, _ := ctx.Value(taskKey{}).(*taskCtx)
	return c
}

// taskOf returns the task that a node's context belongs to, or nil.
func taskOf(ctx context.Context) *task {
	if c := callerOf(ctx); c != nil {
		return c.holdTask()
	}
	return nil
}

// holdTask returns the task inside and marks the context as held. A goroutine that looks it
// up only after its node has returned gets a task that refuses everything.
func (c *taskCtx) holdTask() *task {
	if c.state.Load() == ctxHeld || c.state.CompareAndSwap(ctxFresh, ctxHeld) {
		return c.t
	}
	if c.state.Load() == ctxHeld { // another goroutine was faster
		return c.t
	}
	return &task{drive: c.frame.drive, frame: c.frame, step: int(c.step), base: c.Context,
		ref: taskRef{node: int(c.node), index: int(c.index)}, attempt: 1, held: true, ended: 1}
}

// markNodeReturned records that the node has returned, and reports whether no caller holds the task.
func (c *taskCtx) markNodeReturned() bool { return c.state.CompareAndSwap(ctxFresh, ctxOver) }

// bindTask makes c the context of t.
func (c *taskCtx) bindTask(t *task) {
	c.Context, c.t, c.frame = t.base, t, t.frame
	c.node, c.index, c.step = int32(t.ref.node), int32(t.ref.index), int32(t.step)
	c.attempt, c.visit = 1, int32(t.frame.visits[t.ref.node])
}

// newAttemptContext returns a context for one more attempt.
func (t *task) newAttemptContext(attempt int) *taskCtx {
	c := &taskCtx{}
	c.bindTask(t)
	c.attempt = int32(attempt)
	c.state.Store(ctxHeld)
	return c
}
