package graph_test

import (
	"context"
	"errors"
	"testing"

	"raddle.dev/graph"
)

// A run that is ended by hand is over for everybody: listings, resumes, and
// the process that starts another one after it.
func TestAbandon(t *testing.T) {
	asks := parallel(t, graph.Node{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "well?"})
		return graph.Put(only.Set("answered")), err
	}})
	r := kept(asks)
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	if err := graph.Abandon(t.Context(), r.Store, thread, "no longer wanted"); err != nil {
		t.Fatal(err)
	}
	s, err := graph.Inspect(t.Context(), r.Store, thread, 0)
	if err != nil || s.Status != graph.Abandoned || s.Reason != "no longer wanted" || s.Run != res.Run {
		t.Errorf("%+v, %v", s, err)
	}
	for info, err := range r.Store.Threads(t.Context(), "") {
		d, failed := graph.Describe(info)
		if err != nil || failed != nil || d.Status != graph.Abandoned || d.Reason != s.Reason || d.Run != res.Run || len(d.Questions) != 0 {
			t.Errorf("listed as %+v, %v, %v", d, err, failed)
		}
	}
	again, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread})
	if err != nil || again.Status != graph.Abandoned {
		t.Errorf("resumed: %v, %v", again.Status, err)
	}
	answer := []graph.Answer{{ID: res.Questions[0].ID, Value: "x"}}
	if _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Answers: answer}); !isAnswerError(err) {
		t.Errorf("answered: %v", err)
	}
	if err := graph.Abandon(t.Context(), r.Store, thread, "again"); err != nil {
		t.Errorf("again: %v", err)
	}
	if again, err := graph.Inspect(t.Context(), r.Store, thread, 0); err != nil || again.Head != s.Head {
		t.Errorf("a run that was over was ended: %+v, %v", again, err)
	}
	res, err = start(t, r)
	is(t, graph.Waiting, res, err)
	if err := graph.Abandon(t.Context(), r.Store, "nobody's", ""); !errors.Is(err, graph.ErrNoThread) {
		t.Errorf("an unknown thread: %v", err)
	}
}

func isAnswerError(err error) bool {
	var answer *graph.AnswerError
	return errors.As(err, &answer)
}

// The time since a crash is not counted as the run's.
func TestAbandonAfterACrash(t *testing.T) {
	r := kept(parallel(t, say("a")))
	res, err := start(t, r)
	is(t, graph.Done, res, err)
	crashed := before(t, r.Store, nth(graph.KindEnd, 1))
	was, err := graph.Inspect(t.Context(), crashed, thread, 0)
	if err != nil || was.Status != graph.Crashed {
		t.Fatalf("%+v, %v", was, err)
	}
	if err := graph.Abandon(t.Context(), crashed, thread, ""); err != nil {
		t.Fatal(err)
	}
	now, err := graph.Inspect(t.Context(), crashed, thread, 0)
	if err != nil || now.Status != graph.Abandoned || now.Active != was.Active {
		t.Errorf("%+v, %v", now, err)
	}
}
