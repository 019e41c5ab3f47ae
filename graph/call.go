package graph

import (
	"context"
	"errors"
	"fmt"

	"raddle.dev/graph/internal/wire"
)

// Child is the outcome of a child graph.
type Child struct {
	State State
	Value any // of the Halt that ended it; nil: it ended without one
}

// Call runs the child graph of the node that ctx belongs to, once per task, as part of
// the same run: its steps, effects and questions are in the same journal, under the
// task's path. If the child waits or is paused, so is the task: the error is ErrWaiting
// or ErrPaused, and the node must return it. If the child ends in any other way than
// done, the error is the child's, and Child holds the state that the child has reached.
func Call(ctx context.Context, set ...Write) (Child, error) {
	c := callerOf(ctx)
	if c == nil {
		return Child{}, errors.New("graph: Call needs the context of a node")
	}
	t := c.holdTask()
	n := t.node()
	if n.Graph == nil {
		return Child{}, fmt.Errorf("graph: node %s calls a child, but its Node.Graph is nil", n.Name)
	}
	if err := t.beginCall(int(c.attempt)); err != nil {
		return Child{}, err
	}
	defer t.endCall()
	st, err := applyOverlay(t.frame.st, t.ref.over)
	if err != nil {
		return Child{}, err
	}
	f, returned, err := t.childFrame(ChildGraph{Graph: n.Graph, Inherit: n.Inherit}, place{path: t.frame.path + t.localID() + "/", public: t.publicPath() + "/"}, st, set)
	if err != nil {
		return Child{}, err
	}
	if !returned {
		status, err := t.drive.driveChild(ctx, f)
		if t.saveChildOutcome(f, status, err); err != nil {
			return Child{State: f.st}, err
		}
	}
	return Child{State: f.st, Value: f.value}, nil
}

// beginCall starts the one call that an attempt may make.
func (t *task) beginCall(attempt int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkNotEndedLocked(attempt); err != nil {
		return err
	}
	in := t.ensureInner()
	if in.nextOrdinal("\x00call") != "0" {
		return fmt.Errorf("graph: node %s calls its child twice in one task; use Send to run it several times", t.node().Name)
	}
	if in.calling {
		return fmt.Errorf("graph: the child of node %s still runs for an attempt that has failed; wait for Call before the node returns", t.node().Name)
	}
	t.inner.calling = true
	return nil
}

func (t *task) endCall() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inner.calling = false
	t.inner.stopped++
}

// runChildNode is the body of a node that only runs a child.
func runChildNode(ctx context.Context, n *cnode, st State) (up Update, err error) {
	var set []Write
	if n.In != nil {
		if set, err = n.In(st); err != nil {
			return up, err
		}
	}
	child, err := Call(ctx, set...)
	if err != nil || n.Out == nil {
		return up, err
	}
	return n.Out(st, child)
}

// saveChildOutcome keeps what the rest of the step needs of a child that has stopped.
func (t *task) saveChildOutcome(f *frame, status Status, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ensureInner().failures, f.failures = append(t.ensureInner().failures, f.failures...), nil
	if t.ensureInner().below = f; t.drive.j == nil && t.canRetry() {
		t.inner.kept, t.inner.returned = f, err == nil && status == Done
	}
	t.waiting, t.paused = t.waiting || status == Waiting, t.paused || status == Paused
}

// place says where a frame is, in the journal and for people.
type place struct {
	path, public string
	named        bool // others run concurrently with it
}

// childFrame opens the frame that the journal holds, or starts a new one.
func (t *task) childFrame(sub ChildGraph, at place, st State, set []Write) (f *frame, returned bool, err error) {
	x := t.drive
	if f := t.keptChild(); f != nil && !at.named {
		return f, t.inner.returned, nil
	}
	frames, err := t.loadJournaledFrames()
	if err != nil {
		return nil, false, err
	}
	f = newFrame(sub.Graph, at.path, at.public)
	f.beside, f.keeps, f.listener = at.named || t.hasConcurrentTasks(), t.canRetry(), t.listeners()
	if sub.Inherit { // the child's writes are folded onto it, now and when the frame is opened again
		f.st = f.st.inheritKeys(st)
	}
	if raw := frames[at.path]; raw != nil && !t.isChildDropped(at.path) {
		f.frames = frames
		if f, err = raw.decodeFrame(f); err == nil && t.attempt > 1 && !raw.returned {
			x.j.addStateSize(f.storedSize())
		}
		if t.attempt > 1 || x.failures.Load() > 0 {
			f.since = x.activeTime()
		}
		return f, raw.returned, err
	}
	f.since, f.first = x.activeTime(), sub.Graph.def.First
	return f, false, x.beginFrame(f, set, KindCall, nil, nil)
}

// keptChild returns the child of a failed attempt if no journal holds it: it continues
// where it failed.
func (t *task) keptChild() *frame {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.ensureInner().kept
	if f != nil {
		f.again, f.ts, f.since = f.ts, nil, t.drive.activeTime()
	}
	return f
}

// canRetry reports whether a result of the task may be needed again without a store,
// because the task, or a node above it, is retried.
func (t *task) canRetry() bool { return t.frame.keeps || t.retry().Attempts > 1 }

// restoreAttempt takes over what the task has done in an earlier attempt of a node above it.
func (t *task) restoreAttempt(was *task) {
	if was.err == nil && !was.waiting && !was.paused {
		t.recorded, t.up, t.recovered = true, was.up, was.recovered
		return
	}
	was.mu.Lock()
	defer was.mu.Unlock()
	if in := was.inner; in != nil {
		t.inner = &nodeActivity{results: in.results, kept: in.kept, returned: in.returned}
	}
}

// loadJournaledFrames returns the frames that an earlier drive or attempt left, if any: a retried
// child continues where it failed, and so do the children below it.
func (t *task) loadJournaledFrames() (map[string]*rawFrame, error) {
	x := t.drive
	switch {
	case t.raw != nil && t.attempt == 1:
		return t.frames, nil
	case x.j != nil && t.attempt > 1:
		t.mu.Lock()
		defer t.mu.Unlock()
		in := t.ensureInner()
		if in.frames == nil {
			if err := x.j.flush(); err != nil {
				return nil, err
			}
			s, err := loadToDrive(t.base, x.j.store, x.j.thread)
			if err != nil {
				return nil, err
			}
			in.frames = s.frames
		}
		return in.frames, nil
	}
	return nil, nil
}

// isChildDropped reports whether a child was dropped in this attempt.
func (t *task) isChildDropped(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inner != nil && t.inner.dropped[path]
}

// driveChild drives a child frame to its end.
func (x *drive) driveChild(ctx context.Context, f *frame) (Status, error) {
	if limit := f.g.def.Timeout; limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, limit-(x.activeTime()-f.since), errRunTimeout)
		defer cancel()
		ctx = limited
	}
	status, err := x.driveFrame(ctx, f, false)
	switch {
	case status == Waiting:
		return status, ErrWaiting
	case status == Paused:
		return status, ErrPaused
	}
	x.j.addStateSize(-f.storedSize())
	if err == nil && x.j != nil {
		err = x.j.addRecord(KindReturn, wire.PutString(nil, f.path), nil, false)
	}
	return status, err
}
