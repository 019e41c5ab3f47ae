package graph_test

import (
	"context"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// A run works for one user, also when another process resumes it, from a snapshot or in a fork.
// The next run of the thread has its own user.
func TestUser(t *testing.T) {
	st := journal.NewMemory()
	var seen []string
	node := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		user, err := graph.Do(ctx, "who", func(ctx context.Context) (string, error) { return graph.UserOf(ctx), nil })
		if err != nil {
			return graph.Update{}, err
		}
		seen = append(seen, user)
		if _, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "?"}); err != nil {
			return graph.Update{}, err
		}
		seen = append(seen, graph.UserOf(ctx))
		return graph.Update{}, nil
	}
	g := compile(t, graph.Def{Name: "user", Nodes: []graph.Node{{Name: "a", Run: node}}, Edges: []graph.Edge{{From: []string{"a"}, To: []string{graph.End}}}, Start: []string{"a"}})
	r := &graph.Runner{Graph: g, Store: st}
	for _, user := range []string{"ada", ""} {
		seen = nil
		res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", User: user})
		if err != nil || res.Status != graph.Waiting {
			t.Fatalf("%+v, %v", res, err)
		}
		s, err := history.Inspect(t.Context(), st, "t", 0)
		if err != nil || s.User != user {
			t.Errorf("the thread is of the user %q, %v, want %q", s.User, err, user)
		}
		fork := "fork-of-" + user
		if err := history.Fork(t.Context(), st, "t", 0, fork); err != nil {
			t.Fatal(err)
		}
		for _, thread := range []string{"t", fork} {
			if res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread}); err != nil || res.Status != graph.Waiting {
				t.Fatalf("%+v, %v", res, err)
			}
			if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Answers: []graph.Answer{{ID: s.Questions[0].ID, Value: "yes"}}}); err != nil || res.Status != graph.Done {
				t.Fatalf("%+v, %v", res, err)
			}
		}
		for _, got := range seen {
			if got != user {
				t.Errorf("nodes work for %q, want %q", seen, user)
				break
			}
		}
		if len(seen) < 4 {
			t.Errorf("nodes have asked %d times", len(seen))
		}
	}
	if user := graph.UserOf(t.Context()); user != "" {
		t.Errorf("outside of a node the user is %q", user)
	}
}
