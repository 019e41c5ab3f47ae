package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
)

var (
	rounds = graph.Sum[int]("rounds")
	words  = graph.Append[string]("words")
)

// looping goes through two nodes three times, with an effect each time, and asks
// a question in between. happened counts the effects.
func looping(t *testing.T, happened map[string]int) *graph.Graph {
	t.Helper()
	g, err := graph.Compile(graph.Def{
		Name: "looping", Keys: []graph.AnyKey{rounds, words}, Start: []string{"work"},
		Nodes: []graph.Node{
			{Name: "work", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
				word, err := graph.Do(ctx, "effect", func(context.Context) (string, error) {
					name := fmt.Sprint("effect ", rounds.Get(s))
					happened[name]++
					return name, nil
				})
				return graph.Put(words.Set([]string{word}), rounds.Set(1)), err
			}},
			{Name: "ask", Routes: []string{"work"}, Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
				if rounds.Get(s) != 2 {
					return graph.Update{Goto: []string{next(rounds.Get(s))}}, nil
				}
				word, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "Which word?"})
				u := graph.Put(words.Set([]string{word}))
				u.Goto = []string{"work"}
				return u, err
			}},
		},
		Edges: []graph.Edge{{From: []string{"work"}, To: []string{"ask"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func next(round int) string {
	if round < 3 {
		return "work"
	}
	return graph.End
}

// drive begins or continues the run, answers its question, and returns its end.
func drive(t *testing.T, r *graph.Runner) (graph.Result, error) {
	t.Helper()
	res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
	if errors.Is(err, graph.ErrNoThread) {
		res, err = r.Invoke(t.Context(), graph.Input{Thread: "t"})
	}
	for err == nil && res.Status == graph.Waiting {
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "answered"}}})
	}
	return res, err
}

// TestCrashAtEveryRecord stops a run at each of its records, opens the file anew
// and lets the run go on.
func TestCrashAtEveryRecord(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for limit := 0; ; limit++ {
			path := filepath.Join(t.TempDir(), "runs.db")
			happened := map[string]int{}
			g := looping(t, happened)
			crash := &graphtest.Crash{Store: open(t, path), Limit: limit, Lost: lost}
			_, err := drive(t, &graph.Runner{Graph: g, Store: crash})
			if !crash.HasCrashed() {
				if err != nil || limit < 10 {
					t.Fatalf("without a crash, after %d records: %v", crash.RecordCount(), err)
				}
				break
			}
			if err == nil {
				t.Errorf("crash after %d records: the run has not noticed", limit)
			}
			if err := crash.Close(); err != nil {
				t.Fatal(err)
			}
			before := fmt.Sprint(happened)
			res, err := drive(t, &graph.Runner{Graph: g, Store: open(t, path)})
			if err != nil || res.Status != graph.Done {
				t.Fatalf("crash after %d records: %v, %v", limit, res.Status, err)
			}
			want := []string{"effect 0", "effect 1", "answered", "effect 2"}
			if d := cmp.Diff(want, words.Get(res.State)); d != "" {
				t.Errorf("crash after %d records (-want +got):\n%s", limit, d)
			}
			repeated := 0
			for _, n := range happened {
				repeated += n - 1
			}
			// Only an effect that the crash separated from its record happens again.
			if repeated > 1 || repeated > 0 && lost {
				t.Errorf("crash after %d records, with %s: %v", limit, before, happened)
			}
		}
	}
}
