package graph

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// defaultHungAfter is Runner.HungAfter where that is 0. Nodes that end child processes
// politely need a few seconds.
const defaultHungAfter = 10 * time.Second

// HungError says that a node had not returned some time after its context had ended,
// and that the run goes on without it: see Runner.HungAfter.
type HungError struct {
	Node string // with the nodes above it, each with a '/'
	Task string
	For  time.Duration // since the end of its context
	Err  error         // why the context has ended
}

func (e *HungError) Error() string {
	return fmt.Sprintf("node %s has not returned %v after its context ended (%v); its goroutine is left behind, and what it still does is refused", e.Node, e.For, e.Err)
}

// Unwrap is why the context has ended.
func (e *HungError) Unwrap() error { return e.Err }

// watchdog is what a drive needs to go on without nodes that hang.
type watchdog struct {
	hungAfter time.Duration // 0: nodes are waited for as long as they take

	workersMu sync.Mutex // guards what follows
	workers   []*worker  // that have nothing to do
	hung      []hungTask
}

// hungTask is a node that was left behind.
type hungTask struct {
	*HungError
	w *worker
}

// guard calls the node, within its hooks. A node that has not returned some time after
// the end of its context is left behind on the goroutine that it was given.
func (t *task) guard(ctx *taskCtx, n *cnode, st State) (up Update, err error) {
	x := t.drive
	if x.hungAfter <= 0 {
		return t.body(ctx, n, st)
	}
	w := x.worker()
	w.t, w.ctx, w.n, w.st = t, ctx, n, st
	w.returned.Store(false)
	w.start <- struct{}{}
	select {
	case <-w.done:
	case <-ctx.Done():
		if err := t.outlast(ctx, w); err != nil {
			return up, err
		}
	}
	up, err = w.up, w.err
	w.t, w.ctx, w.n, w.st, w.up, w.err = nil, nil, nil, State{}, Update{}, nil
	if err != errGoexit { // else its goroutine is gone
		x.workersMu.Lock()
		x.workers = append(x.workers, w)
		x.workersMu.Unlock()
	}
	return up, err
}

// body is an attempt, on whichever goroutine.
func (t *task) body(ctx *taskCtx, n *cnode, st State) (Update, error) {
	if t.drive.r.Debug {
		return t.debugged(ctx, n, st)
	}
	return t.around(ctx, n, st)
}

// outlast waits for a node whose context has ended. The error is a *HungError.
func (t *task) outlast(ctx *taskCtx, w *worker) error {
	since, stopped := time.Now(), 0
	timer := time.NewTimer(t.drive.hungAfter)
	defer timer.Stop()
	for {
		select {
		case <-w.done:
			return nil
		case <-timer.C:
			e := &HungError{Node: t.public(), Task: t.local(), Err: context.Cause(ctx)}
			if t.leaveBehind(int(ctx.attempt), &stopped) {
				e.For = time.Since(since).Round(time.Millisecond)
				close(w.start) // it ends with the node
				t.drive.workersMu.Lock()
				t.drive.hung = append(t.drive.hung, hungTask{e, w})
				t.drive.workersMu.Unlock()
				return e
			}
			timer.Reset(t.drive.hungAfter) // for what the node does when its child has stopped
		}
	}
}

// leaveBehind refuses whatever an attempt still does with its context. It is false
// while a child of the node runs: then it is the child's nodes that are waited for.
// The node has its own time when the child has stopped: stopped counts those that
// had before.
func (t *task) leaveBehind(attempt int, stopped *int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if in := t.inner; in != nil {
		was := *stopped
		if *stopped = in.stopped; in.calling || in.stopped > was {
			return false
		}
		for _, k := range in.kids {
			select {
			case <-k.done:
			default:
				return false
			}
		}
		in.busy = nil
	}
	t.hung, t.held = attempt, true
	return true
}

// refused is an error for what an attempt does that was left behind.
func (t *task) refused(attempt int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refuses(attempt)
}

// refuses is refused for who holds t.mu.
func (t *task) refuses(attempt int) error {
	if attempt <= t.hung {
		return fmt.Errorf("graph: node %s has not returned in time after its context ended: the run has gone on without it", t.node().Name)
	}
	return nil
}

// A worker is a goroutine that calls nodes, one at a time.
type worker struct {
	start chan struct{} // closed when it is not needed any more
	done  chan struct{}

	t   *task
	ctx *taskCtx
	n   *cnode
	st  State
	up  Update
	err error

	returned atomic.Bool // the node has, even if it was left behind
}

// worker returns one that is idle.
func (x *drive) worker() *worker {
	x.workersMu.Lock()
	defer x.workersMu.Unlock()
	if n := len(x.workers); n > 0 {
		w := x.workers[n-1]
		x.workers = x.workers[:n-1]
		return w
	}
	w := &worker{start: make(chan struct{}, 1), done: make(chan struct{}, 1)}
	go func() {
		for range w.start {
			w.work()
		}
	}()
	return w
}

// work calls one node.
func (w *worker) work() {
	returned := false
	var up Update
	var err error
	defer func() {
		p := recover()
		switch {
		case p != nil:
			err = &nodePanic{panicError("node "+w.n.Name, p)}
		case !returned:
			err = errGoexit
		}
		w.up, w.err = up, err
		w.returned.Store(true)
		w.done <- struct{}{}
	}()
	up, err = w.t.body(w.ctx, w.n, w.st)
	returned = true
}

// nodePanic is a panic in a node, not an error that it has returned.
type nodePanic struct{ error }

// dismiss ends the idle workers, when the drive has ended.
func (x *drive) dismiss() {
	x.workersMu.Lock()
	defer x.workersMu.Unlock()
	for _, w := range x.workers {
		close(w.start)
	}
	x.workers = nil
}

// leftBehind lists the nodes that were left behind and have not returned until now. It adds
// those that were left behind to the error of the drive.
func (x *drive) leftBehind(err error) (still []string, _ error) {
	x.workersMu.Lock()
	defer x.workersMu.Unlock()
	for _, h := range x.hung {
		if !h.w.returned.Load() {
			still = append(still, h.Node)
		}
		if named := new(*HungError); err != nil && !errors.As(err, named) {
			err = fmt.Errorf("%w; %w", err, h.HungError)
		}
	}
	return still, err
}

// cancellable reports whether anything but the end of the process can end the context
// of a node: else no node can hang.
func (x *drive) cancellable(ctx context.Context) bool {
	if ctx.Done() != nil || x.out.yield != nil || x.pause != nil && x.grace > 0 {
		return true
	}
	d := &x.r.Graph.def
	if d.Timeout > 0 || d.StepTimeout > 0 || d.FailFast {
		return true
	}
	for i := range x.r.Graph.nodes {
		if n := &x.r.Graph.nodes[i]; n.Timeout > 0 || n.Graph != nil || n.Children != nil {
			return true
		}
	}
	return false
}
