package runs

import (
	"cmp"
	"context"
	"slices"

	"raddle.dev/graph"
)

// OpenRun is a run with open questions.
type OpenRun struct {
	Info
	Open []graph.Question // complete, in the order in which they were asked
}

// ListOpenRuns returns the runs that have open questions for people, the one that has waited longest first.
// A run that a process drives has the status Running.
func (a *Archive) ListOpenRuns(ctx context.Context) ([]OpenRun, error) {
	list, err := a.ListRuns(ctx, "")
	if err != nil {
		return nil, err
	}
	var open []OpenRun
	for _, r := range list {
		switch r.Status {
		case graph.Waiting.String(), graph.Paused.String(), graph.Crashed.String(), Running:
		default:
			continue
		}
		d, err := a.ReadRunDetail(ctx, r.Run)
		if err != nil {
			return nil, err
		}
		if asked := graph.ForPeople(d.Snapshot.Questions); len(asked) > 0 {
			open = append(open, OpenRun{r, asked})
		}
	}
	slices.SortStableFunc(open, func(a, b OpenRun) int {
		return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.Run, b.Run))
	})
	return open, nil
}
