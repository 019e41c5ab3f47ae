package storetool

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/agentbundle"
	"raddle.dev/internal/storage/foreign"
	"raddle.dev/memory"
)

// A CopyResult counts what a copy has done.
type CopyResult struct {
	Threads int      `json:"threads"` // that have new records now
	Bundles int      `json:"bundles"` // of agents, that were written
	Records int64    `json:"records"` // that were written
	Equal   int      `json:"equal"`   // threads that were there already
	Entries int      `json:"entries"` // values of package memory that were written
	Busy    []string `json:"busy"`    // threads that were left out, because a process drives their run
}

const (
	copyBatch = 256     // records of one append
	copyBytes = 1 << 20 // after which a batch is appended
)

// CopyStore copies every journal that to does not have, and what is missing of the others: a copy that was stopped can
// be repeated. A journal that has other records in to is an error before anything of it is written. Runs that are
// driven are left out. Records are checked before they are copied.
//
// origin names from if it is not the user's own store: then what is written of runs is marked as foreign, as an import
// does. Marks that from has are copied.
func CopyStore(ctx context.Context, from, to journal.Store, origin string) (CopyResult, error) {
	result := CopyResult{Busy: []string{}}
	list, err := listThreads(ctx, from)
	if err != nil {
		return result, err
	}
	has, err := listThreads(ctx, to)
	if err != nil {
		return result, err
	}
	there := map[string]journal.ThreadInfo{}
	for _, t := range has {
		there[t.Name] = t
	}
	for _, t := range list {
		if t.Lease.IsLive() {
			result.Busy = append(result.Busy, t.Name)
			continue
		}
		if foreign.IsThread(t.Name) {
			continue // with the run
		}
		if !agentbundle.IsThread(t.Name) && t.Head > there[t.Name].Head {
			if err := copyMark(ctx, from, to, t, origin); err != nil {
				return result, err
			}
		}
		n, err := copyThread(ctx, from, to, t, there[t.Name])
		result.Records += n
		if err != nil {
			return result, err
		}
		switch {
		case n == 0:
			result.Equal++
		case agentbundle.IsThread(t.Name):
			result.Bundles++
		default:
			result.Threads++
		}
	}
	result.Entries, err = copyEntries(ctx, from, to)
	return result, err
}

// copyMark marks a thread in a store before anything of it is copied there, if it is foreign in the other one, or that
// is from elsewhere.
func copyMark(ctx context.Context, from, to journal.Store, t journal.ThreadInfo, origin string) error {
	m, err := foreign.Find(ctx, from, t.Name)
	if err != nil {
		return err
	}
	if origin != "" {
		m = &foreign.Mark{From: origin, At: time.Now().UTC().Truncate(time.Second), Head: t.Head}
	}
	if m == nil {
		return nil
	}
	return foreign.Put(ctx, to, t.Name, *m)
}

// copyEntries copies what agents remember, if both stores keep such values.
func copyEntries(ctx context.Context, from, to journal.Store) (int, error) {
	source, ok := from.(memory.Store)
	target, also := to.(memory.Store)
	if !ok || !also {
		return 0, nil
	}
	n, err := memory.CopyEntries(ctx, source, target)
	if err != nil {
		return n, fmt.Errorf("copy what agents remember: %w", err)
	}
	return n, nil
}

// copyThread copies the records of a thread that are missing, and returns their number.
func copyThread(ctx context.Context, from, to journal.Store, t, there journal.ThreadInfo) (int64, error) {
	if there.Head > t.Head {
		return 0, newDifference(t.Name, fmt.Sprintf("it has %d records, and %d to copy", there.Head, t.Head))
	}
	blank, err := isBlank(ctx, to, t.Name) // a copy of a pruned journal was stopped
	switch {
	case err != nil:
		return 0, err
	case there.Head > 0 && !blank && there.Head < t.First.Seq:
		return 0, newDifference(t.Name, fmt.Sprintf("it has the records up to %d, and those from %d are to be copied", there.Head, t.First.Seq))
	}
	if err := compareRecords(ctx, from, to, t.Name, max(t.First.Seq, there.First.Seq), there.Head); err != nil {
		return 0, err
	}
	head := max(there.Head, t.First.Seq-1)
	if err := addBlanks(ctx, to, t.Name, there.Head, head); err != nil {
		return 0, err
	}
	var batch []journal.Record
	var size int
	var written int64
	flush := func() error {
		if err := to.Append(ctx, t.Name, head, batch); err != nil {
			return fmt.Errorf("copy %s: %w", t.Name, err)
		}
		head += int64(len(batch))
		written += int64(len(batch))
		batch = nil
		size = 0
		return nil
	}
	for r, err := range journal.Records(ctx, from, t.Name, journal.Range{After: head}) {
		if err != nil {
			return written, fmt.Errorf("copy %s: %w", t.Name, err)
		}
		batch = append(batch, r)
		size = size + len(r.Head) + len(r.Data)
		if len(batch) == copyBatch || size >= copyBytes {
			if err := flush(); err != nil {
				return written, err
			}
		}
	}
	if len(batch) > 0 {
		if err := flush(); err != nil {
			return written, err
		}
	}
	if (there.Head == 0 || blank) && t.First.Seq > 1 {
		return written, to.Prune(ctx, t.Name, t.First.Seq)
	}
	return written, nil
}

// addBlanks appends records without content in place of pruned ones, so that the others keep their numbers.
func addBlanks(ctx context.Context, to journal.Store, thread string, head, last int64) error {
	for head < last {
		batch := make([]journal.Record, min(copyBatch, last-head))
		for i := range batch {
			batch[i].Kind = journal.KindVoid
		}
		if err := to.Append(ctx, thread, head, batch); err != nil {
			return fmt.Errorf("copy %s: %w", thread, err)
		}
		head += int64(len(batch))
	}
	return nil
}

// isBlank reports whether a thread begins with a record of addBlanks.
func isBlank(ctx context.Context, st journal.Store, thread string) (bool, error) {
	for r, err := range st.Read(ctx, thread, journal.Range{Limit: 1}) {
		return err == nil && r.Kind == journal.KindVoid && len(r.Head)+len(r.Data) == 0 && r.Sum == 0, err
	}
	return false, nil
}

// compareRecords returns an error if two stores have different records from a number up to another.
func compareRecords(ctx context.Context, from, to journal.Store, thread string, first, last int64) error {
	var want []journal.Record
	for r, err := range from.Read(ctx, thread, journal.Range{After: first - 1, UpTo: last, Heads: true}) {
		if err != nil {
			return err
		}
		want = append(want, r)
	}
	i := 0
	for r, err := range to.Read(ctx, thread, journal.Range{After: first - 1, UpTo: last, Heads: true}) {
		if err != nil {
			return err
		}
		if i >= len(want) || r.Seq != want[i].Seq || r.Sum != want[i].Sum || r.Kind != want[i].Kind || !bytes.Equal(r.Head, want[i].Head) {
			return newDifference(thread, fmt.Sprintf("record %d is another one", r.Seq))
		}
		i++
	}
	return nil
}

// newDifference reports a journal of which both stores have different records.
func newDifference(thread, why string) error {
	return failure.NewStale("remove it in one of them, or copy to another store", "both stores have %s, with different records: %s", thread, why)
}
