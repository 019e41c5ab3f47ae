package graphtest

import (
	"context"
	"errors"
	"sync"

	"raddle.dev/graph"
)

// ErrCrash is the error of a Crash after it has crashed.
var ErrCrash = errors.New("graphtest: the store has crashed, as the test demands")

// Crash is a graph.Store that accepts a number of records and then fails permanently,
// as if the process had been killed at that point. A test counts the records of an
// undisturbed run with a negative Limit, repeats the run with each Limit from 0 up to
// that number, and resumes on the Store inside.
//
// Reading still works after the crash: a caller that appends nothing more does no harm.
// A Crash has no leases, so that a drive on the Store inside is not refused because of
// one that counts as killed. It is safe for concurrent use.
type Crash struct {
	graph.Store // the store inside

	Limit int  // number of records to accept; a batch that exceeds it fails as a whole; negative: no limit
	Lost  bool // the append that fails first is stored nevertheless, as if only the answer was lost

	mu      sync.Mutex
	records int
	batches int
	crashed bool
}

// Append implements graph.Store.
func (c *Crash) Append(ctx context.Context, thread string, after int64, recs []graph.Record) error {
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

// Prune implements graph.Store.
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
