package fence

import (
	"context"
	"sync"
)

// An Outage counts the calls that wait for a store that is away. The zero Outage has none. It is safe for concurrent
// use.
type Outage struct {
	mu      sync.Mutex    // guards the fields below
	waiting int           // calls that wait
	worked  bool          // one of those that waited was successful
	over    chan struct{} // closed when none waits any more
}

// BeginWait notes that a call waits, and reports whether it is the first one.
func (o *Outage) BeginWait() (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting++
	first = o.waiting == 1
	if first {
		o.over = make(chan struct{})
	}
	return first
}

// EndWait notes that a call waits no more, and whether it was successful. It reports whether the store is back: no call
// waits any more, and one of them was successful.
func (o *Outage) EndWait(ok bool) (back bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting--
	o.worked = o.worked || ok
	if o.waiting > 0 {
		return false
	}
	close(o.over)
	back = o.worked
	o.worked = false
	return back
}

// AwaitEnd returns when no call waits, or when ctx ends.
func (o *Outage) AwaitEnd(ctx context.Context) {
	o.mu.Lock()
	over := o.over
	waiting := o.waiting > 0
	o.mu.Unlock()
	if waiting {
		select {
		case <-over:
		case <-ctx.Done():
		}
	}
}
