package runs

import (
	"context"
	"fmt"
	"strings"

	"raddle.dev/graph/journal"
)

// A givenUpSet is the runs of a store that no server tries again, read when the first run is looked up. The zero givenUpSet is not read yet.
type givenUpSet struct {
	read    bool
	reasons map[string]string // by thread
}

// QueueOf returns the queue of a store: which of its threads are to be driven. It is nil if the store has none.
func QueueOf(st *Store) journal.Queue {
	q, _ := st.inside().(journal.Queue)
	return q
}

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
