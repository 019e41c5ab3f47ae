package graph

import (
	"context"

	"raddle.dev/graph/internal/fence"
	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/journal"
)

// outages says whether a drive waits for its store. A drive that works waits until its lease has ended, and for
// lease.StorePatience more. One that has not started has journal.ShortPatience, because its caller waits and nothing is lost.
type outages struct {
	patience journal.Patience // of all calls of the store; it is not changed while tasks run
	fence.Outage
}

// beginOutage notes that a call of the store waits.
func (d *drive) beginOutage(err error) {
	if d.outages.BeginWait() {
		d.reportOutage(err)
	}
}

// endOutage notes that such a call waits no more; err is what it returns.
func (d *drive) endOutage(err error) {
	if d.outages.EndWait(err == nil) {
		d.reportOutage(nil)
	}
}

// reportOutage calls Runner.StoreAway.
func (d *drive) reportOutage(err error) {
	if d.settings.StoreAway == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			d.setFault(panics.NewError("Runner.StoreAway", p))
		}
	}()
	d.settings.StoreAway(d.thread, err)
}

// callStore calls f, which only reads or does no harm when it is done twice, until the store is available.
func (d *drive) callStore(ctx context.Context, f func(context.Context) error) error {
	return d.outages.patience.Retry(ctx, f)
}
