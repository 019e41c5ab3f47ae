package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"raddle.dev/graph/internal/ordinal"
	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

func (t *task) newEvent(b Body) Event {
	return Event{Path: t.frame.public, Step: t.step, Task: t.localID(), Node: t.node().Name, Body: b}
}

// deliverEvent delivers an event of the engine about the task.
func (t *task) deliverEvent(topic Topic, b Body) {
	if t.drive.topics&topic != 0 {
		t.deliverEventAt(time.Time{}, b)
	}
}

// deliverEventAt delivers an event that happened at a time, or now.
func (t *task) deliverEventAt(at time.Time, b Body) {
	e := t.newEvent(b)
	if e.Time = at; t.inline {
		t.drive.out.deliverEvent(e)
		return
	}
	t.drive.out.sendEvent(e)
}

// run executes the task: its events, attempts and OnError; siblings says whether others
// of the step may still be running when it ends. It returns false if another goroutine
// has replaced this one: see runner.isReplaced.
func (t *task) run(siblings bool) bool {
	if !t.startTask() {
		if t.err != nil {
			t.finishTask(siblings)
		}
		return true
	}
	return t.continueAfterHang(siblings, nil)
}

// continueAfterHang is run without its beginning: from the first attempt, or after one that
// hangs.
func (t *task) continueAfterHang(siblings bool, hung error) bool {
	r := t.runner
	if t.inline {
		if !t.runAndFinish(siblings, hung) {
			return false
		}
		if t.drive.topics&TopicEmit != 0 {
			t.drive.out.deliverQueued()
		}
		t.deliverTaskDone()
		return true
	}
	defer func() {
		if !r.isReplaced() {
			t.deliverTaskDone()
		}
	}()
	return t.runAndFinish(siblings, hung)
}

// startTask delivers that the node starts. It returns false for a task that must not run.
func (t *task) startTask() bool {
	if t.recorded {
		t.deliverEvent(TopicTask, TaskDone{Err: t.recovered, Recorded: true, Waiting: t.waiting, Failed: t.recovered != nil, Update: t.up})
		return false
	}
	if t.err = t.drive.fatalError(); t.err == nil && t.base.Err() != nil {
		t.err = context.Cause(t.base)
	}
	if t.err != nil {
		return false
	}
	observed, now := t.drive.topics&TopicTask != 0, time.Time{}
	if observed || t.retry().Within > 0 {
		now, t.begun = t.drive.watch.ReadWatch()
	}
	if observed {
		t.deliverEventAt(now, t.node().started)
	}
	return true
}

// errGoexit is the failure of a node that has ended its goroutine.
var errGoexit = errors.New("the node ended its goroutine (runtime.Goexit) instead of returning")

// runAndFinish does everything between the task's events. Its second half is deferred: a node
// that ends its goroutine has failed. hung and the result are those of continueAfterHang and run.
func (t *task) runAndFinish(siblings bool, hung error) bool {
	r, returned := t.runner, false
	defer func() {
		if r.isReplaced() {
			return
		}
		if !returned {
			t.err = t.wrapNodeError(errGoexit)
			t.drive.exitedTask.CompareAndSwap(nil, t)
		}
		t.refuseLateCalls()
		t.finishTask(siblings)
	}()
	returned = t.runAttempts(hung)
	return returned
}

// finishTask passes a failure to OnError, and records the result of a task whose siblings
// may still be running.
func (t *task) finishTask(siblings bool) {
	if t.err != nil && t.node().OnError != "" && !isModified(t.err) && (t.base.Err() == nil || t.isStepTimedOut()) && t.drive.fatalError() == nil && t.isHandled() {
		t.recovered = t.err
		t.up = Update{failed: newHandledFailure(t.err)}
		t.err = nil
		t.forgetBelow()
	}
	if t.err == nil && siblings && !t.waiting && !t.paused {
		t.err = t.recordUpdate()
	}
}

// isHandled reports whether OnError applies to the failure of the task.
func (t *task) isHandled() (handled bool) {
	if t.node().OnErrorIf == nil {
		return true
	}
	defer func() {
		if p := recover(); p != nil {
			handled = false
			t.err = t.wrapNodeError(errors.Join(panics.NewError("OnErrorIf", p), t.err))
		}
	}()
	return t.node().OnErrorIf(t.err)
}

// isStepTimedOut reports whether the time of the task's own step has passed.
func (t *task) isStepTimedOut() bool {
	late, ok := context.Cause(t.base).(*stepTimeout)
	return ok && late == t.frame.late
}

// stepTimeout is the cause of a context that ended because of Def.StepTimeout.
type stepTimeout struct{ after time.Duration }

func (t *stepTimeout) Error() string { return "graph: the step timed out after " + t.after.String() }
func (t *stepTimeout) Unwrap() error { return ErrTimeout }

// refuseLateCalls makes the engine refuse what goroutines of the node still do.
func (t *task) refuseLateCalls() {
	t.held = t.held || !t.first.markNodeReturned()
	if t.held {
		t.mu.Lock()
		t.ended = t.attempts
		t.mu.Unlock()
		t.endChildren()
	}
}

