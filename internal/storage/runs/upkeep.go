package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/agentbundle"
	"raddle.dev/internal/storage/foreign"
)

// lockIdleRun takes the lock of a run that is to be changed, not driven.
func (s *Store) lockIdleRun(run string) (*Lock, error) {
	lock, err := s.lockUndriven(run)
	if driven, ok := errors.AsType[*BusyError](err); ok {
		return nil, &failure.Error{Kind: failure.Stale, Err: driven, Next: "stop it first"}
	}
	return lock, err
}

// CheckNoLease returns a [*BusyError] if a drive holds the lease of a run.
func (s *Store) CheckNoLease(run string) error {
	st, ok := s.Store.(journal.Leaser)
	if !ok {
		return nil
	}
	l, err := st.ReadLease(context.Background(), run)
	if err != nil {
		return err
	}
	if l.IsLive() {
		return &BusyError{Run: run, Lease: l}
	}
	return nil
}

// IsDriven reports whether a process drives a run, by its lock and its lease. It reads no journal, except to find the
// session of a run.
func IsDriven(ctx context.Context, a *Archive, id string) (bool, error) {
	st, thread, err := a.FindThread(ctx, id)
	if err != nil {
		return false, err
	}
	return st.isDriven(thread)
}

// IsThreadDriven is [IsDriven] for a thread that may not exist yet.
func IsThreadDriven(a *Archive, thread string) (bool, error) {
	st, err := a.OpenStore()
	if err != nil {
		return false, err
	}
	return st.isDriven(thread)
}

func (s *Store) isDriven(thread string) (bool, error) {
	if _, yes := findDriver(s.Location.LockDir(), thread); yes {
		return true, nil
	}
	err := s.CheckNoLease(thread)
	if errors.As(err, new(*BusyError)) {
		return true, nil
	}
	return false, err
}

// stopWait limits how long a process may take to save its run after a request to stop.
const stopWait = 15 * time.Second

// stopDriver asks the process that drives a run to stop, and waits until nothing drives it. A process of another host
// is not asked.
func (s *Store) stopDriver(run string) (*Lock, error) {
	lock, err := s.lockUndriven(run)
	busy, ok := errors.AsType[*BusyError](err)
	if !ok {
		return lock, err
	}
	pid := busy.PID
	if found, local := busy.Lease.FindProcess(); local {
		pid = found
	}
	refused := &failure.Error{Kind: failure.Stale, Err: busy, Next: "stop it first"}
	process, err := os.FindProcess(pid)
	if pid == 0 || pid == os.Getpid() || err != nil || process.Signal(syscall.SIGTERM) != nil {
		return nil, refused
	}
	for end := time.Now().Add(stopWait); time.Now().Before(end); time.Sleep(lockPause) {
		if lock, err = s.lockUndriven(run); !errors.As(err, &busy) {
			return lock, err
		}
	}
	return nil, refused
}

// lockUndriven takes the lock of a run. The error is a [*BusyError] if a process has the lock or the lease.
func (s *Store) lockUndriven(run string) (*Lock, error) {
	lock, err := TakeLock(s.Location.LockDir(), run)
	if err != nil {
		return nil, err
	}
	if err := s.CheckNoLease(run); err != nil {
		lock.Release()
		return nil, err
	}
	return lock, nil
}

// EndedError reports that a run cannot be continued because it has ended. It carries
// the result, which the run's process may not have printed before it died.
type EndedError struct {
	ID     string
	Status graph.Status
	Output string
}

func (e *EndedError) Error() string { return fmt.Sprintf("run %s is over (%s)", e.ID, e.Status) }

// CancelRun ends a run permanently: it stops the process that drives the run, ends what a killed
// process left behind, and the run cannot be resumed any more. Its journal stays. It returns the place of the record,
// or an [*EndedError] if the run has ended.
func (a *Archive) CancelRun(ctx context.Context, id string) (Point, error) {
	return EndRun(ctx, a, id, CancelledByHand)
}

// CancelledByHand is the reason of a run that a person or a program has cancelled.
const CancelledByHand = "cancelled by hand"

