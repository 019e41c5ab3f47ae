package graph

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// defaultHungAfter is the value of Runner.HungAfter if that is 0. Nodes that end child
// processes gracefully need a few seconds.
const defaultHungAfter = 10 * time.Second

// HungError says that a node had not returned some time after its context had ended,
// and that the run continues without it: see Runner.HungAfter.
type HungError struct {
	// Node is the name of the node, with the nodes above it, each with a '/'.
	Node string

	// Task identifies the task in its frame: step.node.index.
	Task string

	// For is the time since the end of its context.
	For time.Duration

	// Err says why the context has ended.
	Err error
}

// Error implements error.
func (e *HungError) Error() string {
	return fmt.Sprintf("node %s has not returned %v after its context ended (%v); its goroutine is left behind, and what it still does is refused", e.Node, e.For, e.Err)
}

// Unwrap returns why the context has ended.
func (e *HungError) Unwrap() error { return e.Err }

// watchdog is what a drive needs to continue without nodes that hang.
//
// Nodes run on the goroutines of runners. As long as no context ends, a runner only records
// when it enters a node and when it leaves it. When a context ends, its watch waits for
// hungAfter. A runner that is then still inside its node is left: another goroutine
// continues after the node, and the old one ends when the node returns.
type watchdog struct {
	hungAfter time.Duration // 0: nodes are waited for without limit

	hungMu sync.Mutex // guards the fields below
	hung   []hungTask
}

// hungTask is a node that was left behind.
type hungTask struct {
	*HungError
	l *runner
}

// runner is a goroutine that runs tasks, one after the other. A nil runner is a goroutine
// that is not watched.
type runner struct {
	gate     atomic.Uint32
	returned atomic.Bool // the node has returned after the runner was left
	by       successor
	t        *task // the task whose node the runner is inside of, and its attempt
	ctx      *taskCtx

	mu sync.Mutex // held by the goroutine that examines the runner
}

// successor continues after a runner was left.
type successor interface {
	// takeOverTask continues after a task that hangs, on its own goroutine, with another
	// runner.
	takeOverTask(t *task, hung error)
}

// States of a runner's gate.
const (
	runnerOutside  uint32 = iota // outside of nodes
	runnerInside                 // inside a node
	runnerExamined               // inside, and the watch decides
	runnerLeft                   // another goroutine has replaced it
)

// replaceRunner gives a task that hangs another runner, that of the calling goroutine.
func (t *task) replaceRunner(by successor, w *watch) *runner {
	r := &runner{by: by, ctx: t.runner.ctx}
	t.runner = r
	w.addRunner(r)
	return r
}

// enterNode records that the runner is about to call a node.
func (r *runner) enterNode(t *task, ctx *taskCtx) {
	r.t, r.ctx = t, ctx
	r.gate.Store(runnerInside)
}

// exitNode records that the node has returned.
func (r *runner) exitNode() {
	if r.gate.CompareAndSwap(runnerInside, runnerOutside) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.gate.CompareAndSwap(runnerInside, runnerOutside) {
		r.returned.Store(true)
	}
}

// isReplaced reports whether another goroutine has replaced the runner: then this one must end,
// and must not touch what it was working on. Only the runner's own goroutine may call it,
// outside of nodes.
func (r *runner) isReplaced() bool { return r != nil && r.gate.Load() == runnerLeft }

// watch waits for the end of a context, and then examines the runners whose nodes use it.
// A nil watch does nothing.
type watch struct {
	dog *watchdog
	ctx context.Context

	mu      sync.Mutex // guards the fields below; locked before that of a runner
	runners []runnerView
	stop    func() bool
	timer   *time.Timer
	since   time.Time // when the context ended
	over    bool
}

// runnerView is a runner as a watch sees it.
type runnerView struct {
	*runner
	seen    *taskCtx // the attempt at the last look
	stopped int      // children of it that had stopped then
}

// newWatch starts the watch of a context: nil if the drive waits for nodes without limit.
// The caller must call endWatch.
func (d *watchdog) newWatch(ctx context.Context, runners ...*runner) *watch {
	if d.hungAfter <= 0 || ctx.Done() == nil {
		return nil
	}
	w := &watch{dog: d, ctx: ctx}
	for _, r := range runners {
		w.addRunner(r)
	}
	return w
}

// addRunner watches another runner.
func (w *watch) addRunner(r *runner) {
	if w == nil || r == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runners = append(w.runners, runnerView{runner: r})
	if w.stop == nil && !w.over {
		w.stop = context.AfterFunc(w.ctx, w.handleContextEnd)
	}
}

// runnerCount returns the number of runners.
func (w *watch) runnerCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.runners)
}

// truncateRunners stops watching the runners after the first n.
func (w *watch) truncateRunners(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.runners[n:])
	w.runners = w.runners[:n]
}

// handleContextEnd is called when the context has ended.
func (w *watch) handleContextEnd() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.since = time.Now()
	w.examineRunners()
	w.timer = time.AfterFunc(w.dog.hungAfter, w.handleTick)
}

// handleTick looks for nodes that still have not returned.
func (w *watch) handleTick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if w.examineRunners() {
		w.timer.Reset(w.dog.hungAfter) // time for what a node does after its child has stopped
	}
}

// examineRunners looks at all runners, and reports whether at least one must be watched further.
// The caller must hold mu.
func (w *watch) examineRunners() (on bool) {
	for i := range w.runners {
		l := &w.runners[i]
		w.examineRunner(l)
		on = on || l.gate.Load() != runnerLeft
	}
	return on
}

