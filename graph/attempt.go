package graph

import (
	"context"
	"errors"
	"fmt"
	"time"

	"raddle.dev/graph/internal/backoff"
	"raddle.dev/graph/internal/panics"
)

// newContext returns another context for the attempt.
func (a attempt) newContext() *taskCtx {
	c := &taskCtx{}
	c.bindTask(a.task)
	c.attempt = int32(a.n)
	c.state.Store(ctxHeld)
	return c
}

// checkNotEnded returns the error for what a goroutine does after the end of its attempt.
func (a attempt) checkNotEnded() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.checkNotEndedLocked()
}

// checkNotEndedLocked is checkNotEnded for a caller that holds mu.
func (a attempt) checkNotEndedLocked() error {
	if err := a.checkNotHungLocked(); err != nil {
		return err
	}
	if a.n <= a.ended {
		return fmt.Errorf("graph: node %s has returned; wait for its goroutines before it does", a.node().Name)
	}
	return nil
}

// checkNotHung returns the error for calls of an attempt that was left behind, else nil.
func (a attempt) checkNotHung() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.checkNotHungLocked()
}

// checkNotHungLocked is checkNotHung for a caller that holds mu.
func (a attempt) checkNotHungLocked() error {
	if a.n <= a.hung {
		return fmt.Errorf("graph: node %s has not returned in time after its context ended: the run has continued without it", a.node().Name)
	}
	return nil
}

// markWaiting records that the attempt waits for an answer.
func (a attempt) markWaiting(q Question) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkNotHungLocked(); err != nil {
		return err
	}
	a.addOpenQuestion(q)
	return nil
}

// run runs the attempt.
func (a attempt) run() (err error) {
	n, r := a.node(), a.runner
	defer func() {
		p := recover() // in a node or in a hook
		if r.isReplaced() {
			err = errLeft
		} else if p != nil {
			err = a.wrapNodeError(panics.NewError("node "+n.Name, p))
		}
	}()
	ctx := a.first
	if a.n == 1 {
		ctx.bindTask(a.task)
	} else {
		ctx, a.held = a.newContext(), true
	}
	if n.Timeout > 0 {
		limited, cancel := context.WithTimeoutCause(a.base, n.Timeout, ErrTimeout)
		defer cancel()
		if r != nil {
			defer a.drive.newWatch(limited, r).endWatch()
		}
		ctx.Context = limited
	}
	st, err := applyOverlay(a.frame.st, a.ref.over, a.drive.settings.Debug)
	if err != nil {
		return a.wrapNodeError(err)
	}
	up, err := a.runNode(ctx, st)
	if r.isReplaced() {
		return errLeft
	}
	return a.conclude(ctx, up, err)
}

// conclude decides what the return values of an attempt mean.
func (a attempt) conclude(ctx *taskCtx, up Update, err error) (failure error) {
	n := a.node()
	if err != nil && n.hooks != nil && !a.isSuspended() {
		defer func() {
			if p := recover(); p != nil {
				failure = a.wrapNodeError(panics.NewError("node "+n.Name, p))
			}
		}()
		defer func() { a.callErrorHooks(ctx, failure) }()
	}
	switch {
	case isModified(err):
		return a.wrapNodeError(err)
	case a.listenerFault() != nil:
		return a.wrapNodeError(a.listenerFault())
	case a.isSuspended(): // whatever the node did with ErrWaiting
		return nil
	case errors.Is(err, ErrWaiting) || errors.Is(err, ErrPaused):
		return a.wrapNodeError(errors.New("the node returned ErrWaiting or ErrPaused, but nothing waits"))
	case err != nil && n.Timeout > 0 && a.base.Err() == nil && context.Cause(ctx.Context) == ErrTimeout:
		return a.wrapNodeError(&timeoutFailure{"timed out", n.Timeout, err})
	case err != nil && a.isStepTimedOut():
		return a.wrapNodeError(&timeoutFailure{"the step timed out", a.frame.g.def.StepTimeout, err})
	case err != nil:
		return a.wrapNodeError(err)
	}
	a.up = up
	return nil
}

// callNode calls the node itself.
func (a attempt) callNode(ctx context.Context, st State) (Update, error) {
	n := a.node()
	if n.Run == nil {
		return runChildNode(ctx, n, st)
	}
	if n.Children != nil {
		defer func() {
			if a.checkNotHung() == nil {
				a.endChildren()
			}
		}()
	}
	return n.Run(ctx, st)
}

// timeoutFailure is a failure of a node because a timeout has passed.
type timeoutFailure struct {
	what  string
	after time.Duration
	err   error
}

func (f *timeoutFailure) Error() string {
	return f.what + " after " + f.after.String() + ": " + f.err.Error()
}
func (f *timeoutFailure) Unwrap() []error { return []error{ErrTimeout, f.err} }

// Attempt returns the number of the current attempt of the node that ctx belongs to,
// from 1; 0 outside a node.
func Attempt(ctx context.Context) int {
	c := callerOf(ctx)
	if c == nil {
		return 0
	}
	return int(c.attempt)
}