// StopDriver stops the process that drives a run. The run stays as it is.
func StopDriver(ctx context.Context, a *Archive, id string) error {
	st, id, err := a.FindThread(ctx, id)
	if err != nil {
		return err
	}
	lock, err := st.stopDriver(id)
	if err == nil {
		lock.Release()
	}
	return err
}

// TimePassed is the reason of EndRun for a run that has worked as long as the node that waits for it allows.
const TimePassed = "its time has passed"

// EndRun is CancelRun with a reason.
func EndRun(ctx context.Context, a *Archive, id, reason string) (Point, error) {
	st, id, err := a.FindThread(ctx, id)
	if err != nil {
		return Point{}, err
	}
	at := Point{Run: id}
	lock, err := st.stopDriver(id)
	if err != nil {
		return at, err
	}
	defer lock.Release()
	snap, err := history.Inspect(ctx, st.Store, id, 0)
	if err != nil {
		return at, err
	}
	if snap.Status.Final() {
		return at, &failure.Error{Kind: failure.Stale, Err: &EndedError{ID: id, Status: snap.Status}}
	}
	inDoubt, err := st.ListInDoubt(ctx, snap)
	if err != nil {
		return at, err
	}
	if errs := flow.EndSurvivors(inDoubt); len(errs) > 0 {
		return at, failure.NewStale("end them by hand, then cancel it again", "processes that an earlier drive of run %s started cannot be ended: %v", id, errors.Join(errs...))
	}
	at.At, err = history.Abandon(ctx, st, id, reason)
	if err == nil && at.At == 0 { // it ended meanwhile
		if snap, err = history.Inspect(ctx, st, id, 0); err == nil {
			err = &failure.Error{Kind: failure.Stale, Err: &EndedError{ID: id, Status: snap.Status}}
		}
	}
	return at, err
}

// PruneResult describes what is left of a run.
type PruneResult struct {
	Run     string `json:"run"`
	First   int64  `json:"first"`   // number of the oldest record that is left
	Removed int64  `json:"removed"` // records
}

// PruneRun removes records from the beginning of the journal of a run that no process drives.
// The run's status, its result and what a resume needs stay.
func (a *Archive) PruneRun(ctx context.Context, id string, keep history.Keep) (PruneResult, error) {
	st, id, err := a.FindThread(ctx, id)
	if err != nil {
		return PruneResult{}, err
	}
	lock, err := st.lockIdleRun(id)
	if err != nil {
		return PruneResult{}, err
	}
	defer lock.Release()
	var was int64
	for t, err := range st.Threads(ctx, id) {
		if err != nil {
			return PruneResult{}, err
		}
		if t.Name == id {
			was = t.First.Seq
		}
	}
	first, err := history.Prune(ctx, st, id, keep)
	return PruneResult{Run: id, First: first, Removed: first - was}, err
}

// RemoveRuns deletes the journals of runs permanently, in batches, and returns which are removed.
// ids are complete. It stops with an error at a run that a process drives.
func (a *Archive) RemoveRuns(ctx context.Context, ids []string, gone func(id string)) error {
	if len(ids) == 0 {
		return nil
	}
	st, err := a.openExistingStore()
	if err != nil {
		return err
	}
	many, ok := st.inside().(interface {
		Delete(ctx context.Context, threads ...string) error
	})
	if !ok {
		for _, id := range ids {
			if id, err = a.RemoveRun(ctx, id); err != nil {
				return err
			}
			gone(id)
		}
		return nil
	}
	for part := range slices.Chunk(ids, removedAtOnce) {
		if err := st.removeAll(ctx, part, many.Delete); err != nil {
			return err
		}
		if err := removeMedia(a.dirs, part...); err != nil {
			return err
		}
		for _, id := range part {
			gone(id)
		}
	}
	return nil
}

// removedAtOnce limits how many locks are held, and how long others wait for the file.
const removedAtOnce = 100

