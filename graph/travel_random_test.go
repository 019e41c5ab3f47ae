package graph_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
)

// traveller does things at random to the threads of one store.
type traveller struct {
	*testing.T
	rnd     *rand.Rand
	st      graph.Store
	r       *graph.Runner
	threads []string
	did     []string // for messages
}

func (w *traveller) note(format string, args ...any) {
	w.did = append(w.did, fmt.Sprintf(format, args...))
}

func (w *traveller) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%v: %v", w.did, err)
	}
}

// step forks a thread at a point that is left of it, edits one without changing
// what comes out, prunes one, or answers a question.
func (w *traveller) step() {
	thread := w.threads[w.rnd.IntN(len(w.threads))]
	recs := records(w, w.st, thread)
	switch w.rnd.IntN(5) {
	case 0, 1:
		at, into := recs[w.rnd.IntN(len(recs))].Seq, fmt.Sprint("t", len(w.threads))
		w.note("fork %s at %d into %s", thread, at, into)
		w.check(graph.Fork(w.Context(), w.st, thread, at, into))
		w.threads = append(w.threads, into)
	case 2:
		w.note("edit %s", thread)
		_, err := w.r.Edit(w.Context(), thread, hits.Set(0), notes.Set(nil))
		w.check(err)
	case 3:
		keep := w.rnd.IntN(len(recs) + 1)
		w.note("prune %s to %d", thread, keep)
		_, err := graph.Prune(w.Context(), w.st, thread, graph.Keep{Records: keep})
		w.check(err)
	case 4:
		s, err := graph.Inspect(w.Context(), w.st, thread, 0)
		w.check(err)
		in := graph.Resume{Thread: thread}
		if len(s.Questions) > 0 {
			in.Answers = []graph.Answer{answer(s.Questions[w.rnd.IntN(len(s.Questions))])}
		}
		if s.Status.Final() {
			return
		}
		w.note("resume %s with %d answers", thread, len(in.Answers))
		_, err = w.r.InvokeResume(w.Context(), in)
		w.check(err)
	}
}

// Whatever is forked, edited, pruned, answered and resumed in whatever order: every
// thread reaches the end that an undisturbed run reaches, and can be blamed.
func TestTravelAtRandom(t *testing.T) {
	const seeds, steps = 40, 25
	e := newEverything(t)
	want := outcome(*e.finish(t, &graph.Runner{Graph: e.g, Store: graph.NewMemory()}, true))
	for seed := range uint64(seeds) {
		w := &traveller{T: t, rnd: rand.New(rand.NewPCG(seed, 1)), st: graph.NewMemory(), threads: []string{"t0"}}
		if seed%8 == 0 {
			w.st = openSQLite(t)
		}
		w.r = &graph.Runner{Graph: e.g, Store: w.st}
		in := graph.Input{Thread: "t0"}
		if seed%2 == 1 { // some of the questions are answered before they are asked
			in.Ahead = []graph.Answer{{ID: "work[2]", Value: len("work[2]")}, {ID: "sub[1]/two#2", Value: "re sub[1]/two#2"}}
		}
		_, err := w.r.Invoke(t.Context(), in)
		w.check(err)
		for range steps {
			w.step()
		}
		for _, thread := range w.threads {
			if diff := cmp.Diff(want, outcome(resumed(t, w.r, thread))); diff != "" {
				t.Fatalf("seed %d, thread %s, after %v:\n%s", seed, thread, w.did, diff)
			}
			_, err := graph.Blame(t.Context(), w.st, thread, "notes")
			w.check(err)
		}
		_, err = graph.Lineage(t.Context(), w.st, "")
		w.check(err)
	}
}

// A snapshot in the middle of a step keeps which answers given ahead it used.
func TestForkBehindASnapshotGivesAnswersBack(t *testing.T) {
	ctx := t.Context()
	st := graph.NewMemory()
	g := compile(t, graph.Def{Name: "two", Keys: []graph.AnyKey{lines}, Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			one, err := graph.Interrupt[string](ctx, graph.Ask{Name: "one", Prompt: "one?"})
			if err != nil {
				return graph.Update{}, err
			}
			two, err := graph.Interrupt[string](ctx, graph.Ask{Name: "two", Prompt: "two?"})
			return graph.Put(lines.Set([]string{one, two})), err
		}}}, Edges: []graph.Edge{edge("a", graph.End)}})
	r := &graph.Runner{Graph: g, Store: st}
	res, err := r.Invoke(ctx, graph.Input{Thread: "t", Ahead: []graph.Answer{{Value: "first"}}})
	if err != nil || res.Status != graph.Waiting {
		t.Fatalf("%v, %v", res.Status, err)
	}
	pruned(t, st, "t", graph.Keep{})
	fork(t, st, "t", 0, "u")
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "u"})
	if err != nil || len(res.Questions) != 1 || res.Questions[0].ID != "a#2" {
		t.Fatalf("%+v, %v", res.Questions, err)
	}
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "u", Answers: []graph.Answer{{ID: "a#2", Value: "second"}}})
	if diff := cmp.Diff([]string{"first", "second"}, lines.Get(res.State)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
