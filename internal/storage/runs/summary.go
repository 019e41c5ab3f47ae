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
	Title  string        // of a session: the beginning of its first prompt
	Output string        // the beginning of what the run has returned
	Via    string        // as in Record
	By     string
}

// KnownSummary returns what the index of the store says of a run that a list has returned. It reads nothing; ok is false
// if the index says nothing of the run.
func (i *Info) KnownSummary() (sum Summary, ok bool) {
	l := i.line
	if l == nil {
		return sum, false
	}
	return Summary{Prompt: l.Prompt, Active: l.Active, Calls: l.Calls, Title: l.Title, Output: l.Output, Via: l.Via, By: l.By}, true
}

// SummarizeRun reads the summary of a run that ListRuns or ListRunTree has returned: of a session, that of
// its newest turn.
func (a *Archive) SummarizeRun(ctx context.Context, i *Info) (sum Summary, err error) {
	if known, ok := i.KnownSummary(); ok {
		return known, nil
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
		sum.Via = rec.Via
		sum.By = rec.By
	}
	return sum, nil
}
