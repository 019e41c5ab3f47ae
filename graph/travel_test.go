package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// onEveryStore runs a test on a store in memory and on one in a file.
func onEveryStore(t *testing.T, test func(t *testing.T, st journal.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, journal.NewMemory()) })
	t.Run("sqlite", func(t *testing.T) { test(t, openSQLite(t)) })
}

// records reads a whole thread.
func records(t testing.TB, st journal.Store, thread string) (recs []journal.Record) {
	t.Helper()
	for r, err := range st.Read(t.Context(), thread, journal.Range{}) {
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
func described(t testing.TB, st journal.Store, thread string) history.RunInfo {
	t.Helper()
	for i, err := range st.Threads(t.Context(), thread) {
		if err != nil {
			t.Fatal(err)
		}
		if i.Name != thread {
			continue
		}
		info, err := history.Describe(i)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	t.Fatalf("no thread %s", thread)
	return history.RunInfo{}
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

func fork(t testing.TB, st journal.Store, thread string, at int64, into string) {
	t.Helper()
	if err := history.Fork(t.Context(), st, thread, at, into); err != nil {
		t.Fatal(err)
	}
}

// A fork at any record of a journal, of children, effects and questions too, leads
// to the same outcome, and leaves the original as it was.
func TestForkAtEveryRecordLeadsToTheSameEnd(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st journal.Store) {
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
			if diff := cmp.Diff(journal.Point{Thread: "t", Seq: rec.Seq}, i.From); diff != "" {
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
	st := journal.NewMemory()
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
	onEveryStore(t, func(t *testing.T, st journal.Store) {
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
	st := journal.NewMemory()
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
	st := journal.NewMemory()
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
	snap, err := history.Inspect(ctx, st, "t", 0)
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
	st := journal.NewMemory()
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
		{"no thread", r, "unknown", []graph.Write{lines.Set(nil)}, "no such thread: unknown"},
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

// An edit ends a drive, and is made again on what a drive has appended first.
func TestEditAndDriveExcludeEachOther(t *testing.T) {
	ctx := t.Context()
	st := journal.NewMemory()
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
	if _, err := r.Invoke(ctx, graph.Input{Thread: "t"}); !errors.Is(err, journal.ErrConflict) {
		t.Fatalf("the drive: %v", err)
	}
	late := &graph.Runner{Graph: g, Store: &behind{Store: st, first: sync.OnceFunc(func() { resumed(t, r, "t") })}}
	if _, err := late.Edit(ctx, "t", lines.Set([]string{"late"})); err != nil {
		t.Fatalf("the edit: %v", err)
	}
	s, err := r.State(ctx, "t", 0)
	if diff := cmp.Diff([]string{"edited", "a", "late"}, lines.Get(s)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// behind is a store on which another writer is faster.
type behind struct {
	journal.Store
	first func()
}

func (b *behind) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	b.first()
	return b.Store.Append(ctx, thread, after, recs)
}

func TestPointsThatAreNot(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st journal.Store) {
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
			{"t", res.Head + 1, "u", journal.ErrNoPoint},
			{"t", -1, "u", journal.ErrNoPoint},
			{"unknown", 0, "u", journal.ErrNoThread},
			{"unknown", 3, "u", journal.ErrNoThread},
			{"t", 1, "taken", journal.ErrThreadExists},
			{"t", 1, "t", journal.ErrThreadExists},
		} {
			if err := history.Fork(ctx, st, c.thread, c.at, c.into); !errors.Is(err, c.want) {
				t.Errorf("fork %s at %d into %s: %v", c.thread, c.at, c.into, err)
			}
			if errors.Is(c.want, journal.ErrThreadExists) {
				continue
			}
			_, state := r.State(ctx, c.thread, c.at)
			_, inspect := history.Inspect(ctx, st, c.thread, c.at)
			_, diff := history.Diff(ctx, st, journal.Point{Thread: "t"}, journal.Point{Thread: c.thread, Seq: c.at})
			for what, err := range map[string]error{"State": state, "Inspect": inspect, "Diff": diff} {
				if !errors.Is(err, c.want) {
					t.Errorf("%s of %s at %d: %v", what, c.thread, c.at, err)
				}
			}
		}
		if err := history.Fork(ctx, st, "t", 0, ""); err == nil {
			t.Error("a fork without a name")
		}
	})
}

// The time between a crash and an edit is not counted as active time.
func TestEditAfterACrashCountsNoTime(t *testing.T) {
	mem, clock := journal.NewMemory(), &calendar{day: 1}
	r := &graph.Runner{Graph: said(t, "a", "b"), Store: &dying{Store: mem, left: 2}, Clock: clock}
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	clock.day, r.Store = 3, mem
	if _, err := r.Edit(t.Context(), "t", lines.Set(nil)); err != nil {
		t.Fatal(err)
	}
	s, err := history.Inspect(t.Context(), mem, "t", 0)
	if err != nil || s.Active != 0 || s.Status != graph.Paused {
		t.Errorf("active for %v, %v, %v", s.Active, s.Status, err)
	}
}

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
		st := journal.NewMemory()
		r := &graph.Runner{Graph: said(t, "a", "b", "c"), Store: st}
		res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Break: []graph.Break{{Node: "b"}}})
		is(t, graph.Paused, res, err)
		seq, err := r.EditNext(t.Context(), "t", c.next, lines.Set([]string{"edited"}))
		if err != nil || seq != res.Head+1 {
			t.Fatal(seq, err)
		}
		for e, err := range history.Entries(t.Context(), st, "t") {
			if err != nil || strings.Join(e.Next, " ") != c.ran {
				t.Errorf("%v: listed as %v, %v", c.next, e.Next, err)
			}
			break
		}
		if s, err := history.Inspect(t.Context(), st, "t", 0); err != nil || strings.Join(s.Next, " ") != c.ran || s.Status != graph.Paused {
			t.Errorf("%v: %+v, %v", c.next, s, err)
		}
		for _, thread := range []string{"forked", "pruned", "t"} {
			if thread != "t" {
				fork(t, st, "t", seq, thread)
			}
			if thread == "pruned" {
				if _, err := history.Prune(t.Context(), st, thread, history.Keep{}); err != nil {
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
	r := &graph.Runner{Graph: said(t, "a", "b"), Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Break: []graph.Break{{Node: "b"}}})
	is(t, graph.Paused, res, err)
	for want, next := range map[string][]string{"name at least one node": nil, `has no node "x", "y"`: {"x", "b", "y"}} {
		if _, err := r.EditNext(t.Context(), "t", next); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", next, err)
		}
	}
	if _, err := r.EditNext(t.Context(), "none", []string{"a"}); !errors.Is(err, journal.ErrNoThread) {
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
func TestAStepNamesItsRecord(t *testing.T) {
	for _, level := range []graph.Durability{graph.EveryEffect, graph.EveryStep} {
		st := journal.NewMemory()
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
		for c, err := range history.Checkpoints(t.Context(), st, "t") {
			if err != nil {
				t.Fatal(err)
			}
			if c.Kind == journal.KindStep {
				want = append(want, c.Seq)
			}
		}
		if slices.Reverse(want); !slices.Equal(seqs, want) || len(seqs) != 3 {
			t.Errorf("level %d: told %v, recorded %v", level, seqs, want)
		}
	}
}

// checkpoints writes each on a line: seq, kind, path, step, what runs next, parent.
func checkpoints(t testing.TB, st journal.Store, thread string) (text []string) {
	t.Helper()
	for c, err := range history.Checkpoints(t.Context(), st, thread) {
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, fmt.Sprintf("%d %s %q %d %v <- %s %d", c.Seq, c.Kind, c.Path, c.Step, c.Next, c.Parent.Thread, c.Parent.Seq))
	}
	return text
}

func TestCheckpointsOfAForkThatWasEdited(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st journal.Store) {
		r := &graph.Runner{Graph: said(t, "a", "b", "c"), Store: st}
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
			t.Fatal(err)
		}
		fork(t, st, "t", 2, "u")
		if _, err := r.Edit(t.Context(), "u", lines.Set([]string{"x"})); err != nil {
			t.Fatal(err)
		}
		resumed(t, r, "u")
		for thread, want := range map[string][]string{
			"t": {`4 step "" 3 [] <- t 3`, `3 step "" 2 [c] <- t 2`, `2 step "" 1 [b] <- t 1`, `1 start "" 0 [a] <-  0`},
			"u": {`5 step "" 3 [] <- u 4`, `4 step "" 2 [c] <- u 2`, `2 edit "" 1 [b] <- u 1`, `1 fork "" 1 [b] <- t 2`},
			"":  nil,
		} {
			if diff := cmp.Diff(want, checkpoints(t, st, thread)); diff != "" {
				t.Errorf("thread %q:\n%s", thread, diff)
			}
		}
		var what string
		for e, err := range history.Entries(t.Context(), st, "u") {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == journal.KindEdit {
				what = e.What
			}
		}
		if what != "lines" {
			t.Errorf("the edit tells of %q", what)
		}
	})
}

// Each checkpoint of everything, those inside its children too, says what a fork
// there would run next.
func TestCheckpointsAgreeWithTheFold(t *testing.T) {
	e := newEverything(t)
	st := journal.NewMemory()
	e.finish(t, &graph.Runner{Graph: e.g, Store: st}, true)
	seen, inside := map[int64]bool{}, 0
	last := int64(1 << 60)
	for c, err := range history.Checkpoints(t.Context(), st, "t") {
		if err != nil {
			t.Fatal(err)
		}
		if seen[c.Seq] || c.Seq >= last {
			t.Fatalf("checkpoint %d comes again, or late", c.Seq)
		}
		seen[c.Seq], last = true, c.Seq
		if c.Path != "" {
			inside++
			continue
		}
		s, err := history.Inspect(t.Context(), st, "t", c.Seq)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.Next, c.Next, cmpopts.EquateEmpty()); diff != "" || s.Steps != c.Step {
			t.Errorf("checkpoint %d: step %d, not %d\n%s", c.Seq, c.Step, s.Steps, diff)
		}
	}
	if inside == 0 {
		t.Error("no checkpoint inside a child")
	}
}

func TestLeavingCheckpointsEarly(t *testing.T) {
	st := journal.NewMemory()
	r := &graph.Runner{Graph: chainOf(t, 5), Store: st}
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
		t.Fatal(err)
	}
	for c, err := range history.Checkpoints(t.Context(), st, "t") {
		if err != nil || c.Step != 5 {
			t.Errorf("%+v, %v", c, err)
		}
		break
	}
}

