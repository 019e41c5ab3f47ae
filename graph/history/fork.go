package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// Fork creates the thread into as a copy of another at one of its records (0: the
// newest). The original does not change, and the two are independent from then on.
//
// The copy is a new branch: what the current step has done up to that record (effects,
// updates of tasks, questions and their answers) is not copied, so its tasks run again
// from their tops, and graph.EffectKey differs. Steps that are done stay done, also those of
// child graphs that have not ended. A run that had not ended is Paused in the copy,
// under the name of the new thread, until it is resumed; a run that had ended keeps its
// status, and another can be started after it.
//
// It fails with journal.ErrNoThread, journal.ErrNoPoint or journal.ErrThreadExists, and needs no graph.
func Fork(ctx context.Context, st journal.Store, thread string, at int64, into string) error {
	return forkThread(ctx, st, journal.Point{Thread: thread, Seq: at}, into, nil)
}

// ForkWithMeta is Fork, and the copy has another graph.Input.Meta: what a program stored about
// how to continue the run.
func ForkWithMeta(ctx context.Context, st journal.Store, thread string, at int64, into string, meta []byte) error {
	return forkThread(ctx, st, journal.Point{Thread: thread, Seq: at}, into, &meta)
}

// forkThread creates the thread into as a copy of another at a point, with another
// graph.Input.Meta if meta is not nil.
func forkThread(ctx context.Context, st journal.Store, from journal.Point, into string, meta *[]byte) error {
	thread := from.Thread
	fail := func(err error) error { return fmt.Errorf("fork thread %s into %q: %w", thread, into, err) }
	if into == "" {
		return fail(errors.New("the new thread needs a name"))
	}
	s, err := fold.LoadPoint(ctx, st, from)
	if err != nil {
		return fail(err)
	}
	if meta != nil {
		s.Meta = *meta
	}
	now := time.Now()
	s.ForgetSteps()
	s.Origin = record.Origin{Thread: thread, Seq: s.Head}
	s.Branch = graph.NewID(now)
	s.Driving = false
	if !s.Run.Status.Final() {
		s.Run.ID, s.Run.Status, s.Run.Reason, s.Run.Started = into, record.Paused, "", now.UnixMicro()
	}
	rec := s.NewSnapshot(journal.KindFork, now.UnixMicro(), journal.AuthorOf(ctx))
	err = journal.Append(ctx, st, into, 0, rec)
	if errors.Is(err, journal.ErrConflict) {
		err = journal.ErrThreadExists
	}
	if err != nil {
		return fail(err)
	}
	return nil
}
