package storetool

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/agentbundle"
	"raddle.dev/internal/storage/foreign"
	"raddle.dev/internal/storage/runs"
)

// A Fault is one thing that is wrong with a journal.
type Fault struct {
	Thread string `json:"thread"`
	Record int64  `json:"record,omitempty"` // 0: not one record
	What   string `json:"what"`
}

// A CheckResult is what a check has found.
type CheckResult struct {
	Threads int     `json:"threads"` // that were checked
	Bundles int     `json:"bundles"` // of agents, that were checked
	Records int64   `json:"records"` // that were read
	Folds   int     `json:"folds"`   // states that were computed from records
	Faults  []Fault `json:"faults"`
}

// CheckStore reads every record of a store. It checks that the records of each journal have no gap, that their
// checksums are right, that they give a state, that each snapshot is the state of the records before it, and that lists
// show what the records say. The error is that of the store or of ctx; faults are in the result. Runs may be driven meanwhile.
func CheckStore(ctx context.Context, st journal.Store) (CheckResult, error) {
	result := CheckResult{Faults: []Fault{}}
	list, err := listThreads(ctx, st)
	if err != nil {
		return result, err
	}
	for _, t := range list {
		if agentbundle.IsThread(t.Name) {
			if err := result.checkBundle(ctx, st, t); err != nil {
				return result, err
			}
			continue
		}
		if foreign.IsThread(t.Name) {
			if _, err := foreign.Find(ctx, st, foreign.MarkedBy(t.Name)); err != nil {
				result.Faults = append(result.Faults, Fault{Thread: t.Name, What: err.Error()})
			}
			continue
		}
		c := checker{store: st, thread: t.Name, result: &result}
		if err := c.checkThread(ctx); err != nil {
			return result, err
		}
		result.Threads++
	}
	return result, nil
}

// checkBundle checks the files of an agent that a thread holds.
func (r *CheckResult) checkBundle(ctx context.Context, st journal.Store, t journal.ThreadInfo) error {
	fault, err := agentbundle.CheckThread(ctx, st, t.Name)
	if fault != nil {
		r.Faults = append(r.Faults, Fault{Thread: t.Name, What: fault.Error()})
	}
	r.Bundles++
	r.Records += t.Head
	return err
}

// A checker checks one journal.
type checker struct {
	store     journal.Store
	thread    string
	result    *CheckResult
	snapshots []int64 // records with a state of which the records before it exist
}

func (c *checker) addFault(record int64, format string, args ...any) {
	c.result.Faults = append(c.result.Faults, Fault{c.thread, record, fmt.Sprintf(format, args...)})
}

// checkThread checks one journal. The error is not one of the journal.
func (c *checker) checkThread(ctx context.Context) error {
	var last int64
	for r, err := range journal.Records(ctx, c.store, c.thread, journal.Range{}) {
		if damaged, ok := errors.AsType[*journal.DamagedError](err); ok {
			c.addFault(damaged.Seq, "the record is damaged: its checksum does not match")
			return nil // what follows is not read
		}
		if err != nil {
			return err
		}
		c.result.Records++
		switch {
		case last > 0 && r.Seq != last+1:
			c.addFault(r.Seq, "record %d is missing", last+1)
			return nil
		case last == 0 && !canBegin(&r):
			c.addFault(r.Seq, "the records before it are missing")
			return nil
		case last > 0 && r.Kind == journal.KindSnapshot:
			c.snapshots = append(c.snapshots, r.Seq)
		}
		last = r.Seq
	}
	if last == 0 {
		return nil // it was deleted meanwhile
	}
	if _, err := c.foldRecords(ctx, last); err != nil {
		return err
	}
	for _, seq := range c.snapshots {
		if err := c.checkSnapshot(ctx, seq); err != nil {
			return err
		}
	}
	fault, err := runs.CheckLine(ctx, c.store, c.thread)
	if fault != "" {
		c.addFault(0, "%s", fault)
	}
	return err
}

// canBegin reports whether a record may be the first of a journal.
func canBegin(r *journal.Record) bool {
	return r.Kind == journal.KindSnapshot || r.Kind == journal.KindFork || r.Kind == journal.KindStart && r.Seq == 1
}

// foldRecords returns the state at a record, or nil if there is none, which is a fault.
func (c *checker) foldRecords(ctx context.Context, at int64) (*history.Snapshot, error) {
	s, err := history.Inspect(ctx, c.store, c.thread, at)
	if err == nil {
		c.result.Folds++
		return s, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if !errors.Is(err, journal.ErrNoThread) { // it was deleted meanwhile
		c.addFault(at, "the records up to %d give no state: %v", at, err)
	}
	return nil, nil
}

// checkSnapshot compares a snapshot with the state of the records before it.
func (c *checker) checkSnapshot(ctx context.Context, seq int64) error {
	is, err := c.foldRecords(ctx, seq)
	if err != nil || is == nil {
		return err
	}
	want, err := c.foldRecords(ctx, seq-1)
	if err != nil || want == nil {
		return err
	}
	switch {
	case !reflect.DeepEqual(is.Values, want.Values):
		c.addFault(seq, "the snapshot has other values than the records before it")
	case !reflect.DeepEqual(is.Next, want.Next), is.Steps != want.Steps:
		c.addFault(seq, "the snapshot is at another step than the records before it")
	case !reflect.DeepEqual(is.Questions, want.Questions):
		c.addFault(seq, "the snapshot has other questions than the records before it")
	}
	return nil
}
