package app

import (
	"context"
	"errors"
	"time"

	"raddle.dev/graph"
)

// hold takes the lock of a run that is to be changed, not driven.
func (j *journals) hold(run string) (*runLock, error) {
	lock, err := lockRun(j.locks(), run)
	if driven, ok := errors.AsType[*DrivenError](err); ok {
		return nil, &Error{Kind: Stale, Err: driven, Next: "stop it first"}
	}
	return lock, err
}

// Pruned is what is left of a run.
type Pruned struct {
	Run     string `json:"run"`
	First   int64  `json:"first"`   // number of the oldest record that is left
	Removed int64  `json:"removed"` // records
}

// Prune shortens the journal of a run that nobody drives, from its beginning. How
// the run stands, its result and what a resume needs stay.
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

// Over lists the runs that are over, and have been for a time.
func (p *Process) Over(ctx context.Context, age time.Duration) ([]string, error) {
	runs, err := p.Runs(ctx, "")
	var ids []string
	for _, r := range runs {
		if r.Final && time.Since(r.Updated) >= age {
			ids = append(ids, r.Run)
		}
	}
	return ids, err
}
