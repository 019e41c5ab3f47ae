package graph_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// EditAll resets a key in every graph of a run that holds it with its type, begins a new branch, and leaves everything else.
// Without the answers of the start, questions stay open.
func TestEditAll(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st journal.Store) {
		list, other, told := graph.Append[string]("list"), graph.Last[int]("other"), graph.Last[string]("told")
		effects := 0
		ask := graph.Node{Name: "ask", Routes: []string{graph.End}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			if _, err := graph.Do(ctx, "effect", func(context.Context) (int, error) { effects++; return effects, nil }); err != nil {
				return graph.Update{}, err
			}
			text, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "Well?"})
			return graph.Put(told.Set(text)), err
		}}
		fill := func(next string) graph.Node {
			return graph.Node{Name: "fill", Routes: []string{next}, Run: func(context.Context, graph.State) (graph.Update, error) {
				u := graph.Put(list.Set([]string{"a", "b"}), other.Set(7))
				u.Goto = []string{next}
				return u, nil
			}}
		}
		keys := []graph.AnyKey{list, other, told}
		child, err := graph.Compile(graph.Def{Name: "child", Keys: keys, Start: []string{"fill"}, Nodes: []graph.Node{fill("ask"), ask}})
		if err != nil {
			t.Fatal(err)
		}
		g, err := graph.Compile(graph.Def{Name: "g", Keys: keys, Start: []string{"fill"}, Nodes: []graph.Node{fill("sub"), {Name: "sub", Graph: child}}, Edges: []graph.Edge{{From: []string{"sub"}, To: []string{graph.End}}}})
		if err != nil {
			t.Fatal(err)
		}
		r := &graph.Runner{Graph: g, Store: st}
		ahead := []graph.Answer{{ID: "nothing", Value: "x"}}
		if res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Run: "t", Ahead: ahead}); err != nil || res.Status != graph.Waiting {
			t.Fatal(res.Status, err)
		}
		before, err := history.Parts(t.Context(), st, "t")
		if err != nil || len(before) != 2 || len(before[1].Recorded) != 1 {
			t.Fatalf("%+v, %v", before, err)
		}
		if _, err := r.EditAll(t.Context(), "t", list.Set([]string{"c"})); err == nil {
			t.Error("EditAll takes a write that folds")
		}
		if _, err := r.EditAll(t.Context(), "t", list.Reset(nil)); err != nil {
			t.Fatal(err)
		}
		after, err := history.Parts(t.Context(), st, "t")
		if err != nil || len(after) != 2 || len(after[1].Recorded) != 0 {
			t.Fatalf("%+v, %v", after, err)
		}
		for i, p := range after {
			for j, v := range p.Values {
				was := before[i].Values[j]
				if changed := !cmp.Equal(v, was); changed != (v.Key == "list") {
					t.Errorf("%s%s is %q, and was %q", p.Path, v.Key, v.Parts, was.Parts)
				}
			}
		}
		if info := described(t, st, "t"); info.Status != graph.Paused || info.Run != "t" {
			t.Errorf("listed as %+v", info)
		}
		snap, err := history.Inspect(t.Context(), st, "t", 0)
		if err != nil || len(snap.Ahead) != 1 || snap.Ahead[0].ID != "nothing" {
			t.Errorf("answers given ahead: %v, %v", snap.Ahead, err)
		}
		res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t", IgnoreAhead: true})
		if err != nil || res.Status != graph.Waiting || effects != 2 || len(res.Unused) != 0 {
			t.Errorf("resumed: %v, %v, %d effects, unused %v", res.Status, err, effects, res.Unused)
		}
		if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{Value: "yes"}}}); err != nil || res.Status != graph.Done {
			t.Errorf("answered: %v, %v", res.Status, err)
		}
		if _, err := r.EditAll(t.Context(), "t", list.Reset(nil)); err == nil {
			t.Error("EditAll changes a run that is over")
		}
	})
}
