package graph_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
)

// onEveryStore runs a test on a store in memory and on one in a file.
func onEveryStore(t *testing.T, test func(t *testing.T, st graph.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, graph.NewMemory()) })
	t.Run("sqlite", func(t *testing.T) { test(t, openSQLite(t)) })
}

// records reads a whole thread.
func records(t testing.TB, st graph.Store, thread string) (recs []graph.Record) {
	t.Helper()
	for r, err := range st.Read(t.Context(), thread, graph.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Head) == 0 {
			r.Head = nil
		}
		if len(r.Data) == 0 {
			r.Data = nil
		}
		recs = append(recs, r)
	}
	return recs
}

// described is a thread as a listing shows it.
func described(t testing.TB, st graph.Store, thread string) graph.RunInfo {
	t.Helper()
	for i, err := range st.Threads(t.Context(), thread) {
		if err != nil {
			t.Fatal(err)
		}
		if i.Name != thread {
			continue
		}
		info, err := graph.Describe(i)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	t.Fatalf("no thread %s", thread)
	return graph.RunInfo{}
}

// resumed resumes a thread, answering what is asked, until it is over.
func resumed(t testing.TB, r *graph.Runner, thread string) graph.Result {
	t.Helper()
	in := graph.Resume{Thread: thread}
	for range 20 {
		res, err := r.InvokeResume(t.Context(), in)
		if err != nil {
			t.Fatalf("thread %s: %v", thread, err)
		}
		if res.Status == graph.Done {
			return res
		}
		in.Answers = nil
		for _, q := range res.Questions {
			in.Answers = append(in.Answers, answer(q))
		}
	}
	t.Fatalf("thread %s never ends", thread)
	return graph.Result{}
}

func fork(t testing.TB, st graph.Store, thread string, at int64, into string) {
	t.Helper()
	if err := graph.Fork(t.Context(), st, thread, at, into); err != nil {
		t.Fatal(err)
	}
}

// A fork at any record of a journal, of children, effects and questions too, leads
// to the same outcome, and leaves the original as it was.
func TestForkAtEveryRecordLeadsToTheSameEnd(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st graph.Store) {
		e := newEverything(t)
		r := &graph.Runner{Graph: e.g, Store: st}
		want := outcome(*e.finish(t, r, true))
		was := records(t, st, "t")
		for _, rec := range was {
			into := fmt.Sprintf("fork%03d", rec.Seq)
			fork(t, st, "t", rec.Seq, into)
			over := rec.Seq == was[len(was)-1].Seq
			i := described(t, st, into)
			if i.Status != graph.Paused && !over || i.Status != graph.Done && over || i.Graph != "everything" || len(i.Questions) > 0 {
				t.Fatalf("fork at record %d (%s) is listed as %+v", rec.Seq, rec.Kind, i)
			}
			if diff := cmp.Diff(graph.Point{Thread: "t", Seq: rec.Seq}, i.From); diff != "" {
				t.Fatal(diff)
			}
			if diff := cmp.Diff(want, outcome(resumed(t, r, into))); diff != "" {
				t.Fatalf("fork at record %d (%s):\n%s", rec.Seq, rec.Kind, diff)
			}
		}
		if diff := cmp.Diff(was, records(t, st, "t")); diff != "" {
			t.Errorf("the original has changed:\n%s", diff)
		}
	})
}

// Answers given ahead that the unfinished step used are there for its copy.
func TestForkGivesAnswersGivenAheadBack(t *testing.T) {
	e := newEverything(t)
	st := graph.NewMemory()
	r := &graph.Runner{Graph: e.g, Store: st, Executor: sequential{}}
	ahead := []graph.Answer{{ID: "sub[1]/two", Value: "x"}, {ID: "work[4]", Value: 4}, {ID: "work", Value: 2},
		{ID: "sub[2]/two", Value: "y"}, {ID: "sub[1]/two", Value: "z"}, {Value: "w"}}
	want, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Ahead: ahead})
	if err != nil || want.Status != graph.Done {
		t.Fatalf("%v, %v, open %v", want.Status, err, want.Questions)
	}
	for seq := int64(1); seq <= want.Head; seq++ {
		into := fmt.Sprintf("fork%03d", seq)
		fork(t, st, "t", seq, into)
		got, err := r.InvokeResume(t.Context(), graph.Resume{Thread: into})
		if err != nil || got.Status != graph.Done {
			t.Fatalf("fork at record %d: %v, %v, open %v", seq, got.Status, err, got.Questions)
		}
		if diff := cmp.Diff(outcome(want), outcome(got)); diff != "" {
			t.Fatalf("fork at record %d:\n%s", seq, diff)
		}
	}
}

