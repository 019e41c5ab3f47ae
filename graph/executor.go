package graph

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"
)

// Executor runs the tasks of a step. Execute calls task once for every i in [0,n), at
// most limit calls at once (0: no limit), and returns when all calls have returned. The
// order is free: it has no influence on the result.
type Executor interface {
	Execute(n, limit int, task func(i int))
}

// goroutines is the Executor that uses goroutines of this process.
type goroutines struct{}

func (goroutines) Execute(n, limit int, task func(i int)) {
	c := newWorkerPool(n, limit, task)
	defer c.rest.Wait()
	c.runTasks(nil, nil, nil)
}

// A workerPool works through the tasks of a step. As long as a task is left, one worker is
// about to take it, and starts another worker when it has taken it: a task that blocks
// delays no other task, and tasks that do not block share a few goroutines.
type workerPool struct {
	n, limit int64
	task     func(i int)
	next     atomic.Int64
	started  atomic.Int64 // workers in addition to the first
	coming   atomic.Bool  // a worker is about to take a task
	rest     sync.WaitGroup

	watched *watchedPool // nil: nodes that hang are not watched for
}

func newWorkerPool(n, limit int, task func(i int)) *workerPool {
	if limit <= 0 || limit > n {
		limit = n
	}
	return &workerPool{n: int64(n), limit: int64(limit), task: task}
}

// runTasks runs tasks until none is left. If t is not nil, it first continues t after an
// attempt that hangs.
func (c *workerPool) runTasks(l *lane, t *task, hung error) {
	done := false
	defer func() {
		if !done && !l.isReplaced() { // a task has ended this goroutine: run the others in a deferred call
			c.runTasks(l, nil, nil)
		}
	}()
	if t != nil {
		if c.watched.carryOn(t, hung); l.isReplaced() {
			return
		}
	}
	for {
		i := c.next.Add(1) - 1
		if i >= c.n {
			done = true
			return
		}
		if i+1 < c.n && c.coming.CompareAndSwap(false, true) {
			c.startWorker()
		}
		if l != nil {
			c.watched.ts[i].lane = l
		}
		if c.task(int(i)); l.isReplaced() {
			return
		}
	}
}

// startWorker starts another worker, unless the limit is reached.
func (c *workerPool) startWorker() {
	if c.started.Add(1) >= c.limit {
		return // coming stays true: no other worker tries again
	}
	if c.watched != nil {
		c.rest.Add(1)
		go c.watched.startServing()
		return
	}
	c.rest.Go(func() {
		c.coming.Store(false)
		c.runTasks(nil, nil, nil)
	})
}

// Clock gives a Runner the time.
type Clock interface {
	Now() time.Time
	// Wait returns after d, or with the context's error if the context ends first.
	Wait(ctx context.Context, d time.Duration) error
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// idAlphabet is in byte order, so that ids sort by the time in them.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// NewID returns an identifier for a run or thread: nine characters of time, to the
// millisecond, and five random ones. Ids sort by time.
func NewID(now time.Time) string {
	var b [14]byte
	ms := now.UnixMilli()
	for i := 8; i >= 0; i-- {
		b[i] = idAlphabet[ms&31]
		ms >>= 5
	}
	var r [5]byte
	_, _ = rand.Read(r[:]) // it never fails
	for i, c := range r {
		b[9+i] = idAlphabet[c&31]
	}
	return string(b[:])
}
