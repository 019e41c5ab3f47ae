package chaos

import (
	"context"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/runs"
)

// checkStore refuses a store in which others work: the servers of a chaos would continue their runs with the answers of
// a test case, and theirs would continue the runs of the chaos with real models. A store that is not there yet may be
// used.
func checkStore(ctx context.Context, a *runs.Archive) error {
	const next = "use a database of its own, on the same server"
	st, err := a.StoreToRead()
	if st == nil || err != nil {
		return err
	}
	list, err := a.ListRuns(ctx, "")
	if err != nil {
		return err
	}
	open := 0
	for i := range list {
		if !list[i].Final {
			open++
		}
	}
	if open > 0 {
		return failure.NewUsage(next, "the store has %s that may continue, and the servers of raddle chaos would do that", wording.FormatCount(open, "run"))
	}
	if set := runs.TriggersOf(st); set != nil {
		list, _, err := set.ListTriggers(ctx)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			return failure.NewUsage(next, "the store has %s, which the servers of raddle chaos would fire", wording.FormatCount(len(list), "trigger"))
		}
	}
	q := runs.QueueOf(st)
	if q == nil {
		return nil
	}
	workers, err := q.ListWorkers(ctx)
	if err != nil {
		return err
	}
	for i := range workers {
		if w := &workers[i]; w.Silent < journal.SilentAfter && !w.HasEnded() {
			return failure.NewUsage(next, "process %d of %s drives runs of the store, and would call real models for those of raddle chaos", w.PID, w.Host)
		}
	}
	return nil
}
