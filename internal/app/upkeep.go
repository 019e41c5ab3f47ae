package app

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
)

// hold takes the lock of a run that is to be changed, not driven.
func (j *journals) hold(run string) (*runLock, error) {
	lock, err := lockRun(j.locks(), run)
	if err == nil {
		if err = j.unleased(run); err != nil {
			lock.release()
		}
	}
	if driven, ok := errors.AsType[*DrivenError](err); ok {
		return nil, &Error{Kind: Stale, Err: driven, Next: "stop it first"}
	}
	return lock, err
}

// unleased returns a *DrivenError if a drive holds the lease of a run.
func (j *journals) unleased(run string) error {
	st, ok := j.Store.(graph.Leaser)
	if !ok {
		return nil
	}
	l, err := st.ReadLease(context.Background(), run)
	if err != nil {
		return err
	}
	if l.Live() {
		return &DrivenError{Run: run, Lease: l}
	}
	return nil
}

// stopWait limits how long a process may take to save its run after a request to stop.
const stopWait = 15 * time.Second

// stop asks the process that drives a run to stop, and waits for the lock.
func (j *journals) stop(run string) (*runLock, error) {
	lock, err := lockRun(j.locks(), run)
	var busy *DrivenError
	if err == nil {
		lock.release()
		return j.hold(run)
	}
	if !errors.As(err, &busy) {
		return lock, err
	}
	refused := &Error{Kind: Stale, Err: busy, Next: "stop it first"}
	process, err := os.FindProcess(busy.PID)
	if busy.PID == 0 || err != nil || process.Signal(syscall.SIGTERM) != nil {
		return nil, refused
	}
	for end := time.Now().Add(stopWait); time.Now().Before(end); {
		if lock, err = lockRun(j.locks(), run); !errors.As(err, &busy) {
			return lock, err
		}
	}
	return nil, refused
}

// Cancel ends a run permanently: it stops the process that drives the run, ends what a
// killed process left behind, and the run cannot be resumed any more. Its journal
// stays. A run that has ended is an [*OverError].
func (p *Process) Cancel(ctx context.Context, id string) (string, error) {
	st, id, err := p.lookUp(ctx, id)
	if err != nil {
		return "", err
	}
	lock, err := st.stop(id)
	if err != nil {
		return id, err
	}
	defer lock.release()
	snap, err := graph.Inspect(ctx, st.Store, id, 0)
	if err != nil {
		return id, err
	}
	if snap.Status.Final() {
		return id, &Error{Kind: Stale, Err: &OverError{ID: id, Status: snap.Status}}
	}
	if errs := flow.EndSurvivors(snap.InDoubt); len(errs) > 0 {
		return id, stale("end them by hand, then cancel it again", "processes that an earlier drive of run %s started cannot be ended: %v", id, errors.Join(errs...))
	}
	return id, graph.Abandon(ctx, st, id, "cancelled by hand")
}

// Export passes the records of a run to a function, oldest first, with what each one records.
func (p *Process) Export(ctx context.Context, id string, use func(graph.Entry, graph.Record) error) error {
	st, id, err := p.lookUp(ctx, id)
	if err != nil {
		return err
	}
	_, entries, err := p.History(ctx, id)
	if err != nil {
		return err
	}
	for r, err := range graph.Records(ctx, st, id, graph.Range{}) {
		if err != nil {
			return err
		}
		last := len(entries) - 1
		if last < 0 || entries[last].Seq != r.Seq {
			break // it was written or pruned in the meantime
		}
		if err := use(entries[last], r); err != nil {
			return err
		}
		entries = entries[:last]
	}
	return nil
}

// Pruned describes what is left of a run.
type Pruned struct {
	Run     string `json:"run"`
	First   int64  `json:"first"`   // number of the oldest record that is left
	Removed int64  `json:"removed"` // records
}

// Prune removes records from the beginning of the journal of a run that no process drives.
// The run's status, its result and what a resume needs stay.
func (p *Process) Prune(ctx context.Context, id string, keep graph.Keep) (Pruned, error) {
	st, id, err := p.lookUp(ctx, id)
	if err != nil {
		return Pruned{}, err
	}
	lock, err := st.hold(id)
	if err != nil {
		return Pruned{}, err
	}
	defer lock.release()
	var was int64
	for t, err := range st.Threads(ctx, id) {
		if err != nil {
			return Pruned{}, err
		}
		if t.Name == id {
			was = t.First.Seq
		}
	}
	first, err := graph.Prune(ctx, st, id, keep)
	return Pruned{Run: id, First: first, Removed: first - was}, err
}

// RemoveAll deletes the journals of runs permanently, in batches, and returns which are
// removed. ids are complete. A run that is being driven stops it with an error.
func (p *Process) RemoveAll(ctx context.Context, ids []string, gone func(id string)) error {
	if len(ids) == 0 {
		return nil
	}
	st, err := p.existing()
	if err != nil {
		return err
	}
	many, ok := st.Store.(interface {
		Delete(ctx context.Context, threads ...string) error
	})
	if !ok {
		for _, id := range ids {
			if id, err = p.Remove(ctx, id); err != nil {
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
		for _, id := range part {
			gone(id)
		}
	}
	return nil
}

// removedAtOnce limits how many locks are held, and how long others wait for the file.
const removedAtOnce = 100

func (j *journals) removeAll(ctx context.Context, ids []string, remove func(context.Context, ...string) error) error {
	for _, id := range ids {
		lock, err := j.hold(id)
		if err != nil {
			return err
		}
		defer lock.release()
	}
	return remove(ctx, ids...)
}

// Compact returns the space of removed runs to the file system. It returns the size of
// the store before and after, in bytes; 0 if the store is not a file.
func (p *Process) Compact(ctx context.Context) (before, after int64, err error) {
	st, err := p.existing()
	if errors.Is(err, errNoStore) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	c, ok := st.Store.(interface {
		Compact(ctx context.Context) (before, after int64, err error)
	})
	if !ok {
		return 0, 0, nil
	}
	return c.Compact(ctx)
}

// Over returns the runs that ended at least the given time ago. It leaves out sessions,
// which may continue.
func (p *Process) Over(ctx context.Context, age time.Duration) ([]string, error) {
	runs, err := p.Runs(ctx, "")
	var ids []string
	for _, r := range runs {
		if r.Final && r.Session == "" && time.Since(r.Updated) >= age {
			ids = append(ids, r.Run)
		}
	}
	return ids, err
}
