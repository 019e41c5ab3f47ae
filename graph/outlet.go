package graph

import "sync"

// eventSink delivers the events of a drive: always on the reader's goroutine, never inside
// user code, numbered in the order of delivery.
type eventSink struct {
	yield  func(Event, error) bool // nil: events are not read
	clock  Clock
	thread string
	run    string
	seq    int64
	gone   bool   // the reader has left
	cancel func() // ends the drive when the reader leaves
	spare  []Event

	mu    sync.Mutex // guards the fields below
	queue []Event    // from tasks
	full  bool       // a task waits for room
	room  sync.Cond  // on mu
	done  bool       // no task is left that could send
	over  bool       // the drive has ended
	wake  chan struct{}
}

// sendBuffer is the number of events that tasks may send before the reader takes them.
const sendBuffer = 16

// openQueue makes the outlet ready for send and pump.
func (o *eventSink) openQueue() {
	o.room.L = &o.mu
	o.wake = make(chan struct{}, 1)
}

// deliverEvent passes an event to the reader. Only the reader's goroutine may call it.
func (o *eventSink) deliverEvent(e Event) {
	if o.gone || o.yield == nil {
		return
	}
	o.seq++
	e.Seq, e.Thread, e.Run = o.seq, o.thread, o.run
	if e.Time.IsZero() {
		e.Time = o.clock.Now()
	}
	if !o.yield(e, nil) {
		o.gone = true
		o.cancel()
	}
}

// sendEvent passes an event from a task's goroutine to the reader's, and waits if the reader
// is slow. The pump runs as long as tasks do; later events are dropped.
func (o *eventSink) sendEvent(e Event) { o.queueEvent(e, true) }

// queueEvent is send. It does not wait if wait is false: for a task that may run on the
// reader's goroutine.
func (o *eventSink) queueEvent(e Event, wait bool) {
	if e.Time.IsZero() {
		e.Time = o.clock.Now()
	}
	o.mu.Lock()
	for wait && len(o.queue) >= sendBuffer && !o.over {
		o.full = true
		o.room.Wait()
	}
	first := len(o.queue) == 0
	if !o.over {
		o.queue = append(o.queue, e)
	}
	o.mu.Unlock()
	if first {
		o.wakePump()
	}
}

// deliverQueued delivers, on the reader's goroutine, what a task has sent.
func (o *eventSink) deliverQueued() {
	for {
		batch, _ := o.takeBatch()
		if len(batch) == 0 {
			return
		}
		for i := range batch {
			o.deliverEvent(batch[i])
		}
		clear(batch)
	}
}

// endPump informs the pump that its tasks have ended.
func (o *eventSink) endPump() {
	o.mu.Lock()
	o.done = true
	o.mu.Unlock()
	o.wakePump()
}

// close wakes the tasks that still wait to send.
func (o *eventSink) close() {
	o.mu.Lock()
	o.over = true
	o.mu.Unlock()
	o.room.Broadcast()
}

// wakePump wakes the pump.
func (o *eventSink) wakePump() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// pumpEvents delivers what tasks send until finish is called. If the reader panics, the tasks
// are cancelled and drained before the panic continues.
func (o *eventSink) pumpEvents() {
	finished := false
	defer func() {
		if !finished {
			o.gone = true
			o.cancel()
			o.drainQueue()
		}
	}()
	o.drainQueue()
	finished = true
}

func (o *eventSink) drainQueue() {
	for {
		batch, done := o.takeBatch()
		for i := range batch {
			o.deliverEvent(batch[i])
		}
		clear(batch)
		switch {
		case len(batch) > 0:
		case done:
			return
		default:
			<-o.wake
		}
	}
}

// takeBatch returns what has been sent. If that is nothing, done reports whether the tasks
// have ended.
func (o *eventSink) takeBatch() (batch []Event, done bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		done, o.done = o.done, false
		return nil, done
	}
	batch = o.queue
	o.queue, o.spare = o.spare[:0], batch
	if o.full {
		o.full = false
		o.room.Broadcast()
	}
	return batch, false
}
