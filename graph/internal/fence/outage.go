package fence

import (
	"context"
	"sync"
)

// An Outage counts the calls that wait for a store that is away. The zero Outage has none. It is safe for concurrent use.
type Outage struct {
	mu      sync.Mutex    // guards the fields below
	waiting int           // calls that wait
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

// EndWait notes that a call waits no more, and reports whether it was the last one.
func (o *Outage) EndWait() (last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting--
	last = o.waiting == 0
	if last {
		close(o.over)
	}
	return last
}

// AwaitEnd returns when no call waits, or when ctx ends.
func (o *Outage) AwaitEnd(ctx context.Context) {
	o.mu.Lock()
	over, waiting := o.over, o.waiting > 0
	o.mu.Unlock()
	if waiting {
		select {
		case <-over:
		case <-ctx.Done():
		}
	}
}
