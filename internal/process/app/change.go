package app

import (
	"context"
	"errors"
	"fmt"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/runs"
)

// A RunChange is what is recorded in the journal of a run without any work on it. Either Run is set, or ID with Set or
// Cancel.
type RunChange struct {
	Run     *Run           // prepared by [Process.StartRun], for its start, or by [Process.ResumeRun], for Answers
	Answers []graph.Answer // to open questions; of a new run, to questions that it will ask

	ID     string    // of a run that is not prepared: as FindThread takes it
	Set    []Setting // values that its state gets
	Cancel bool      // it ends permanently; if its graph has a Finally, that is what it does next
	CancelOptions
}

// CancelOptions say how a run is cancelled whose graph has a Finally.
type CancelOptions struct {
	Abrupt        bool // without it
	AcceptChanges bool // although the agent's files have changed
}

// RecordChange records a start, answers, an edit or the end of a run, and nothing else: the run is paused then, or
// over. It returns the place of the record: when it returns without an error, the change is in the journal. With an
// error it is not there, not even a part of it. Only if [failure.IsUnavailable] reports true for the error, the change
// may be there as a whole: what the journal says counts.
func RecordChange(ctx context.Context, p *Process, c RunChange) (runs.Point, error) {
	switch {
	case c.Run != nil && c.Run.Resumed:
		return c.Run.recordAnswers(ctx, c.Answers)
	case c.Run != nil:
		return c.Run.recordStart(ctx, c.Answers)
	case c.Cancel:
		return p.cancelRun(ctx, c.ID, c.CancelOptions)
	}
	return p.editRun(ctx, c.ID, c.Set)
}

// cancelRun ends a run permanently. A process that drives it is asked to stop the run: it may drive others. What does
// not do that in time gets SIGTERM, if it is on this machine.
func (p *Process) cancelRun(ctx context.Context, id string, c CancelOptions) (runs.Point, error) {
	detail, err := p.Runs.ReadRunDetail(ctx, id)
	if err != nil {
		return runs.Point{}, err
	}
	if driven, err := runs.IsDriven(ctx, p.Runs, detail.Run); err == nil && driven {
		p.stopElsewhere(ctx, detail.Run)
	}
	snap := detail.Snapshot
	if c.Abrupt || snap.Status.Final() || snap.Structure == nil || snap.Structure.Finally == "" {
		return p.Runs.CancelRun(ctx, id)
	}
	if err := runs.StopDriver(ctx, p.Runs, detail.Run); err != nil {
		return runs.Point{}, err
	}
	run, err := p.ResumeRun(ctx, detail.Run, ResumeOptions{AcceptChanges: c.AcceptChanges})
	if err != nil {
		return runs.Point{}, withoutFinally(detail.Run, err)
	}
	if run.origin.asks() { // nothing of it may run before a person has decided
		run.Close()
		return p.Runs.CancelRun(ctx, id)
	}
	defer run.Close()
	var at runs.Point
	d := recordingDriver(&at)
	d.cancel = runs.CancelledByHand
	res, err := run.resumeDrive(ctx, d, nil)
	switch {
	case res.Status.Final(): // it was decided before, and Finally had run
		err = nil
	case err == nil && res.Status != graph.Paused:
		err = fmt.Errorf("run %s is %s", detail.Run, res.Status)
	}
	return runs.Point{Run: detail.Run, At: res.Head}, withoutFinally(detail.Run, err)
}

// withoutFinally adds to an error of a run that cannot be cancelled in the usual way how it can.
func withoutFinally(id string, err error) error {
	if err == nil {
		return nil
	}
	return &failure.Error{
		Kind: failure.Stale,
		Msg:  "the `finally` of run " + id + " cannot run",
		Err:  err,
		Next: "mend that, accept changed files with --accept-changes, or end the run without it: raddle runs cancel " + id + " --abrupt",
	}
}

// CancelByHand ends a run permanently, and runs the Finally of its graph, unless it is to end abruptly. It returns what
// was done, in words.
func (p *Process) CancelByHand(ctx context.Context, id string, c CancelOptions) (done string, err error) {
	at, err := RecordChange(ctx, p, RunChange{ID: id, Cancel: true, CancelOptions: c})
	if err != nil {
		return "", err
	}
	done = "cancelled run " + at.Run
	detail, err := p.Runs.ReadRunDetail(ctx, at.Run)
	if err != nil || detail.Snapshot.Status.Final() {
		return done, err
	}
	run, err := p.ResumeRun(ctx, at.Run, ResumeOptions{AcceptChanges: c.AcceptChanges})
	if err != nil {
		return "", err
	}
	defer run.Close()
	res, err := run.Drive(ctx, Driver{})
	if ended := (*graph.EndingError)(nil); res.Status.Final() && errors.As(err, &ended) {
		return done + ", and its " + ended.Finally + " has run", nil
	}
	if err == nil {
		err = failure.NewStale("raddle resume "+at.Run, "the `finally` of run %s has not ended: it is %s", at.Run, res.Status)
	}
	return "", err
}

// recordAnswers records answers to open questions.
func (r *Run) recordAnswers(ctx context.Context, answers []graph.Answer) (at runs.Point, err error) {
	if r.origin.asks() {
		if at, err = r.decideOrigin(ctx, answers); err == nil && r.origin.decided {
			_ = r.rebuild(ctx) // what was decided is recorded in any case; the next drive tries this again
		}
		return at, err
	}
	ctx, d, end := r.traceDrive(ctx, recordingDriver(&at))
	res, err := r.resumeDrive(ctx, d, answers)
	end(res, err)
	return at, ignoreLater(at, err)
}

// recordStart records the start of a new run. [Run.Drive] continues it. ahead are answers to questions that it will
// ask.
func (r *Run) recordStart(ctx context.Context, ahead []graph.Answer) (at runs.Point, err error) {
	d := recordingDriver(&at)
	d.Ahead = ahead
	res, err := r.Drive(ctx, d)
	if err = ignoreLater(at, err); err == nil {
		r.Resumed = true
		r.status = res.Status
	}
	return at, err
}

// recordingDriver returns the driver of a drive that stops before its first step. at gets the place of what the drive
// begins with.
func recordingDriver(at *runs.Point) Driver {
	paused := make(chan struct{})
	close(paused)
	return Driver{Pause: paused, Topics: graph.TopicRun, Recorded: func(p runs.Point) { *at = p }}
}

// ignoreLater returns nil for an error after the record: the record is there, though not that the drive has stopped.
func ignoreLater(at runs.Point, err error) error {
	if at.At > 0 {
		return nil
	}
	return err
}
