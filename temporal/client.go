package temporal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"raddle.dev/internal/process/app"
)

// Register makes a worker know the workflow and the activities of runs.
func Register(w worker.Registry, d *Drives) {
	w.RegisterWorkflowWithOptions(RunWorkflow, workflow.RegisterOptions{Name: WorkflowType})
	w.RegisterActivityWithOptions(d.Drive, activity.RegisterOptions{Name: driveActivity})
	w.RegisterActivityWithOptions(d.Cancel, activity.RegisterOptions{Name: cancelActivity})
}

// WorkerOptions returns the options of a worker that drives up to a number of runs at a time. grace is the time that
// drives have to reach the end of their step when the worker ends. rate is how many drives all workers of the queue
// together start in a second; 0: as many as there are.
func WorkerOptions(drives int, grace time.Duration, rate float64) worker.Options {
	return worker.Options{
		MaxConcurrentActivityExecutionSize: drives,
		MaxHeartbeatThrottleInterval:       beatInterval / 2, // otherwise each second heartbeat would wait
		MaxConcurrentActivityTaskPollers:   4,
		MaxConcurrentWorkflowTaskPollers:   4,
		StickyScheduleToStartTimeout:       time.Second, // how long a workflow waits for a worker that has died
		WorkerStopTimeout:                  grace + 5*time.Second,
		TaskQueueActivitiesPerSecond:       rate,
		DisableRegistrationAliasing:        true,
	}
}

// An Order says how a run is driven.
type Order struct {
	Queue   string
	Retries int    // drives that may follow failures that can pass
	User    string // for whom the run works; Temporal gets a digest of it. "": no name
	Hash    string // of the graph
	Parent  string // the run that waits for this one; "": none
}

// options returns the options of the workflow of a run.
func (o Order) options(run string) client.StartWorkflowOptions {
	w := client.StartWorkflowOptions{ID: run, TaskQueue: o.Queue}
	if o.User != "" { // a queue that is full gives each user the same share
		sum := sha256.Sum256([]byte(o.User))
		w.Priority.FairnessKey = hex.EncodeToString(sum[:16])
	}
	return w
}

// Start makes the workers of a queue drive a run whose start is recorded in their store.
func Start(ctx context.Context, c client.Client, run *app.Run, o Order) error {
	w := o.options(run.ID)
	w.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	w.WorkflowExecutionErrorWhenAlreadyStarted = true
	w.Memo = map[string]any{memoAgent: run.Record.Agent, memoHash: o.Hash}
	_, err := c.ExecuteWorkflow(ctx, w, WorkflowType, RunInput{Retries: o.Retries, Parent: o.Parent})
	return err
}

// Poke makes a worker look at a run, because the store has something new for it. A run that no workflow drives,
// because it failed or because Temporal did not start it, gets one.
func Poke(ctx context.Context, c client.Client, run string, o Order) error {
	w := o.options(run)
	w.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	_, err := c.SignalWithStartWorkflow(ctx, run, pokeSignal, nil, w, WorkflowType, RunInput{Retries: o.Retries, Parent: o.Parent})
	return err
}

// Cancel ends a run permanently, as soon as its drive has stopped. The error is ErrNoWorkflow if no workflow drives
// the run.
func Cancel(ctx context.Context, c client.Client, run string) error {
	err := c.CancelWorkflow(ctx, run, "")
	if errors.As(err, new(*serviceerror.NotFound)) {
		return ErrNoWorkflow
	}
	return err
}

// ErrNoWorkflow says that Temporal does not drive a run.
var ErrNoWorkflow = errors.New("no workflow of Temporal drives the run")

// Listed is a run that Temporal drives, or has driven, as a list shows it.
type Listed struct {
	Run     string    `json:"run"`
	Agent   string    `json:"agent"`
	Queue   string    `json:"queue"`
	State   string    `json:"state"`  // of the workflow: running, completed, failed, canceled, …
	Status  string    `json:"status"` // that the last drive has reported; "": none
	Waiting []string  `json:"waiting"`
	Started time.Time `json:"started"`
}

// List passes the runs of a namespace to a function, newest first, until it returns false. open leaves out workflows
// that have ended.
func List(ctx context.Context, c client.Client, open bool, use func(Listed) bool) error {
	query := fmt.Sprintf("WorkflowType = '%s'", WorkflowType)
	if open {
		query += " AND ExecutionStatus = 'Running'"
	}
	var next []byte
	for {
		page, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: next})
		if err != nil {
			return err
		}
		for _, e := range page.GetExecutions() {
			if !use(describeExecution(e)) {
				return nil
			}
		}
		if next = page.GetNextPageToken(); len(next) == 0 {
			return nil
		}
	}
}

func describeExecution(e *workflowpb.WorkflowExecutionInfo) Listed {
	l := Listed{Run: e.GetExecution().GetWorkflowId(), Queue: e.GetTaskQueue(), State: stateNames[e.GetStatus()], Waiting: []string{}, Started: e.GetStartTime().AsTime()}
	for key, into := range map[string]any{memoAgent: &l.Agent, memoStatus: &l.Status, memoWaiting: &l.Waiting} {
		if p := e.GetMemo().GetFields()[key]; p != nil {
			// another program may have written something else
			_ = converter.GetDefaultDataConverter().FromPayload(p, into)
		}
	}
	return l
}

var stateNames = map[enums.WorkflowExecutionStatus]string{
	enums.WORKFLOW_EXECUTION_STATUS_RUNNING:          "running",
	enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:        "completed",
	enums.WORKFLOW_EXECUTION_STATUS_FAILED:           "failed",
	enums.WORKFLOW_EXECUTION_STATUS_CANCELED:         "canceled",
	enums.WORKFLOW_EXECUTION_STATUS_TERMINATED:       "terminated",
	enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:        "timed-out",
	enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW: "continued",
	enums.WORKFLOW_EXECUTION_STATUS_PAUSED:           "paused",
}
