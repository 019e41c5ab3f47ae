package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// How a worker takes part in the queue of its store.
const (
	// for how long a job belongs to a worker that does not renew it: as long as the lease of a drive
	jobTTL     = 15 * time.Second
	renewEvery = 5 * time.Second        // how often a worker renews its jobs
	takeEvery  = 500 * time.Millisecond // how often a worker with free places looks for jobs
	busyDelay  = 2 * time.Second        // until a run is tried again that another process drives
	awayDelay  = 5 * time.Second        // until a run is tried again for which the store did not answer
)

// maxAttempts is how many drives of a run may fail, one after the other, before no worker takes it any more.
const maxAttempts = 10

// A worker is what makes a service drive the runs of its store, whatever has started them. The store says which: see
// [journal.Queue]. It is safe for concurrent use.
type worker struct {
	service *Service
	queue   journal.Queue
	wake    chan struct{} // has an element when a place has become free
	// has an element when a run has finished a step that was tried before
	progress chan struct{}
	stop     func() // ends the loop
	stopped  sync.WaitGroup
	renewed  time.Time // when the jobs were renewed last; the loop uses it

	mu    sync.Mutex // guards the fields below
	self  journal.Worker
	holds map[string]*journal.Hold // by run: what this service drives or has in its own queue
	away  bool                     // the store did not answer at the last look
}

// openWorker makes a service a worker of the queue of its store. It returns nil if there is none: then the files of the
// service say which runs it has left.
func openWorker(s *Service, q journal.Queue) *worker {
	if q == nil {
		return nil
	}
	host, _ := os.Hostname()
	return &worker{
		service:  s,
		queue:    q,
		wake:     make(chan struct{}, 1),
		progress: make(chan struct{}, 1),
		holds:    map[string]*journal.Hold{},
		self: journal.Worker{
			ID:      journal.NewWorkerID(),
			Host:    host,
			PID:     os.Getpid(),
			Version: app.Version(),
			Format:  runs.Format,
			Places:  placesOf(&s.options),
		},
	}
}

// placesOf returns how many runs of others a service drives: none if it drives nothing, or only what it has started
// itself.
func placesOf(o *Options) int {
	if o.NoWorker || !o.Recover {
		return 0
	}
	return o.MaxRuns
}

