package app

import (
	"context"
	"errors"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/storage/runs"
)

// A WokenRun says how far a run came whose time had come.
type WokenRun struct {
	Run    string     `json:"run"`
	Agent  string     `json:"agent"`
	Status string     `json:"status"`
	Due    *time.Time `json:"due"`   // when it is to be continued next; null: it does not wait for a time
	Error  *string    `json:"error"` // why it failed or was not continued; null: nothing went wrong
}

// WakeRuns continues the runs of the store whose time has come, one after the other, each until it ends or waits, and
// asks nothing. It calls each after each of them. It leaves out what another process is faster to continue. A run that
// fails does not end it: the error is that of the first one.
func (p *Process) WakeRuns(ctx context.Context, hooks UIHooks, each func(WokenRun)) (woken []WokenRun, failed error) {
	woken = []WokenRun{}
	list, err := p.Runs.ListDueRuns(ctx, time.Now())
	if err != nil {
		return woken, err
	}
	for i := range list {
		w, err := p.wakeRun(ctx, hooks, &list[i])
		if errors.As(err, new(*runs.BusyError)) || errors.As(err, new(*graph.BusyError)) || errors.As(err, new(*runs.EndedError)) {
			continue
		}
		if err != nil {
			w.Error = new(err.Error())
			if failed == nil {
				failed = err
			}
		}
		woken = append(woken, w)
		if each(w); ctx.Err() != nil {
			break
		}
	}
	return woken, failed
}

// wakeRun continues a run until it ends or waits.
func (p *Process) wakeRun(ctx context.Context, hooks UIHooks, i *runs.Info) (WokenRun, error) {
	w := WokenRun{Run: i.Run, Agent: i.Agent, Status: i.Status}
	run, err := p.ResumeRun(ctx, i.Run, ResumeOptions{UIHooks: hooks})
	if err != nil {
		return w, err
	}
	defer run.Close()
	res, err := run.Drive(ctx, Driver{Topics: graph.TopicRun})
	w.Status = res.Status.String()
	if errors.As(err, new(*DeadlineError)) {
		err = nil // it was due for that
	}
	if !res.Due.IsZero() {
		w.Due = &res.Due
	}
	return w, err
}
