package runs

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"raddle.dev/graph/journal"
)

// A givenUpSet is the runs of a store that no server tries again, read when the first run is looked up. The zero
// givenUpSet is not read yet.
type givenUpSet struct {
	read    bool
	reasons map[string]string // by thread
}

// QueueOf returns the queue of a store: which of its threads are to be driven. It is nil if the store has none.
func QueueOf(st *Store) journal.Queue {
	q, _ := st.inside().(journal.Queue)
	return q
}

// IsQueued reports whether a server of the store drives the run of a view or is to continue it: its thread has a job that
// is not given up. Between two servers a run has a job, and its journal says that it is paused, or crashed.
func (v *View) IsQueued(ctx context.Context) (bool, error) {
	q := QueueOf(v.store)
	if q == nil {
		return false, nil
	}
	job, ok, err := q.ReadJob(ctx, v.place.thread)
	if err != nil {
		return false, explainStoreError(ctx, fmt.Errorf("whether a server continues run %s: %w", v.Run, err))
	}
	return ok && !job.GivenUp && job.Run == v.Run, nil
}

// WithServers returns a context in which what a command records of a run lets a server of the store continue it, if
// there is one that drives runs: the record and that come together. ok is false if there is none; then the run waits
// for someone who resumes it.
func WithServers(ctx context.Context, a *Archive, thread, run string) (with context.Context, ok bool) {
	st, err := a.OpenStore()
	if err != nil {
		return ctx, false
	}
	q := QueueOf(st)
	if q == nil {
		return ctx, false
	}
	workers, err := q.ListWorkers(ctx)
	if err != nil {
		return ctx, false
	}
	for _, w := range workers {
		if w.Places == 0 || w.Draining || time.Since(w.Seen) > workerSeen {
			continue
		}
		h := &journal.Hold{TTL: holdTTL, Job: journal.DriveJob{
			Thread: thread,
			Run:    run,
			Token:  rand.Text(),
			Format: w.Format,
		}}
		h.SetEnd(journal.ReturnAtEnd)
		return journal.WithHold(ctx, h), true
	}
	return ctx, false
}

// How long ago a server must have been seen that counts as one that works, and when a server takes a run whose command
// was killed in the middle of its record.
const (
	workerSeen = time.Minute
	holdTTL    = 15 * time.Second
)

// mark gives a run that is given up this status, and why its drives have failed.
func (g *givenUpSet) mark(ctx context.Context, st *Store, thread string, i *Info) error {
	q := QueueOf(st)
	if q == nil {
		return nil
	}
	if !g.read {
		list, err := q.ListJobs(ctx, true)
		if err != nil {
			return explainStoreError(ctx, fmt.Errorf("which runs are given up: %w", err))
		}
		g.read = true
		g.reasons = map[string]string{}
		for _, job := range list {
			g.reasons[job.Thread] = strings.TrimSuffix(job.Reasons, "\n")
		}
	}
	if reasons, found := g.reasons[thread]; found {
		i.Status = GivenUp
		i.Reason = reasons
	}
	return nil
}
