package testrun

import (
	"context"
	"sync/atomic"
	"time"

	"raddle.dev/graph"
)

// A Clock is the clock of a run that is tested: that of the machine, which jumps ahead when the run waits for a time.
// It is safe for concurrent use.
type Clock struct {
	began time.Time
	ahead atomic.Int64 // a duration
}

var _ graph.Clock = (*Clock)(nil)

// NewClock returns a clock that shows the time of the machine.
func NewClock() *Clock { return &Clock{began: time.Now()} }

// Now returns the time of the run.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Wait waits on the clock of the machine.
func (c *Clock) Wait(ctx context.Context, d time.Duration) error { return Sleep(ctx, d) }

// Sleep waits on the clock of the machine. The error is that of ctx if it ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// MeasureWait returns how much time must have passed for a time to come, without that for which the machine has worked.
func (c *Clock) MeasureWait(at time.Time) time.Duration { return at.Sub(c.began) - time.Since(c.began) }

// JumpTo lets a time come. A time that has come changes nothing.
func (c *Clock) JumpTo(at time.Time) { c.ahead.Add(int64(max(0, at.Sub(c.Now())))) }
