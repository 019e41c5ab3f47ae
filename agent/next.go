package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// Next starts a turn on a thread, whatever the state of the turn before, and
// yields its events. If the last run is over, or there is none, it starts a
// run, as r.Run does. If the last run was cancelled, failed, crashed or waits
// for an answer, the new turn replaces the rest of it: calls without an outcome
// are not made, and the model is informed that they were interrupted. To
// continue the earlier turn, resume the run instead.
//
// A turn that replaces another one is part of the same run, so in.Run,
// in.Label, in.Meta and in.Ahead have no effect.
func Next(ctx context.Context, r *graph.Runner, in graph.Input) iter.Seq2[graph.Event, error] {
	return func(yield func(graph.Event, error) bool) {
		over, err := isIdle(ctx, r, in.Thread)
		if err == nil && !over {
			_, err = r.Edit(ctx, in.Thread, in.Set...)
		}
		if err != nil {
			yield(graph.Event{}, fmt.Errorf("start a turn on thread %s: %w", in.Thread, err))
			return
		}
		events := r.Run(ctx, in)
		if !over {
			events = r.Resume(ctx, graph.Resume{Thread: in.Thread, Topics: in.Topics, Pause: in.Pause})
		}
		events(yield)
	}
}

// isIdle reports whether a run can be started on a thread.
func isIdle(ctx context.Context, r *graph.Runner, thread string) (bool, error) {
	if r.Store == nil || thread == "" {
		return true, nil
	}
	s, err := history.Inspect(ctx, r.Store, thread, 0)
	if errors.Is(err, journal.ErrNoThread) {
		return true, nil
	}
	return err == nil && s.Status.Final(), err
}

// InvokeNext starts a turn like Next, drives it until it ends or waits, and
// returns its result. in.Topics has no effect. An error does not exclude a
// result: that of a failed run says how far it came.
func InvokeNext(ctx context.Context, r *graph.Runner, in graph.Input) (res graph.Result, err error) {
	in.Topics = 0
	for ev, problem := range Next(ctx, r, in) {
		if end, ok := ev.Body.(graph.RunEnded); ok {
			res = end.Result
		}
		err = problem
	}
	return res, err
}