// lines is the key of the graphs of this file.
var lines = graph.Append[string]("lines")

// said is a chain of nodes that each add their name to lines.
func said(t testing.TB, names ...string) *graph.Graph {
	d := graph.Def{Name: "said", Keys: []graph.AnyKey{lines}, Start: names[:1]}
	for i, name := range names {
		d.Nodes = append(d.Nodes, graph.Node{Name: name, Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(lines.Set([]string{name})), nil
		}})
		to := graph.End
		if i+1 < len(names) {
			to = names[i+1]
		}
		d.Edges = append(d.Edges, edge(name, to))
	}
	return compile(t, d)
}

func TestEditAnOlderPoint(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st graph.Store) {
		ctx := t.Context()
		r := &graph.Runner{Graph: said(t, "a", "b", "c"), Store: st}
		if _, err := r.Invoke(ctx, graph.Input{Thread: "t"}); err != nil {
			t.Fatal(err)
		}
		was := records(t, st, "t")
		fork(t, st, "t", 2, "u") // behind the step of a
		seq, err := r.Edit(ctx, "u", lines.Reset([]string{"EDIT"}))
		if err != nil || seq != 2 {
			t.Fatalf("%d, %v", seq, err)
		}
		if i := described(t, st, "u"); i.Status != graph.Paused || i.Run != "u" {
			t.Errorf("listed as %+v", i)
		}
		if diff := cmp.Diff([]string{"EDIT", "b", "c"}, lines.Get(resumed(t, r, "u").State)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(was, records(t, st, "t")); diff != "" {
			t.Errorf("the original has changed:\n%s", diff)
		}
		s, err := r.State(ctx, "u", 1)
		if diff := cmp.Diff([]string{"a"}, lines.Get(s)); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

// A thread that is over can be edited, forked and run again.
func TestTravelOfAThreadThatIsOver(t *testing.T) {
	ctx := t.Context()
	st := graph.NewMemory()
	r := &graph.Runner{Graph: said(t, "a", "b"), Store: st}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "t", Run: "r"}); err != nil {
		t.Fatal(err)
	}
	fork(t, st, "t", 0, "u")
	if _, err := r.Edit(ctx, "u", lines.Set([]string{"x"})); err != nil {
		t.Fatal(err)
	}
	if i := described(t, st, "u"); i.Status != graph.Done || i.Run != "r" {
		t.Errorf("listed as %+v", i)
	}
	if res, err := r.InvokeResume(ctx, graph.Resume{Thread: "u"}); err != nil || res.Status != graph.Done {
		t.Errorf("%v, %v", res.Status, err)
	}
	res, err := r.Invoke(ctx, graph.Input{Thread: "u"})
	if diff := cmp.Diff([]string{"a", "b", "x", "a", "b"}, lines.Get(res.State)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if i := described(t, st, "u"); i.Status != graph.Done || i.Run == "r" {
		t.Errorf("listed as %+v", i)
	}
}

// asking has an effect and a question in one node, and sends the effect's key on.
func asking(t testing.TB, keys *[]string) *graph.Graph {
	return compile(t, graph.Def{Name: "asking", Keys: []graph.AnyKey{lines}, Start: []string{"first"},
		Nodes: []graph.Node{
			{Name: "first", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				v, err := graph.Do(ctx, "early", func(ctx context.Context) (string, error) {
					*keys = append(*keys, "first")
					return "first", nil
				})
				return graph.Put(lines.Set([]string{v})), err
			}},
			{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if _, err := graph.Do(ctx, "call", func(ctx context.Context) (string, error) {
					*keys = append(*keys, graph.EffectKey(ctx))
					return "", nil
				}); err != nil {
					return graph.Update{}, err
				}
				a, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "and?"})
				return graph.Put(lines.Set([]string{a})), err
			}},
		}, Edges: []graph.Edge{edge("first", "ask"), edge("ask", graph.End)}})
}

