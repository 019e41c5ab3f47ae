package graph

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"raddle.dev/graph/internal/panics"
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

const (
	defaultFactor   = 2
	defaultMaxDelay = 30 * time.Second
)

// retry is the policy of the task's node: its own, else the Runner's.
func (t *task) retry() *Retry {
	if n := t.node(); n.Retry.Attempts != 0 || n.Graph != nil || n.Children != nil {
		return &n.Retry
	}
	return &t.drive.r.Retry
}

// shouldRetry reports whether another attempt follows the one that failed. A panic in If is
// an error of its node.
func (r *Retry) shouldRetry(attempt int, err error) (again bool, fault error) {
	defer func() {
		if p := recover(); p != nil {
			again, fault = false, panics.NewError("Retry.If", p)
		}
	}()
	return attempt < r.Attempts && (r.If == nil || r.If(err)), nil
}

// attemptDelay returns the pause after an attempt. Its random part is the same for the same
// task and attempt, so that a run can be repeated exactly.
func (r *Retry) attemptDelay(attempt int, task string) time.Duration {
	if r.Delay <= 0 {
		return 0
	}
	factor, most := r.Factor, r.MaxDelay
	if factor <= 0 {
		factor = defaultFactor
	}
	if most <= 0 {
		most = defaultMaxDelay
	}
	d := min(float64(r.Delay)*math.Pow(factor, float64(attempt-1)), float64(most))
	if j := min(max(r.Jitter, 0), 1); j > 0 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(task))
		share := rand.New(rand.NewPCG(h.Sum64(), uint64(attempt))).Float64()
		d = d*(1-j) + d*j*share
	}
	return time.Duration(d)
}
