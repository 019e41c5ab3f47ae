package temporal

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// WorkflowType is the type of the workflow of a run. Runs that are open were started with
// it: a change of RunWorkflow that is not compatible with their histories needs another type.
const WorkflowType = "raddle-run/v1"

const (
	pokeSignal     = "poke"   // there is something new in the store for the run
	driveActivity  = "drive"  // see Drives.Drive
	cancelActivity = "cancel" // see Drives.Cancel

	drivesOfHistory = 500 // of one workflow execution; a new one with an empty history follows

	heartbeatTimeout = 2 * time.Second // after which a worker counts as dead
	firstDelay       = time.Second     // before another attempt; it doubles
	longestDelay     = time.Minute
	firstLook        = time.Minute // at a waiting run whose poke may be lost; it doubles
	longestLook      = 15 * time.Minute
)

// RunInput is the input of RunWorkflow.
type RunInput struct {
	Retries  int  `json:"retries"`            // drives that may follow failures that can pass
	Failures int  `json:"failures,omitempty"` // such drives so far
	Noted    bool `json:"noted,omitempty"`    // the memo has a status

	Parent string `json:"parent,omitempty"` // the run that waits for this one
}

// Outcome is the result of a drive.
type Outcome struct {
	Status  string   `json:"status"`            // of graph.Status; busy or refused
	Waiting []string `json:"waiting,omitempty"` // ids of open questions
	Stopped bool     `json:"stopped,omitempty"` // at a breakpoint: a person continues the run
	Passing bool     `json:"passing,omitempty"` // of a failure: another attempt can help
}

// These are the statuses of an Outcome that the workflow distinguishes. Every other one is a failure.
const (
	statusDone      = "done"
	statusAbandoned = "abandoned"
	statusCleanedUp = "cleaned-up"
	statusWaiting   = "waiting"
	statusPaused    = "paused"
	statusBusy      = "busy"    // another process drives the run
	statusRefused   = "refused" // a person must change something, such as a file of the agent
)

// RunWorkflow drives a run until it ends. It decides from statuses alone: everything else is in the store.
func RunWorkflow(ctx workflow.Context, in RunInput) error {
	err := driveToEnd(ctx, in)
	if !workflow.IsContinueAsNewError(err) {
		for workflow.GetSignalChannel(ctx, pokeSignal).ReceiveAsync(nil) { // nothing is left to look at
		}
	}
	// the next drive of the parent reads how this run has ended
	if in.Parent != "" && !workflow.IsContinueAsNewError(err) {
		after, _ := workflow.NewDisconnectedContext(ctx)
		// it looks now and then, too
		_ = workflow.SignalExternalWorkflow(after, in.Parent, "", pokeSignal, nil).Get(after, nil)
	}
	return err
}

// driveToEnd is RunWorkflow without the poke at its end.
func driveToEnd(ctx workflow.Context, in RunInput) error {
	run := workflow.GetInfo(ctx).WorkflowExecution.ID
	poke := workflow.GetSignalChannel(ctx, pokeSignal)
	look, delay := firstLook, firstDelay
	for range drivesOfHistory {
		for poke.ReceiveAsync(nil) { // the drive reads what the poke is about
		}
		out, err := driveRun(ctx, run)
		if ctx.Err() != nil {
			return cancelRun(ctx, run)
		}
		if out.Status != statusWaiting {
			look = firstLook
		}
		switch {
		case err != nil || out.Status == statusBusy: // the store cannot be reached, or another process drives the run
			waitForPoke(ctx, poke, delay)
			delay = min(2*delay, longestDelay)
			continue
		case out.Status == statusDone || out.Status == statusAbandoned || out.Status == statusCleanedUp:
			if in.Noted { // otherwise the list shows enough
				noteStatus(ctx, &in, out)
			}
			return nil
		case out.Status == statusPaused && out.Stopped:
			noteStatus(ctx, &in, out)
			waitForPoke(ctx, poke, 0)
		case out.Status == statusPaused: // its worker ends
		case out.Status == statusWaiting:
			noteStatus(ctx, &in, out)
			waitForPoke(ctx, poke, look)
			look = min(2*look, longestLook)
		case out.Passing && in.Failures < in.Retries:
			in.Failures++
			waitForPoke(ctx, poke, min(firstDelay<<min(in.Failures-1, 10), longestDelay))
		default:
			noteStatus(ctx, &in, out)
			return temporal.NewNonRetryableApplicationError("the run has stopped ("+out.Status+"): raddle runs show "+run, out.Status, nil)
		}
		if ctx.Err() != nil {
			return cancelRun(ctx, run)
		}
		delay = firstDelay
	}
	return workflow.NewContinueAsNewError(ctx, WorkflowType, in)
}

// driveRun executes one drive. The server repeats it only if its worker does not answer any more: the next attempt
// displaces that worker. It does not go through the workflow, whose next task may wait for the dead worker.
func driveRun(ctx workflow.Context, run string) (out Outcome, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 365 * 24 * time.Hour, // limits are those of the graph
		HeartbeatTimeout:    heartbeatTimeout,
		WaitForCancellation: true,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: firstDelay},
	})
	err = workflow.ExecuteActivity(ctx, driveActivity, run).Get(ctx, &out)
	return out, err
}

// waitForPoke returns after a poke, after a time if there is one, or when the workflow is cancelled.
func waitForPoke(ctx workflow.Context, poke workflow.ReceiveChannel, d time.Duration) {
	timed, stop := workflow.WithCancel(ctx)
	defer stop()
	woken := workflow.NewSelector(ctx).
		AddReceive(poke, func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, nil) }).
		AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	if d > 0 {
		woken.AddFuture(workflow.NewTimer(timed, d), func(workflow.Future) {})
	}
	woken.Select(ctx)
}

// cancelRun ends the run of a cancelled workflow permanently.
func cancelRun(ctx workflow.Context, run string) error {
	after, _ := workflow.NewDisconnectedContext(ctx)
	after = workflow.WithActivityOptions(after, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: firstDelay, MaximumInterval: longestDelay},
	})
	if err := workflow.ExecuteActivity(after, cancelActivity, run).Get(after, nil); err != nil {
		return err
	}
	return ctx.Err()
}

// noteStatus shows in lists of workflows what a run waits for, or how it ended.
func noteStatus(ctx workflow.Context, in *RunInput, out Outcome) {
	in.Noted = true
	// texts can be encoded
	_ = workflow.UpsertMemo(ctx, map[string]any{memoStatus: out.Status, memoWaiting: out.Waiting})
}
