package runs

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/foreign"
)

// OpenRun is a run with open questions.
type OpenRun struct {
	Info
	Open []graph.Question // complete, in the order in which they were asked
}

// ListOpenRuns returns the runs that have open questions for people, the one that has waited longest first. A run that
// a process drives has the status Running. damaged are the runs whose journals cannot be read, newest first: they may
// have questions too.
func (a *Archive) ListOpenRuns(ctx context.Context) (open []OpenRun, damaged []Info, err error) {
	marked, err := a.listMarkedThreads(ctx)
	if err != nil {
		return nil, nil, err
	}
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
		// the end of a drive names the questions that are open; one that came from elsewhere asks whether it may continue
		if r.line != nil && !r.line.Driving && len(r.Questions) == 0 && !marked[r.threadName()] {
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

// listMarkedThreads returns the threads that have a mark which says where they came from.
func (a *Archive) listMarkedThreads(ctx context.Context) (map[string]bool, error) {
	st, err := a.StoreToRead()
	if st == nil || err != nil {
		return nil, err
	}
	marked := map[string]bool{}
	for t, err := range st.Threads(ctx, foreign.NameThread("")) {
		if err != nil {
			return nil, err
		}
		marked[foreign.MarkedBy(t.Name)] = true
	}
	return marked, nil
}
