package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/entries"
	"raddle.dev/internal/storage/runs"
)

// Options say how a service works. The zero value works.
type Options struct {
	MaxRuns    int  // how many runs are driven at once; 0: 64
	AllowPaths bool // an agent may also be named by its path
	// Recover continues also runs that another service of the same state directory was driving when it was stopped or
	// killed.
	Recover   bool
	Network   bool         // requests come from a network: each needs a caller with the scope for what it does
	Log       *slog.Logger // developer log; nil: none
	NoWorker  bool         // drive nothing: record starts and answers, for the workers of the same store
	RemoveOld bool         // remove now and every hour the runs that are older than the configuration keeps them
}

const defaultMaxRuns = 64

// Service starts, drives, answers and reads runs. It is safe for concurrent use.
type Service struct {
	process *app.Process
	options Options
	log     *slog.Logger
	files   *stateFiles
	totals  Totals
	feeds   feedSet

	stopUpkeep   func() // ends the removal of old runs, and what completes the index of the store
	stopRecovery func() // ends the looks for runs that no process drives
	recovery     recovery
	worker       *worker // nil: the store has no queue
	triggers     *triggerWork
	health       storeHealth

	shared  entries.Store // what all servers of the store know
	keys    entries.Table[keyEntry]
	keyed   keyedLock // one start with an idempotency key at a time
	answers answering

	mu       sync.Mutex // guards the fields below
	drives   map[string]*drive
	meter    *runs.Meter
	waiting  []string       // ids of queued runs, in order
	busy     int            // drives that use a place
	finished int            // drives that have ended
	draining bool           // no new drive starts
	ended    sync.WaitGroup // drives, starts with a key, and what works for the service itself
}

// New returns a service that drives the runs of a process. The caller must call [Service.Close].
func New(p *app.Process, o Options) (*Service, error) {
	st, err := p.Runs.OpenStore()
	if err != nil {
		return nil, err
	}
	if !st.Location.KeepsRuns() {
		return nil, failure.NewUsage("choose a store that saves runs: RADDLE_STORE=sqlite:PATH", "a server needs a store that saves runs; %s saves nothing", p.Runs.StoreURL())
	}
	o.MaxRuns = cmp.Or(o.MaxRuns, defaultMaxRuns)
	if o.NoWorker && runs.QueueOf(st) == nil {
		return nil, failure.NewUsage("use a store in SQLite or PostgreSQL, or let the server drive its runs", "%s has no queue from which other servers would take runs", p.Runs.StoreURL())
	}
	if o.NoWorker {
		o.MaxRuns = 0
	}
	s := &Service{process: p, options: o, log: o.Log, drives: map[string]*drive{}, feeds: feedSet{feeds: map[string]*feed{}}, stopUpkeep: func() {}}
	s.answers.service = s
	if !o.AllowPaths {
		p.Models.ConfineTranscripts()
	}
	s.log = cmp.Or(s.log, slog.New(slog.DiscardHandler))
	if s.files, err = openStateFiles(filepath.Join(p.Dirs.State, "serve"), p.Runs.StoreURL()); err != nil {
		return nil, err
	}
	if s.shared, err = p.Runs.OpenShared(); err != nil {
		return nil, err
	}
	s.keys = entries.NewTable[keyEntry](s.shared, "keys")
	if s.meter, err = p.Runs.StartMeter(); err != nil {
		return nil, err
	}
	s.worker = openWorker(s, runs.QueueOf(st))
	if err := s.recovery.start(s); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stopUpkeep = cancel
	s.ended.Go(func() { completeIndex(ctx, s) })
	if keep := p.Config.Retention; o.RemoveOld && (keep.Done > 0 || keep.Failed > 0) {
		s.ended.Go(func() { keepRetention(ctx, s) })
	}
	s.startTriggers()
	return s, nil
}

// Process returns the process whose runs the service drives.
func (s *Service) Process() *app.Process { return s.process }

// SharedStore returns the store of what all servers of the store of runs know, whichever of them a client asks.
func (s *Service) SharedStore() entries.Store { return s.shared }

// Totals returns what the service has counted since it was started.
func (s *Service) Totals() *Totals { return &s.totals }

// Meter returns how long what this process records has taken since the service was made.
func (s *Service) Meter() *runs.Meter { return s.meter }

// CountDrives returns how many runs are driven, and how many wait for a place.
func (s *Service) CountDrives() (driven, queued int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy, len(s.waiting)
}

// IsDraining reports whether Close was called: no run is started any more.
func (s *Service) IsDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// errDraining reports that the service ends.
var errDraining = &failure.Error{Kind: failure.Stale, Msg: "the server is shutting down", Next: "try again when it has been started again"}

// cancelWait is how long Close waits for drives that it has cancelled.
const cancelWait = 10 * time.Second

// Close pauses every drive after its current step, and cancels those that still work when ctx ends. The next service
// resumes them. Subscriptions end.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	active := slices.Collect(maps.Values(s.drives))
	s.mu.Unlock()
	s.stopUpkeep()
	s.stopRecovery()
	s.triggers.endWork()
	s.worker.drain()
	defer s.worker.close(context.WithoutCancel(ctx))
	for _, d := range active {
		if err := s.files.notePending(d.run); err != nil {
			s.log.Warn("another service of the same files may not continue a run", "run", d.run, "error", err)
		}
		d.requestPause()
	}
	done := make(chan struct{})
	go func() {
		s.ended.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		for _, d := range active {
			d.cancel()
		}
		select {
		case <-done:
		case <-time.After(cancelWait):
			return errors.New("some runs could not be stopped; the next server resumes them")
		}
	}
	s.feeds.end(errDraining)
	return nil
}

// isActive reports whether this service drives a run or has it in its queue.
func (s *Service) isActive(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drives[run] != nil || s.isQueued(run)
}

// isQueued reports whether a run waits for a place. The caller must hold mu.
func (s *Service) isQueued(run string) bool {
	return slices.Contains(s.waiting, run)
}

// findDrive returns the drive of a run, or nil.
func (s *Service) findDrive(run string) *drive {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drives[run]
}

// findRun reads a run by its id, a unique prefix of it, last or last~N.
func (s *Service) findRun(ctx context.Context, id string) (*runs.Detail, error) {
	if thread := s.threadOf(id); thread != "" {
		if d, err := s.process.Runs.ReadRunDetail(ctx, thread); err == nil && d.Run == id {
			return d, nil
		}
	}
	return s.process.Runs.ReadRunDetail(ctx, id)
}

// readUsage is findRun for what models have replied.
func (s *Service) readUsage(ctx context.Context, id string) (*runs.Usage, error) {
	if thread := s.threadOf(id); thread != "" {
		if v, err := s.process.Runs.ReadUsage(ctx, thread); err == nil && v.Run == id {
			return v, nil
		}
	}
	return s.process.Runs.ReadUsage(ctx, id)
}

// threadOf returns the thread of a turn of a session that this service drives: as long as it does, that is the newest
// run there, and it need not be looked for in all sessions. It is "" for every other run.
func (s *Service) threadOf(run string) string {
	if d := s.findDrive(run); d != nil {
		if work := d.work.Load(); work != nil && work.Thread != run {
			return work.Thread
		}
	}
	return ""
}

// findRunFor is findRun for a caller who needs a scope: the error is a [*ScopeError] if the caller of ctx does not have
// it.
func findRunFor(ctx context.Context, s *Service, scope Scope, id string) (*runs.Detail, error) {
	if err := s.RequireScope(ctx, scope); err != nil {
		return nil, err
	}
	return s.findRun(ctx, id)
}
