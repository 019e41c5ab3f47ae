package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"raddle.dev/graph"
)

// Next begins a turn on a thread, whatever became of the turn before, and yields
// its events. Where the last run is over, or there is none, it starts a run, as
// r.Run does. Where it was cancelled, failed, crashed, or waits for an answer that
// nobody wants to give any more, the turn takes the place of what was left to do:
// calls without an outcome are not made, and the model is told that they were cut
// off. To go on with what was left, resume the run instead.
//
// A turn that takes the place of another is part of its run, so that Run, Label,
// Meta and Ahead of in do not apply.
func Next(ctx context.Context, r *graph.Runner, in graph.Input) iter.Seq2[graph.Event, error] {
	return func(yield func(graph.Event, error) bool) {
		over, err := idle(ctx, r, in.Thread)
		if err == nil && !over {
			_, err = r.Edit(ctx, in.Thread, in.Set...)
		}
		if err != nil {
			yield(graph.Event{}, fmt.Errorf("begin a turn on thread %s: %w", in.Thread, err))
			return
		}
		events := r.Run(ctx, in)
		if !over {
			events = r.Resume(ctx, graph.Resume{Thread: in.Thread, Topics: in.Topics, Pause: in.Pause})
		}
		events(yield)
	}
}

// idle tells whether a run can be started on a thread.
func idle(ctx context.Context, r *graph.Runner, thread string) (bool, error) {
	if r.Store == nil || thread == "" {
		return true, nil
	}
	s, err := graph.Inspect(ctx, r.Store, thread, 0)
	if errors.Is(err, graph.ErrNoThread) {
		return true, nil
	}
	return err == nil && s.Status.Final(), err
}

// InvokeNext is Next without events.
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
