// Package graphtest has the tests that an implementation of graph.Store must pass, and
// the parts that make a run repeatable in a test.
//
// TestStore and TestDurable are the contract of graph.Store as tests. Clock, IDs and
// Crash replace the clock, the ids and the store that a Runner uses: the first two so
// that two runs write the same journal, the third so that a run stops at a chosen
// record.
package graphtest

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"raddle.dev/graph"
)

// Clock is a graph.Clock whose time only changes when it is used. The zero Clock always
// shows midnight, 1 January 2026, UTC. It is safe for concurrent use.
type Clock struct {
	Start time.Time     // what the first Now returns; zero: 1 January 2026, UTC
	Tick  time.Duration // how much later each further Now is; 0: the time does not change

	mu     sync.Mutex
	passed time.Duration
}

var _ graph.Clock = (*Clock)(nil)

// Now returns the time, and then adds a Tick to it.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	start := c.Start
	if start.IsZero() {
		start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	now := start.Add(c.passed)
	c.passed += c.Tick
	return now
}

// Wait adds d to the time and returns at once. If the context has ended, it returns the
// context's error.
func (c *Clock) Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += max(d, 0)
	return nil
}

// IDs returns a function that counts: prefix-1, prefix-2 and so on. The function is
// safe for concurrent use.
func IDs(prefix string) func() string {
	var n atomic.Int64
	return func() string { return prefix + "-" + strconv.FormatInt(n.Add(1), 10) }
}
