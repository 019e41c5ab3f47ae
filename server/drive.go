package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// A drive is the work on one run, until it ends, stops or waits for an answer.
type drive struct {
	run       string
	ctx       context.Context // ends with cancel; a drive outlives the request that started it
	cancel    context.CancelFunc
	pause     chan struct{}
	interrupt chan struct{}
	once      struct{ pause, interrupt sync.Once }
	work      atomic.Pointer[app.Run] // what is driven; nil until it is prepared

	receipt receipt
	done    chan struct{} // closed when the run is released
	wished  atomic.Bool   // a person has asked for its stop
	again   bool          // the run waits for a place when the drive has ended; mu of the service guards it
}

func newDrive(run string) *drive {
	d := &drive{run: run, pause: make(chan struct{}), interrupt: make(chan struct{}), receipt: receipt{done: make(chan struct{})}, done: make(chan struct{})}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// requestPause stops the drive after the current step.
func (d *drive) requestPause() { d.once.pause.Do(func() { close(d.pause) }) }

// requestInterrupt ends the current turn.
func (d *drive) requestInterrupt() { d.once.interrupt.Do(func() { close(d.interrupt) }) }

// A receipt says where in the journal is what a drive begins with, or why it is not there. It is settled once: later
// outcomes of the drive do not change it.
type receipt struct {
	once sync.Once
	done chan struct{} // closed when it is settled
	at   runs.Point    // read it and err when done is closed
	err  error
}

// settle says that everything up to a place is in the journal, or why what was given is not.
func (r *receipt) settle(at runs.Point, err error) {
	r.once.Do(func() {
		r.at = at
		r.err = err
		close(r.done)
	})
}

// wait returns what the receipt says. If it says nothing for long, the error is of the kind [failure.Unavailable]: no
// one knows yet whether the record is there. The drive continues in any case: a dropped connection cancels nothing.
func (r *receipt) wait(ctx context.Context) (runs.Point, error) {
	timer := time.NewTimer(confirmWait)
	defer timer.Stop()
	select {
	case <-r.done:
		return r.at, r.err
	case <-timer.C:
		return runs.Point{}, newUnconfirmedError()
	case <-ctx.Done():
		return runs.Point{}, ctx.Err()
	}
}

// newUnconfirmedError returns the error for a record of which no one knows whether it is there.
func newUnconfirmedError() error {
	return &failure.Error{Kind: failure.Unavailable, Msg: "the store has not confirmed in " + confirmWait.String() + " that it has recorded this", Next: "look at the run later, or try again"}
}

// confirmWait is how long a request waits for the store to record what it brings. It is a variable for tests.
var confirmWait = 30 * time.Second

// A launch is what a drive begins with.
type launch struct {
	run     *app.Run
	ahead   []graph.Answer // of a new run
	answers []graph.Answer // to open questions
	hold    *journal.Hold  // the job of the run; nil: the store has no queue
	mark    string         // id of the mark that the run got with it
	keep    bool           // the run had a mark before: it keeps one if the drive does not begin
}

// brings reports whether something must be recorded before anyone may count on it: the start of a new run, or answers.
func (l *launch) brings() bool { return !l.run.Resumed || len(l.answers) > 0 }

// newUnrecordedError returns the error for what a drive should have recorded and has not.
func newUnrecordedError(run string) error {
	return &failure.Error{Kind: failure.Unavailable, Msg: "run " + run + " has ended its work before it recorded this", Next: "look at the run, then try again"}
}

// launchRun drives a prepared run if there is a place for it. Otherwise it records the start or the answers, releases
// the run and puts it in the queue. It returns when everything that was given is in the journal, and the place of the
// record. With an error nothing of it is there, unless the error is of the kind [failure.Unavailable]: then the journal
// must be read to know it.
func (s *Service) launchRun(ctx context.Context, l launch) (runs.Point, error) {
	run := l.run.ID
	l.keep = s.files.hasMark(run)
	d, err := s.reservePlace(ctx, run)
	if err != nil { // the drive that has the run goes on
		l.run.Close()
		return runs.Point{}, err
	}
	l.hold = s.worker.renewHold(run, l.run.Thread)
	l.mark, err = s.recovery.markRun(run)
	switch {
	case err == nil && d != nil:
		go s.workOn(d, l)
		return d.receipt.wait(ctx)
	case d != nil:
		d.receipt.settle(runs.Point{}, err)
		defer s.endDrive(d)
	}
	var at runs.Point
	if err == nil {
		// another service must not take the end of the short drive that records it for someone's wish
		err = s.files.notePending(run)
	}
	if err == nil {
		if at, err = s.recordOnly(ctx, l); err != nil && !l.keep && !failure.IsUnavailable(err) {
			s.files.removeMark(run, l.mark)
		}
	}
	l.run.Close()
	switch {
	case err != nil:
		s.worker.fail(run, err)
	case s.options.NoWorker:
		s.worker.giveBack(run, journal.Return{})
	default:
		s.enqueueRun(run)
	}
	return at, err
}

// recordOnly records the start of a run, or answers to its questions, also if ctx ends meanwhile.
func (s *Service) recordOnly(ctx context.Context, l launch) (at runs.Point, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmWait)
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = newUnconfirmedError()
		}
		cancel()
	}()
	if l.hold != nil {
		if !s.options.NoWorker {
			l.hold.SetEnd(journal.KeepAtEnd)
		}
		ctx = journal.WithHold(ctx, l.hold)
	}
	switch {
	case s.IsDraining():
		return runs.Point{}, errDraining
	case !l.brings():
		if l.hold == nil {
			return runs.Point{Run: l.run.ID}, nil
		}
		return runs.Point{Run: l.run.ID}, s.worker.queue.PutJob(ctx, l.hold.Job, jobTTL)
	case l.run.Resumed:
		return app.RecordChange(ctx, s.process, app.RunChange{Run: l.run, Answers: l.answers})
	}
	return app.RecordChange(ctx, s.process, app.RunChange{Run: l.run, Answers: l.ahead})
}

