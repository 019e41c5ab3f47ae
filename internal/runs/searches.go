package runs

import (
	"context"
	"fmt"

	"raddle.dev/flow"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// ListSearches returns the searches in knowledge bases that a run has made up to a
// record (0: all), with their results, in order.
func (a *Archive) ListSearches(ctx context.Context, d *Detail) ([]flow.Search, error) {
	st, found, err := a.locateRun(ctx, d.Run)
	if err != nil {
		return nil, err
	}
	upTo := d.At
	if upTo == 0 {
		upTo = found.last
	}
	made := map[int64]bool{}
	for e, err := range history.Entries(ctx, st, found.thread) {
		if err != nil {
			return nil, err
		}
		if e.Kind == journal.KindEffect && flow.IsSearch(e.ID) {
			made[e.Seq] = true
		}
	}
	list := []flow.Search{}
	if len(made) == 0 {
		return list, nil
	}
	for r, err := range journal.Records(ctx, st, found.thread, journal.Range{After: found.first, UpTo: upTo}) {
		if err != nil {
			return nil, err
		}
		if !made[r.Seq] {
			continue
		}
		s, err := flow.ReadSearch(r.Data)
		if err != nil {
			return nil, fmt.Errorf("run %s, record %d: %w", d.Run, r.Seq, err)
		}
		list = append(list, s)
	}
	return list, nil
}
