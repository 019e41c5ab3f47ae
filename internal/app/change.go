package app

import (
	"context"

	"raddle.dev/graph"
	"raddle.dev/internal/runs"
)

// A Change is what is recorded in the journal of a run without any work on it. Either Run is set, or ID with Set or Cancel.
type Change struct {
	Run     *Run           // prepared by [Process.StartRun], for its start, or by [Process.ResumeRun], for Answers
	Answers []graph.Answer // to open questions; of a new run, to questions that it will ask

	ID     string    // of a run that is not prepared: as FindThread takes it
	Set    []Setting // values that its state gets
	Cancel bool      // it ends permanently
}

// RecordChange records a start, answers, an edit or the end of a run, and nothing else: the run is paused then, or over. It returns the
// place of the record: when it returns without an error, the change is in the journal. With an error it is not there, not even a part of
// it. Only if [failure.IsUnavailable] reports true for the error, the change may be there as a whole: what the journal says counts.
func (p *Process) RecordChange(ctx context.Context, c Change) (runs.Point, error) {
	switch {
	case c.Run != nil && c.Run.Resumed:
		return c.Run.recordAnswers(ctx, c.Answers)
	case c.Run != nil:
		return c.Run.recordStart(ctx, c.Answers)
	case c.Cancel:
		return p.Runs.CancelRun(ctx, c.ID)
	}
	return p.editRun(ctx, c.ID, c.Set)
}

// recordAnswers records answers to open questions.
func (r *Run) recordAnswers(ctx context.Context, answers []graph.Answer) (runs.Point, error) {
	if r.origin.asks() {
		_, err := r.decideOrigin(ctx, answers)
		return runs.Point{Run: r.ID, At: r.origin.head}, err
	}
	ctx, d, end := r.traceDrive(ctx, Driver{Pause: pausedAlready()})
	res, err := r.resumeDrive(ctx, d, answers)
	end(res, err)
	return runs.Point{Run: r.ID, At: res.Head}, err
}

// recordStart records the start of a new run. [Run.Drive] continues it. ahead are answers to questions that it will ask.
func (r *Run) recordStart(ctx context.Context, ahead []graph.Answer) (runs.Point, error) {
	res, err := r.Drive(ctx, Driver{Ahead: ahead, Pause: pausedAlready()})
	if err == nil {
		r.Resumed, r.status = true, res.Status
	}
	return runs.Point{Run: r.ID, At: res.Head}, err
}

// pausedAlready returns a channel that is closed: a drive with it stops before its first step.
func pausedAlready() <-chan struct{} {
	paused := make(chan struct{})
	close(paused)
	return paused
}
