package runs

import (
	"context"
	"time"
)

// A Summary is what a list shows of a run in addition to its Info.
type Summary struct {
	Prompt string        // its beginning; "" if the command line did not start the run
	Active time.Duration // how long drives have worked on it
	Calls  Calls         // of models
}

// KnownPrompt returns the prompt of a run that a list has returned, if the index has the whole of it.
func (i *Info) KnownPrompt() (prompt string, ok bool) {
	if i.line == nil || i.line.Cut {
		return "", false
	}
	return i.line.Prompt, true
}

// SummarizeRun reads the summary of a run that ListRuns or ListRunTree has returned: of a session, that of
// its newest turn.
func (a *Archive) SummarizeRun(ctx context.Context, i *Info) (sum Summary, err error) {
	if i.line != nil {
		return Summary{Prompt: i.line.Prompt, Active: i.line.Active, Calls: i.line.Calls}, nil
	}
	st, err := a.openExistingStore()
	if err != nil {
		return sum, err
	}
	u := newUsage(a, st, runRef{thread: i.threadName()}, nil)
	u.turns = true
	if err := u.readRecords(ctx, 0); err != nil {
		return sum, err
	}
	snap, err := u.reading.Snapshot(ctx, nil)
	if err != nil {
		return sum, err
	}
	sum.Active = snap.Active
	sum.Calls = u.models
	if rec, err := DecodeRecord(snap.Meta); err == nil {
		sum.Prompt = rec.Prompt
	}
	return sum, nil
}
