package server

import (
	"context"
	"slices"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// takeRun prepares to continue a run, by its whole id. If this service drives it, takeRun waits until it does not.
func (s *Service) takeRun(ctx context.Context, run string) (*app.Run, error) {
	if s.IsDraining() {
		return nil, errDraining
	}
	for d := s.findDrive(run); d != nil; d = s.findDrive(run) {
		select {
		case <-d.done:
		case <-ctx.Done():
			return nil, failure.NewStale("try again when it waits", "run %s is still working", run)
		}
	}
	return s.process.ResumeRun(ctx, run, app.ResumeOptions{})
}

// ResumeRun continues a run that was paused or stopped, has failed, or whose process was killed.
func (s *Service) ResumeRun(ctx context.Context, id string) error {
	if err := s.RequireScope(ctx, ScopeStart); err != nil {
		return err
	}
	detail, err := s.findRun(ctx, id)
	if err != nil {
		return err
	}
	run, err := s.takeRun(ctx, detail.Run)
	if err != nil {
		return err
	}
	_, err = s.launchRun(ctx, launch{run: run})
	return err
}

// PauseRun stops a run after its current step.
func (s *Service) PauseRun(ctx context.Context, id string) error {
	return s.stopRun(ctx, id, (*drive).requestPause)
}

// InterruptRun ends the current turn of an agent at once: the text so far becomes its reply. A graph is stopped at once
// and can be continued.
func (s *Service) InterruptRun(ctx context.Context, id string) error {
	return s.stopRun(ctx, id, (*drive).requestInterrupt)
}

// stopRun stops a run that this service drives, or removes it from the queue.
func (s *Service) stopRun(ctx context.Context, id string, stop func(*drive)) error {
	detail, err := findRunFor(ctx, s, ScopeStart, id)
	if err != nil {
		return err
	}
	if d := s.findDrive(detail.Run); d != nil {
		d.wished.Store(true)
		stop(d)
		return nil
	}
	mark, _ := s.files.readMark(detail.Run)
	if stopped, err := s.stopWaiting(ctx, detail); stopped || err != nil {
		return err
	}
	if s.dequeueRun(detail.Run) {
		released, err := releaseMark(s, detail, mark)
		if err != nil {
			s.enqueueRun(detail.Run)
			return err
		}
		if released {
			s.worker.release(detail.Run)
			s.feeds.noteStopped(detail.Run)
			return nil
		}
	}
	return failure.NewStale("", "run %s is not driven by this server: %s", detail.Run, detail.Status)
}

// stopWaiting removes the job of a run that waits for a place, here or anywhere. It reports false if there is none.
func (s *Service) stopWaiting(ctx context.Context, detail *runs.Detail) (stopped bool, err error) {
	if s.worker == nil {
		return false, nil
	}
	job, ok, err := s.worker.readJob(ctx, detail.Snapshot.Thread)
	queued := s.dequeueRun(detail.Run)
	if err != nil || !ok || job.Worker != "" && !queued {
		if queued {
			s.enqueueRun(detail.Run)
		}
		return false, err
	}
	if err := s.worker.queue.FinishJob(ctx, job.Thread, job.Token); err != nil {
		if queued {
			s.enqueueRun(detail.Run)
		}
		return false, err
	}
	s.worker.release(detail.Run)
	s.feeds.noteStopped(detail.Run)
	return true, nil
}

// dequeueRun takes a run out of the queue and reports whether it was there.
func (s *Service) dequeueRun(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.waiting)
	s.waiting = slices.DeleteFunc(s.waiting, func(id string) bool { return id == run })
	return len(s.waiting) < n
}

// CancelRun ends a run permanently, even while it works. If its graph has a Finally, the end is decided when CancelRun
// returns, and this service runs that node. With an error the run has not ended, and what was in the queue is there again;
// if only the node could not be started, another call starts it.
func (s *Service) CancelRun(ctx context.Context, id string) error {
	detail, err := findRunFor(ctx, s, ScopeStart, id)
	if err != nil {
		return err
	}
	queued := s.dequeueRun(detail.Run)
	for {
		for d := s.findDrive(detail.Run); d != nil; d = s.findDrive(detail.Run) {
			d.cancel()
			select {
			case <-d.done:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		_, err = app.RecordChange(ctx, s.process, app.RunChange{ID: detail.Run, Cancel: true})
		if !is[*runs.BusyError](err) || s.findDrive(detail.Run) == nil {
			break
		} // this service has continued it meanwhile
	}
	if err != nil {
		if queued {
			s.enqueueRun(detail.Run)
		}
		return err
	}
	now, err := s.findRun(ctx, id)
	if err != nil {
		return err
	}
	if !now.Snapshot.Status.Final() { // its Finally remains to be run
		return s.ResumeRun(ctx, id)
	}
	mark, _ := s.files.readMark(detail.Run)
	s.files.removeMark(detail.Run, mark.ID) // by which service it may be: the run is over
	s.worker.release(detail.Run)
	s.feeds.noteStopped(detail.Run)
	return s.files.writeBreaks(detail.Run, nil)
}