func TestDiff(t *testing.T) {
	ctx := t.Context()
	st := journal.NewMemory()
	e := newEverything(t)
	r := &graph.Runner{Graph: e.g, Store: st}
	res := e.finish(t, r, true)
	fork(t, st, "t", 0, "u")
	for seq := int64(1); seq <= res.Head; seq++ {
		p := journal.Point{Thread: "t", Seq: seq}
		if d, err := history.Diff(ctx, st, p, p); err != nil || d != nil {
			t.Fatalf("record %d differs from itself: %v, %v", seq, d, err)
		}
	}
	if d, err := history.Diff(ctx, st, journal.Point{Thread: "t"}, journal.Point{Thread: "u"}); err != nil || d != nil {
		t.Fatalf("a fork differs: %v, %v", d, err)
	}
	if _, err := r.Edit(ctx, "u", topic.Set("other"), item.Set(7), hits.Set(2)); err != nil {
		t.Fatal(err)
	}
	got, err := history.Diff(ctx, st, journal.Point{Thread: "t"}, journal.Point{Thread: "u"})
	if err != nil {
		t.Fatal(err)
	}
	text := func(s ...string) (b [][]byte) {
		for _, s := range s {
			b = append(b, []byte(s))
		}
		return b
	}
	want := []history.Change{
		{Key: "hits", Tag: "int64", Was: text("14"), Is: text("16")},
		{Key: "item", Tag: "int", Is: text("7")},
		{Key: "topic", Tag: "string", Was: text("end"), Is: text("other")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a child in progress holds is compared under its path.
func TestDiffInsideAChild(t *testing.T) {
	e := newEverything(t)
	st := journal.NewMemory()
	e.finish(t, &graph.Runner{Graph: e.g, Store: st}, true)
	var first, second int64 // steps of one child, oldest first
	var path string
	for c, err := range history.Checkpoints(t.Context(), st, "t") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Kind == journal.KindStep && c.Path != "" && (path == "" || c.Path == path) {
			path, first, second = c.Path, c.Seq, max(first, second)
		}
	}
	got, err := history.Diff(t.Context(), st, journal.Point{Thread: "t", Seq: first}, journal.Point{Thread: "t", Seq: second})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, c := range got {
		if c.Path == path {
			keys = append(keys, c.Key)
		}
	}
	if diff := cmp.Diff([]string{"log", "n"}, keys); diff != "" {
		t.Errorf("%v\n%s", got, diff)
	}
}

// blamed writes each record that wrote a key on a line.
func blamed(t testing.TB, st journal.Store, thread, key string) (text []string) {
	t.Helper()
	ws, err := history.Blame(t.Context(), st, thread, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range ws {
		line := fmt.Sprintf("%s %q %d", w.Kind, w.Path, w.Step)
		for _, by := range w.Tasks {
			line += fmt.Sprintf(" %s[%d]", by.Node, by.Index)
		}
		if w.From != (journal.Point{}) {
			line += fmt.Sprintf(" from %s", w.From.Thread)
		}
		text = append(text, line)
	}
	return text
}

func TestBlameNamesTheNodesOfParallelSteps(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st journal.Store) {
		e := newEverything(t)
		r := &graph.Runner{Graph: e.g, Store: st}
		e.finish(t, r, true)
		for key, want := range map[string][]string{
			"hits":  {`step "" 1 work[1] work[2] work[3] work[4]`, `step "" 0 audit[0]`},
			"tags":  {`step "" 1 work[1] work[2] work[3] work[4]`},
			"notes": {`step "" 4 sub[1] sub[2]`, `step "" 2 gather[0]`, `step "" 1 work[1] work[2] work[3] work[4]`, `step "" 0 plan[0]`},
			"topic": {`step "" 5 fin[0]`},
			"item":  nil, // overlays are not writes of a task
		} {
			if diff := cmp.Diff(want, blamed(t, st, "t", key)); diff != "" {
				t.Errorf("key %s:\n%s", key, diff)
			}
		}
		all, err := history.BlameAll(t.Context(), st, "t")
		if err != nil {
			t.Fatal(err)
		}
		for key, got := range all {
			want, err := history.Blame(t.Context(), st, "t", key)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("key %s of all: %v\n%s", key, err, diff)
			}
		}
		if all["topic"] == nil || all["n"] == nil || all["item"] != nil {
			t.Errorf("the keys of BlameAll are %v", all)
		}
		inside := blamed(t, st, "t", "n")
		count := map[string]int{}
		for _, l := range inside {
			count[l]++
		}
		want := map[string]int{`step "4.sub.1/" 1 two[0]`: 1, `step "4.sub.1/" 2 two[0]`: 1, `step "4.sub.2/" 1 two[0]`: 1, `step "4.sub.2/" 2 two[0]`: 1}
		if diff := cmp.Diff(want, count); diff != "" {
			t.Error(diff)
		}
	})
}