func (s *Store) removeAll(ctx context.Context, ids []string, remove func(context.Context, ...string) error) error {
	for _, id := range ids {
		lock, err := s.lockIdleRun(id)
		if err != nil {
			return err
		}
		defer lock.Release()
	}
	if err := remove(ctx, ids...); err != nil {
		return err
	}
	for _, id := range ids {
		if err := foreign.Remove(ctx, s, id); err != nil {
			return err
		}
	}
	return nil
}

// CompactStore returns the space of removed runs to the file system. It returns the size of
// the store before and after, in bytes; 0 if the store is not a file.
func (a *Archive) CompactStore(ctx context.Context) (before, after int64, err error) {
	st, err := a.StoreToRead()
	if st == nil || err != nil {
		return 0, 0, err
	}
	c, ok := st.inside().(interface {
		Compact(ctx context.Context) (before, after int64, err error)
	})
	if !ok {
		return 0, 0, nil
	}
	return c.Compact(ctx)
}

// ListEndedRuns returns the runs that ended or were cancelled at least done ago, and those that failed, crashed or
// were given up at least failed ago; 0 leaves such runs out. It leaves out sessions, which may continue.
func (a *Archive) ListEndedRuns(ctx context.Context, done, failed time.Duration) ([]string, error) {
	var ids []string
	add := func(r RunRange, age time.Duration) error {
		if age <= 0 {
			return nil
		}
		for i, err := range a.EachRun(ctx, r) {
			if err != nil {
				return err
			}
			if i.Session == "" && i.Status != Running && time.Since(i.Updated) >= age {
				ids = append(ids, i.Run)
			}
		}
		return nil
	}
	err := add(RunRange{ended: true}, done)
	for _, status := range []string{graph.Failed.String(), Crashed, GivenUp} {
		if err == nil {
			err = add(RunRange{Status: status}, failed)
		}
	}
	return ids, err
}

// ListEnded returns the runs that have ended for good, newest first: those of sessions too.
func (a *Archive) ListEnded(ctx context.Context) (list []Info, err error) {
	for i, err := range a.EachRun(ctx, RunRange{ended: true}) {
		if err != nil {
			return nil, err
		}
		if i.Final {
			list = append(list, i)
		}
	}
	return list, nil
}

// RemoveUnusedBundles removes the bundles of agents that no run of an archive needs any more, and returns their number.
func RemoveUnusedBundles(ctx context.Context, a *Archive) (int, error) {
	st, err := a.StoreToRead()
	if st == nil || err != nil {
		return 0, err
	}
	return agentbundle.RemoveUnused(ctx, st, func(old map[string]bool) (map[string]bool, error) { return st.findNeededBundles(ctx, old) })
}

// findNeededBundles returns which of some bundles the runs of the store name. Runs that are over count: they can be
// forked. A damaged run may name any of them. It reads the first record of a run, and passes once over a session.
func (s *Store) findNeededBundles(ctx context.Context, of map[string]bool) (map[string]bool, error) {
	needed := map[string]bool{}
	for t, err := range s.Threads(ctx, "") {
		if err != nil || len(needed) == len(of) {
			return needed, err
		}
		if !isRunThread(t.Name) {
			continue
		}
		records := journal.Range{Limit: 1}
		if _, _, kept := SessionOf(t.Name); kept {
			records.Limit = 0
		}
		reading := history.NewReading(t.Name)
		for r, err := range s.Read(ctx, t.Name, records) {
			isFirst := reading.Head() == 0
			isStart := r.Kind == journal.KindStart || r.Kind == journal.KindFork
			if err == nil {
				_, _, err = reading.Add(r)
			}
			if IsDamage(err) {
				return of, nil
			}
			if err != nil {
				return needed, fmt.Errorf("bundles of agents are not removed: %w", err)
			}
			if !isFirst && !isStart {
				continue
			}
			if rec, err := DecodeRecord(reading.Meta()); err == nil && of[rec.Bundle] {
				needed[rec.Bundle] = true
			}
		}
		if reading.Head() == 0 { // its first record is lost, or it was removed meanwhile, which the next call sees
			return of, nil
		}
	}
	return needed, nil
}
