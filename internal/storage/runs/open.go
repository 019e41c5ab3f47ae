package runs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// OpenRun is a run with open questions.
type OpenRun struct {
	Info
	Open []graph.Question // complete, in the order in which they were asked
}

// ListDueRuns returns the runs that wait for a time which has come at now, the first due first. No process drives them;
// a server may be about to.
func (a *Archive) ListDueRuns(ctx context.Context, now time.Time) (due []Info, err error) {
	for r, err := range a.EachRun(ctx, RunRange{asks: true}) {
		if err != nil {
			return nil, err
		}
		waits := r.Status == graph.Waiting.String() || r.Status == Queued
		if waits && !r.Due.IsZero() && !now.Before(r.Due) {
			due = append(due, r)
		}
	}
	slices.SortStableFunc(due, func(a, b Info) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Run, b.Run)) })
	return due, nil
}

// ListOpenRuns returns the runs that have open questions for people, the one that has waited longest first. A run that
// a process drives has the status Running. damaged are the runs whose journals cannot be read, newest first: they may
// have questions too.
func (a *Archive) ListOpenRuns(ctx context.Context) (open []OpenRun, damaged []Info, err error) {
	for r, err := range a.EachRun(ctx, RunRange{asks: true}) {
		if err != nil {
			return nil, nil, err
		}
		switch r.Status {
		case graph.Waiting.String(), graph.Paused.String(), Crashed, Running, Queued, GivenUp:
		case Damaged:
			damaged = append(damaged, r)
			continue
		default:
			continue
		}
		d, err := a.ReadRunDetail(ctx, r.threadName())
		if IsDamage(err) {
			damaged = append(damaged, damagedInfo(r, err))
			continue
		}
		if errors.As(err, new(*UnknownError)) || errors.Is(err, journal.ErrNoThread) { // it was removed meanwhile
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if asked := graph.ForPeople(d.Snapshot.Questions); len(asked) > 0 {
			open = append(open, OpenRun{r, asked})
		}
	}
	slices.SortStableFunc(open, func(a, b OpenRun) int {
		return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.Run, b.Run))
	})
	return open, damaged, nil
}
