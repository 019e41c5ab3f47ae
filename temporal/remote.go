package temporal

import (
	"context"
	"errors"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

const (
	remoteRetries = 3               // of a run that another one waits for: see Order.Retries
	closeDelay    = 2 * time.Second // how long the workflow of a run may need to end after the run has failed
	closeLook     = 50 * time.Millisecond
)

// errTimePassed is the cause of a context that ends because a run has worked as long as the node that waits for it
// allows.
var errTimePassed = errors.New("the time of the run has passed")

// limitTime returns a context that ends when the time of a run has passed, if it has a limit.
func (d *Drives) limitTime(ctx context.Context, run *app.Run) (context.Context, context.CancelFunc, error) {
	in := run.Record.Input
	if in == nil || in.Timeout <= 0 {
		return ctx, func() {}, nil
	}
	detail, err := d.process.Runs.ReadRunDetail(ctx, run.ID)
	if err != nil {
		return ctx, nil, err
	}
	ctx, release := context.WithTimeoutCause(ctx, in.Timeout-detail.Snapshot.Active, errTimePassed)
	return ctx, release, nil
}

// remoteRuns are the runs that a run waits for.
type remoteRuns struct {
	*Drives
	run *app.Run
	err error // of the store, or of the server of Temporal
}

// settle is an app.AskFunc. It starts the runs that questions wait for, and returns the answers of those that have
// ended.
func (r *remoteRuns) settle(ctx context.Context, open []graph.Question) (answers []graph.Answer, park bool, err error) {
	answers, r.err = r.readAnswers(ctx, open)
	return answers, false, r.err
}

func (r *remoteRuns) readAnswers(ctx context.Context, open []graph.Question) (answers []graph.Answer, err error) {
	var parent *runs.Detail
	working := map[string]int{} // by group
	for _, q := range open {
		call, ok := graph.RemoteCallOf(&q)
		// runs are started in the order of their questions
		if !ok || call.Limit > 0 && working[call.Group] >= call.Limit {
			continue
		}
		if parent == nil {
			if parent, err = r.process.Runs.ReadRunDetail(ctx, r.run.ID); err != nil {
				return nil, err
			}
		}
		answer, err := r.readAnswer(ctx, parent, &q, call)
		if err != nil {
			return nil, err
		}
		if answer == nil {
			working[call.Group]++
			continue
		}
		answers = append(answers, *answer)
	}
	return answers, nil
}

// readAnswer returns the answer of the run that a question waits for, nil as long as it works. It starts the run if
// that does not exist. The store decides, so that a crash at any point neither loses a run nor starts it twice.
func (r *remoteRuns) readAnswer(ctx context.Context, parent *runs.Detail, q *graph.Question, call graph.RemoteCall) (*graph.Answer, error) {
	child, err := r.process.Runs.ReadRunDetail(ctx, call.Run)
	if errors.As(err, new(*runs.UnknownError)) {
		var refused *graph.Answer
		if refused, err = r.recordStart(ctx, parent, q, call); err != nil || refused != nil {
			return refused, err
		}
		child, err = r.process.Runs.ReadRunDetail(ctx, call.Run)
	}
	if err != nil {
		return nil, err
	}
	reason := ""
	switch child.Status {
	case runs.Running, graph.Waiting.String():
		return nil, nil
	case graph.Done.String(), graph.Abandoned.String(), graph.CleanedUp.String():
	default: // its workflow may not have been started, or it may have ended
		ended, err := r.follow(ctx, parent, child, call)
		if err != nil || !ended {
			return nil, err
		}
		reason = "its workflow has ended: see raddle runs show " + child.Run
	}
	ended, err := r.process.Runs.ReadView(ctx, call.Run)
	if err != nil {
		return nil, err
	}
	answer, err := r.process.RemoteAnswer(ctx, ended, q.ID, reason)
	return &answer, err
}

// recordStart records the start of the run that a question waits for. If the run is not possible, the answer says why.
func (r *remoteRuns) recordStart(ctx context.Context, parent *runs.Detail, q *graph.Question, call graph.RemoteCall) (refused *graph.Answer, err error) {
	run, err := r.process.StartRemoteRun(r.run, parent, q, call)
	if err != nil {
		if errors.As(err, new(*failure.Error)) {
			return &graph.Answer{ID: q.ID, By: "run " + call.Run, Refused: err.Error()}, nil
		}
		return nil, err
	}
	defer run.Close()
	if err := run.RecordRemoteStart(ctx); err != nil {
		if _, found := r.process.Runs.ReadRunDetail(ctx, call.Run); found == nil {
			return nil, nil // a drive that this one has displaced was faster
		}
		return nil, err
	}
	return nil, nil
}

// follow starts the workflow of a run that another one waits for. If it was started before, ended reports whether it
// has ended.
func (r *remoteRuns) follow(ctx context.Context, parent, child *runs.Detail, call graph.RemoteCall) (ended bool, err error) {
	o := Order{Queue: call.Queue, Retries: remoteRetries, User: parent.Snapshot.User, Hash: child.Snapshot.Digest, Parent: parent.Run}
	err = Start(ctx, r.client, &app.Run{ID: child.Run, Record: child.Record}, o)
	if !errors.As(err, new(*serviceerror.WorkflowExecutionAlreadyStarted)) {
		return false, err
	}
	limit := time.Now()
	if child.Status != graph.Paused.String() { // it has failed, and ends if it is not tried again
		limit = limit.Add(closeDelay)
	}
	for {
		d, err := r.client.DescribeWorkflowExecution(ctx, child.Run, "")
		if err != nil {
			return false, err
		}
		if d.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return true, nil
		}
		if time.Now().After(limit) {
			return false, nil
		}
		select {
		case <-time.After(closeLook):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// cancelChildren ends the runs that a run waits for permanently.
func (d *Drives) cancelChildren(ctx context.Context, run string) error {
	detail, err := d.process.Runs.ReadRunDetail(ctx, run)
	if err != nil {
		return err
	}
	for _, q := range detail.Snapshot.Questions {
		call, ok := graph.RemoteCallOf(&q)
		if !ok {
			continue
		}
		child, err := d.process.Runs.ReadRunDetail(ctx, call.Run)
		switch {
		case errors.As(err, new(*runs.UnknownError)):
			continue
		case err != nil:
			return err
		case child.Snapshot.Status.Final():
			continue
		}
		if err = Cancel(ctx, d.client, call.Run); errors.Is(err, ErrNoWorkflow) {
			err = d.Cancel(ctx, call.Run)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
