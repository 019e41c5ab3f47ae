package runs

import (
	"context"
	"crypto/rand"
	"fmt"
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
		if w.State() != journal.WorkerWorks {
			continue
		}
		h := &journal.Hold{TTL: holdTTL, Job: journal.DriveJob{
			Thread:   thread,
			Run:      run,
			Token:    rand.Text(),
			Format:   Format,
			Attempts: 1,
		}}
		h.SetEnd(journal.ReturnAtEnd)
		return journal.WithHold(ctx, h), true
	}
	return ctx, false
}

// holdTTL is in what time a server takes a run whose command was killed in the middle of its record.
const holdTTL = 15 * time.Second

// Format is the newest format of the journals of runs that this program knows. A server with a lower one leaves such
// runs to others, so that two neighbouring versions may share a store: raise it when a drive writes what an older
// program cannot continue.
const Format = 1

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
			g.reasons[job.Thread] = job.DescribeReasons()
		}
	}
	if reasons, found := g.reasons[thread]; found {
		i.Status = GivenUp
		i.Reason = reasons
	}
	return nil
}