// start takes over the runs that an older program has left in files, and starts the loop that renews jobs and looks for
// others.
func (w *worker) start() error {
	if w.service.options.Recover {
		if err := w.adoptMarks(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	w.stopped.Go(func() { w.work(ctx) })
	if n, ok := w.queue.(journal.Notices); ok && w.self.Places > 0 {
		w.stopped.Go(func() { n.ListenJobs(ctx, w.requestTake) })
	}
	return nil
}

// adoptMarks writes jobs for the runs that have a mark of an older program, and removes the marks.
func (w *worker) adoptMarks() error {
	s := w.service
	left, err := s.files.listMarks()
	if err != nil {
		return err
	}
	for _, run := range left {
		m, _ := s.files.readMark(run)
		d, err := s.findRun(context.Background(), run)
		if err == nil && !d.Final && (!d.Waits() || !d.Due.IsZero()) {
			err = w.queue.PutJob(context.Background(), journal.DriveJob{Thread: d.Snapshot.Thread, Run: run, Token: rand.Text()}, 0)
		}
		switch {
		case err == nil, is[*runs.UnknownError](err):
		case failure.IsUnavailable(err) || journal.IsUnavailable(err):
			return fmt.Errorf("run %s, which an earlier server has left: %w", run, err)
		default: // the mark stays: the run is there again when it can be read
			s.log.Error("a run that an earlier server has left is not continued: look at it with raddle runs show", "run", run, "error", err)
			continue
		}
		s.files.removeMark(run, m.ID)
	}
	return nil
}

// work renews the jobs of the service and takes others, until ctx ends.
func (w *worker) work(ctx context.Context) {
	renew := time.NewTicker(renewEvery)
	defer renew.Stop()
	take := time.NewTicker(takeEvery)
	defer take.Stop()
	w.renew(ctx)
	for {
		w.take(ctx)
		select {
		case <-ctx.Done():
			return
		case <-renew.C:
			w.renew(ctx)
		case <-w.progress:
			w.renew(ctx)
		case <-take.C:
		case <-w.wake:
		}
	}
}

// requestTake lets the worker look for jobs now.
func (w *worker) requestTake() {
	if w == nil {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// renew extends the jobs of the service. If it has runs in its queue and others have places, it lets these have them. A
// service that takes no runs of others is not recorded as long as it drives nothing.
func (w *worker) renew(ctx context.Context) {
	w.mu.Lock()
	self := w.self
	var list []journal.Renewal
	for _, h := range w.holds {
		list = append(list, h.Renewal())
	}
	w.mu.Unlock()
	if len(list) == 0 && !w.service.options.Recover {
		return
	}
	begun := time.Now().Round(0) // by the clock on the wall: a machine that has slept has not renewed
	err := w.queue.RenewJobs(ctx, self, list, jobTTL)
	w.noteStore(ctx, err)
	if err == nil {
		w.renewed = begun
		w.shareWork(ctx)
	}
}

// shareWork looks at the other workers: what one has left that has ended is due at once, and runs of the queue of this
// service are for those that have places.
func (w *worker) shareWork(ctx context.Context) {
	s := w.service
	list, err := w.queue.ListWorkers(ctx)
	if err != nil {
		return
	}
	free := 0
	for i := range list {
		other := &list[i]
		switch {
		case other.ID == w.self.ID:
		case other.State() == journal.WorkerEnded: // after a kill and a new start on this machine
			if err := w.queue.RemoveWorker(ctx, other.ID); err != nil {
				s.log.Warn("the runs of a worker that has ended are due later", "worker", other.ID, "error", err)
			}
		case other.State() == journal.WorkerWorks:
			free += max(0, other.Places-other.Driving)
		}
	}
	for range free {
		run, ok := s.dequeueLast()
		if !ok {
			return
		}
		w.giveBack(run, journal.Return{})
	}
}

// take takes jobs for the places that are free. It takes none as long as jobs of this service may be due that it has
// not been able to renew.
func (w *worker) take(ctx context.Context) {
	s := w.service
	if !s.options.Recover || s.IsDraining() || time.Since(w.renewed) > jobTTL-renewEvery/2 {
		return
	}
	free := s.countFree()
	if free <= 0 {
		return
	}
	w.mu.Lock()
	self := w.self
	w.mu.Unlock()
	list, err := w.queue.TakeJobs(ctx, self, free, jobTTL)
	w.noteStore(ctx, err)
	for i := range list {
		job := &list[i]
		s.meter.Queue.AddTime(job.Waited)
		if job.Attempts > maxAttempts {
			w.giveUp(job)
			continue
		}
		if h := w.heldOf(job.Run); h != nil && s.isActive(job.Run) { // it was renewed too late, and is driven here
			if err := w.queue.PutJob(ctx, h.Job, jobTTL); err != nil {
				s.log.Warn("the job of a run is not written again: others find that it is driven", "run", job.Run, "error", err)
			}
			continue
		}
		job.Format = max(job.Format, runs.Format)
		w.mu.Lock()
		w.holds[job.Run] = &journal.Hold{Job: *job, TTL: jobTTL}
		w.mu.Unlock()
		s.log.Info("the server continues a run", "run", job.Run, "attempt", job.Attempts)
		s.enqueueRun(job.Run)
	}
}

// giveUp lets no worker take a job any more.
func (w *worker) giveUp(job *journal.DriveJob) {
	s := w.service
	s.log.Error("a run is given up: its drives fail; to try again: raddle resume "+job.Run, "run", job.Run, "attempts", job.Attempts-1, "reasons", job.DescribeReasons())
	r := journal.Return{GiveUp: true}
	if err := w.queue.ReturnJob(context.Background(), job.Thread, job.Token, r); err != nil {
		s.log.Warn("a run could not be given up: the next worker tries it", "run", job.Run, "error", err)
	}
	s.feeds.noteStopped(job.Run)
}

// hold returns what the service holds of a run that it is about to drive, and makes it if it holds nothing. It is nil
// without a queue.
func (w *worker) hold(run, thread string) *journal.Hold {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.holds[run]
	if h == nil {
		h = &journal.Hold{TTL: jobTTL, Job: journal.DriveJob{
			Thread:   thread,
			Run:      run,
			Token:    rand.Text(),
			Worker:   w.self.ID,
			Format:   runs.Format,
			Attempts: 1,
		}}
		w.holds[run] = h
	}
	h.SetEnd(journal.RemoveAtEnd)
	switch {
	case w.service.options.NoWorker:
		h.SetEnd(journal.ReturnAtEnd)
	case w.self.Draining:
		h.SetEnd(journal.ReturnIfStopped)
	}
	return h
}

// renewHold is hold for someone who continues a run: what was tried before does not count any more.
func (w *worker) renewHold(run, thread string) *journal.Hold {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	delete(w.holds, run)
	w.mu.Unlock()
	return w.hold(run, thread)
}

// heldOf returns what the service holds of a run; nil if it is nothing.
func (w *worker) heldOf(run string) *journal.Hold {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holds[run]
}

// stillWants reports whether the job that the service holds of a run is still there: someone who has continued the run
// elsewhere and stopped it has removed it.
func (w *worker) stillWants(ctx context.Context, run, thread string) (bool, error) {
	h := w.heldOf(run)
	if h == nil {
		return false, nil
	}
	job, ok, err := w.readJob(ctx, thread)
	if err != nil {
		return false, err
	}
	if !ok || job.Token != h.Job.Token {
		w.release(run)
		return false, nil
	}
	return true, nil
}

// noteProgress says that a drive has finished a step: what was tried before does not count any more, and the store
// knows it at once if it was tried.
func (w *worker) noteProgress(h *journal.Hold) {
	if w == nil || h == nil || !h.NoteProgress() {
		return
	}
	select {
	case w.progress <- struct{}{}:
	default:
	}
}

// finish removes the job of a run that no one is to continue.
func (w *worker) finish(run string) {
	h := w.release(run)
	if h == nil {
		return
	}
	if err := w.queue.FinishJob(context.Background(), h.Job.Thread, h.Job.Token); err != nil {
		w.service.log.Warn("the job of a run remains: the next worker removes it", "run", run, "error", err)
	}
}

// giveBack lets other workers have the job of a run. If the store does not answer, the job is due when it has not been
// renewed.
func (w *worker) giveBack(run string, r journal.Return) {
	h := w.release(run)
	if h == nil {
		return
	}
	if err := w.queue.ReturnJob(context.Background(), h.Job.Thread, h.Job.Token, r); err != nil {
		w.service.log.Warn("the job of a run is not returned", "run", run, "error", err)
	}
}

// release forgets what the service holds of a run, and returns it; nil if it is nothing.
func (w *worker) release(run string) *journal.Hold {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.holds[run]
	delete(w.holds, run)
	return h
}

// fail says why a run could not be continued: it is tried again later, more and more rarely, and in the end not at all.
// What the store or another process is the reason for does not count.
func (w *worker) fail(run string, err error) {
	if w == nil {
		return
	}
	h := w.heldOf(run)
	switch {
	case h == nil:
	case is[*runs.EndedError](err):
		w.finish(run)
	case w.service.IsDraining(), errors.Is(err, context.Canceled): // the drive did not fail: it was stopped
		w.giveBack(run, journal.Return{})
	case is[*runs.BusyError](err) || is[*graph.BusyError](err):
		w.tryLater(run, h, journal.Return{Delay: busyDelay})
	case failure.IsUnavailable(err) || journal.IsUnavailable(err):
		w.tryLater(run, h, journal.Return{Delay: awayDelay})
	case h.CountAttempts() >= maxAttempts:
		w.service.log.Error("a run is given up: its drives fail; to try again: raddle resume "+run, "run", run, "attempts", h.CountAttempts(), "error", err)
		w.giveBack(run, journal.Return{Reason: err.Error(), GiveUp: true})
	default:
		w.service.log.Warn("a run is not continued now", "run", run, "attempt", h.CountAttempts(), "error", err)
		w.tryLater(run, h, journal.Return{Reason: err.Error(), Delay: min(lookInterval<<max(0, h.CountAttempts()-1), maxBackoff)})
	}
}

// tryLater lets the job of a run wait for its next attempt. A service that takes no runs of others tries its own again
// itself, as long as it lives.
func (w *worker) tryLater(run string, h *journal.Hold, r journal.Return) {
	if w.service.options.Recover {
		w.giveBack(run, r)
		return
	}
	job := h.Job
	if r.Reason != "" {
		job.Attempts = h.CountAttempts() + 1
	}
	again := &journal.Hold{Job: job, TTL: h.TTL}
	w.mu.Lock()
	w.holds[run] = again
	w.mu.Unlock()
	time.AfterFunc(r.Delay, func() {
		if w.heldOf(run) == again && !w.service.IsDraining() {
			w.service.enqueueRun(run)
		}
	})
}

// settle is the end of a drive. What its last record has done to the job is done; this is for drives that ended without
// one.
func (w *worker) settle(d *drive, h *journal.Hold, status graph.Status, err error) {
	if w == nil {
		return
	}
	w.mu.Lock()
	mine := w.holds[d.run] == h
	w.mu.Unlock()
	switch {
	case !mine: // the run was taken up again meanwhile
	case err != nil:
		w.fail(d.run, err)
	case status == graph.Paused && w.service.IsDraining():
		w.giveBack(d.run, journal.Return{})
	default:
		w.finish(d.run)
	}
}

// drain lets the end of each drive that is stopped now return its job, because the service ends. What a person has
// stopped stays so.
func (w *worker) drain() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.self.Draining = true
	for run, h := range w.holds {
		if d := w.service.findDrive(run); d == nil || !d.wished.Load() {
			h.SetEnd(journal.ReturnIfStopped)
		}
	}
}

// close returns what the service still holds, and ends the worker.
func (w *worker) close(ctx context.Context) {
	if w == nil {
		return
	}
	w.stop()
	w.stopped.Wait()
	w.mu.Lock()
	left := w.holds
	w.holds = map[string]*journal.Hold{}
	w.mu.Unlock()
	for run, h := range left {
		if err := w.queue.ReturnJob(ctx, h.Job.Thread, h.Job.Token, journal.Return{}); err != nil {
			w.service.log.Warn("the job of a run is not returned: it is due in some seconds", "run", run, "error", err)
		}
	}
	if err := w.queue.RemoveWorker(ctx, w.self.ID); err != nil {
		w.service.log.Warn("the worker is listed for some time", "error", err)
	}
}

// noteStore logs when the store goes away and when it is back.
func (w *worker) noteStore(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil && !w.away:
		w.service.log.Warn("the store does not answer: its runs are continued when it does", "error", err)
	case err == nil && w.away:
		w.service.log.Info("the store answers again")
	}
	w.away = err != nil
}

// readJob returns the job of a thread; ok is false if there is none.
func (w *worker) readJob(ctx context.Context, thread string) (job journal.DriveJob, ok bool, err error) {
	if w == nil {
		return job, false, nil
	}
	job, ok, err = w.queue.ReadJob(ctx, thread)
	if err != nil {
		err = &failure.Error{Kind: failure.Unavailable, Err: err}
	}
	return job, ok, err
}
