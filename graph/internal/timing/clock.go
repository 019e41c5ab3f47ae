package timing

import (
	"context"
	"sync/atomic"
	"time"
)

// A Clock is a graph.Clock, which has the same methods.
type Clock interface {
	Now() time.Time
	Wait(ctx context.Context, d time.Duration) error
}

// WallClock is the clock of the machine.
type WallClock struct{}

// Now implements Clock.
func (WallClock) Now() time.Time { return time.Now() }

// Wait implements Clock.
func (WallClock) Wait(ctx context.Context, d time.Duration) error {
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

// A GuardedClock is a Clock of the caller. It is as safe for concurrent use as that.
type GuardedClock struct {
	Clock   Clock
	Fault   func(any) error // makes an error of a panic of the Clock, on any goroutine
	Skipped *atomic.Int64   // gets the nanoseconds that the Clock lets pass without waiting
}

// Now implements Clock. After a panic it returns the time of the machine.
func (c *GuardedClock) Now() (now time.Time) {
	defer func() {
		if p := recover(); p != nil {
			_ = c.Fault(p)
			now = time.Now()
		}
	}()
	return c.Clock.Now()
}

// Wait implements Clock. A panic is its error.
func (c *GuardedClock) Wait(ctx context.Context, d time.Duration) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = c.Fault(p)
		}
	}()
	began := time.Now()
	if err = c.Clock.Wait(ctx, d); err == nil {
		c.Skipped.Add(int64(max(0, d-time.Since(began))))
	}
	return err
}