func TestBlameNamesInputEditAndFork(t *testing.T) {
	ctx := t.Context()
	st := journal.NewMemory()
	r := &graph.Runner{Graph: said(t, "a", "b"), Store: st}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "t", Set: []graph.Write{lines.Set([]string{"in"})}}); err != nil {
		t.Fatal(err)
	}
	fork(t, st, "t", 2, "u")
	if _, err := r.Edit(ctx, "u", lines.Reset(nil)); err != nil {
		t.Fatal(err)
	}
	resumed(t, r, "u")
	for thread, want := range map[string][]string{
		"t": {`step "" 1 b[0]`, `step "" 0 a[0]`, `start "" 0`},
		"u": {`step "" 1 b[0]`, `edit "" 1`, `fork "" 1 from t`},
	} {
		if diff := cmp.Diff(want, blamed(t, st, thread, "lines")); diff != "" {
			t.Errorf("thread %s:\n%s", thread, diff)
		}
	}
	all, err := history.BlameAll(ctx, st, "u")
	if err != nil || len(all["lines"]) != 3 || all["lines"][2].From.Thread != "t" {
		t.Errorf("all keys: %v, %v", all, err)
	}
	if _, err := history.Blame(ctx, st, "unknown", "lines"); err == nil {
		t.Error("an unknown thread has no authors")
	}
}

