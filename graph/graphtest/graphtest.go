// Package graphtest tests graphs and stores: it has a search for what disturbs a graph, the
// tests that an implementation of journal.Store must pass, and the parts that make a run
// repeatable in a test.
//
// Explore runs a graph under crashes, failing writes, takeovers and other disturbances.
// TestStore and TestDurable are the contract of journal.Store as tests. Clock, IDs and
// Crash replace the clock, the ids and the store that a Runner uses: the first two so
// that two runs write the same journal, the third so that a run stops at a chosen
// record.
package graphtest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
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

// ErrCrash is the error of a Crash after it has crashed.
var ErrCrash = errors.New("graphtest: the store has crashed, as the test demands")

// Crash is a journal.Store that accepts a number of records and then fails permanently,
// as if the process had been killed at that point. A test counts the records of an
// undisturbed run with a negative Limit, repeats the run with each Limit from 0 up to
// that number, and resumes on the Store inside.
//
// Reading still works after the crash: a caller that appends nothing more does no harm.
// A Crash has no leases, so that a drive on the Store inside is not refused because of
// one that counts as killed. It is safe for concurrent use.
type Crash struct {
	journal.Store // the store inside

	Limit int  // number of records to accept; a batch that exceeds it fails as a whole; negative: no limit
	Lost  bool // the append that fails first is stored nevertheless, as if only the answer was lost

	mu      sync.Mutex
	records int
	batches int
	crashed bool
}

// Append implements journal.Store.
func (c *Crash) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crashed {
		return ErrCrash
	}
	crash := c.Limit >= 0 && c.records+len(recs) > c.Limit
	if !crash || c.Lost {
		if err := c.Store.Append(ctx, thread, after, recs); err != nil {
			return err
		}
		c.records += len(recs)
		c.batches++
	}
	if crash {
		c.crashed = true
		return ErrCrash
	}
	return nil
}

// Prune implements journal.Store.
func (c *Crash) Prune(ctx context.Context, thread string, before int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crashed {
		return ErrCrash
	}
	return c.Store.Prune(ctx, thread, before)
}

// RecordCount returns how many records were stored.
func (c *Crash) RecordCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.records
}

// BatchCount returns the number of appends in which they were stored.
func (c *Crash) BatchCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.batches
}

// HasCrashed reports whether an append has failed with ErrCrash.
func (c *Crash) HasCrashed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crashed
}
