// Package eventqueue passes what tasks send from their goroutines to the one that delivers it.
package eventqueue

import "sync"

// A Queue is ready after Open.
type Queue[E any] struct {
	mu    sync.Mutex // guards the fields below
	spare []E
	queue []E       // from tasks
	full  bool      // a task waits for room
	room  sync.Cond // on mu
	done  bool      // no task is left that could send
	over  bool      // nothing is delivered any more
	wake  chan struct{}
}

// A Receiver gets what is delivered.
type Receiver[E any] interface{ Deliver(e E) }

// room is the number of elements that tasks may send before they are taken.
const room = 16

// Open makes the queue ready.
func (q *Queue[E]) Open() {
	q.room.L = &q.mu
	q.wake = make(chan struct{}, 1)
}

// Put queues an element. If wait is true, it waits for room. After Close, elements are dropped.
func (q *Queue[E]) Put(e E, wait bool) {
	q.mu.Lock()
	for wait && len(q.queue) >= room && !q.over {
		q.full = true
		q.room.Wait()
	}
	first := len(q.queue) == 0
	if !q.over {
		q.queue = append(q.queue, e)
	}
	q.mu.Unlock()
	if first {
		q.wakeReader()
	}
}

// DeliverWaiting delivers what has been sent, and returns when there is nothing more.
func (q *Queue[E]) DeliverWaiting(to Receiver[E]) {
	for {
		batch, _ := q.takeBatch()
		if len(batch) == 0 {
			return
		}
		deliverBatch(batch, to)
	}
}

// DeliverAll delivers what is sent until End is called.
func (q *Queue[E]) DeliverAll(to Receiver[E]) {
	for {
		batch, done := q.takeBatch()
		deliverBatch(batch, to)
		switch {
		case len(batch) > 0:
		case done:
			return
		default:
			<-q.wake
		}
	}
}

func deliverBatch[E any](batch []E, to Receiver[E]) {
	for i := range batch {
		to.Deliver(batch[i])
	}
	clear(batch)
}

// End lets DeliverAll return once everything is delivered.
func (q *Queue[E]) End() {
	q.mu.Lock()
	q.done = true
	q.mu.Unlock()
	q.wakeReader()
}

// Close wakes the tasks that still wait to send.
func (q *Queue[E]) Close() {
	q.mu.Lock()
	q.over = true
	q.mu.Unlock()
	q.room.Broadcast()
}

func (q *Queue[E]) wakeReader() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// takeBatch returns what has been sent. If that is nothing, done reports whether End was called.
func (q *Queue[E]) takeBatch() (batch []E, done bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		done, q.done = q.done, false
		return nil, done
	}
	batch = q.queue
	q.queue, q.spare = q.spare[:0], batch
	if q.full {
		q.full = false
		q.room.Broadcast()
	}
	return batch, false
}
