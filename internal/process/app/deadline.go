package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/storage/runs"
)

// A DeadlineError says that the time of a run was up: the run is over, and the Finally of its graph has run.
type DeadlineError struct {
	Deadline time.Time
	Err      error // of the drive that ended it
}

// Error implements error.
func (e *DeadlineError) Error() string { return deadlineReason(e.Deadline) }

// Unwrap returns how the run has ended.
func (e *DeadlineError) Unwrap() error { return e.Err }

func deadlineReason(t time.Time) string {
	return "the deadline of the run has passed: " + t.Local().Format(time.DateTime)
}

// deadlineAfter returns when the time of a run that starts now is up; zero: never.
func deadlineAfter(d time.Duration, clock graph.Clock) time.Time {
	switch {
	case d <= 0:
		return time.Time{}
	case clock != nil:
		return clock.Now().Add(d)
	}
	return time.Now().Add(d)
}

// now returns the time by the clock of the run.
func (r *Run) now() time.Time {
	if c := r.runner.Clock; c != nil {
		return c.Now()
	}
	return time.Now()
}

// driveUntil drives a run until its deadline at most, and then ends it.
func (r *Run) driveUntil(ctx context.Context, d Driver, deadline time.Time) (graph.Result, error) {
	if left := deadline.Sub(r.now()); left > 0 {
		limited, stop := context.WithTimeoutCause(ctx, left, errors.New(deadlineReason(deadline)))
		res, err := r.driveOn(limited, d)
		isUp := limited.Err() != nil
		stop()
		if !isUp || ctx.Err() != nil || res.Status.Final() || res.Head == 0 && !r.Resumed {
			return res, err
		}
	} else if !r.Resumed {
		return graph.Result{Run: r.ID, Thread: r.Thread, Status: graph.NotStarted}, fmt.Errorf("the run was not started: %s", deadlineReason(deadline))
	}
	d.Begin, d.Ahead, d.Ask, d.Wake, d.Recorded = nil, nil, nil, nil, nil
	d.cancel = deadlineReason(deadline)
	r.Resumed = true
	res, err := r.driveOn(ctx, d)
	if res.Status.Final() {
		err = &DeadlineError{Deadline: deadline, Err: err}
	}
	return res, err
}

// setsLimits reports whether the run gets other limits than it was started with.
func (c *ResumeOptions) setsLimits() bool { return c.Budget != (agent.Limits{}) || c.Deadline > 0 }

// setLimits replaces the limits in a start record.
func (c *ResumeOptions) setLimits(rec *runs.Record) {
	if b := c.Budget; b != (agent.Limits{}) {
		old := agent.Limits{}
		if rec.Budget != nil {
			old = *rec.Budget
		}
		rec.Budget = &agent.Limits{
			Tokens:    cmp.Or(b.Tokens, old.Tokens),
			Money:     cmp.Or(b.Money, old.Money),
			Calls:     cmp.Or(b.Calls, old.Calls),
			ToolCalls: cmp.Or(b.ToolCalls, old.ToolCalls),
		}
	}
	if c.Deadline > 0 {
		rec.Deadline = deadlineAfter(c.Deadline, c.Clock)
	}
}

// limitedRecord returns the start record of a run that gets other limits; accepted is the one that replaces that of the
// journal in any case, nil: none.
func limitedRecord(accepted, recorded []byte, c ResumeOptions) ([]byte, error) {
	if !c.setsLimits() {
		return accepted, nil
	}
	meta := accepted
	if meta == nil {
		meta = recorded
	}
	rec, err := runs.DecodeRecord(meta)
	if err != nil {
		return nil, err
	}
	c.setLimits(rec)
	return json.Marshal(rec)
}