func TestContentOfRecords(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st journal.Store) {
		e := newEverything(t)
		e.finish(t, &graph.Runner{Graph: e.g, Store: st}, true)
		var asked, answered []string
		keys := map[journal.Kind][]string{}
		prompts := map[string]string{}
		for _, r := range records(t, st, "t") {
			c, err := history.DecodeContent(r)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range c.Keys {
				if !slices.Contains(keys[r.Kind], k) {
					keys[r.Kind] = append(keys[r.Kind], k)
				}
			}
			switch r.Kind {
			case journal.KindQuestion:
				asked = append(asked, c.Question.ID)
				prompts[c.Asked] = c.Question.ID
			case journal.KindAnswer:
				answered = append(answered, prompts[c.Asked]+"="+string(c.Answer)+c.Refused)
			case journal.KindEnd:
				if c.Reason != "" {
					t.Errorf("reason %q", c.Reason)
				}
			}
		}
		if len(asked) == 0 || len(answered) != len(asked) || strings.HasPrefix(answered[0], "=") || strings.HasSuffix(answered[0], "=") {
			t.Errorf("asked %v, answered %v", asked, answered)
		}
		for kind, key := range map[journal.Kind]string{journal.KindStep: "topic", journal.KindTask: "notes"} {
			if !slices.Contains(keys[kind], key) {
				t.Errorf("records %s write %v, not %s", kind, keys[kind], key)
			}
		}
	})
}

