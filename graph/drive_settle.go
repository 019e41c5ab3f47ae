package graph

import (
	"context"
	"errors"
	"slices"

	"raddle.dev/graph/internal/wire"
)

// collectTaskResults looks at how the tasks ended; running means that the step can be applied.
func (x *drive) collectTaskResults(ctx context.Context, f *frame, ts []task, root bool) (Status, error) {
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
				x.deliverQuestions(t, root)
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
	if err := x.fatalError(); err != nil {
		return Failed, err
	}
	if ctx.Err() != nil && (failed != nil || waiting || paused) {
		return x.interruptionStatus(ctx, f, true)
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
	return t.wrapNodeError(t.err).(*NodeError)
}

// deliverQuestions delivers the questions of a task after they are durable.
func (x *drive) deliverQuestions(t *task, root bool) {
	if x.j.flush() != nil {
		return
	}
	if x.topics&TopicQuestion == 0 {
		return
	}
	in := t.inner
	for _, q := range in.open {
		if !x.markQuestionDelivered(&q) {
			in.notes = append(in.notes, QuestionAsked{q})
		}
	}
	for _, b := range in.notes {
		if e := t.newEvent(b); root {
			x.out.deliverEvent(e)
		} else {
			x.out.sendEvent(e)
		}
	}
}

// applyStep applies a step: fold, route, commit.
func (x *drive) applyStep(f *frame, ts []task, root bool) error {
	st, by, err := x.foldStepWrites(f)
	if err != nil {
		return x.attributeError(f, ts, by, err)
	}
	was := f.next
	next, by, err := x.routeStep(f, st, &was)
	if err != nil {
		return x.attributeError(f, ts, by, err)
	}
	var dropped []string
	if halts := findHalting(ts); len(halts) > 0 {
		if len(halts) > 1 {
			return x.attributeError(f, ts, 0, &HaltError{tasks: halts})
		}
		f.halted, f.value = true, ts[halts[0]].up.Halt.Value
		dropped = next.nodeNames(f.g)
		next = frontier{}
	}
	var seq int64
	before := f.st
	f.st, f.next, f.tasks = st, next, was.tasks[:0]
	f.arrivals.list = was.arrived // reuse its memory
	if x.j != nil {
		if seq, err = x.commitPatches(f, KindStep, wire.PutString(f.head[:0], f.path), nil, x.j.level < QuestionsOnly); err != nil {
			f.st, f.next, f.halted, f.value, f.arrivals.list = before, was, false, nil, nil // undo the step in memory
			if w := (*writeError)(nil); errors.As(err, &w) {
				return x.attributeError(f, ts, w.by, w.err)
			}
			if len(ts) == 1 && x.j.storeError() == nil { // its overlays or its halt; those of siblings were stored before
				return x.attributeError(f, ts, 0, err)
			}
			return err
		}
		if err := x.j.snapshotIfDue(); err != nil {
			return err
		}
	}
	if x.topics&TopicStep != 0 {
		x.deliverStepCommitted(f, ts, &was, dropped, seq, root)
	}
	f.keepFailures(ts)
	f.step++
	f.countVisits()
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

// attributeError names the tasks that caused a failure to apply a step, and makes their recorded
// updates void: they run again, and the others keep theirs.
func (x *drive) attributeError(f *frame, ts []task, by int, err error) error {
	at := []int{by}
	switch e := err.(type) {
	case *ConflictError:
		at, e.Nodes = e.tasks, taskNodeNames(ts, e.tasks)
	case *HaltError:
		at, e.Nodes = e.tasks, taskNodeNames(ts, e.tasks)
	default:
		err = &StepError{Path: f.public, Step: f.step, Tasks: []*NodeError{ts[by].wrapNodeError(err).(*NodeError)}}
	}
	for _, t := range at {
		ts[t].err = err
	}
	if x.j == nil || len(ts) == 1 { // a lone task has no record
		return err
	}
	ids := make([]string, len(at))
	for i, t := range at {
		ids[i] = ts[t].localID()
	}
	if e := x.j.addRecord(KindVoid, wire.PutStrings(wire.PutString(nil, f.path), ids), nil, false); e != nil {
		return firstError(err, e)
	}
	return err
}

// taskNodeNames lists the nodes of tasks, by place.
func taskNodeNames(ts []task, at []int) (names []string) {
	for _, i := range at {
		names = append(names, ts[i].node().Name)
	}
	return names
}
