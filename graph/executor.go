package graph

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"
)

// Executor runs the tasks of a step. Execute calls task for every i in [0,n), at
// most limit at once (0: no limit), and returns when all calls have returned.
// The order is free: it has no influence on the result.
type Executor interface {
	Execute(n, limit int, task func(i int))
}

// goroutines is the Executor of one process.
type goroutines struct{}

func (goroutines) Execute(n, limit int, task func(i int)) {
	workers := n
	if limit > 0 {
		workers = min(n, limit)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				task(i)
			}
		})
	}
	wg.Wait()
}

// Clock is where a Runner gets the time.
type Clock interface {
	Now() time.Time
	// Wait returns after d, or with the context's error when that ends first.
	Wait(ctx context.Context, d time.Duration) error
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// idAlphabet is in the order of its bytes, so that ids sort by the time they hold.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// NewID makes an identifier for a run or thread: nine characters of time, to the
// millisecond, and five random ones. Ids sort by time.
func NewID(now time.Time) string {
	var b [14]byte
	ms := now.UnixMilli()
	for i := 8; i >= 0; i-- {
		b[i] = idAlphabet[ms&31]
		ms >>= 5
	}
	var r [5]byte
	_, _ = rand.Read(r[:]) // it never fails
	for i, c := range r {
		b[9+i] = idAlphabet[c&31]
	}
	return string(b[:])
}
