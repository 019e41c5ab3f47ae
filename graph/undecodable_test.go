package graph_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// damaged makes a thread as older versions left it: paused, with a value under the
// key that was written as JSON and does not decode into a report.
func damaged(t *testing.T, old graph.Key[report]) *graph.Runner {
	t.Helper()
	r := kept(compile(t, repairDef(old, old.Set(report{"x", errors.New("boom")}))))
	if res, err := start(t, r); err != nil || res.Status != graph.Paused {
		t.Fatal(res.Status, err)
	}
	return r
}

// repairDef is two nodes with a break between them. The first writes.
func repairDef(k graph.AnyKey, set graph.Write) graph.Def {
	return graph.Def{Name: "repair", Keys: []graph.AnyKey{k, graph.Sum[int]("n")}, Start: []string{"w"},
		Nodes: []graph.Node{{Name: "w", Run: writes(set, graph.Sum[int]("n").Set(1))}, {Name: "x", BreakBefore: true, Run: writes(graph.Sum[int]("n").Set(1))}},
		Edges: []graph.Edge{edge("w", "x"), edge("x", graph.End)}}
}

func TestAnUndecodableValueCanBeReplaced(t *testing.T) {
	old := graph.Last[report]("k").WithCodec(graph.JSONCodec[report]())
	r := damaged(t, old)
	if _, err := resume(t, r); err == nil || !strings.Contains(err.Error(), `key "k"`) || !strings.Contains(err.Error(), "Reset") {
		t.Fatalf("the value decodes, or the error does not say what to do: %v", err)
	}
	good := report{Name: "y"}
	repairs := map[string]func(*graph.Runner) (graph.Result, error){
		"Edit with Set": func(r *graph.Runner) (graph.Result, error) {
			if _, err := r.Edit(t.Context(), thread, old.Set(good)); err != nil {
				return graph.Result{}, err
			}
			return resume(t, r)
		},
		"Edit with Reset": func(r *graph.Runner) (graph.Result, error) {
			if _, err := r.Edit(t.Context(), thread, old.Reset(good)); err != nil {
				return graph.Result{}, err
			}
			return resume(t, r)
		},
		"EditNext": func(r *graph.Runner) (graph.Result, error) {
			if _, err := r.EditNext(t.Context(), thread, []string{"x"}, old.Reset(good)); err != nil {
				return graph.Result{}, err
			}
			return resume(t, r)
		},
		"Resume.Set": func(r *graph.Runner) (graph.Result, error) {
			return r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Set: []graph.Write{old.Set(good)}})
		},
		"a new run": func(r *graph.Runner) (graph.Result, error) {
			if _, err := history.Abandon(t.Context(), r.Store, thread, ""); err != nil {
				return graph.Result{}, err
			}
			res, err := start(t, r, old.Reset(good), graph.Sum[int]("n").Reset(1))
			if err != nil || res.Status != graph.Paused {
				return res, err
			}
			return r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Set: []graph.Write{old.Set(good), graph.Sum[int]("n").Reset(1)}})
		},
	}
	for name, repair := range repairs {
		r := damaged(t, old)
		res, err := repair(r)
		if err != nil || res.Status != graph.Done || old.Get(res.State) != good || graph.Sum[int]("n").Get(res.State) != 2 {
			t.Errorf("%s: %v %v %v", name, res.Status, err, res.State.Keys())
			continue
		}
		if s, err := r.State(t.Context(), thread, 0); err != nil || old.Get(s) != good {
			t.Errorf("%s: the journal holds %v, %v", name, old.Get(s), err)
		}
	}
}

