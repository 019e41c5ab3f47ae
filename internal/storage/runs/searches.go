package runs

import (
	"context"

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
	if d.At > 0 {
		found.last = d.At
	}
	list := []flow.Search{}
	isSearch := func(e history.Entry) bool { return e.Kind == journal.KindEffect && flow.IsSearch(e.ID) }
	err = st.readRecords(ctx, found, isSearch, func(_ history.Entry, r journal.Record) error {
		s, err := flow.ReadSearch(r.Data)
		list = append(list, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
