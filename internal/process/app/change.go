package app

import (
	"context"

	"raddle.dev/graph"
	"raddle.dev/internal/storage/runs"
)

// A RunChange is what is recorded in the journal of a run without any work on it. Either Run is set, or ID with Set or
// Cancel.
type RunChange struct {
	Run     *Run           // prepared by [Process.StartRun], for its start, or by [Process.ResumeRun], for Answers
	Answers []graph.Answer // to open questions; of a new run, to questions that it will ask

	ID     string    // of a run that is not prepared: as FindThread takes it
	Set    []Setting // values that its state gets
	Cancel bool      // it ends permanently
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
		return p.cancelRun(ctx, c.ID)
	}
	return p.editRun(ctx, c.ID, c.Set)
}

// cancelRun ends a run permanently. A process that drives it is asked to stop the run: it may drive others. What does
// not do that in time gets SIGTERM, if it is on this machine.
func (p *Process) cancelRun(ctx context.Context, id string) (runs.Point, error) {
	detail, err := p.Runs.ReadRunDetail(ctx, id)
	if err != nil {
		return runs.Point{}, err
	}
	if driven, err := runs.IsDriven(ctx, p.Runs, detail.Run); err == nil && driven {
		p.stopElsewhere(ctx, detail.Run)
	}
	return p.Runs.CancelRun(ctx, id)
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
