package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
)

// Who edits a run may choose what runs next; the choice is in the journal, in what
// lists it, and in what is made of it.
func TestEditChoosesWhatRunsNext(t *testing.T) {
	for _, c := range []struct {
		next []string
		want string
		ran  string
	}{
		{[]string{"a"}, "[a edited a b c]", "a"},
		{[]string{"c"}, "[a edited c]", "c"},
		{[]string{"c", "a", "c"}, "[a edited a c b c]", "a c"},
		{[]string{graph.End}, "[a edited]", ""},
	} {
		st := graph.NewMemory()
		r := &graph.Runner{Graph: said(t, "a", "b", "c"), Store: st}
		res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Break: []graph.Break{{Node: "b"}}})
		is(t, graph.Paused, res, err)
		seq, err := r.EditNext(t.Context(), "t", c.next, lines.Set([]string{"edited"}))
		if err != nil || seq != res.Head+1 {
			t.Fatal(seq, err)
		}
		for e, err := range graph.History(t.Context(), st, "t") {
			if err != nil || strings.Join(e.Next, " ") != c.ran {
				t.Errorf("%v: listed as %v, %v", c.next, e.Next, err)
			}
			break
		}
		if s, err := graph.Inspect(t.Context(), st, "t", 0); err != nil || strings.Join(s.Next, " ") != c.ran || s.Status != graph.Paused {
			t.Errorf("%v: %+v, %v", c.next, s, err)
		}
		for _, thread := range []string{"forked", "pruned", "t"} {
			if thread != "t" {
				fork(t, st, "t", seq, thread)
			}
			if thread == "pruned" {
				if _, err := graph.Prune(t.Context(), st, thread, graph.Keep{}); err != nil {
					t.Fatal(err)
				}
			}
			res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread})
			if is(t, graph.Done, res, err); fmt.Sprint(lines.Get(res.State)) != c.want {
				t.Errorf("%v in %s: %v", c.next, thread, lines.Get(res.State))
			}
		}
	}
}

// Unfinished work ends with the choice: questions, children, arrivals, visits.
func TestAChoiceEndsWhatIsUnderWay(t *testing.T) {
	visit := 0
	child := compile(t, graph.Def{Name: "child", Keys: all, Start: []string{"q"}, Nodes: []graph.Node{{Name: "q", Run: asks(nil)}}, Edges: []graph.Edge{edge("q", graph.End)}})
	g := compile(t, graph.Def{Name: "top", Keys: all, Start: []string{"s"}, Nodes: []graph.Node{
		{Name: "s", Run: idle}, {Name: "slow", Graph: child}, {Name: "quick", Run: idle}, {Name: "both", Run: idle},
		{Name: "late", MaxVisits: 1, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			visit = graph.Visit(ctx)
			return graph.Update{}, nil
		}}},
		Edges: []graph.Edge{edge("s", "quick", "slow"), edge("slow", "late"), join("both", "quick", "late"), edge("both", graph.End)}})
	r := kept(g)
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	if _, err := r.EditNext(t.Context(), thread, []string{"both"}); err != nil {
		t.Fatal(err)
	}
	if res, err = resume(t, r); res.Status != graph.Done || visit != 0 {
		t.Errorf("%v, %v, late was visited %d times", res.Status, err, visit)
	}
	r = kept(g)
	res, err = start(t, r)
	is(t, graph.Waiting, res, err)
	for range 3 { // a choice that did not run is no visit
		if _, err := r.EditNext(t.Context(), thread, []string{"late"}); err != nil {
			t.Fatal(err)
		}
	}
	if res, err = resume(t, r); res.Status != graph.Stuck || visit != 1 {
		t.Errorf("%v, %v, visit %d", res.Status, err, visit)
	}
}

// What cannot be is refused, and nothing is written.
func TestChoicesThatAreRefused(t *testing.T) {
	r := &graph.Runner{Graph: said(t, "a", "b"), Store: graph.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Break: []graph.Break{{Node: "b"}}})
	is(t, graph.Paused, res, err)
	for want, next := range map[string][]string{"name at least one node": nil, `has no node "x", "y"`: {"x", "b", "y"}} {
		if _, err := r.EditNext(t.Context(), "t", next); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", next, err)
		}
	}
	if _, err := r.EditNext(t.Context(), "none", []string{"a"}); !errors.Is(err, graph.ErrNoThread) {
		t.Error(err)
	}
	was := res.Head
	if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"}); res.Status != graph.Done || res.Head <= was {
		t.Fatal(res.Status, err)
	}
	if _, err := r.EditNext(t.Context(), "t", []string{"a"}); err == nil || !strings.Contains(err.Error(), "is over (done): fork the thread") {
		t.Error(err)
	}
}

// A reader of the events can fork at each step, while the run continues.
func TestAStepTellsItsRecord(t *testing.T) {
	for _, level := range []graph.Durability{graph.EveryEffect, graph.EveryStep} {
		st := graph.NewMemory()
		r := &graph.Runner{Graph: said(t, "a", "b", "c"), Store: st, Durability: level}
		var seqs []int64
		for ev, err := range r.Run(t.Context(), graph.Input{Thread: "t", Topics: graph.TopicStep}) {
			if err != nil {
				t.Fatal(err)
			}
			if b, ok := ev.Body.(graph.StepCommitted); ok {
				seqs = append(seqs, b.Seq)
				fork(t, st, "t", b.Seq, fmt.Sprint("fork", b.Seq))
				if s, err := r.State(t.Context(), fmt.Sprint("fork", b.Seq), 0); err != nil || len(lines.Get(s)) != len(seqs) {
					t.Errorf("forked at %d: %v, %v", b.Seq, lines.Get(s), err)
				}
			}
		}
		var want []int64
		for c, err := range graph.Checkpoints(t.Context(), st, "t") {
			if err != nil {
				t.Fatal(err)
			}
			if c.Kind == graph.KindStep {
				want = append(want, c.Seq)
			}
		}
		if slices.Reverse(want); !slices.Equal(seqs, want) || len(seqs) != 3 {
			t.Errorf("level %d: told %v, recorded %v", level, seqs, want)
		}
	}
}