// The unfinished step runs again in its new branch, under other effect keys; steps
// that are done do not.
func TestANewBranchRepeatsTheStepUnderWay(t *testing.T) {
	ctx := t.Context()
	var keys []string
	st := graph.NewMemory()
	r := &graph.Runner{Graph: asking(t, &keys), Store: st}
	if res, err := r.Invoke(ctx, graph.Input{Thread: "t"}); err != nil || res.Status != graph.Waiting {
		t.Fatalf("%v, %v", res.Status, err)
	}
	fork(t, st, "t", 0, "u")
	resume := func(thread string) {
		res, err := r.InvokeResume(ctx, graph.Resume{Thread: thread})
		if err != nil || res.Status != graph.Waiting || res.Questions[0].ID != "ask" {
			t.Fatalf("%s: %v, %v, %v", thread, res.Status, res.Questions, err)
		}
	}
	resume("u")
	resume("t")
	if _, err := r.Edit(ctx, "t", lines.Set([]string{"edited"})); err != nil {
		t.Fatal(err)
	}
	if i := described(t, st, "t"); i.Status != graph.Paused || len(i.Questions) > 0 {
		t.Errorf("listed as %+v", i)
	}
	snap, err := graph.Inspect(ctx, st, "t", 0)
	if err != nil || snap.Status != graph.Paused || len(snap.Questions) > 0 {
		t.Errorf("%+v, %v", snap, err)
	}
	resume("t")
	resume("t") // recorded by now
	if _, err := r.Edit(ctx, "t", lines.Set(nil)); err != nil {
		t.Fatal(err)
	}
	resume("t")
	if err := st.Prune(ctx, "u", 1<<60); err != nil { // a fork of the same name is another branch
		t.Fatal(err)
	}
	fork(t, st, "t", 3, "u")
	resume("u")
	if len(keys) != 6 {
		t.Fatalf("effects: %q", keys)
	}
	for i, k := range keys {
		for _, other := range keys[:i] {
			if k == other {
				t.Errorf("effect key %q is used by two branches", k)
			}
		}
	}
	for thread, want := range map[string][]string{"t": {"first", "edited", "yes"}, "u": {"first", "yes"}} {
		res, err := r.InvokeResume(ctx, graph.Resume{Thread: thread, Answers: []graph.Answer{{ID: "ask", Value: "yes"}}})
		if diff := cmp.Diff(want, lines.Get(res.State)); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", thread, err, diff)
		}
	}
}

func TestEditRefuses(t *testing.T) {
	ctx := t.Context()
	st := graph.NewMemory()
	r := &graph.Runner{Graph: said(t, "a"), Store: st}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "t"}); err != nil {
		t.Fatal(err)
	}
	was := records(t, st, "t")
	node := []graph.Node{{Name: "a", Run: inc}}
	other := graph.Last[int]("lines")
	retyped := compile(t, graph.Def{Name: "said", Keys: []graph.AnyKey{other}, Start: []string{"a"}, Nodes: node, Edges: []graph.Edge{edge("a", graph.End)}})
	open := compile(t, graph.Def{Name: "said", Keys: []graph.AnyKey{lines}, Open: func(name string) graph.AnyKey { return graph.Dyn(name) }, Start: []string{"a"}, Nodes: node, Edges: []graph.Edge{edge("a", graph.End)}})
	for _, c := range []struct {
		name   string
		runner *graph.Runner
		thread string
		set    []graph.Write
		want   string
	}{
		{"nothing", r, "t", nil, "nothing to write"},
		{"zero write", r, "t", []graph.Write{{}}, "not made by Set"},
		{"unknown key", r, "t", []graph.Write{lines.Set(nil), counter.Set(1)}, `"count" is not declared`},
		{"type of the graph", r, "t", []graph.Write{other.Set(1)}, `"lines" was stored with type []string, and is written with type int`},
		{"type of the thread", &graph.Runner{Graph: retyped, Store: st}, "t", []graph.Write{other.Set(1)}, `"lines" was stored with type []string`},
		{"value that cannot be stored", &graph.Runner{Graph: open, Store: st}, "t", []graph.Write{graph.Dyn("x").Set(make(chan int))}, "cannot be stored"},
		{"no thread", r, "nobody", []graph.Write{lines.Set(nil)}, "no such thread: nobody"},
		{"no store", &graph.Runner{Graph: r.Graph}, "t", []graph.Write{lines.Set(nil)}, "give the Runner one"},
	} {
		if _, err := c.runner.Edit(ctx, c.thread, c.set...); err == nil || !contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if diff := cmp.Diff(was, records(t, st, "t")); diff != "" {
		t.Errorf("something was written:\n%s", diff)
	}
}

