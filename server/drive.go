package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/runs"
)

// A drive is the work on one run, until it ends, stops or waits for an answer.
type drive struct {
	run       string
	ctx       context.Context // ends with cancel; a drive outlives the request that started it
	cancel    context.CancelFunc
	pause     chan struct{}
	interrupt chan struct{}
	once      struct{ pause, interrupt, started sync.Once }
	work      atomic.Pointer[app.Run] // what is driven; nil until it is prepared

	started chan struct{} // closed when the start or the answers are recorded, or the drive is over
	done    chan struct{} // closed when the run is released
	err     error         // of the drive; read it when done is closed
}

func newDrive(run string) *drive {
	d := &drive{run: run, pause: make(chan struct{}), interrupt: make(chan struct{}), started: make(chan struct{}), done: make(chan struct{})}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// requestPause stops the drive after the current step.
func (d *drive) requestPause() { d.once.pause.Do(func() { close(d.pause) }) }

// requestInterrupt ends the current turn.
func (d *drive) requestInterrupt() { d.once.interrupt.Do(func() { close(d.interrupt) }) }

// noteStarted says that what the drive starts with is recorded.
func (d *drive) noteStarted() { d.once.started.Do(func() { close(d.started) }) }

// A launch is what a drive begins with.
type launch struct {
	run     *app.Run
	ahead   []graph.Answer // of a new run
	answers []graph.Answer // to open questions
}

// launchRun drives a prepared run if there is a place for it. Otherwise it records the start or the answers, releases
// the run and puts it in the queue. It returns when everything that was given is in the journal.
func (s *Service) launchRun(ctx context.Context, l launch) error {
	run := l.run.ID
	if err := s.files.addMark(run); err != nil {
		l.run.Close()
		return err
	}
	d := s.reservePlace(run)
	if d == nil {
		err := s.recordOnly(ctx, l)
		l.run.Close()
		if err != nil {
			s.files.removeMark(run)
			return err
		}
		s.enqueueRun(run)
		return nil
	}
	go s.workOn(d, l)
	select {
	case <-d.started:
	case <-ctx.Done(): // the drive continues: a dropped connection cancels nothing
		return ctx.Err()
	}
	select {
	case <-d.done:
		if errors.As(d.err, new(*graph.AnswerError)) {
			return d.err
		}
		if _, err := s.findRun(ctx, run); err != nil { // not even its start is recorded
			return errors.Join(d.err, err)
		}
	default:
	}
	return nil
}

// recordOnly records the start of a run, or answers to its questions.
func (s *Service) recordOnly(ctx context.Context, l launch) error {
	if s.IsDraining() {
		return errDraining
	}
	if l.run.Resumed {
		if len(l.answers) == 0 {
			return nil
		}
		return l.run.RecordAnswers(ctx, l.answers)
	}
	return l.run.RecordStart(ctx, l.ahead)
}

// reservePlace returns a drive for a run if a place is free, and nil otherwise.
func (s *Service) reservePlace(run string) *drive {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining || s.busy >= s.options.MaxRuns || len(s.waiting) > 0 {
		return nil
	}
	return s.addDrive(run)
}

// addDrive takes a place. The caller must hold mu.
func (s *Service) addDrive(run string) *drive {
	d := newDrive(run)
	s.drives[run] = d
	s.busy++
	s.ended.Add(1)
	return d
}

// enqueueRun lets a run wait for a place. Its start is recorded.
func (s *Service) enqueueRun(run string) {
	s.mu.Lock()
	if !s.isQueued(run) && s.drives[run] == nil {
		s.waiting = append(s.waiting, run)
	}
	s.mu.Unlock()
	s.fillPlaces()
}

// fillPlaces starts queued runs as long as places are free.
func (s *Service) fillPlaces() {
	for {
		s.mu.Lock()
		if s.draining || s.busy >= s.options.MaxRuns || len(s.waiting) == 0 {
			s.mu.Unlock()
			return
		}
		run := s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		d := s.addDrive(run)
		s.mu.Unlock()
		go s.resumeQueued(d)
	}
}

// resumeQueued drives a run of the queue.
func (s *Service) resumeQueued(d *drive) {
	run, err := s.process.ResumeRun(d.ctx, d.run, app.ResumeOptions{})
	if err != nil {
		s.log.Warn("a run of the queue is not continued", "run", d.run, "error", err)
		s.endDrive(d, errors.As(err, new(*runs.BusyError))) // another service may drive it: the mark is for both
		return
	}
	if len(run.Questions) > 0 { // it waits for an answer, and not for a place
		run.Close()
		s.endDrive(d, false)
		return
	}
	s.workOn(d, launch{run: run})
}

// workOn drives a run until it ends, stops or waits for an answer, and releases it.
func (s *Service) workOn(d *drive, l launch) {
	f := s.feeds.acquire(s, d.run)
	defer s.feeds.release(f)
	d.work.Store(l.run)
	answers := l.answers
	driver := app.Driver{Ahead: l.ahead, Topics: graph.AllTopics, Pause: d.pause, Break: s.files.nextBreaks(d.run, s.log), Interrupt: d.interrupt, Event: func(ev graph.Event) {
		d.noteStarted() // the first event comes when the start and the answers are saved
		s.totals.countEvent(ev, s.process.Models.UsageCost)
		f.handleEvent(ev)
	}}
	if len(answers) > 0 {
		driver.Ask = func(context.Context, []graph.Question) ([]graph.Answer, bool, error) { return answers, true, nil }
	}
	res, err := l.run.Drive(d.ctx, driver)
	if err != nil {
		s.log.Info("a run has stopped", "run", d.run, "status", res.Status, "error", err)
	}
	if res.Status.Final() {
		if err := s.files.writeBreaks(d.run, nil); err != nil {
			s.log.Error("the breaks of a run that has ended remain", "run", d.run, "error", err)
		}
	}
	d.err = err
	l.run.Close()
	stopped := res.Status == graph.Paused || res.Status == graph.Canceled
	s.endDrive(d, stopped && s.IsDraining())
}

// endDrive gives the place of a drive to the next run. The next service continues the run if again is true.
func (s *Service) endDrive(d *drive, again bool) {
	if !again {
		s.files.removeMark(d.run)
	}
	d.cancel()
	s.mu.Lock()
	delete(s.drives, d.run)
	s.busy--
	s.finished++
	s.mu.Unlock()
	d.noteStarted()
	close(d.done)
	s.feeds.noteStopped(d.run)
	s.ended.Done()
	s.fillPlaces()
}
