package fold

import (
	"context"
	"fmt"

	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// An Ending says how a run was ended or changed from outside.
type Ending struct {
	Status record.Status // Abandoned, or Paused after an edit
	Reason string        // of an end
	By     string        // who did it; "": no name was given
}

// FindEnding returns the first end or edit of a thread behind a point. found is false if there is none, if a drive has
// claimed the thread before it, or if it cannot be read.
func FindEnding(ctx context.Context, st journal.Store, after journal.Point) (e Ending, found bool) {
	for r, err := range journal.Records(ctx, st, after.Thread, journal.Range{After: after.Seq, Heads: true}) {
		if err != nil {
			return e, false
		}
		b := record.Parts{}
		err = b.ReadHead(uint8(r.Kind), r.Head)
		switch r.Kind {
		case journal.KindEnd:
			if b.Status == record.Abandoned && err == nil {
				return Ending{record.Abandoned, b.Reason, b.By}, true
			}
		case journal.KindEdit:
			return Ending{Status: record.Paused, By: b.By}, err == nil
		case journal.KindClaim:
			return e, false
		}
	}
	return e, false
}

// FindRunEnd finds the record of the end of a run of a thread.
func FindRunEnd(ctx context.Context, st journal.Store, thread, run string) (int64, error) {
	end := int64(0)
	for r, err := range journal.Records(ctx, st, thread, journal.Range{Heads: true, Newest: true}) {
		switch {
		case err != nil:
			return 0, fmt.Errorf("read thread %s: %w", thread, err)
		case r.Kind == journal.KindEnd && end == 0:
			end = r.Seq
		case r.Kind == journal.KindStart:
			b := record.Parts{}
			if err := b.ReadHead(uint8(r.Kind), r.Head); err == nil && b.Run == run && end > 0 {
				return end, nil
			}
			end = 0
		}
	}
	return 0, fmt.Errorf("%w %s", journal.ErrNoPoint, thread)
}
