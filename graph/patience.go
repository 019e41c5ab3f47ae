package graph

import (
	"context"
	"sync"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/journal"
)

// outages says whether a drive waits for its store. A drive that works waits until its lease has ended, and for
// storePatience more. One that has not started has journal.ShortPatience, because its caller waits and nothing is lost.
type outages struct {
	patience journal.Patience // of all calls of the store; it is not changed while tasks run

	mu      sync.Mutex    // guards the fields below
	waiting int           // calls that wait
	over    chan struct{} // closed when none waits any more
}

// beginOutage notes that a call of the store waits.
func (d *drive) beginOutage(err error) {
	d.outages.mu.Lock()
	d.outages.waiting++
	first := d.outages.waiting == 1
	if first {
		d.outages.over = make(chan struct{})
	}
	d.outages.mu.Unlock()
	if first {
		d.reportOutage(err)
	}
}

// endOutage notes that such a call waits no more; err is what it returns.
func (d *drive) endOutage(err error) {
	d.outages.mu.Lock()
	d.outages.waiting--
	last := d.outages.waiting == 0
	if last {
		close(d.outages.over)
	}
	d.outages.mu.Unlock()
	if last && err == nil {
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

// awaitStore returns when no call waits for the store, or when ctx ends: an effect must not start while it
// is unknown whether its result can be recorded.
func (d *drive) awaitStore(ctx context.Context) {
	d.outages.mu.Lock()
	over, waiting := d.outages.over, d.outages.waiting > 0
	d.outages.mu.Unlock()
	if waiting {
		select {
		case <-over:
		case <-ctx.Done():
		}
	}
}

// callStore calls f, which only reads or does no harm when it is done twice, until the store is available.
func (d *drive) callStore(ctx context.Context, f func(context.Context) error) error {
	return d.outages.patience.Retry(ctx, f)
}

// loadThread reads the drive's thread, to continue it.
func (d *drive) loadThread(ctx context.Context) (s *fold.Thread, err error) {
	err = d.callStore(ctx, func(ctx context.Context) (err error) {
		s, err = fold.LoadToDrive(ctx, d.settings.Store, d.thread)
		return err
	})
	return s, err
}