// examineRunner leaves an attempt behind that it sees for the second time. The caller must hold
// mu.
func (w *watch) examineRunner(l *runnerView) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.gate.CompareAndSwap(runnerInside, runnerExamined) {
		return
	}
	t, seen := l.t, l.ctx
	if l.seen != seen {
		l.seen, l.stopped = seen, 0
		l.gate.Store(runnerInside)
		return
	}
	e := &HungError{Node: t.publicPath(), Task: t.localID(), For: time.Since(w.since).Round(time.Millisecond), Err: context.Cause(w.ctx)}
	if !(attempt{t, int(seen.attempt)}).leaveBehind(&l.stopped) {
		l.gate.Store(runnerInside)
		return
	}
	w.dog.hungMu.Lock()
	w.dog.hung = append(w.dog.hung, hungTask{e, l.runner})
	w.dog.hungMu.Unlock()
	l.gate.Store(runnerLeft)
	go l.by.takeOverTask(t, e)
}

// endWatch stops the watch.
func (w *watch) endWatch() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.stop != nil {
		w.stop()
	}
	if w.timer != nil {
		w.timer.Stop()
	}
}

// runNode runs an attempt within its hooks.
func (a attempt) runNode(ctx *taskCtx, st State) (Update, error) {
	if r := a.runner; r != nil {
		r.enterNode(a.task, ctx)
		defer r.exitNode()
	}
	if a.drive.settings.Debug {
		return a.runWithDebugChecks(ctx, st)
	}
	return a.runWithHooks(ctx, st.forReader())
}

// leaveBehind makes the engine refuse everything that an attempt still does with its
// context. It returns false while a child of the node runs: then the child's nodes are
// waited for, and the node gets its own time when the child has stopped. stopped is the
// number of children that had stopped before.
func (a attempt) leaveBehind(stopped *int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if in := a.inner; in != nil {
		was := *stopped
		if *stopped = in.stopped; in.calling || in.stopped > was {
			return false
		}
		for _, c := range in.calls {
			select {
			case <-c.done:
			default:
				return false
			}
		}
		in.busy, in.running = nil, nil
	}
	a.hung, a.held = a.n, true
	return true
}

// leftBehind lists the nodes that were left behind and have not returned yet. It adds
// those that were left behind to the error of the drive.
func (d *watchdog) leftBehind(err error) (still []string, _ error) {
	d.hungMu.Lock()
	defer d.hungMu.Unlock()
	for _, h := range d.hung {
		if !h.l.returned.Load() {
			still = append(still, h.Node)
		}
		if named := new(*HungError); err != nil && !errors.As(err, named) {
			err = fmt.Errorf("%w; %w", err, h.HungError)
		}
	}
	return still, err
}

// hasEndableContext reports whether anything but the reader and the end of the process can end
// the context of a node: otherwise a node that runs alone cannot hang.
func (d *drive) hasEndableContext(ctx context.Context) bool {
	return ctx.Done() != nil || d.pause != nil && d.grace > 0 || d.settings.Graph.ends
}

// supervision is what a frame needs while nodes that hang are watched for.
type supervision struct {
	runner    *runner            // runner of the goroutine that drives the frame, if nodes run on it
	watch     *watch             // watch of the step's context
	outer     *watch             // watch of the frame's context, while the step has its own
	cancel    context.CancelFunc // cancels the step's context; nil: it has none
	executing bool               // the tasks of a step are running
}

// endStep ends the step's own context, if it has one.
func (f *frame) endStep() {
	if f.cancel != nil {
		f.cancel()
		f.watch.endWatch()
		f.watch, f.outer, f.cancel = f.outer, nil, nil
	}
}

// A frameDriver drives a frame on a separate goroutine, so that another can continue after a
// node that hangs.
type frameDriver struct {
	ctx   context.Context
	f     *frame
	watch *watch

	done   chan struct{} // closed when the fields below are set
	status Status
	err    error
}

// newRunner returns a new runner that is watched.
func (fd *frameDriver) newRunner() *runner {
	r := &runner{by: fd}
	fd.watch.addRunner(r)
	return r
}

// run drives the frame. If first is not nil, it runs first to end a step, and starts
// there. first returns false if the runner was left.
func (fd *frameDriver) run(r *runner, first func() bool) {
	f := fd.f
	f.runner = r
	over := false
	defer func() {
		switch {
		case r.isReplaced():
			return
		case over:
		case f.executing: // a node has ended this goroutine, and has failed
			go fd.run(fd.newRunner(), func() bool { return true })
			return
		default:
			fd.status, fd.err = Failed, errGoexit
		}
		fd.watch.endWatch()
		close(fd.done)
	}()
	status, err := Running, error(nil)
	if first != nil {
		if !first() {
			return
		}
		f.executing = false
		f.endStep()
		status, err = f.concludeStep(fd.ctx)
	}
	if status == Running {
		status, err = f.runSteps(fd.ctx)
	}
	if err != errLeft {
		fd.status, fd.err, over = status, err, true
	}
}

// takeOverTask implements successor.
func (fd *frameDriver) takeOverTask(t *task, hung error) {
	r := t.replaceRunner(fd, fd.watch)
	if w := fd.f.watch; w != fd.watch {
		w.addRunner(r)
	}
	fd.run(r, func() bool { return t.continueAfterHang(false, hung) })
}
