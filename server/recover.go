package server

import (
	"context"
	"sync"
	"time"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/runs"
)

// lookInterval is the time between two looks for runs that no process drives.
const lookInterval = 10 * time.Second

// maxBackoff is the longest time between two attempts to continue a run that cannot be continued.
const maxBackoff = time.Hour

// A recovery continues runs that have a mark and that no one drives: after a kill, an error of the store or a rolling
// restart. It is safe for concurrent use.
type recovery struct {
	service *Service

	mu        sync.Mutex           // guards the fields below
	marked    map[string]bool      // runs that this service has marked
	elsewhere map[string]bool      // runs that another process drove at the last look
	failed    map[string]*obstacle // runs that could not be continued
	away      bool                 // the store did not answer at the last look
}

// An obstacle is why a run is not continued now.
type obstacle struct {
	text  string // of the error, which was logged
	delay time.Duration
	until time.Time // the next attempt
}

// start continues the runs that a service has left, and looks for others every ten seconds until Close.
func (r *recovery) start(s *Service) error {
	r.service, r.marked, r.elsewhere, r.failed = s, map[string]bool{}, map[string]bool{}, map[string]*obstacle{}
	s.stopRecovery = func() {}
	if s.worker != nil { // the store says which runs are left
		return s.worker.start()
	}
	if s.options.Recover {
		left, err := s.files.listMarks()
		if err != nil {
			return err
		}
		for _, run := range left {
			s.enqueueRun(run)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stopRecovery = cancel
	s.ended.Go(func() {
		ticker := time.NewTicker(lookInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				s.recovery.look(ctx)
			}
		}
	})
	return nil
}

// markRun records that the service drives a run or has it in its queue. The caller holds the lock of the run. It
// returns the id of the mark.
func (r *recovery) markRun(run string) (mark string, err error) {
	if r.service.worker != nil {
		return "", nil
	}
	r.mu.Lock()
	r.marked[run] = true
	delete(r.elsewhere, run)
	r.mu.Unlock()
	return r.service.files.addMark(run)
}

// look puts runs in the queue that have a mark, can be continued, and that no one drives.
func (r *recovery) look(ctx context.Context) {
	s := r.service
	list, err := s.files.listMarks()
	if err != nil {
		s.log.Warn("the runs that the server was driving cannot be listed", "error", err)
		return
	}
	r.forgetOthers(list)
	for _, run := range list {
		if ctx.Err() != nil {
			return
		}
		if s.isActive(run) || !r.isDue(run) {
			continue
		}
		again, err := r.canContinue(ctx, run)
		if failure.IsUnavailable(err) {
			r.noteStore(err)
			return
		}
		r.noteStore(nil)
		if err != nil {
			r.noteFailure(run, err)
		} else if again && s.files.hasMark(run) {
			s.enqueueRun(run)
		}
	}
}

// canContinue reports whether a run with a mark is to be continued now. It removes the mark of a run that is over or
// waits.
func (r *recovery) canContinue(ctx context.Context, run string) (bool, error) {
	s := r.service
	mark, _ := s.files.readMark(run)
	driven, err := runs.IsDriven(ctx, s.process.Runs, run)
	if is[*runs.UnknownError](err) {
		if s.files.isOldMark(run) { // it is being started, or was never recorded
			s.files.removeMark(run, mark.ID)
		}
		return false, nil
	}
	r.mu.Lock()
	before := r.elsewhere[run]
	if err == nil && driven {
		r.elsewhere[run] = true
	}
	r.mu.Unlock()
	if err != nil || driven || s.isActive(run) {
		return false, err
	}
	d, err := s.findRun(ctx, run)
	if err != nil || d.Status == runs.Running {
		return false, err
	}
	if d.Status == runs.Crashed || !d.Final && !d.Waits() && (!before || mark.Pending) {
		return true, nil
	}
	_, err = releaseMark(s, d, mark) // it is over, it waits, or who drove it meanwhile has stopped it
	return false, err
}

// releaseMark removes a mark of a run that was read before the run, because no one is to continue it. It does nothing
// and reports false if another process has taken the run up since.
func releaseMark(s *Service, d *runs.Detail, m mark) (released bool, err error) {
	st, err := s.process.Runs.OpenStore()
	if err != nil {
		return false, err
	}
	lock, err := st.LockRun(d.Snapshot.Thread) // who takes a run up marks it under its lock
	if is[*runs.BusyError](err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.Release()
	s.files.removeMark(d.Run, m.ID)
	return true, nil
}

// isDue reports whether it is time to continue a run.
func (r *recovery) isDue(run string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.service.options.Recover && !r.marked[run] {
		return false
	}
	o := r.failed[run]
	return o == nil || !time.Now().Before(o.until)
}

// noteFailure remembers why a run could not be continued, so that the attempts become rare; it logs each reason once.
// An error of the store says nothing about the run, and neither does another process that drives it.
func (r *recovery) noteFailure(run string, err error) {
	if failure.IsUnavailable(err) || is[*runs.BusyError](err) || is[*runs.EndedError](err) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.failed[run]
	if o == nil {
		o = &obstacle{delay: lookInterval}
		r.failed[run] = o
	}
	if text := err.Error(); o.text != text {
		o.text = text
		r.service.log.Warn("a run is not continued; later attempts are not logged", "run", run, "error", err)
	}
	o.until = time.Now().Add(o.delay)
	o.delay = min(2*o.delay, maxBackoff)
}

// forget forgets why a run could not be continued.
func (r *recovery) forget(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failed, run)
}

// forgetOthers forgets everything about runs without a mark.
func (r *recovery) forgetOthers(marked []string) {
	keep := map[string]bool{}
	for _, run := range marked {
		keep[run] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range []map[string]bool{r.marked, r.elsewhere} {
		for run := range known {
			if !keep[run] && !r.service.isActive(run) {
				delete(known, run)
			}
		}
	}
	for run := range r.failed {
		if !keep[run] {
			delete(r.failed, run)
		}
	}
}

// noteStore logs when the store goes away and when it is back.
func (r *recovery) noteStore(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil && !r.away:
		r.service.log.Warn("the store does not answer: runs that it stopped are continued when it does", "error", err)
	case err == nil && r.away:
		r.service.log.Info("the store answers again")
	}
	r.away = err != nil
}
