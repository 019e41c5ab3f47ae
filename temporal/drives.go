package temporal

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
)

const beatInterval = time.Second

// Drives are the drives of one worker: its methods are the activities of Temporal.
type Drives struct {
	client  client.Client
	process *app.Process
	log     *slog.Logger

	pause chan struct{} // closed when the worker ends: drives stop after their current step
	once  sync.Once
	ends  context.Context // ends with the grace of a worker that ends: drives stop at once
	stop  context.CancelFunc
}

// NewDrives returns the drives of a worker. The store of the process must be one that all workers share. The client
// starts the runs of their own that drives wait for.
func NewDrives(c client.Client, process *app.Process, log *slog.Logger) *Drives {
	d := &Drives{client: c, process: process, log: log, pause: make(chan struct{})}
	d.ends, d.stop = context.WithCancel(context.Background())
	return d
}

// Pause makes all drives stop after their current step, and those that have not stopped after a time stop at once.
func (d *Drives) Pause(grace time.Duration) {
	d.once.Do(func() {
		close(d.pause)
		time.AfterFunc(grace, d.stop)
	})
}

// Stop makes all drives stop at once.
func (d *Drives) Stop() { d.stop() }

// Drive works on a run until it ends, is paused, or waits for a person. An error means that the store or the
// worker failed, and says nothing about the run.
func (d *Drives) Drive(ctx context.Context, run string) (Outcome, error) {
	defer beat(ctx)()
	out, err := d.drive(ctx, run, activity.GetInfo(ctx).Attempt > 1)
	switch {
	case ctx.Err() != nil: // the workflow is cancelled, or another worker has the run
		return Outcome{}, ctx.Err()
	case err != nil:
		d.log.Warn("a run cannot be driven", "run", run, "error", err)
		return Outcome{}, temporal.NewNonRetryableApplicationError("the worker cannot drive the run: see its log", "worker", nil)
	}
	return out, nil
}

// drive works on a run. takeover displaces a worker that does not answer any more.
func (d *Drives) drive(ctx context.Context, id string, takeover bool) (Outcome, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(d.ends, stop)()
	run, err := d.process.ResumeRun(ctx, id, app.ResumeOptions{Takeover: takeover})
	if over, ok := errors.AsType[*runs.EndedError](err); ok {
		if over.Status != graph.Done {
			err = d.cancelChildren(ctx, id)
		} else {
			err = nil
		}
		return Outcome{Status: over.Status.String()}, err
	}
	if err != nil {
		return d.judgeFailure(id, graph.NotStarted, err)
	}
	defer run.Close()
	ctx, release, err := d.limitTime(ctx, run)
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	children := &remoteRuns{Drives: d, run: run}
	res, err := run.Drive(ctx, app.Driver{Pause: d.pause, Ask: children.settle})
	if err != nil {
		d.log.Info("a run has stopped", "run", id, "status", res.Status, "error", err)
	}
	switch {
	case children.err != nil:
		return Outcome{}, children.err
	case res.Status == graph.Canceled && context.Cause(ctx) == errTimePassed:
		run.Close()
		_, err := runs.EndRun(context.WithoutCancel(ctx), d.process.Runs, id, runs.TimePassed)
		return Outcome{Status: statusAbandoned}, err
	case res.Status == graph.Canceled && d.ends.Err() != nil:
		return Outcome{Status: statusPaused}, nil
	case err != nil && res.Status != graph.Waiting && !res.Status.Final():
		return d.judgeFailure(id, res.Status, err)
	}
	return Outcome{Status: res.Status.String(), Waiting: listQuestions(res.Questions), Stopped: len(res.Breaks) > 0}, nil
}

// judgeFailure returns the outcome of a drive that failed. If the journal does not have the failure, it was one of the
// store or of the worker, and judgeFailure returns the error.
func (d *Drives) judgeFailure(id string, status graph.Status, err error) (Outcome, error) {
	switch {
	case errors.As(err, new(*runs.BusyError)), errors.As(err, new(*graph.BusyError)), errors.Is(err, journal.ErrConflict), errors.Is(err, graph.ErrLeaseLost):
		return Outcome{Status: statusBusy}, nil
	case errors.As(err, new(*failure.Error)):
		d.log.Warn("a run cannot be continued", "run", id, "error", err)
		return Outcome{Status: statusRefused}, nil
	}
	detail, unread := d.process.Runs.ReadRunDetail(context.Background(), id)
	if unread != nil || detail.Snapshot.Status != status {
		return Outcome{}, err
	}
	provider, ok := errors.AsType[*llm.Error](err)
	return Outcome{Status: status.String(), Passing: ok && provider.IsTransient()}, nil
}

// listQuestions returns the ids of questions.
func listQuestions(open []graph.Question) (ids []string) {
	for _, q := range open {
		ids = append(ids, q.ID)
	}
	return ids
}

// Cancel ends a run permanently, with the runs that it waits for and the processes that its drives have left behind.
func (d *Drives) Cancel(ctx context.Context, run string) error {
	err := d.cancelChildren(ctx, run)
	if err == nil {
		_, err = app.RecordChange(ctx, d.process, app.RunChange{ID: run, Cancel: true})
	}
	if errors.As(err, new(*runs.EndedError)) {
		return nil
	}
	if err != nil {
		d.log.Warn("a run cannot be cancelled", "run", run, "error", err)
		return errors.New("the worker cannot cancel the run: see its log")
	}
	return nil
}

// beat shows the server every second that a drive works, until the returned function is called. The server's answer
// ends ctx when the run is cancelled, or driven by another worker.
func beat(ctx context.Context) (end func()) {
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(beatInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	})
	return func() {
		close(done)
		ended.Wait()
	}
}
