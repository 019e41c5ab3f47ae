package runs

import (
	"context"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// A Summary is what a list shows of a run in addition to its Info.
type Summary struct {
	Prompt string        // "" if the command line did not start the run
	Active time.Duration // how long drives have worked on it
	Calls  Calls         // of models
}

// SummarizeRun reads the summary of a run that ListRuns or ListRunTree has returned: of a session, that of
// its newest turn.
func (a *Archive) SummarizeRun(ctx context.Context, i *Info) (sum Summary, err error) {
	st, err := a.openExistingStore()
	if err != nil {
		return sum, err
	}
	thread := i.threadName()
	snap, err := history.Inspect(ctx, st.Store, thread, 0)
	if err != nil {
		return sum, err
	}
	sum.Active = snap.Active
	if rec, err := DecodeRecord(snap.Meta); err == nil {
		sum.Prompt = rec.Prompt
	}
	replies := map[int64]replyPosition{}
	for e, err := range history.Entries(ctx, st, thread) {
		if err != nil {
			return sum, err
		}
		if e.Kind == journal.KindStart || e.Kind == journal.KindFork {
			break // the rest belongs to earlier turns
		}
		if e.Kind == journal.KindEffect && flow.IsReply(e.ID) {
			replies[e.Seq] = replyPosition{node: nodeOf(e)}
		}
	}
	return sum, st.readReplies(ctx, thread, replies, func(r flow.Reply, _ int64, _ replyPosition) { sum.Calls.addReply(r) })
}
