package graph_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// A question of one task is answered while another task of its step works: the answer is checked and
// recorded at once, and the task continues in the same drive. If the drive is cut off, the next one has the answer.
func TestHandleAnswersWhileOtherTasksWork(t *testing.T) {
	for _, cut := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			release, repeats := make(chan struct{}), 0
			r := graph.Runner{Store: journal.NewMemory(), Graph: compile(t, graph.Def{Keys: all, Start: []string{"work", "ask"}, Nodes: []graph.Node{
				{Name: "work", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
					_, err := graph.Do(ctx, "slow", func(ctx context.Context) (string, error) {
						repeats++
						select {
						case <-release:
							return "", nil
						case <-ctx.Done():
							return "", ctx.Err()
						}
					})
					return graph.Update{}, err
				}},
				{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
					said, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "which?", Options: []string{"left", "right"}})
					return graph.Put(only.Set(said)), err
				}},
				say("j"),
			}, Edges: []graph.Edge{join("j", "work", "ask"), edge("j", graph.End)}})}
			var h graph.Handle
			if _, err := h.Answer(graph.Answer{ID: "ask", Value: "left"}); !errors.Is(err, graph.ErrNotDriven) {
				t.Fatalf("before the drive: %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var res graph.Result
			go func() { res, _ = r.Invoke(ctx, graph.Input{Thread: thread, Handle: &h}) }()
			synctest.Wait()
			if _, err := h.Answer(graph.Answer{ID: "ask", Value: "up"}); !errors.As(err, new(*graph.AnswerError)) {
				t.Fatalf("an answer that is not an option: %v", err)
			}
			if by := answeredBy(t, r.Store); by != nil {
				t.Fatalf("a refused answer was recorded: %q", by)
			}
			open, err := h.Answer(graph.Answer{ID: "ask", Value: "right", By: "ci"})
			if err != nil || len(open) > 0 {
				t.Fatalf("open: %v, %v", open, err)
			}
			if at := h.ReadLastRecord(); at != lastAnswer(t, r.Store) {
				t.Errorf("the answer is said to be recorded at %d, and is at %d", at, lastAnswer(t, r.Store))
			}
			if by := answeredBy(t, r.Store); !slices.Equal(by, []string{"ci"}) {
				t.Fatalf("the other task works, and recorded are the answers of %q", by)
			}
			if _, err := h.Answer(graph.Answer{ID: "ask", Value: "left"}); !errors.As(err, new(*graph.AnswerError)) {
				t.Fatalf("a second answer: %v", err)
			}
			if cut {
				cancel()
				synctest.Wait()
				close(release)
				res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Handle: &h})
				if err != nil || repeats != 2 {
					t.Errorf("%v; the other task worked %d times", err, repeats)
				}
			} else {
				close(release)
				synctest.Wait()
			}
			if res.Status != graph.Done || only.Get(res.State) != "right" {
				t.Errorf("the run ends as %s with %q", res.Status, only.Get(res.State))
			}
			if _, err := h.Answer(graph.Answer{ID: "ask", Value: "left"}); !errors.Is(err, graph.ErrNotDriven) {
				t.Errorf("after the drive: %v", err)
			}
		})
	}
}

// If some questions stay open, the run waits for them; each is reported once.
func TestHandleLeavesOtherQuestionsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ask := func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "and?"})
			return graph.Update{}, err
		}
		r := graph.Runner{Store: journal.NewMemory(), Graph: compile(t, graph.Def{Keys: all, Start: []string{"work", "p", "q"}, Nodes: []graph.Node{
			{Name: "work", Run: func(context.Context, graph.State) (graph.Update, error) { <-release; return graph.Update{}, nil }},
			{Name: "p", Run: ask}, {Name: "q", Run: ask}, say("j"),
		}, Edges: []graph.Edge{join("j", "work", "p", "q"), edge("j", graph.End)}})}
		var h graph.Handle
		var res graph.Result
		var asked, answered []string
		go func() {
			for ev, err := range r.Run(t.Context(), graph.Input{Thread: thread, Handle: &h, Topics: graph.AllTopics}) {
				switch b := ev.Body.(type) {
				case graph.QuestionAsked:
					asked = append(asked, b.Question.ID)
				case graph.QuestionAnswered:
					answered = append(answered, b.ID+" by "+b.By)
				case graph.RunEnded:
					res = b.Result
				}
				if err != nil {
					t.Error(err)
				}
			}
		}()
		synctest.Wait()
		open, err := h.Answer(graph.Answer{ID: "q", Value: "yes", By: "ann"})
		if err != nil || len(open) != 1 || open[0].ID != "p" {
			t.Fatalf("open: %v, %v", open, err)
		}
		close(release)
		synctest.Wait()
		slices.Sort(asked)
		if res.Status != graph.Waiting || len(res.Questions) != 1 || !slices.Equal(asked, []string{"p", "q"}) || !slices.Equal(answered, []string{"q by ann"}) {
			t.Errorf("status %s, open %v, asked %v, answered %v", res.Status, res.Questions, asked, answered)
		}
		if res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Answers: []graph.Answer{{Value: "yes"}}}); err != nil || res.Status != graph.Done {
			t.Errorf("the last answer: %s, %v", res.Status, err)
		}
	})
}

// lastAnswer returns the number of the newest record of an answer; 0: there is none.
func lastAnswer(t *testing.T, st journal.Store) (at int64) {
	t.Helper()
	for e, err := range history.Entries(t.Context(), st, thread) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == journal.KindAnswer {
			at = max(at, e.Seq)
		}
	}
	return at
}

// answeredBy returns the names that the answers of a thread were recorded with, oldest first.
func answeredBy(t *testing.T, st journal.Store) (by []string) {
	t.Helper()
	for e, err := range history.Entries(t.Context(), st, thread) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == journal.KindAnswer {
			by = slices.Insert(by, 0, e.By)
		}
	}
	return by
}

// A fork, an edit and an end by hand name who asked for them; without a name, records are as they were before names.
func TestHistoryNamesAuthors(t *testing.T) {
	for _, name := range []string{"ci", ""} {
		r := graph.Runner{Store: journal.NewMemory(), Graph: compile(t, graph.Def{Keys: all, Start: []string{"ask"}, Nodes: []graph.Node{
			{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "and?"})
				return graph.Update{}, err
			}}}, Edges: []graph.Edge{edge("ask", graph.End)}})}
		if res, err := r.Invoke(t.Context(), graph.Input{Thread: "origin"}); err != nil || res.Status != graph.Waiting {
			t.Fatal(res.Status, err)
		}
		ctx := journal.WithAuthor(t.Context(), name)
		if err := history.Fork(ctx, r.Store, "origin", 0, thread); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Edit(ctx, thread, only.Set("new")); err != nil {
			t.Fatal(err)
		}
		if _, err := history.Abandon(ctx, r.Store, thread, "enough"); err != nil {
			t.Fatal(err)
		}
		var kinds []journal.Kind
		for e, err := range history.Entries(t.Context(), r.Store, thread) {
			if err != nil || e.By != name {
				t.Errorf("%s by %q: %v", e.Kind, e.By, err)
			}
			kinds = append(kinds, e.Kind)
		}
		if !slices.Equal(kinds, []journal.Kind{journal.KindEnd, journal.KindEdit, journal.KindFork}) {
			t.Errorf("records: %v", kinds)
		}
		snap, err := history.Inspect(t.Context(), r.Store, thread, 0)
		if err != nil || snap.Status != graph.Abandoned || snap.Reason != "enough" {
			t.Errorf("%+v, %v", snap, err)
		}
	}
}
