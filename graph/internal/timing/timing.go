// Package timing measures how an effect spends its time, and has the clocks that a drive uses.
package timing

import (
	"sync"
	"sync/atomic"
	"time"

	"raddle.dev/graph/internal/record"
)

// A Watch measures one effect. The zero Watch measures nothing until Start. It is safe for concurrent use.
type Watch struct {
	hasFirst atomic.Bool

	mu     sync.Mutex // guards the fields below
	began  time.Time  // zero: nothing is measured
	timing record.Timing
}

// Start notes when the effect starts.
func (w *Watch) Start(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = now
}

// End notes when the effect has ended. One that was measured took a microsecond at least: 0 is that of an earlier version.
func (w *Watch) End(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timing.Took = max(1, now.Sub(w.began).Microseconds())
}

// NoteFirst notes when the first part of the result is there. It asks for the time only the first time.
func (w *Watch) NoteFirst(now func() time.Time) {
	if w.hasFirst.Swap(true) {
		return
	}
	at := now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.began.IsZero() {
		w.timing.First = max(1, at.Sub(w.began).Microseconds())
	}
}

// NoteRetry notes that the effect was tried again after a wait. What has come of its result so far does not count.
func (w *Watch) NoteRetry(wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timing.Again++
	w.timing.Waited += max(0, wait.Microseconds())
	w.timing.First = 0
	w.hasFirst.Store(false)
}

// Read returns what was measured; zero: nothing.
func (w *Watch) Read() record.Timing {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.timing
}
