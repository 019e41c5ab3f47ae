package graph

import (
	"context"
	"errors"
)

// execute runs the tasks of a step and, at the root, delivers their events. It returns
// false if another goroutine has replaced this one: see lane.left.
func (x *drive) execute(ctx context.Context, f *frame, ts []task, root bool) bool {
	t := &ts[0]
	switch {
	case len(ts) == 1 && (!root || x.topics == 0):
		t.inline, t.lane = root, f.lane
		return t.run(false)
	case len(ts) == 1 && !x.apart(t.node()):
		t.inline = true
		return t.run(false)
	case len(ts) == 1:
		x.alone(t)
	case x.topics == 0 || !root:
		x.all(ctx, f, ts)
	default:
		go func() {
			defer x.out.finish()
			x.all(ctx, f, ts)
		}()
		x.out.pump()
	}
	return true
}

// apart reports whether a node must not run on the reader's goroutine.
func (x *drive) apart(n *cnode) bool {
	return n.Graph != nil || n.Children != nil || x.live && !n.Quiet
}

// alone runs the one task of a step on a goroutine that serves all such steps, so that
// what the node emits can be delivered while it runs.
func (x *drive) alone(t *task) {
	t.inline = true
	if !t.begin() {
		return
	}
	t.inline = false
	if x.lone == nil {
		x.lone = &loner{x: x, tasks: make(chan *task)}
		go x.lone.serve(nil)
	}
	x.lone.tasks <- t
	x.out.pump()
	t.inline = true
	t.end()
}

// loner runs the tasks of steps that have only one.
type loner struct {
	x     *drive
	tasks chan *task
	watch *watch // of the task's step
}

// serve runs tasks until there are no more.
func (o *loner) serve(l *lane) {
	for t := range o.tasks {
		if w := t.frame.watch; w != o.watch {
			if l == nil {
				l = &lane{by: o}
			}
			o.watch = w
			w.add(l)
		}
		if t.lane = l; !o.work(l, t, nil) {
			return
		}
	}
}

// work runs one task. It returns the result of run.
func (o *loner) work(l *lane, t *task, hung error) bool {
	returned := false
	defer func() {
		if l.left() {
			return
		}
		if !returned {
			o.x.lone = nil // the goroutine ends with the node
		}
		o.x.out.finish()
	}()
	returned = t.work(false, hung)
	return returned
}

// succeed implements successor.
func (o *loner) succeed(t *task, hung error) {
	if l := t.replace(o, o.watch); o.work(l, t, hung) {
		o.serve(l)
	}
}

// all runs the tasks of a step that has several.
func (x *drive) all(ctx context.Context, f *frame, ts []task) {
	g := f.g
	defer func() {
		if p := recover(); p != nil {
			notRun(ts, panicError("the Executor", p))
		} else {
			notRun(ts, errNotRun)
		}
	}()
	if !g.def.FailFast {
		x.share(f.watch, g.def.Concurrency, ts, runBeside)
		return
	}
	step, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for i := range ts {
		ts[i].base = step
	}
	w := x.watch(step)
	defer w.end()
	x.share(w, g.def.Concurrency, ts, func(t *task, hung error) bool { return t.failFast(step, cancel, hung) })
}

// runBeside runs a task that has siblings. If hung is not nil, it replaces an attempt
// that hangs.
func runBeside(t *task, hung error) bool {
	if hung != nil {
		return t.carryOn(true, hung)
	}
	return t.run(true)
}

// failFast is runBeside for a step whose tasks are cancelled when one of them fails.
func (t *task) failFast(step context.Context, cancel context.CancelCauseFunc, hung error) bool {
	l := t.lane
	defer func() {
		switch {
		case l.left() || t.err == nil:
		case context.Cause(step) == errSibling && errors.Is(t.err, context.Canceled):
			t.err = errSibling // not a failure of its own
		default:
			cancel(errSibling)
		}
	}()
	return runBeside(t, hung)
}

// watchedCrew runs the tasks of a step on several goroutines, and continues without
// nodes that hang.
type watchedCrew struct {
	*crew
	watch *watch
	ts    []task
	run   func(t *task, hung error) bool
}

// share runs tasks on the Executor. If w is not nil, they run on lanes, and this
// goroutine only waits for them.
func (x *drive) share(w *watch, limit int, ts []task, run func(t *task, hung error) bool) {
	if w == nil {
		x.exec.Execute(len(ts), limit, func(i int) { run(&ts[i], nil) })
		return
	}
	defer w.keep(w.count())
	c := &watchedCrew{watch: w, ts: ts, run: run}
	if _, ours := x.exec.(goroutines); !ours {
		x.exec.Execute(len(ts), limit, c.apart)
		return
	}
	c.crew = newCrew(len(ts), limit, func(i int) { run(&ts[i], nil) })
	c.crew.watched = c
	c.rest.Add(1)
	c.coming.Store(true)
	go c.worker()
	c.rest.Wait()
}

// worker starts another goroutine that serves tasks.
func (c *watchedCrew) worker() {
	l := &lane{by: c}
	c.watch.add(l)
	c.coming.Store(false)
	c.serve(l, nil, nil)
}

// serve runs tasks until none is left.
func (c *watchedCrew) serve(l *lane, t *task, hung error) {
	defer func() {
		if !l.left() {
			c.rest.Done()
		}
	}()
	c.work(l, t, hung)
}

// carryOn continues with a task after an attempt that hangs.
func (c *watchedCrew) carryOn(t *task, hung error) { c.run(t, hung) }

// succeed implements successor.
func (c *watchedCrew) succeed(t *task, hung error) { c.serve(t.replace(c, c.watch), t, hung) }

// apart runs a task for an Executor of the caller, on a separate goroutine.
func (c *watchedCrew) apart(i int) {
	a := &apart{c, make(chan struct{})}
	t := &c.ts[i]
	t.lane = &lane{by: a}
	c.watch.add(t.lane)
	go a.run(t, nil)
	<-a.done
}

// apart is a task on a separate goroutine.
type apart struct {
	c    *watchedCrew
	done chan struct{}
}

func (a *apart) run(t *task, hung error) {
	l := t.lane
	defer func() {
		if !l.left() {
			close(a.done)
		}
	}()
	a.c.run(t, hung)
}

// succeed implements successor.
func (a *apart) succeed(t *task, hung error) {
	t.replace(a, a.c.watch)
	a.run(t, hung)
}

var errNotRun = errors.New("graph: the Executor has returned without running the task")

// notRun fails the tasks that the Executor has not run.
func notRun(ts []task, err error) {
	for i := range ts {
		if t := &ts[i]; t.attempt == 0 && !t.recorded && t.recovered == nil && t.err == nil {
			t.err = err
		}
	}
}

// errSibling is the cause of a context that ended because a sibling failed.
var errSibling = errors.New("graph: canceled because a sibling failed")
