// Package readtest counts how journals are read, for tests.
package readtest

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"raddle.dev/graph/journal"
)

// Counting is a store in memory that counts how its threads are read. It is safe for concurrent use. Memory must be set:
// the zero value has no store inside, and its methods panic, except Take, which counts nothing.
type Counting struct {
	*journal.Memory // the store inside

	mu    sync.Mutex // guards the field below
	reads map[string]Reads
}

// Reads says how a thread was read. The zero value is that of a thread that was not read.
type Reads struct {
	Passes  int // readings that began before the first record that the thread has, or at the newest one without a limit
	Parts   int // others that met a record: what came after one, or the newest ones
	Looks   int // that met no record, because there was nothing new
	Records int // that all of them have met
}

// String returns the passes, the parts and the records: "1 passes, 2 parts, 30 records".
func (r Reads) String() string {
	return fmt.Sprintf("%d passes, %d parts, %d records", r.Passes, r.Parts, r.Records)
}

// Take returns how a thread was read since the last call for it.
func (c *Counting) Take(thread string) Reads {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.reads[thread]
	delete(c.reads, thread)
	return r
}

// Read implements journal.Store.
func (c *Counting) Read(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		met := 0
		defer func() { c.addReading(thread, r, met) }()
		for rec, err := range c.Memory.Read(ctx, thread, r) {
			met++
			if !yield(rec, err) {
				return
			}
		}
	}
}

// addReading adds a reading that has met so many records.
func (c *Counting) addReading(thread string, r journal.Range, met int) {
	first := int64(0)
	for rec, err := range c.Memory.Read(context.Background(), thread, journal.Range{Heads: true, Limit: 1}) {
		if err == nil {
			first = rec.Seq
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reads == nil {
		c.reads = map[string]Reads{}
	}
	n := c.reads[thread]
	n.Records += met
	switch {
	case met == 0:
		n.Looks++
	case r.After < first && (!r.Newest || r.Limit == 0):
		n.Passes++
	default:
		n.Parts++
	}
	c.reads[thread] = n
}