// The type that cannot be read is refused by Compile, so that the graph that
// repairs the thread has another one.
func TestAnUndecodableValueCanBeReplacedByAnotherType(t *testing.T) {
	old := graph.Last[report]("k").WithCodec(graph.JSONCodec[report]())
	text := graph.Last[string]("k")
	repairs := map[string]func(*graph.Runner) (graph.Result, error){
		"Edit": func(r *graph.Runner) (graph.Result, error) {
			if _, err := r.Edit(t.Context(), thread, text.Set("y")); err == nil {
				return graph.Result{}, errors.New("Set folds onto a value of another type")
			}
			if _, err := r.Edit(t.Context(), thread, text.Reset("y")); err != nil {
				return graph.Result{}, err
			}
			return r.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true})
		},
		"Resume.Set": func(r *graph.Runner) (graph.Result, error) {
			return r.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true, Set: []graph.Write{text.Reset("y")}})
		},
	}
	for name, repair := range repairs {
		r := damaged(t, old)
		r.Graph = compile(t, repairDef(text, text.Set("")))
		res, err := repair(r)
		if err != nil || res.Status != graph.Done || text.Get(res.State) != "y" {
			t.Errorf("%s: %v %v %q", name, res.Status, err, text.Get(res.State))
			continue
		}
		if s, err := r.State(t.Context(), thread, 0); err != nil || text.Get(s) != "y" {
			t.Errorf("%s: the journal holds %q, %v", name, text.Get(s), err)
		}
		if snap, err := history.Inspect(t.Context(), r.Store, thread, 0); err != nil || snap.Values[0].Tag != "string" {
			t.Errorf("%s: %v %+v", name, err, snap)
		}
	}
}

// A Sum needs the value that was: the others do not.
func TestAnEditReadsOnlyWhatItFolds(t *testing.T) {
	old := graph.Last[report]("k").WithCodec(graph.JSONCodec[report]())
	r := damaged(t, old)
	n := graph.Sum[int]("n")
	if _, err := r.Edit(t.Context(), thread, n.Set(5)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Edit(t.Context(), thread, old.Reset(report{Name: "y"})); err != nil {
		t.Fatal(err)
	}
	s, err := r.State(t.Context(), thread, 0)
	if err != nil || n.Get(s) != 6 {
		t.Errorf("n is %d, %v", n.Get(s), err)
	}
}

// stubborn is a value that can be stored and not be read.
type stubborn struct{}

func (stubborn) MarshalJSON() ([]byte, error)  { return []byte("1"), nil }
func (*stubborn) UnmarshalJSON(b []byte) error { return errors.New("it cannot be read: " + string(b)) }

// What a task returned before others of its step had ended, and that cannot be read, ends a resume with an error that
// says what it is: nothing of it is left out.
func TestUndecodableResultsOfTasks(t *testing.T) {
	graph.Register[stubborn]("graph_test.stubborn")
	old := graph.Last[report]("k").WithCodec(graph.JSONCodec[report]())
	broken := old.Set(report{"x", errors.New("boom")})
	for name, c := range map[string]struct {
		update graph.Update
		want   string
	}{
		"a write":          {update: graph.Put(broken), want: `key "k"`},
		"an overlay":       {update: graph.Update{Send: []graph.Send{{To: "x", Overlay: []graph.Write{broken}}}}, want: `key "k"`},
		"the last overlay": {update: graph.Update{Send: []graph.Send{{To: "x"}, {To: "x", Overlay: []graph.Write{broken}}}}, want: `key "k"`},
		"a halt":           {update: graph.Update{Halt: &graph.Halt{Value: stubborn{}}}, want: "it cannot be read: 1"},
	} {
		r := kept(compile(t, graph.Def{
			Name:  "undecodable",
			Keys:  append(slices.Clone(all), old),
			Start: []string{"done", "ask"},
			Nodes: []graph.Node{
				{Name: "done", Routes: []string{"x"}, Run: func(context.Context, graph.State) (graph.Update, error) { return c.update, nil }},
				{Name: "ask", Run: asker("a")},
				{Name: "x", Run: idle},
			},
			Edges: []graph.Edge{edge("ask", graph.End), edge("x", graph.End)},
		}))
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		res, err = resume(t, r, says("", "yes"))
		if err == nil || res.Status != graph.Failed || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, res.Status, err)
		}
	}
}

// A result of a task that is damaged ends a resume, and does not count as one without writes.
func TestADamagedResultOfATask(t *testing.T) {
	r := kept(parallel(t, say("done"), graph.Node{Name: "ask", Run: asker("a")}))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	recs := journalOf(t, r.Store, thread)
	damaged := 0
	for i := range recs {
		if recs[i].Kind == journal.KindTask {
			damaged++
			recs[i].Data = recs[i].Data[:len(recs[i].Data)-1]
		}
	}
	if damaged != 1 {
		t.Fatalf("%d tasks are recorded", damaged)
	}
	m := journal.NewMemory()
	if err := m.Append(t.Context(), thread, 0, recs); err != nil {
		t.Fatal(err)
	}
	r.Store = m
	if res, err := resume(t, r, says("", "yes")); err == nil || res.Status == graph.Done {
		t.Errorf("%v, %v", res.Status, err)
	}
}
