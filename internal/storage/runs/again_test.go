package runs

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/config"
)

// compileTrip returns a graph whose node calls another graph: two nodes, of which the first one calls plan and the
// second one asks.
func compileTrip(t *testing.T, plan func() error) *graph.Graph {
	t.Helper()
	inner, err := graph.Compile(graph.Def{
		Name: "legs",
		Keys: []graph.AnyKey{place},
		Nodes: []graph.Node{
			{Name: "choose", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, plan() }},
			{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				where, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "Where to?"})
				return graph.Put(place.Set(where)), err
			}},
		},
		Edges: []graph.Edge{{From: []string{"choose"}, To: []string{"ask"}}, {From: []string{"ask"}, To: []string{graph.End}}},
		Start: []string{"choose"},
	})
	if err != nil {
		t.Fatal(err)
	}
	outer, err := graph.Compile(graph.Def{
		Name:  "trip",
		Keys:  []graph.AnyKey{place},
		Nodes: []graph.Node{{Name: "go", Graph: inner}},
		Edges: []graph.Edge{{From: []string{"go"}, To: []string{graph.End}}},
		Start: []string{"go"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return outer
}

// A drive that continues a run starts the nodes again that have not ended. What follows the journal says of each drive
// what it said itself; only nodes that waited for an answer continue, as in what shows a drive.
func TestFollowerStartsNodesAgain(t *testing.T) {
	st := journal.NewMemory()
	a := NewArchive(config.Dirs{State: t.TempDir()}, "")
	if err := a.AttachStore(st); err != nil {
		t.Fatal(err)
	}
	pause := make(chan struct{})
	tries := 0
	g := compileTrip(t, func() error {
		if tries++; tries == 1 {
			return errors.New("no map")
		}
		close(pause)
		return nil
	})
	describe := func(events []graph.Event) (lines []string) {
		for _, ev := range events {
			switch b := ev.Body.(type) {
			case graph.RunStarted:
				if ev.Path == "" {
					lines = append(lines, "begin")
				}
			case graph.TaskStarted:
				lines = append(lines, ev.Node)
			case graph.RunEnded:
				if ev.Path == "" {
					lines = append(lines, b.Result.Status.String())
				}
			}
		}
		return lines
	}
	f := a.FollowRun("trip")
	waited := false
	follow := func(name string, drive iter.Seq2[graph.Event, error], want ...string) {
		t.Helper()
		var own []graph.Event
		for ev, err := range drive {
			if err == nil {
				own = append(own, ev)
			}
		}
		read, more, err := f.ReadEvents(t.Context(), false)
		if err != nil || more {
			t.Fatalf("%s: more %t, %v", name, more, err)
		}
		if got := describe(own); !slices.Equal(got, want) {
			t.Errorf("%s: the drive says %q, want %q", name, got, want)
		}
		if waited {
			want = []string{want[0], want[len(want)-1]}
		}
		if got := describe(read); !slices.Equal(got, want) {
			t.Errorf("%s: the journal says %q, want %q", name, got, want)
		}
	}
	r := &graph.Runner{Graph: g, Store: st}
	topics := graph.TopicRun | graph.TopicTask
	follow("failed", r.Run(t.Context(), graph.Input{Run: "trip", Thread: "trip", Topics: topics}), "begin", "go", "choose", "failed")
	follow("paused", r.Resume(t.Context(), graph.Resume{Thread: "trip", Topics: topics, Pause: pause}), "begin", "go", "choose", "paused")
	follow("waiting", r.Resume(t.Context(), graph.Resume{Thread: "trip", Topics: topics}), "begin", "go", "ask", "waiting")
	waited = true
	answer := graph.Answer{Value: "lake"}
	follow("done", r.Resume(t.Context(), graph.Resume{Thread: "trip", Topics: topics, Answers: []graph.Answer{answer}}), "begin", "go", "ask", "done")
}
