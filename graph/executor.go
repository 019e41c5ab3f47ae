package graph

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"raddle.dev/graph/internal/panics"
)

// Executor runs the tasks of a step. Execute calls task once for every i in [0,n), at
// most limit calls at once (0: no limit), and returns when all calls have returned. The
// order is free: it has no influence on the result.
type Executor interface {
	// Execute runs the tasks. A task that it does not run has failed, and so have all
	// that were not run when it panics.
	Execute(n, limit int, task func(i int))
}

// goroutines is the Executor that uses goroutines of this process.
type goroutines struct{}

func (goroutines) Execute(n, limit int, task func(i int)) {
	p := newWorkerPool(n, limit, task)
	defer p.rest.Wait()
	p.runTasks(nil, nil, nil)
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
func (p *workerPool) runTasks(r *runner, t *task, hung error) {
	done := false
	defer func() {
		if !done && !r.isReplaced() { // a task has ended this goroutine: run the others in a deferred call
			p.runTasks(r, nil, nil)
		}
	}()
	if t != nil {
		if p.watched.continueAfterHang(t, hung); r.isReplaced() {
			return
		}
	}
	for {
		i := p.next.Add(1) - 1
		if i >= p.n {
			done = true
			return
		}
		if i+1 < p.n && p.coming.CompareAndSwap(false, true) {
			p.startWorker()
		}
		if r != nil {
			p.watched.ts[i].runner = r
		}
		if p.task(int(i)); r.isReplaced() {
			return
		}
	}
}

// startWorker starts another worker, unless the limit is reached.
func (p *workerPool) startWorker() {
	if p.started.Add(1) >= p.limit {
		return // coming stays true: no other worker tries again
	}
	if p.watched != nil {
		p.rest.Add(1)
		go p.watched.startServing()
		return
	}
	p.rest.Go(func() {
		p.coming.Store(false)
		p.runTasks(nil, nil, nil)
	})
}

// executeTasks runs the tasks of a step and, at the root, delivers their events. It returns
// false if another goroutine has replaced this one: see runner.isReplaced.
func (f *frame) executeTasks(ctx context.Context) bool {
	d, ts := f.drive, f.ts
	t := &ts[0]
	switch {
	case len(ts) == 1 && (!f.isRoot() || d.topics == 0):
		t.inline, t.runner = f.isRoot(), f.runner
		return t.run(false)
	case len(ts) == 1 && !d.needsOwnGoroutine(t.node()):
		t.inline = true
		return t.run(false)
	case len(ts) == 1:
		d.runSingleTask(t)
	case d.topics == 0 || !f.isRoot():
		f.runAllTasks(ctx)
	default:
		go func() {
			defer d.out.endPump()
			f.runAllTasks(ctx)
		}()
		d.out.pumpEvents()
	}
	return true
}

// needsOwnGoroutine reports whether a node must not run on the reader's goroutine.
func (d *drive) needsOwnGoroutine(n *compiledNode) bool {
	return n.Graph != nil || n.Children != nil || d.live && !n.Quiet
}

// runSingleTask runs the one task of a step on a goroutine that serves all such steps, so that
// what the node emits can be delivered while it runs.
func (d *drive) runSingleTask(t *task) {
	t.inline = true
	if !t.startTask() {
		return
	}
	t.inline = false
	if d.singleTask == nil {
		d.singleTask = &singleTaskRunner{drive: d, tasks: make(chan *task)}
		go d.singleTask.serveTasks(nil)
	}
	d.singleTask.tasks <- t
	d.out.pumpEvents()
	t.inline = true
	t.deliverTaskDone()
}

// singleTaskRunner runs the tasks of steps that have only one.
type singleTaskRunner struct {
	drive *drive
	tasks chan *task
	watch *watch // of the task's step
}

// serveTasks runs tasks until there are no more.
func (s *singleTaskRunner) serveTasks(r *runner) {
	for t := range s.tasks {
		if w := t.frame.watch; w != s.watch {
			if r == nil {
				r = &runner{by: s}
			}
			s.watch = w
			w.addRunner(r)
		}
		if t.runner = r; !s.runTask(r, t, nil) {
			return
		}
	}
}

// runTask runs one task. It returns the result of run.
func (s *singleTaskRunner) runTask(r *runner, t *task, hung error) bool {
	returned := false
	defer func() {
		if r.isReplaced() {
			return
		}
		if !returned {
			s.drive.singleTask = nil // the goroutine ends with the node
		}
		s.drive.out.endPump()
	}()
	returned = t.runAndFinish(false, hung)
	return returned
}

// takeOverTask implements successor.
func (s *singleTaskRunner) takeOverTask(t *task, hung error) {
	if r := t.replaceRunner(s, s.watch); s.runTask(r, t, hung) {
		s.serveTasks(r)
	}
}

// runAllTasks runs the tasks of a step that has several.
func (f *frame) runAllTasks(ctx context.Context) {
	d, ts := f.drive, f.ts
	g := f.g
	defer func() {
		if p := recover(); p != nil {
			failUnrunTasks(ts, panics.NewError("the Executor", p))
		} else {
			failUnrunTasks(ts, errNotRun)
		}
	}()
	if !g.def.FailFast {
		d.runOnExecutor(f.watch, g.def.Concurrency, ts, runWithSiblings)
		return
	}
	step, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for i := range ts {
		ts[i].base = step
	}
	w := d.newWatch(step)
	defer w.endWatch()
	d.runOnExecutor(w, g.def.Concurrency, ts, func(t *task, hung error) bool { return t.failFast(step, cancel, hung) })
}

// runWithSiblings runs a task that has siblings. If hung is not nil, it replaces an attempt
// that hangs.
func runWithSiblings(t *task, hung error) bool {
	if hung != nil {
		return t.continueAfterHang(true, hung)
	}
	return t.run(true)
}

// failFast is runWithSiblings for a step whose tasks are cancelled when one of them fails.
func (t *task) failFast(step context.Context, cancel context.CancelCauseFunc, hung error) bool {
	r := t.runner
	defer func() {
		switch {
		case r.isReplaced() || t.err == nil:
		case context.Cause(step) == errSibling && errors.Is(t.err, context.Canceled):
			t.err = errSibling // not a failure of its own
		default:
			cancel(errSibling)
		}
	}()
	return runWithSiblings(t, hung)
}

// watchedPool runs the tasks of a step on several goroutines, and continues without
// nodes that hang.
type watchedPool struct {
	*workerPool
	watch *watch
	ts    []task
	run   func(t *task, hung error) bool
}

// runOnExecutor runs tasks on the Executor. If w is not nil, they run on runners, and this
// goroutine only waits for them.
func (d *drive) runOnExecutor(w *watch, limit int, ts []task, run func(t *task, hung error) bool) {
	if w == nil {
		d.exec.Execute(len(ts), limit, func(i int) { run(&ts[i], nil) })
		return
	}
	defer w.truncateRunners(w.runnerCount())
	p := &watchedPool{watch: w, ts: ts, run: run}
	if _, ours := d.exec.(goroutines); !ours {
		d.exec.Execute(len(ts), limit, p.runIsolated)
		return
	}
	p.workerPool = newWorkerPool(len(ts), limit, func(i int) { run(&ts[i], nil) })
	p.workerPool.watched = p
	p.rest.Add(1)
	p.coming.Store(true)
	go p.startServing()
	p.rest.Wait()
}

// startServing starts another goroutine that serves tasks.
func (p *watchedPool) startServing() {
	r := &runner{by: p}
	p.watch.addRunner(r)
	p.coming.Store(false)
	p.serveTasks(r, nil, nil)
}

// serveTasks runs tasks until none is left.
func (p *watchedPool) serveTasks(r *runner, t *task, hung error) {
	defer func() {
		if !r.isReplaced() {
			p.rest.Done()
		}
	}()
	p.runTasks(r, t, hung)
}

// continueAfterHang continues with a task after an attempt that hangs.
func (p *watchedPool) continueAfterHang(t *task, hung error) { p.run(t, hung) }

// takeOverTask implements successor.
func (p *watchedPool) takeOverTask(t *task, hung error) {
	p.serveTasks(t.replaceRunner(p, p.watch), t, hung)
}

// runIsolated runs a task for an Executor of the caller, on a separate goroutine.
func (p *watchedPool) runIsolated(i int) {
	a := &isolatedTask{p, make(chan struct{})}
	t := &p.ts[i]
	t.runner = &runner{by: a}
	p.watch.addRunner(t.runner)
	go a.run(t, nil)
	<-a.done
}

// isolatedTask is a task on a separate goroutine.
type isolatedTask struct {
	c    *watchedPool
	done chan struct{}
}

func (a *isolatedTask) run(t *task, hung error) {
	r := t.runner
	defer func() {
		if !r.isReplaced() {
			close(a.done)
		}
	}()
	a.c.run(t, hung)
}

// takeOverTask implements successor.
func (a *isolatedTask) takeOverTask(t *task, hung error) {
	t.replaceRunner(a, a.c.watch)
	a.run(t, hung)
}

var errNotRun = errors.New("graph: the Executor has returned without running the task")

// failUnrunTasks fails the tasks that the Executor has not run.
func failUnrunTasks(ts []task, err error) {
	for i := range ts {
		if t := &ts[i]; t.attempts == 0 && !t.recorded && t.recovered == nil && t.err == nil {
			t.err = err
		}
	}
}

// errSibling is the cause of a context that ended because a sibling failed.
var errSibling = errors.New("graph: canceled because a sibling failed")
