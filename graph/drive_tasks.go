package graph

import (
	"context"
	"errors"
)

// execute runs the tasks of a step and, at the root, delivers their events.
func (x *drive) execute(ctx context.Context, ts []task, root bool) {
	switch {
	case len(ts) == 1 && !root:
		ts[0].run(false)
	case len(ts) == 1 && !x.live:
		ts[0].inline = true
		ts[0].run(false)
	case len(ts) == 1:
		x.alone(&ts[0])
	case x.topics == 0 || !root:
		x.all(ctx, ts)
	default:
		go func() {
			defer x.out.finish()
			x.all(ctx, ts)
		}()
		x.out.pump()
	}
}

// alone runs the one task of a step on a goroutine that serves all such steps, so
// that what the node emits can be delivered while it runs.
func (x *drive) alone(t *task) {
	t.inline = true
	if !t.begin() {
		return
	}
	t.inline = false
	if x.lone == nil {
		x.lone = make(chan *task)
		go func(tasks <-chan *task) {
			for t := range tasks {
				x.serve(t)
			}
		}(x.lone)
	}
	x.lone <- t
	x.out.pump()
	t.inline = true
	t.end()
}

// serve is what that goroutine does for one task.
func (x *drive) serve(t *task) {
	returned := false
	defer func() {
		if !returned {
			x.lone = nil // it ends with the node
		}
		x.out.finish()
	}()
	t.work(false)
	returned = true
}

func (x *drive) all(ctx context.Context, ts []task) {
	g := ts[0].frame.g
	defer func() {
		if p := recover(); p != nil {
			notRun(ts, panicError("the Executor", p))
		} else {
			notRun(ts, errNotRun)
		}
	}()
	if !g.def.FailFast {
		x.exec.Execute(len(ts), g.def.Concurrency, func(i int) { ts[i].run(true) })
		return
	}
	step, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for i := range ts {
		ts[i].base = step
	}
	x.exec.Execute(len(ts), g.def.Concurrency, func(i int) {
		defer func() {
			switch {
			case ts[i].err == nil:
			case context.Cause(step) == errSibling && errors.Is(ts[i].err, context.Canceled):
				ts[i].err = errSibling // not a failure of its own
			default:
				cancel(errSibling)
			}
		}()
		ts[i].run(true)
	})
}

var errNotRun = errors.New("graph: the Executor has returned without running the task")

// notRun fails the tasks that the Executor has left out.
func notRun(ts []task, err error) {
	for i := range ts {
		if t := &ts[i]; t.attempt == 0 && !t.recorded && t.recovered == nil && t.err == nil {
			t.err = err
		}
	}
}

// errSibling is the cause of a context that ended because a sibling failed.
var errSibling = errors.New("graph: canceled because a sibling failed")
