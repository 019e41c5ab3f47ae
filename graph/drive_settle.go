package graph

import (
	"context"
	"errors"
	"slices"
)

// settle looks at how the tasks ended; running means that the step can be applied.
func (x *drive) settle(ctx context.Context, f *frame, ts []task, root bool) (Status, error) {
	var failed []*NodeError
	waiting, paused := false, false
	f.writes, f.asked = slices.Grow(f.writes[:0], len(ts)), nil
	f.breaks = nil
	for i := range ts {
		t := &ts[i]
		waiting, paused = waiting || t.waiting, paused || t.paused
		if t.err != nil {
			failed = append(failed, asNodeError(t))
		}
		f.writes = append(f.writes, t.up.Writes)
		if in := t.inner; in != nil {
			if len(in.notes) > 0 || len(in.open) > 0 {
				x.report(t, root)
			}
			f.asked, f.failures = append(f.asked, in.open...), append(f.failures, in.failures...)
			if below := in.below; below != nil {
				f.asked, f.breaks = append(f.asked, below.asked...), append(f.breaks, below.breaks...)
			}
			for _, below := range in.others {
				f.asked, f.breaks = append(f.asked, below.asked...), append(f.breaks, below.breaks...)
			}
		}
	}
	if err := x.failed(); err != nil {
		return Failed, err
	}
	if ctx.Err() != nil && (failed != nil || waiting || paused) {
		return x.interrupted(ctx, f, true)
	}
	switch {
	case failed != nil:
		failed = slices.DeleteFunc(failed, func(e *NodeError) bool { return len(failed) > 1 && errors.Is(e.Err, errSibling) })
		return Failed, &StepError{Path: f.public, Step: f.step, Tasks: failed}
	case waiting:
		return Waiting, nil
	case paused:
		return Paused, nil
	}
	return Running, nil
}

// asNodeError returns a task's error; an error from outside the node is wrapped.
func asNodeError(t *task) *NodeError {
	if e, ok := t.err.(*NodeError); ok {
		return e
	}
	return t.fail(t.err).(*NodeError)
}

// report delivers the questions of a task after they are durable.
func (x *drive) report(t *task, root bool) {
	if x.j.flush() != nil {
		return
	}
	if x.topics&TopicQuestion == 0 {
		return
	}
	in := t.inner
	for _, q := range in.open {
		if !x.told(&q) {
			in.notes = append(in.notes, Asked{q})
		}
	}
	for _, b := range in.notes {
		if e := t.event(b); root {
			x.out.deliver(e)
		} else {
			x.out.send(e)
		}
	}
}

// advance applies a step: fold, route, commit.
func (x *drive) advance(f *frame, ts []task, root bool) error {
	st, by, err := x.apply(f)
	if err != nil {
		return x.blame(f, ts, by, err)
	}
	was := f.next
	next, by, err := x.route(f, st, &was)
	if err != nil {
		return x.blame(f, ts, by, err)
	}
	var dropped []string
	if halts := findHalting(ts); len(halts) > 0 {
		if len(halts) > 1 {
			return x.blame(f, ts, 0, &HaltError{tasks: halts})
		}
		f.halted, f.value = true, ts[halts[0]].up.Halt.Value
		dropped = next.names(f.g)
		next = frontier{}
	}
	var seq int64
	before := f.st
	f.st, f.next, f.tasks = st, next, was.tasks[:0]
	f.arrivals.list = was.arrived // reuse its memory
	if x.j != nil {
		if seq, err = x.commit(f, KindStep, putString(f.head[:0], f.path), nil, x.j.level < QuestionsOnly); err != nil {
			f.st, f.next, f.halted, f.value, f.arrivals.list = before, was, false, nil, nil // undo the step in memory
			if w := (*writeError)(nil); errors.As(err, &w) {
				return x.blame(f, ts, w.by, w.err)
			}
			if len(ts) == 1 && x.j.failed() == nil { // its overlays or its halt; those of siblings were stored before
				return x.blame(f, ts, 0, err)
			}
			return err
		}
		if err := x.j.snapshot(); err != nil {
			return err
		}
	}
	if x.topics&TopicStep != 0 {
		x.committed(f, ts, &was, dropped, seq, root)
	}
	f.keepFailures(ts)
	f.step++
	f.count()
	f.raw = nil
	if root {
		x.failures.Store(0)
	}
	if f.g.breaks || x.stops.set != nil {
		x.breakAfter(f, ts)
	}
	return nil
}

// findHalting lists the tasks, by place, that end the run.
func findHalting(ts []task) (at []int) {
	for i := range ts {
		if ts[i].up.Halt != nil {
			at = append(at, i)
		}
	}
	return at
}

// blame names the tasks that caused a failure to apply a step, and makes their recorded
// updates void: they run again, and the others keep theirs.
func (x *drive) blame(f *frame, ts []task, by int, err error) error {
	at := []int{by}
	switch e := err.(type) {
	case *ConflictError:
		at, e.Nodes = e.tasks, named(ts, e.tasks)
	case *HaltError:
		at, e.Nodes = e.tasks, named(ts, e.tasks)
	default:
		err = &StepError{Path: f.public, Step: f.step, Tasks: []*NodeError{ts[by].fail(err).(*NodeError)}}
	}
	for _, t := range at {
		ts[t].err = err
	}
	if x.j == nil || len(ts) == 1 { // a lone task has no record
		return err
	}
	ids := make([]string, len(at))
	for i, t := range at {
		ids[i] = ts[t].local()
	}
	if e := x.j.add(KindVoid, putStrings(putString(nil, f.path), ids), nil, false); e != nil {
		return firstError(err, e)
	}
	return err
}

// named lists the nodes of tasks, by place.
func named(ts []task, at []int) (names []string) {
	for _, i := range at {
		names = append(names, ts[i].node().Name)
	}
	return names
}
