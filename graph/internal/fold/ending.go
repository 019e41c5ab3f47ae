package fold

import (
	"context"

	"raddle.dev/graph/internal/wire"
	"raddle.dev/graph/journal"
)

// An Ending says how a run was ended or changed from outside.
type Ending struct {
	Status Status // Abandoned, or Paused after an edit
	Reason string // of an end
	By     string // who did it; "": no name was given
}

// FindEnding returns the first end or edit of a thread behind a point. found is false if there is none, if a drive has claimed the
// thread before it, or if it cannot be read.
func FindEnding(ctx context.Context, st journal.Store, after journal.Point) (e Ending, found bool) {
	for r, err := range journal.Records(ctx, st, after.Thread, journal.Range{After: after.Seq, Heads: true}) {
		if err != nil {
			return e, false
		}
		h := &wire.Reader{Rest: r.Head}
		line := Line{}
		switch r.Kind {
		case journal.KindEnd:
			if line.ReadEnd(h); line.Status != Abandoned {
				continue
			}
			ReadMap(h, h.Int) // the steps that the drive stopped before
			line.ReadSummary(h)
			return Ending{Abandoned, line.Reason, h.Name()}, true
		case journal.KindEdit:
			h.Text() // the path
			h.Text() // the branch
			line.ReadEditHead(h)
			ReadMap(h, h.Text) // the tags of keys that got another type
			return Ending{Status: Paused, By: h.Name()}, true
		case journal.KindClaim:
			return e, false
		}
	}
	return e, false
}