// reservePlace returns a drive for a prepared run if a place is free, and nil otherwise. It waits for the end of a
// drive that has the run: that one is about to find out that the run is taken, or has just left it.
func (s *Service) reservePlace(ctx context.Context, run string) (*drive, error) {
	for {
		s.mu.Lock()
		before := s.drives[run]
		if before == nil {
			defer s.mu.Unlock()
			if s.draining || s.busy >= s.options.MaxRuns || len(s.waiting) > 0 {
				return nil, nil
			}
			return s.addDrive(run), nil
		}
		s.mu.Unlock()
		select {
		case <-before.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// addDrive takes a place for a run that no other drive has. The caller must hold mu.
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
	switch d := s.drives[run]; {
	case d != nil:
		d.again = true
	case !s.isQueued(run):
		s.waiting = append(s.waiting, run)
	}
	s.mu.Unlock()
	s.fillPlaces()
}

// countFree returns how many runs this service could drive in addition.
func (s *Service) countFree() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.options.MaxRuns - s.busy - len(s.waiting)
}

// dequeueLast takes the newest run out of the queue; ok is false if there is none.
func (s *Service) dequeueLast() (run string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.waiting)
	if n == 0 {
		return "", false
	}
	run = s.waiting[n-1]
	s.waiting = s.waiting[:n-1]
	return run, true
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

// resumeQueued drives a run of the queue, or one that an earlier drive has left.
func (s *Service) resumeQueued(d *drive) {
	run, err := s.process.ResumeRun(d.ctx, d.run, app.ResumeOptions{})
	if err != nil {
		s.recovery.noteFailure(d.run, err)
		s.worker.fail(d.run, err)
		if m, ok := s.files.readMark(d.run); ok && is[*runs.EndedError](err) {
			s.files.removeMark(d.run, m.ID)
		}
		d.receipt.settle(runs.Point{}, err)
		s.endDrive(d)
		return
	}
	m, wanted := s.files.readMark(d.run)
	if !wanted {
		wanted, err = s.worker.stillWants(d.ctx, d.run, run.Thread)
	}
	if err != nil {
		s.worker.fail(d.run, err)
		run.Close()
		d.receipt.settle(runs.Point{}, err)
		s.endDrive(d)
		return
	}
	if !wanted || run.Waits() && !run.IsDue() { // someone has stopped it meanwhile, or only answers can continue it now
		s.files.removeMark(d.run, m.ID)
		if wanted && !run.Due.IsZero() {
			s.worker.giveBack(d.run, journal.Return{Delay: time.Until(run.Due)})
		} else {
			s.worker.finish(d.run)
		}
		run.Close()
		d.receipt.settle(runs.Point{Run: d.run}, nil) // it brings nothing
		s.endDrive(d)
		return
	}
	l := launch{run: run, keep: true, mark: m.ID, hold: s.worker.hold(d.run, run.Thread)}
	// also no longer pending: from here on, a pause is someone's wish
	if id, err := s.recovery.markRun(d.run); err == nil {
		l.mark = id
	} else {
		s.log.Warn("a run keeps the mark of an earlier drive", "run", d.run, "error", err)
	}
	s.workOn(d, l)
}

// workOn drives a run until it ends, stops or waits for an answer, and releases it.
func (s *Service) workOn(d *drive, l launch) {
	f := s.feeds.acquire(s, d.run)
	defer s.feeds.release(f)
	d.work.Store(l.run)
	begun := false
	driver := app.Driver{Ahead: l.ahead, Begin: l.answers, Topics: graph.AllTopics, Pause: d.pause, Break: s.files.nextBreaks(d.run, s.log), Interrupt: d.interrupt,
		Recorded: func(at runs.Point) {
			begun = true
			d.receipt.settle(at, nil)
		},
		Event: func(ev graph.Event) {
			if _, step := ev.Body.(graph.StepCommitted); step {
				s.worker.noteProgress(l.hold)
			}
			s.totals.countEvent(ev, s.process.Models.UsageCost)
			f.handleEvent(ev)
		}}
	ctx := d.ctx
	if l.hold != nil {
		ctx = journal.WithHold(ctx, l.hold)
	}
	res, err := l.run.Drive(ctx, driver)
	if err == nil && !begun && l.brings() {
		err = newUnrecordedError(d.run)
	}
	d.receipt.settle(runs.Point{Run: d.run, At: res.Head}, err)
	if err != nil {
		s.log.Info("a run has stopped", "run", d.run, "status", res.Status, "error", err)
	}
	if res.Status.Final() {
		if err := s.files.writeBreaks(d.run, nil); err != nil {
			s.log.Error("the breaks of a run that has ended remain", "run", d.run, "error", err)
		}
	}
	stopped := res.Status == graph.Paused || res.Status == graph.Canceled
	drained := stopped && s.IsDraining()
	keep := drained
	switch {
	case err == nil:
		s.recovery.forget(d.run)
	case begun: // a failure of a node is recorded; what the store does not say has not ended
		keep = keep || !hasEnded(s, l.run.Thread)
	default:
		s.recovery.noteFailure(d.run, err)
		keep = keep || l.keep || failure.IsUnavailable(err)
	}
	switch {
	case drained: // Close has noted it, perhaps before the run got its mark
		if err := s.files.notePending(d.run); err != nil {
			s.log.Warn("another service of the same files may not continue a run", "run", d.run, "error", err)
		}
	case !keep:
		s.files.removeMark(d.run, l.mark) // before the run is free: another service of these files must not take it up
	}
	if begun && !keep {
		s.worker.settle(d, l.hold, res.Status, nil) // its end is recorded, whatever it was
	} else {
		s.worker.settle(d, l.hold, res.Status, err)
	}
	l.run.Close()
	s.endDrive(d)
}

// hasEnded reports whether the newest record of a thread is the end of a drive.
func hasEnded(s *Service, thread string) bool {
	st, err := s.process.Runs.OpenStore()
	if err != nil {
		return false
	}
	for r, err := range st.Read(context.Background(), thread, journal.Range{Newest: true, Limit: 1, Heads: true}) {
		return err == nil && r.Kind == journal.KindEnd
	}
	return false
}

// endDrive gives the place of a drive to the next run.
func (s *Service) endDrive(d *drive) {
	d.cancel()
	s.mu.Lock()
	delete(s.drives, d.run)
	if d.again {
		s.waiting = append(s.waiting, d.run)
	}
	s.busy--
	s.finished++
	s.mu.Unlock()
	close(d.done)
	s.feeds.noteStopped(d.run)
	s.ended.Done()
	s.fillPlaces()
	s.worker.requestTake()
}

// is reports whether an error is or wraps one of a type.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