// A task that was run again after a crash or an edit is named once.
func TestBlameAfterAnEditInTheMiddleOfAStep(t *testing.T) {
	e := newEverything(t)
	st := journal.NewMemory()
	r := &graph.Runner{Graph: e.g, Store: st}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
	if err != nil || res.Status != graph.Waiting {
		t.Fatalf("%v, %v", res.Status, err)
	}
	if _, err := r.Edit(t.Context(), "t", hits.Set(100)); err != nil {
		t.Fatal(err)
	}
	resumed(t, r, "t")
	want := []string{`step "" 1 work[1] work[2] work[3] work[4]`, `edit "" 1`, `step "" 0 audit[0]`}
	if diff := cmp.Diff(want, blamed(t, st, "t", "hits")); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkCheckpoints lists 10,000 steps.
func BenchmarkCheckpoints(b *testing.B) {
	const steps = 10_000
	for _, s := range []struct {
		name string
		open func(testing.TB) journal.Store
	}{{"memory", func(testing.TB) journal.Store { return journal.NewMemory() }}, {"sqlite", openSQLite}} {
		b.Run(s.name, func(b *testing.B) {
			st := s.open(b)
			if _, err := (&graph.Runner{Graph: loopOf(b, steps), Store: st}).Invoke(context.Background(), graph.Input{Thread: "t"}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for _, err := range history.Checkpoints(b.Context(), st, "t") {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != steps+1 {
					b.Fatalf("%d checkpoints", n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*steps), "ns/checkpoint")
		})
	}
}

// A thread that is used again is listed with its newest run: label, graph, start.
func TestDescribeShowsTheNewestRun(t *testing.T) {
	st := journal.NewMemory()
	r := &graph.Runner{Graph: said(t, "a", "b"), Store: st}
	for _, label := range []string{"first", "second"} {
		_, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Run: "r-" + label, Label: label})
		if err != nil {
			t.Fatal(err)
		}
	}
	agrees := func(what string) {
		t.Helper()
		want, err := history.Inspect(t.Context(), st, "t", 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, err := range st.Threads(t.Context(), "") {
			got, fault := history.Describe(i)
			if err != nil || fault != nil {
				t.Fatal(err, fault)
			}
			if got.Run != want.Run || got.Label != want.Label || got.Graph != want.Graph || !got.Started.Equal(want.Started) {
				t.Errorf("%s: listed as %+v, not %+v", what, got, want.RunInfo)
			}
		}
	}
	agrees("after two runs")
	if _, err := r.Edit(t.Context(), "t", lines.Set([]string{"x"})); err != nil {
		t.Fatal(err)
	}
	agrees("after an edit")
	if _, err := history.Prune(t.Context(), st, "t", history.Keep{}); err != nil {
		t.Fatal(err)
	}
	agrees("after a prune")
	_, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Label: "third", Break: []graph.Break{{Node: "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	agrees("at a break")
	if _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Break: []graph.Break{{Node: "b", After: true}}}); err != nil {
		t.Fatal(err)
	}
	agrees("after a resume")
	if _, err := history.Abandon(t.Context(), st, "t", "enough"); err != nil {
		t.Fatal(err)
	}
	agrees("abandoned")
}

// ForkWithMeta replaces what a program stored with a run, in the copy only.
func TestForkWithMeta(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st journal.Store) {
		e := newEverything(t)
		r := &graph.Runner{Graph: e.g, Store: st}
		want := outcome(*e.finish(t, r, true))
		if err := history.ForkWithMeta(t.Context(), st, "t", 1, "copy", []byte("other")); err != nil {
			t.Fatal(err)
		}
		for thread, meta := range map[string]string{"copy": "other", "t": ""} {
			snap, err := history.Inspect(t.Context(), st, thread, 0)
			if err != nil || string(snap.Meta) != meta {
				t.Errorf("the meta of %s is %q, %v", thread, snap.Meta, err)
			}
		}
		if diff := cmp.Diff(want, outcome(resumed(t, r, "copy"))); diff != "" {
			t.Errorf("the copy ends differently:\n%s", diff)
		}
		if err := history.ForkWithMeta(t.Context(), st, "none", 1, "copy2", nil); !errors.Is(err, journal.ErrNoThread) {
			t.Error(err)
		}
	})
}