// forgetBelow drops a child that does not count, with its questions.
func (t *task) forgetBelow() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inner != nil {
		t.inner.below, t.inner.others = nil, nil
	}
}

// deliverTaskDone delivers how the node ended.
func (t *task) deliverTaskDone() {
	if t.drive.topics&TopicTask == 0 {
		return
	}
	err := t.err
	if err == nil {
		err = t.recovered
	}
	now, active := t.drive.watch.ReadWatch()
	t.deliverEventAt(now, TaskDone{Err: err, Took: active - t.begun, Attempts: t.attempts, Waiting: t.waiting, Cached: t.hit, Failed: t.recovered != nil, Update: t.up})
}

// runAttempts calls the node until it succeeds, waits, or may not be retried. If hung is
// not nil, it continues after an attempt that hangs.
func (t *task) runAttempts(hung error) bool {
	if hung == nil {
		t.attempts = 1
	}
	for ; ; t.attempts++ {
		a := attempt{t, t.attempts}
		var err error
		if hung == nil {
			if err = t.checkStart(t.attempts); err == nil {
				err = a.run()
			}
		} else {
			err, hung = a.conclude(t.runner.ctx, Update{}, hung), nil
		}
		if err == errLeft {
			return false
		}
		t.err = err
		if t.err == nil || t.base.Err() != nil || t.drive.fatalError() != nil || isModified(t.err) {
			return true
		}
		retry := t.retry()
		again, fault := retry.shouldRetry(t.attempts, t.err)
		if fault != nil {
			t.err = t.wrapNodeError(errors.Join(fault, t.err))
		}
		if !again {
			return true
		}
		after := retry.DelayAfter(t.attempts, t.drive.run+t.frame.path+t.localID())
		if within := retry.Within; within > 0 && t.drive.activeTime()-t.drive.before-t.begun+after > within {
			t.err = t.wrapNodeError(fmt.Errorf("no attempt is left within %v: %w", within, t.err))
			return true
		}
		t.mu.Lock()
		if t.ended = t.attempts; t.inner != nil {
			t.inner.ordinals, t.inner.below, t.inner.childSet, t.inner.fault = ordinal.Counter{}, nil, childSet{}, nil
			t.inner.failures = nil // the next attempt opens its children again
		}
		t.mu.Unlock()
		t.deliverEvent(TopicTask, TaskRetry{Attempt: t.attempts, MaxAttempts: retry.Attempts, After: after, Err: t.err})
		if t.drive.clock.Wait(t.base, after) != nil {
			return true
		}
	}
}

// checkStart returns nil if an attempt may start. Without leases, what was recorded before the first one has shown that
// the run is still the drive's own.
func (t *task) checkStart(attempt int) error {
	if t.drive.lease == nil && attempt == 1 {
		return nil
	}
	return t.drive.checkDriving(t.base)
}

// errLeft is the error of a call on a goroutine that another has replaced.
var errLeft = errors.New("graph: another goroutine continues the task")

// wrapNodeError adds to an error where it happened.
func (t *task) wrapNodeError(err error) error {
	e := &NodeError{Path: t.frame.public, Node: t.node().Name, Task: t.localID(), Index: t.ref.index, Step: t.step, Attempt: t.attempts, Err: err}
	var p *panics.Error
	if errors.As(err, &p) {
		e.Stack = p.Stack
	}
	return e
}

// recordUpdate records the task's update, so that it does not run again if only its siblings
// must.
func (t *task) recordUpdate() error {
	j := t.drive.journal
	if j == nil {
		return nil
	}
	b, err := encodeUpdate(&t.up)
	if err == nil {
		err = j.AddRecord(journal.KindTask, &record.Parts{Path: t.frame.path, ID: t.localID(), Value: b}, t.drive.savesEach())
	}
	if err != nil {
		return t.wrapNodeError(err)
	}
	return nil
}

// restoreFromJournal restores what the journal holds of the task: its update, or a question that is
// still open.
func (t *task) restoreFromJournal() error {
	raw := t.raw
	id := t.localID()
	if b, ok := raw.Done[id]; ok {
		up, err := t.frame.st.decodeUpdate(b)
		if err != nil {
			return t.wrapNodeError(err)
		}
		t.recorded, t.up = true, up
		if up.failed != nil {
			t.recovered = errors.New(up.failed.text)
		}
		return nil
	}
	for _, key := range raw.Order {
		if q := raw.Asks[key]; !q.Answered && ParseEffectID(key).Task == id {
			t.recorded = true
			t.addOpenQuestion(Question(q.Question))
		}
	}
	return nil
}

// addOpenQuestion makes the task wait for an answer. The caller must hold mu, unless the
// task has not started.
func (t *task) addOpenQuestion(q Question) {
	t.waiting = true
	in := t.ensureInner()
	if !slices.ContainsFunc(in.open, func(o Question) bool { return o.ID == q.ID }) {
		in.open = append(in.open, q)
	}
}
