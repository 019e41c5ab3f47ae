package graph

import "time"

// outlet is how events leave a drive: always on the reader's goroutine, never
// beneath user code, numbered in the order of delivery.
type outlet struct {
	yield  func(Event, error) bool // nil: nobody reads
	ch     chan Event              // from tasks; nil: none is sent
	over   chan struct{}           // closed when the drive has ended
	now    func() time.Time
	thread string
	run    string
	seq    int64
	gone   bool   // the reader has left
	cancel func() // ends the drive when the reader leaves
}

// sendBuffer is how far tasks may run ahead of the reader.
const sendBuffer = 16

// deliver hands an event to the reader; only its own goroutine may.
func (o *outlet) deliver(e Event) {
	if o.gone || o.yield == nil {
		return
	}
	o.seq++
	e.Seq, e.Thread, e.Run = o.seq, o.thread, o.run
	if e.Time.IsZero() {
		e.Time = o.now()
	}
	if !o.yield(e, nil) {
		o.gone = true
		o.cancel()
	}
}

// send hands an event over from a task's goroutine. The pump runs for as long as
// tasks do; what comes later is dropped.
func (o *outlet) send(e Event) {
	e.Time = o.now()
	select {
	case o.ch <- e:
	case <-o.over:
	}
}

// pump delivers what tasks send until done is closed. When the reader panics, the
// tasks are cancelled and drained before the panic goes on.
func (o *outlet) pump(done <-chan struct{}) {
	finished := false
	defer func() {
		if !finished {
			o.gone = true
			o.cancel()
			o.drain(done)
		}
	}()
	o.drain(done)
	finished = true
}

func (o *outlet) drain(done <-chan struct{}) {
	for {
		select {
		case e := <-o.ch:
			o.deliver(e)
		case <-done:
			for {
				select {
				case e := <-o.ch:
					o.deliver(e)
				default:
					return
				}
			}
		}
	}
}
