package runs

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// QueueOf returns the queue of a store: which of its threads are to be driven. It is nil if the store has none.
func QueueOf(st *Store) journal.Queue {
	q, _ := st.inside().(journal.Queue)
	return q
}

// WithServers returns a context in which what a command records of a run lets a server of the store continue it, if
// there is one that drives runs: the record and that come together. ok is false if there is none; then the run waits
// for someone who resumes it.
func WithServers(ctx context.Context, a *Archive, thread, run string) (with context.Context, ok bool) {
	if findServers(ctx, a) == nil {
		return ctx, false
	}
	h := &journal.Hold{TTL: holdTTL, Job: newServerJob(thread, run)}
	h.Job.Attempts = 1
	h.SetEnd(journal.ReturnAtEnd)
	return journal.WithHold(ctx, h), true
}

// WakeByServers lets a server of the store continue a run that a command has left, and that waits for a time, when the
// time has come. ok is false if no server drives runs; then the run waits for someone who resumes it.
func WakeByServers(ctx context.Context, a *Archive, thread, run string, due time.Time) (ok bool, err error) {
	q := findServers(ctx, a)
	if q == nil {
		return false, nil
	}
	err = q.PutJob(ctx, newServerJob(thread, run), max(0, time.Until(due)))
	return err == nil, explainStoreError(ctx, err)
}

// newServerJob returns the job of a run for any server.
func newServerJob(thread, run string) journal.DriveJob {
	return journal.DriveJob{
		Thread: thread,
		Run:    run,
		Token:  rand.Text(),
		Format: Format,
	}
}

// findServers returns the queue of the store of an archive if there is a server that drives runs of it, and nil
// otherwise.
func findServers(ctx context.Context, a *Archive) journal.Queue {
	st, err := a.OpenStore()
	if err != nil {
		return nil
	}
	q := QueueOf(st)
	if q == nil {
		return nil
	}
	workers, err := q.ListWorkers(ctx)
	isWorking := func(w journal.Worker) bool { return w.State() == journal.WorkerWorks }
	if err != nil || !slices.ContainsFunc(workers, isWorking) {
		return nil
	}
	return q
}

// holdTTL is in what time a server takes a run whose command was killed in the middle of its record.
const holdTTL = 15 * time.Second

// Format is the newest format of the journals of runs that this program knows. A server with a lower one leaves such
// runs to others, so that two neighbouring versions may share a store: raise it when a drive writes what an older
// program cannot continue.
const Format = 2 // since 2, threads may wait for a time

// A jobSet is what servers are to do about runs of a store, of which each is looked up once.
type jobSet struct {
	store *Store
	jobs  map[string]*journal.DriveJob // by thread; nil: it has none
}

// applyJob gives a run that nothing drives the status that its job says.
func (js *jobSet) applyJob(ctx context.Context, thread string, i *Info) error {
	q := QueueOf(js.store)
	if q == nil || i.Status != graph.Waiting.String() && i.Status != graph.Canceled.String() && !NeedsResume(i.Status) {
		return nil
	}
	job, err := js.findJob(ctx, q, thread)
	switch {
	case err != nil:
		return explainStoreError(ctx, fmt.Errorf("whether a server continues the run: %w", err))
	case job == nil, waitsUntil(job, i.Due):
	case job.GivenUp:
		i.Status = GivenUp
		i.Reason = job.DescribeReasons()
	default:
		i.Status = Queued
	}
	return nil
}

// waitsUntil reports whether the job of a run is not due because the run waits for a time; zero: it does not.
func waitsUntil(job *journal.DriveJob, due time.Time) bool {
	return !due.IsZero() && job.Worker == "" && !job.GivenUp && job.Due.After(time.Now())
}

// findJob returns the job of a thread; nil: it has none.
func (js *jobSet) findJob(ctx context.Context, q journal.Queue, thread string) (*journal.DriveJob, error) {
	if job, known := js.jobs[thread]; known {
		return job, nil
	}
	job, ok, err := q.ReadJob(ctx, thread)
	if err != nil || !ok {
		return nil, err
	}
	return &job, nil
}

// readJobs looks up the jobs of threads that are asked for next, all at once.
func (js *jobSet) readJobs(ctx context.Context, lines []journal.Line) error {
	q := QueueOf(js.store)
	if q == nil {
		return nil
	}
	var threads []string
	if js.jobs == nil {
		js.jobs = map[string]*journal.DriveJob{}
	}
	for i := range lines {
		if l := &lines[i]; isRunThread(l.Thread) && l.Status != graph.Done.String() {
			if _, known := js.jobs[l.Thread]; !known {
				threads = append(threads, l.Thread)
				js.jobs[l.Thread] = nil
			}
		}
	}
	if len(threads) == 0 {
		return nil
	}
	list, err := q.ReadJobs(ctx, threads)
	for i := range list {
		js.noteJob(&list[i])
	}
	return explainStoreError(ctx, err)
}

// noteJob notes the job of a thread.
func (js *jobSet) noteJob(job *journal.DriveJob) {
	if js.jobs == nil {
		js.jobs = map[string]*journal.DriveJob{}
	}
	js.jobs[job.Thread] = job
}

// TriggersOf returns the triggers of a store: what starts runs without a person. It is nil if the store keeps none.
func TriggersOf(st *Store) journal.Triggers {
	t, _ := st.inside().(journal.Triggers)
	return t
}
