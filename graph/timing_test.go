package graph_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// The record of an effect says how long it took, when the first part of its result came, and how often and how long it
// waited to be tried again: one that fails, too. A resume that takes the result adds nothing.
func TestTimingOfEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context) (string, error) {
			time.Sleep(time.Second)
			graph.NoteFirstPart(ctx)
			time.Sleep(time.Second)
			graph.NoteFirstPart(ctx) // it is there already
			return "slow", nil
		}
		again := func(ctx context.Context) (string, error) {
			graph.NoteFirstPart(ctx) // of what fails
			time.Sleep(2 * time.Second)
			graph.NoteRetry(ctx, 2*time.Second)
			time.Sleep(3 * time.Second)
			graph.NoteRetry(ctx, 3*time.Second)
			time.Sleep(time.Second)
			graph.NoteFirstPart(ctx)
			return "again", nil
		}
		failing := func(context.Context) (string, error) {
			time.Sleep(4 * time.Second)
			return "", errors.New("it fails")
		}
		g := parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			graph.NoteFirstPart(ctx) // outside an effect
			graph.NoteRetry(ctx, time.Hour)
			if _, err := graph.Do(ctx, "slow", slow); err != nil {
				return graph.Update{}, err
			}
			if _, err := graph.Do(ctx, "again", again); err != nil {
				return graph.Update{}, err
			}
			if _, err := graph.Do(ctx, "quick", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return graph.Update{}, err
			}
			_, err := graph.DoEffect(ctx, graph.Effect{Name: "failing", InDoubt: graph.DoubtFail}, failing)
			return graph.Update{}, err
		}})
		r := kept(g)
		if res, err := start(t, r); res.Status != graph.Failed {
			t.Fatal(res, err)
		}
		_, _ = resume(t, r)
		want := map[string]history.Timing{
			"slow":    {Took: 2 * time.Second, First: time.Second},
			"again":   {Took: 6 * time.Second, First: 6 * time.Second, Retries: 2, Waited: 5 * time.Second},
			"quick":   {Took: time.Microsecond}, // 0 would mean that it is not known
			"failing": {Took: 4 * time.Second},
		}
		seen := map[string]int{}
		for e, err := range history.Entries(t.Context(), r.Store, thread) {
			if err != nil {
				t.Fatal(err)
			}
			name := graph.ParseEffectID(e.ID).Name
			switch e.Kind {
			case journal.KindEffect, journal.KindFailure:
				seen[name]++
				if e.Timing != want[name] {
					t.Errorf("%s: %+v, want %+v", name, e.Timing, want[name])
				}
			default:
				if e.Timing != (history.Timing{}) {
					t.Errorf("record %d (%s) has a timing: %+v", e.Seq, e.Kind, e.Timing)
				}
			}
		}
		for name, n := range map[string]int{"slow": 1, "again": 1, "quick": 1, "failing": 2} {
			if seen[name] != n {
				t.Errorf("%s: %d records, want %d", name, seen[name], n)
			}
		}
	})
}

// A pause without a time of grace waits for the nodes that work.
func TestAPauseWithoutGrace(t *testing.T) {
	settled(t, func(t *testing.T) {
		pause := make(chan struct{})
		g := compile(t, graph.Def{
			Name: "pause",
			Nodes: []graph.Node{
				{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
					close(pause)
					<-time.After(time.Hour)
					return graph.Update{}, ctx.Err()
				}},
				{Name: "b", Run: idle},
			},
			Start: []string{"a"},
			Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)},
		})
		r := kept(g)
		res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Pause: pause})
		if is(t, graph.Paused, res, err); res.Steps != 1 {
			t.Errorf("%d steps", res.Steps)
		}
	})
}