// UserOf returns Input.User of the run that ctx belongs to; "" outside a node.
func UserOf(ctx context.Context) string {
	c := callerOf(ctx)
	if c == nil {
		return ""
	}
	return c.frame.drive.user
}

// ThreadOf returns the thread of the run that ctx belongs to; "" outside a node.
func ThreadOf(ctx context.Context) string {
	c := callerOf(ctx)
	if c == nil {
		return ""
	}
	return c.frame.drive.thread
}

// Visit returns the number of steps of the run in which the node that ctx belongs to
// has run, including this one; 0 outside a node.
func Visit(ctx context.Context) int {
	c := callerOf(ctx)
	if c == nil {
		return 0
	}
	return int(c.visit)
}

// FailureCount returns the number of drives before this one that ended as Failed in the
// current step of the root. A node that must not get an answer again that it has
// refused asks under another Ask.Name after a failure. It is 0 after a crash.
func FailureCount(ctx context.Context) int {
	a, ok := attemptOf(ctx)
	if !ok {
		return 0
	}
	return int(a.drive.failures.Load())
}

// TaskPath returns the path of the task that ctx belongs to, which identifies it within
// its run. It is the same in every process and attempt, and "" outside a node.
func TaskPath(ctx context.Context) string {
	a, ok := attemptOf(ctx)
	if !ok {
		return ""
	}
	return a.frame.path + a.localID()
}

// Cause returns, as text, the failure that led to this task through OnError, or the first of several; "" if
// nothing failed. See [Causes].
func Cause(ctx context.Context) string {
	a, ok := attemptOf(ctx)
	if !ok {
		return ""
	}
	return a.ref.cause
}

// Causes returns the failures that led to this task through OnError, in task order; nil if nothing failed. Each task of
// a Send that fails has a handler of its own with the same overlay; the failures of other tasks in one step that have
// the same OnError lead to one task. Each Err has the text of the failure only, also in the drive in which it happened.
// Of runs that an earlier version of raddle has recorded, there is only the text of the first.
func Causes(ctx context.Context) []*NodeError {
	a, ok := attemptOf(ctx)
	if !ok {
		return nil
	}
	return newNodeErrors(a.ref.causes)
}

// Emit sends a value to the run's consumer as a ValueEmitted event, and to the Hooks.Emit
// of its node and of the nodes above. The consumer gets it if it asked for TopicEmit;
// Emit waits for a slow consumer. v should marshal to JSON. Values of one task arrive in
// order. Emit may be called from several goroutines. Outside a node, and after the node has
// returned, it does nothing.
func Emit(ctx context.Context, v any) {
	a, ok := attemptOf(ctx)
	if !ok {
		return
	}
	observed, listener := a.drive.topics&TopicEmit != 0, a.listeners()
	if !observed && listener == nil || a.checkNotEnded() != nil {
		return
	}
	a.callListeners(ctx, listener, v)
	if observed {
		a.drive.out.queueEvent(a.newEvent(ValueEmitted{v}), !a.node().Quiet)
	}
}

// EmitProgress emits a Progress; part is limited to the range from 0 to 1.
func EmitProgress(ctx context.Context, part float64, note string) {
	Emit(ctx, Progress{Part: min(max(part, 0), 1), Note: note})
}

// IsEmitEnabled reports whether the consumer or a Hooks.Emit receives what Emit sends. Use it
// before you make values that are expensive.
func IsEmitEnabled(ctx context.Context) bool {
	a, ok := attemptOf(ctx)
	return ok && (a.drive.topics&TopicEmit != 0 || a.node().listens || a.frame.listener != nil)
}

// Progress is a value for Emit. It says how much of its work a node has done.
type Progress struct {
	// Part is the share that is done, from 0 to 1.
	Part float64 `json:"part"`

	// Note says what the node does now; it may be empty.
	Note string `json:"note,omitempty"`
}

// retry returns the policy of the task's node: its own, else the Runner's.
func (t *task) retry() *Retry {
	if n := t.node(); n.Retry.Attempts != 0 || n.Graph != nil || n.Children != nil {
		return &n.Retry
	}
	return &t.drive.settings.Retry
}

// shouldRetry reports whether another attempt follows the one that failed. A panic in If is
// an error of its node.
func (r *Retry) shouldRetry(attempt int, err error) (again bool, fault error) {
	defer func() {
		if p := recover(); p != nil {
			again, fault = false, panics.NewError("Retry.If", p)
		}
	}()
	return attempt < r.Attempts && (r.If == nil || r.If(err)), nil
}

// DelayAfter returns the pause after an attempt; the first one is 1. Its random part is the
// same for the same seed and attempt, so that a run can be repeated exactly.
func (r *Retry) DelayAfter(attempt int, seed string) time.Duration {
	return backoff.Policy{Delay: r.Delay, Factor: r.Factor, Most: r.MaxDelay, Jitter: r.Jitter}.DelayAfter(attempt, seed)
}