// The first to append wins: an edit fences a drive off, and a drive an edit.
func TestEditAndDriveExcludeEachOther(t *testing.T) {
	ctx := t.Context()
	st := graph.NewMemory()
	var r *graph.Runner
	g := compile(t, graph.Def{Name: "racing", Keys: []graph.AnyKey{lines}, Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			if len(lines.Get(s)) == 0 {
				_, err := r.Edit(ctx, "t", lines.Set([]string{"edited"}))
				return graph.Put(lines.Set([]string{"lost"})), err
			}
			return graph.Put(lines.Set([]string{"a"})), nil
		}}}, Edges: []graph.Edge{edge("a", graph.End)}})
	r = &graph.Runner{Graph: g, Store: st}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "t"}); !errors.Is(err, graph.ErrConflict) {
		t.Fatalf("the drive: %v", err)
	}
	late := &graph.Runner{Graph: g, Store: &behind{Store: st, first: func() { resumed(t, r, "t") }}}
	if _, err := late.Edit(ctx, "t", lines.Set([]string{"late"})); !errors.Is(err, graph.ErrConflict) {
		t.Fatalf("the edit: %v", err)
	}
	s, err := r.State(ctx, "t", 0)
	if diff := cmp.Diff([]string{"edited", "a"}, lines.Get(s)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// behind is a store on which another writer is faster.
type behind struct {
	graph.Store
	first func()
}

func (b *behind) Append(ctx context.Context, thread string, after int64, recs []graph.Record) error {
	b.first()
	return b.Store.Append(ctx, thread, after, recs)
}

func TestPointsThatAreNot(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st graph.Store) {
		ctx := t.Context()
		r := &graph.Runner{Graph: said(t, "a", "b"), Store: st}
		res, err := r.Invoke(ctx, graph.Input{Thread: "t"})
		if err != nil {
			t.Fatal(err)
		}
		fork(t, st, "t", 0, "taken")
		for _, c := range []struct {
			thread string
			at     int64
			into   string
			want   error
		}{
			{"t", res.Head + 1, "u", graph.ErrNoPoint},
			{"t", -1, "u", graph.ErrNoPoint},
			{"nobody", 0, "u", graph.ErrNoThread},
			{"nobody", 3, "u", graph.ErrNoThread},
			{"t", 1, "taken", graph.ErrThreadExists},
			{"t", 1, "t", graph.ErrThreadExists},
		} {
			if err := graph.Fork(ctx, st, c.thread, c.at, c.into); !errors.Is(err, c.want) {
				t.Errorf("fork %s at %d into %s: %v", c.thread, c.at, c.into, err)
			}
			if errors.Is(c.want, graph.ErrThreadExists) {
				continue
			}
			_, state := r.State(ctx, c.thread, c.at)
			_, inspect := graph.Inspect(ctx, st, c.thread, c.at)
			_, diff := graph.Diff(ctx, st, graph.Point{Thread: "t"}, graph.Point{Thread: c.thread, Seq: c.at})
			for what, err := range map[string]error{"State": state, "Inspect": inspect, "Diff": diff} {
				if !errors.Is(err, c.want) {
					t.Errorf("%s of %s at %d: %v", what, c.thread, c.at, err)
				}
			}
		}
		if err := graph.Fork(ctx, st, "t", 0, ""); err == nil {
			t.Error("a fork without a name")
		}
	})
}

// The time between a crash and an edit is not counted as active time.
func TestEditAfterACrashCountsNoTime(t *testing.T) {
	mem, clock := graph.NewMemory(), &calendar{day: 1}
	r := &graph.Runner{Graph: said(t, "a", "b"), Store: &dying{Store: mem, left: 2}, Clock: clock}
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	clock.day, r.Store = 3, mem
	if _, err := r.Edit(t.Context(), "t", lines.Set(nil)); err != nil {
		t.Fatal(err)
	}
	s, err := graph.Inspect(t.Context(), mem, "t", 0)
	if err != nil || s.Active != 0 || s.Status != graph.Paused {
		t.Errorf("active for %v, %v, %v", s.Active, s.Status, err)
	}
}
