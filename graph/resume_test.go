package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// A process that dies loses what was not recorded, and nothing else.
func TestAResumeRunsWhatHadNotRun(t *testing.T) {
	var c tally
	node := func(name string) graph.Node {
		return graph.Node{Name: name, Run: func(context.Context, graph.State) (graph.Update, error) {
			c.add(name)
			return graph.Put(list.Set([]string{name})), nil
		}}
	}
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a"}, Nodes: []graph.Node{node("a"), node("b"), node("c"), node("d"), node("e")},
		Edges: []graph.Edge{edge("a", "b"), edge("b", "c", "d", "e"), edge("c", graph.End), edge("d", graph.End), edge("e", graph.End)}})
	whole := &graph.Runner{Graph: g, Store: journal.NewMemory(), Executor: sequential{}}
	res, err := start(t, whole)
	is(t, graph.Done, res, err)
	for name, cut := range map[string]struct {
		stop func(journal.Record) bool
		runs string
	}{
		"after the start":             {nth(journal.KindStep, 1), "a b c d e"},
		"after the first step":        {nth(journal.KindStep, 2), "b c d e"},
		"before the parallel step":    {nth(journal.KindTask, 1), "c d e"},
		"when two of three were done": {nth(journal.KindTask, 3), "e"},
		"when all three were done":    {nth(journal.KindStep, 3), ""},
		"before its end was recorded": {nth(journal.KindEnd, 1), ""},
	} {
		c = tally{}
		res, err := resume(t, &graph.Runner{Graph: g, Store: copyBefore(t, whole.Store, cut.stop)})
		if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != "[a b c d e]" {
			t.Errorf("%s: %v", name, list.Get(res.State))
		}
		var ran []string
		for _, n := range []string{"a", "b", "c", "d", "e"} {
			if c.of(n) > 0 {
				ran = append(ran, n)
			}
		}
		if strings.Join(ran, " ") != cut.runs {
			t.Errorf("%s: %v ran", name, ran)
		}
	}
}

// Tasks of a Send that were to run when the process died all run, with their overlays.
func TestSendsThatWereToRunAreNotLost(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"split"}, Nodes: []graph.Node{sends(3), work, say("gather")}, Edges: []graph.Edge{edge("work", "gather"), edge("gather", graph.End)}})
	whole := kept(g)
	want, err := start(t, whole)
	is(t, graph.Done, want, err)
	for n := range 3 {
		got, err := resume(t, &graph.Runner{Graph: g, Store: copyBefore(t, whole.Store, nth(journal.KindTask, n+1))})
		if is(t, graph.Done, got, err); !slices.Equal(list.Get(got.State), list.Get(want.State)) {
			t.Errorf("after %d tasks: %v, want %v", n, list.Get(got.State), list.Get(want.State))
		}
	}
}

// Limits hold for the run, not for the drive.
func TestLimitsHoldAcrossDrives(t *testing.T) {
	loop := func(d graph.Def) *graph.Graph {
		d.Name, d.Keys, d.Start, d.Nodes = "g", all, []string{"a"}, []graph.Node{{Name: "a", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			u, err := asker("")(ctx, s)
			u.Writes = append(u.Writes, newReducerKey.Set(graph.Visit(ctx)))
			return u, err
		}}}
		d.Edges = []graph.Edge{edge("a", "a")}
		return compile(t, d)
	}
	for want, d := range map[graph.Status]graph.Def{graph.StepLimit: {MaxSteps: 3}, graph.VisitLimit: {MaxVisits: 3}} {
		r := kept(loop(d))
		res, err := start(t, r)
		for range 3 {
			if is(t, graph.Waiting, res, err); len(res.Questions) != 1 {
				t.Fatal(res.Questions)
			}
			res, err = resume(t, r, says(res.Questions[0].ID, ""))
		}
		for range 2 { // resumed, it is still there
			is(t, want, res, err)
			var l *graph.LimitError
			if !errors.As(err, &l) || l.Limit != 3 || !slices.Equal(l.Frontier, []string{"a"}) || newReducerKey.Get(res.State) != 6 {
				t.Errorf("%v: %v, total %d", want, err, newReducerKey.Get(res.State))
			}
			res, err = resume(t, r)
		}
	}
}

// Timeouts measure the time in which drives worked on the run: neither the time in
// which it waited, nor that in which it lay crashed.
func TestTimeoutsMeasureActiveTime(t *testing.T) {
	takes := func(ctx context.Context, d time.Duration) (int, error) {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(d):
			return 1, nil
		}
	}
	work := func(ctx context.Context, s graph.State) (graph.Update, error) {
		if _, err := graph.Do(ctx, "work", func(ctx context.Context) (int, error) { return takes(ctx, 20*time.Minute) }); err != nil {
			return graph.Update{}, err
		}
		return asker("1", "2")(ctx, s)
	}
	g := compile(t, graph.Def{Name: "g", Keys: all, Timeout: time.Hour, Start: []string{"x", "y"}, Nodes: []graph.Node{
		{Name: "x", Run: work}, {Name: "y", Run: work},
		{Name: "late", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := takes(ctx, 30*time.Minute)
			return graph.Update{}, err
		}}}, Edges: []graph.Edge{edge("x", "late"), edge("y", "late"), edge("late", graph.End)}})
	settled(t, func(t *testing.T) {
		r := &graph.Runner{Graph: g, Store: journal.NewMemory(), Executor: sequential{}}
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		crashed := copyBefore(t, r.Store, nth(journal.KindEnd, 1))
		for _, store := range []journal.Store{r.Store, crashed} {
			r.Store = store
			for i, id := range []string{"x", "y", "x#2", "y#2"} {
				time.Sleep(24 * time.Hour) // a person thinks, or does not look
				if s, err := history.Inspect(t.Context(), store, thread, 0); err != nil || s.Active != 40*time.Minute {
					t.Fatalf("%d: active %v, %v", i, s.Active, err)
				}
				if res, err = resume(t, r, says(id, "")); i < 3 {
					is(t, graph.Waiting, res, err)
				}
			}
			var l *graph.LimitError
			if is(t, graph.TimedOut, res, err); !errors.As(err, &l) || l.After != time.Hour || !l.During || !slices.Equal(l.Frontier, []string{"late"}) {
				t.Errorf("%v", err)
			}
			if s, err := history.Inspect(t.Context(), store, thread, 0); err != nil || s.Active != time.Hour {
				t.Errorf("active %v, %v", s.Active, err)
			}
			res, err = resume(t, r)
			is(t, graph.TimedOut, res, err)
		}
	})
}

// A thread is used for one run after another: each begins with what the one
// before it left, and with nothing else of it.
func TestAThreadIsUsedAgainAfterAHalt(t *testing.T) {
	var c tally
	g := compile(t, graph.Def{Name: "g", Keys: all, MaxVisits: 2, MaxSteps: 4, Start: []string{"a", "b"}, Nodes: []graph.Node{
		{Name: "a", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			n, err := graph.Do(ctx, "effect", func(context.Context) (int, error) { return c.add("effect"), nil })
			if err != nil {
				return graph.Update{}, err
			}
			a, err := graph.Interrupt[string](ctx, graph.Ask{})
			return graph.Put(list.Set([]string{fmt.Sprint(a, n, graph.Visit(ctx))})), err
		}},
		{Name: "b", Run: idle}, {Name: "slow", Run: idle}, {Name: "slower", Run: idle}, say("join"),
		{Name: "stop", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			return graph.Update{Halt: &graph.Halt{Value: len(list.Get(s))}}, nil
		}},
	}, Edges: []graph.Edge{edge("a", "stop"), edge("b", "slow"), edge("slow", "slower"), edge("slower", "slow"), join("join", "stop", "slower"), edge("join", graph.End)}})
	r := kept(g)
	for turn := range 3 {
		res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Run: fmt.Sprint("r", turn), Set: []graph.Write{only.Set("given")}})
		if is(t, graph.Waiting, res, err); !slices.Equal(ids(res.Questions), []string{"a"}) {
			t.Fatal(res.Questions)
		}
		var busy *graph.BusyError
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Run: "other"}); !errors.As(err, &busy) || busy.Run != fmt.Sprint("r", turn) || busy.Status != graph.Waiting {
			t.Errorf("turn %d: a thread that is in use: %v", turn, err)
		}
		res, err = resume(t, r, says("a", "x"))
		if is(t, graph.Done, res, err); res.Value != turn+1 || list.Get(res.State)[turn] != fmt.Sprint("x", turn+1, 1) || c.of("effect") != turn+1 {
			t.Errorf("turn %d: %v, %v, %d effects", turn, res.Value, list.Get(res.State), c.of("effect"))
		}
		again, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Run: fmt.Sprint("r", turn)})
		if is(t, graph.Done, again, err); again.Value != turn+1 || again.Head != res.Head {
			t.Errorf("turn %d, started again: %+v", turn, again)
		}
	}
}

// A run that was ended by hand leaves its state behind, not its children, its
// questions or its half-full joins.
func TestARunAfterOneThatWasAbandoned(t *testing.T) {
	child := compile(t, graph.Def{Name: "c", Keys: all, Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
		v, err := graph.Do(ctx, "effect", func(context.Context) (string, error) { return "for " + only.Get(s), nil })
		if err != nil {
			return graph.Update{}, err
		}
		_, err = graph.Interrupt[string](ctx, graph.Ask{})
		return graph.Put(list.Set([]string{only.Get(s), v})), err
	}}}, Edges: []graph.Edge{edge("x", graph.End)}})
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a", "sub"}, Nodes: []graph.Node{say("a"), {Name: "sub", Graph: child,
		In: func(s graph.State) ([]graph.Write, error) { return []graph.Write{only.Set(only.Get(s))}, nil },
		Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
			return graph.Put(list.Set(list.Get(c.State))), nil
		}}, say("join")}, Edges: []graph.Edge{join("join", "a", "sub"), edge("join", graph.End)}})
	r := kept(g)
	res, err := start(t, r, only.Set("one"))
	is(t, graph.Waiting, res, err)
	recs := journalOf(t, r.Store, thread)
	recs[len(recs)-1].Head[0] = byte(graph.Abandoned)
	r.Store = journal.NewMemory()
	if err := r.Store.Append(t.Context(), thread, 0, recs); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, r); err != nil {
		t.Errorf("an abandoned run: %v", err)
	}
	res, err = start(t, r, only.Set("two"))
	is(t, graph.Waiting, res, err)
	crashed := copyBefore(t, r.Store, func(rec journal.Record) bool { return rec.Kind != journal.KindStart && rec.Seq > int64(len(recs)) })
	if s, err := history.Inspect(t.Context(), crashed, thread, 0); err != nil || len(s.Questions) != 0 || len(s.InDoubt) != 0 {
		t.Errorf("the new run has %+v, %v", s, err)
	}
	for _, store := range []journal.Store{r.Store, crashed} {
		r.Store = store
		res, err = resume(t, r)
		if res = answered(t, r, res, false); err != nil || fmt.Sprint(list.Get(res.State)) != "[a two for two join]" {
			t.Errorf("%v, %v", list.Get(res.State), err)
		}
	}
}

// An effect that the caller names by a key is not the one that is named by its place.
func TestKeysOfEffectsAreNoOrdinals(t *testing.T) {
	var got []string
	g := parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		got = nil
		for i, key := range []string{"0", "", "1", "", "0x", "=0"} {
			v, err := graph.DoEffect(ctx, graph.Effect{Name: "tool", Key: key}, func(ctx context.Context) (string, error) { return fmt.Sprint(i), nil })
			if err != nil {
				return graph.Update{}, err
			}
			got = append(got, v)
		}
		_, err := graph.Interrupt[string](ctx, graph.Ask{})
		return graph.Update{}, err
	}})
	r := kept(g)
	_, _ = start(t, r)
	res, err := resume(t, r, says("a", ""))
	if is(t, graph.Done, res, err); strings.Join(got, "") != "012345" {
		t.Error(got)
	}
}

// A child that inherits reads its parent's keys until it writes them: in its first
// writes, in later steps, and when its frame is opened again.
func TestAnInheritingChildKeepsWhatItWrote(t *testing.T) {
	see := func(_ context.Context, s graph.State) (graph.Update, error) {
		return graph.Put(list.Set([]string{fmt.Sprint(only.Get(s), len(list.Get(s)), newReducerKey.Get(s), len(table.Get(s)), chain.Get(s))})), nil
	}
	child := compile(t, graph.Def{Name: "c", Keys: all, Start: []string{"one"}, Nodes: []graph.Node{
		{Name: "one", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			u, err := see(ctx, s)
			u.Writes = append(u.Writes, only.Set("child"), newReducerKey.Set(1), table.Set(map[string]int{"c": 1}), chain.Set("c"))
			return u, err
		}}, {Name: "two", Run: asks(nil)}, {Name: "three", Run: see},
	}, Edges: []graph.Edge{edge("one", "two"), edge("two", "three"), edge("three", graph.End)}})
	for want, set := range map[string][]graph.Write{
		"p1 10 1(p),child2 11 2((p)c)":        nil,
		"in2 15 2((p)i),child3 16 3(((p)i)c)": {only.Set("in"), list.Set([]string{"in"}), newReducerKey.Set(5), table.Set(map[string]int{"i": 1}), chain.Set("i")},
	} {
		for _, open := range []bool{false, true} {
			d := graph.Def{Name: "g", Keys: all, Start: []string{"sub"}, Nodes: []graph.Node{{Name: "sub", Graph: child, Inherit: true,
				In: func(graph.State) ([]graph.Write, error) { return set, nil },
				Out: func(s graph.State, c graph.Child) (graph.Update, error) {
					return graph.Put(only.Set(strings.Join(list.Get(c.State)[len(list.Get(c.State))-2:], ",") + fmt.Sprint(only.Get(s), len(list.Get(s))))), nil
				}}}, Edges: []graph.Edge{edge("sub", graph.End)}}
			if open {
				d.Keys, d.Open = nil, func(name string) graph.AnyKey {
					return all[slices.IndexFunc(all, func(k graph.AnyKey) bool { return k.Name() == name })]
				}
			}
			r := kept(compile(t, d))
			res, err := start(t, r, only.Set("p"), list.Set([]string{"p"}), newReducerKey.Set(10), table.Set(map[string]int{"p": 1}), chain.Set("p"))
			is(t, graph.Waiting, res, err)
			res, err = resume(t, r, says("sub/two", ""))
			if is(t, graph.Done, res, err); only.Get(res.State) != want+"p1" {
				t.Errorf("open %v: %s\nwant %s", open, only.Get(res.State), want+"p1")
			}
		}
	}
}

// heavy is a graph with everything open at once, and heavy: overlays, effects and
// concurrent children, while snapshots are taken.
func heavy(t testing.TB, c *tally, weight int) *graph.Graph {
	fat := func(s string) string { return s + strings.Repeat(".", weight) }
	child := compile(t, graph.Def{Name: "c", Keys: all, Start: []string{"x"}, Nodes: []graph.Node{
		{Name: "x", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			v, err := graph.Do(ctx, "x", func(context.Context) (string, error) {
				return fat(fmt.Sprint("x", c.add(graph.TaskPath(ctx)))), nil
			})
			return graph.Put(newReducerKey.Set(1), list.Set([]string{v}), only.Set(fat(only.Get(s)[:1]))), err
		}}, {Name: "y", Run: asker("y")},
	}, Edges: []graph.Edge{branch("x", map[string]string{"again": "x", "on": "y"}, func(s graph.State) string {
		if newReducerKey.Get(s)%4 != 0 {
			return "again"
		}
		return "on"
	}), edge("y", graph.End)}})
	return compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"split", "steady"}, Nodes: []graph.Node{
		{Name: "split", Routes: []string{"sub"}, Run: func(context.Context, graph.State) (graph.Update, error) {
			u := graph.Put(table.Set(map[string]int{"split": 1}))
			for i := range 3 {
				u.Send = append(u.Send, graph.Send{To: "sub", Overlay: []graph.Write{only.Set(fat(fmt.Sprint(i)))}})
			}
			return u, nil
		}},
		{Name: "steady", Run: idle},
		{Name: "sub", Graph: child, In: func(s graph.State) ([]graph.Write, error) { return []graph.Write{only.Set(only.Get(s))}, nil },
			Out: func(_ graph.State, ch graph.Child) (graph.Update, error) {
				u := graph.Put(newReducerKey.Set(newReducerKey.Get(ch.State)))
				for _, l := range list.Get(ch.State) {
					u.Writes = append(u.Writes, list.Set([]string{l[:2] + only.Get(ch.State)[:1]}))
				}
				return u, nil
			}},
		{Name: "effects", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			for i := range 4 {
				v, err := graph.Do(ctx, fmt.Sprint("e", i), func(ctx context.Context) (string, error) {
					return fat(fmt.Sprint("e", c.add(graph.EffectKey(ctx)))), nil
				})
				if err != nil || v[:2] != "e1" {
					return graph.Update{}, errors.Join(err, errors.New(v[:2]))
				}
			}
			return asker("effects")(ctx, graph.State{})
		}},
	}, Edges: []graph.Edge{edge("steady", "effects"), edge("sub", graph.End), edge("effects", graph.End)}})
}

// Snapshots that are taken while children, effects, overlays and updates are open
// hold all of them, and do not write them over and over.
func TestSnapshotsInTheMiddleOfAStep(t *testing.T) {
	var c tally
	whole := &graph.Runner{Graph: heavy(t, &c, 100_000), Store: journal.NewMemory(), Executor: sequential{}}
	res, err := start(t, whole)
	want := answered(t, whole, is(t, graph.Waiting, res, err), false)
	recs := journalOf(t, whole.Store, thread)
	var snapshots, plain, among int
	for _, r := range recs {
		if r.Kind == journal.KindSnapshot {
			among++
			snapshots += len(r.Data)
		} else {
			plain += len(r.Data)
		}
	}
	if among < 2 || snapshots > 2*plain {
		t.Errorf("%d snapshots of %d bytes in a journal of %d", among, snapshots, plain)
	}
	for n := 1; n <= len(recs); n++ {
		if recs[n-1].Kind != journal.KindSnapshot && n%9 != 0 {
			continue
		}
		c = tally{}
		part := journal.NewMemory()
		if err := part.Append(t.Context(), thread, 0, recs[:n]); err != nil {
			t.Fatal(err)
		}
		r := &graph.Runner{Graph: heavy(t, &c, 100_000), Store: part, Executor: sequential{}}
		res, err := resume(t, r)
		if err != nil {
			t.Fatalf("after %d records: %v", n, err)
		}
		got := answered(t, r, res, true)
		if diff := cmp.Diff(endOf(want), endOf(got)); diff != "" {
			t.Fatalf("after %d of %d records:\n%s", n, len(recs), diff)
		}
	}
}

// Children that fail and are replaced do not keep snapshots away for ever.
func TestSnapshotsGoOnWhenChildrenFail(t *testing.T) {
	child := compile(t, graph.Def{Name: "c", Keys: all, Start: []string{"x"}, Nodes: []graph.Node{
		{Name: "x", Run: writes(list.Set([]string{strings.Repeat("y", 20_000)}))}, {Name: "y", Run: fails("no")}}, Edges: []graph.Edge{edge("x", "y"), edge("y", graph.End)}})
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"sub"}, Nodes: []graph.Node{{Name: "sub", Graph: child, OnError: "h", Retry: graph.Retry{Attempts: 2}}, {Name: "h", Run: writes(newReducerKey.Set(1))}},
		Edges: []graph.Edge{edge("sub", graph.End), branch("h", map[string]string{"again": "sub", "stop": graph.End}, func(s graph.State) string {
			if newReducerKey.Get(s) < 50 {
				return "again"
			}
			return "stop"
		})}})
	r := kept(g)
	res, err := start(t, r)
	is(t, graph.Done, res, err)
	n := 0
	for range r.Store.Read(t.Context(), thread, journal.Range{FromSnapshot: true}) {
		n++
	}
	if all := len(journalOf(t, r.Store, thread)); n > all/4 {
		t.Errorf("%d of %d records are read to open the thread", n, all)
	}
}

// A halt whose value cannot be stored is a failure like any other.
func TestAHaltThatCannotBeStored(t *testing.T) {
	for _, sibling := range []bool{false, true} {
		nodes := []graph.Node{{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Writes: []graph.Write{only.Set("x")}, Halt: &graph.Halt{Value: make(chan int)}}, nil
		}}}
		if sibling {
			nodes = append(nodes, graph.Node{Name: "b", Run: idle})
		}
		r := kept(parallel(t, nodes...))
		res, err := start(t, r)
		if is(t, graph.Failed, res, err); res.Value != nil || only.Get(res.State) != "" {
			t.Errorf("%v, %v", res.Value, res.State.Keys())
		}
		if s, err := history.Inspect(t.Context(), r.Store, thread, 0); err != nil || s.Status != graph.Failed || s.Result != nil {
			t.Errorf("%+v, %v", s, err)
		}
	}
}

// A graph that changed is not continued unawares, and not at all without a node
// that is to run.
func TestAChangedGraphNeedsConsent(t *testing.T) {
	def := func(version, last string) *graph.Graph {
		return compile(t, graph.Def{Name: "g", Version: version, Keys: all, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: idle}, {Name: last, Run: asker(last)}},
			Edges: []graph.Edge{edge("a", last), edge(last, graph.End)}})
	}
	r := kept(def("1", "b"))
	_, _ = start(t, r)
	records := len(journalOf(t, r.Store, thread))
	var e *graph.ChangedError
	r.Graph = def("2", "c")
	if _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true, Answers: []graph.Answer{says("b", "")}}); !errors.As(err, &e) || !slices.Equal(e.Missing, []string{"b"}) {
		t.Error(err)
	}
	r.Graph = def("2", "b")
	if _, err := resume(t, r, says("b", "")); !errors.As(err, &e) || e.Missing != nil {
		t.Error(err)
	}
	if n := len(journalOf(t, r.Store, thread)); n != records {
		t.Errorf("%d records were written", n-records)
	}
	res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true, Answers: []graph.Answer{says("b", "")}})
	if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != "[b=]" {
		t.Error(list.Get(res.State))
	}
}

// What the goroutines of a node do after it has returned is refused.
// An effect that is in progress when its node returns does no harm to what follows.
// Leaving the loop at any event leaves no goroutine behind, and the run continues
// from there.
// Every run of a thread that is started again returns its own end, not the newest,
// and runs nothing; one whose records are gone is refused.
func TestAnOlderRunStartedAgain(t *testing.T) {
	var c tally
	g := parallel(t, graph.Node{Name: "a", Run: c.counts("a")}, say("b"), graph.Node{Name: "c", Run: idle})
	r := kept(g)
	begin := func(run string) (graph.Result, error) {
		return r.Invoke(t.Context(), graph.Input{Thread: thread, Run: run})
	}
	for i := range 3 {
		res, err := begin(fmt.Sprint("r", i))
		is(t, graph.Done, res, err)
	}
	if _, err := r.Edit(t.Context(), thread, list.Set([]string{"edited"})); err != nil {
		t.Fatal(err)
	}
	again := func(i int) {
		t.Helper()
		res, err := begin(fmt.Sprint("r", i))
		if is(t, graph.Done, res, err); res.Run != fmt.Sprint("r", i) || len(list.Get(res.State)) != i+1 {
			t.Errorf("%s: %v", res.Run, list.Get(res.State))
		}
	}
	again(0)
	again(1)
	if err := history.Fork(t.Context(), r.Store, thread, 0, "copy"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: "copy", Run: "r1"}); !errors.Is(err, journal.ErrNoPoint) {
		t.Errorf("a run of the original: %v", err)
	}
	if _, err := history.Prune(t.Context(), r.Store, thread, history.Keep{}); err != nil {
		t.Fatal(err)
	}
	if _, err := begin("r0"); !errors.Is(err, journal.ErrNoPoint) {
		t.Errorf("a run that was pruned: %v", err)
	}
	if c.of("a") != 3 {
		t.Errorf("%d runs", c.of("a"))
	}
	res, err := begin("r3")
	is(t, graph.Done, res, err)
}

// What a resume writes is seen by what runs, is in the journal, and leaves what was
// recorded as it is.
func TestAResumeWrites(t *testing.T) {
	var c tally
	g := parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
		v, err := graph.Do(ctx, "effect", func(context.Context) (int, error) { return c.add("effect"), nil })
		if err != nil {
			return graph.Update{}, err
		}
		a, err := graph.Interrupt[string](ctx, graph.Ask{})
		return graph.Put(list.Set([]string{fmt.Sprint(a, v, only.Get(s))})), err
	}}, graph.Node{Name: "b", Run: c.counts("b")})
	r := kept(g)
	res, err := start(t, r, only.Set("old"))
	is(t, graph.Waiting, res, err)
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Set: []graph.Write{only.Set("new"), list.Set([]string{"given"})}})
	is(t, graph.Waiting, res, err)
	if _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Set: []graph.Write{graph.Last[int]("unknown").Set(1)}}); err == nil {
		t.Error("a key that the graph does not have")
	}
	res, err = resume(t, r, says("a", "x"))
	if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != "[given x1new]" || c.of("effect") != 1 || c.of("b") != 1 {
		t.Errorf("%v, ran %v", list.Get(res.State), c.n)
	}
	w, err := history.Blame(t.Context(), r.Store, thread, "only")
	if err != nil || len(w) != 2 || w[0].Kind != journal.KindClaim && w[1].Kind != journal.KindClaim {
		t.Errorf("%+v, %v", w, err)
	}
	if _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Set: []graph.Write{only.Set("late")}}); err == nil {
		t.Error("a run that is over was written to")
	}
}

// A changed graph is accepted once, and again only when it changes again.
func TestAChangeIsAcceptedOnce(t *testing.T) {
	version := func(v string) *graph.Graph {
		return compile(t, graph.Def{Name: "g", Version: v, Keys: all, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: asker("x", "y")}}, Edges: []graph.Edge{edge("a", graph.End)}})
	}
	r := kept(version("1"))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	r.Graph = version("2")
	var changed *graph.ChangedError
	if _, err = resume(t, r); !errors.As(err, &changed) {
		t.Fatal(err)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true})
	is(t, graph.Waiting, res, err)
	res, err = resume(t, r, says("a", ""))
	is(t, graph.Waiting, res, err)
	r.Graph = version("1")
	if _, err = resume(t, r); !errors.As(err, &changed) {
		t.Error(err)
	}
}

// Breaks of a drive hold for that drive, in child graphs too.
func TestBreaksOfADrive(t *testing.T) {
	child := compile(t, graph.Def{Name: "c", Keys: all, Start: []string{"x"}, Nodes: []graph.Node{say("x"), say("y")}, Edges: []graph.Edge{edge("x", "y"), edge("y", graph.End)}})
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"split"}, Nodes: []graph.Node{
		{Name: "split", Routes: []string{"sub"}, Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Send: []graph.Send{{To: "sub"}, {To: "sub"}}}, nil
		}}, {Name: "sub", Graph: child}, say("z")}, Edges: []graph.Edge{edge("sub", "z"), edge("z", graph.End)}})
	r := kept(g)
	res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Break: []graph.Break{{Node: "split", After: true}, {Node: "z"}}})
	if is(t, graph.Paused, res, err); fmt.Sprint(res.Breaks) != "[{split true}]" {
		t.Error(res.Breaks)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Break: []graph.Break{{Node: "sub/y"}}})
	if is(t, graph.Paused, res, err); fmt.Sprint(res.Breaks) != "[{sub[1]/y false} {sub[2]/y false}]" {
		t.Error(res.Breaks)
	}
	res, err = resume(t, r)
	is(t, graph.Done, res, err)
	for _, bad := range []string{"ghost", "z/x", "sub/ghost", "", graph.End} {
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: "other", Break: []graph.Break{{Node: bad}}}); err == nil {
			t.Errorf("a break at %q", bad)
		}
	}
}

// A pause waits for as long as its grace; what takes longer is cancelled, is not anyone's
// failure, and runs again.
func TestAPauseWithGrace(t *testing.T) {
	for _, inChild := range []bool{false, true} {
		settled(t, func(t *testing.T) {
			var c tally
			begun := make(chan struct{})
			slow := func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if c.add("slow") == 1 {
					close(begun)
					<-ctx.Done()
				}
				return graph.Update{}, ctx.Err()
			}
			g := parallel(t, graph.Node{Name: "a", Run: slow, OnError: graph.End, Retry: graph.Retry{Attempts: 3}}, graph.Node{Name: "b", Run: c.counts("b")})
			if inChild {
				g = parallel(t, graph.Node{Name: "sub", Graph: g})
			}
			r := kept(g)
			pause := make(chan struct{})
			go func() {
				<-begun
				close(pause)
			}()
			at := time.Now()
			res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Pause: pause, Grace: time.Minute})
			if is(t, graph.Paused, res, err); time.Since(at) != time.Minute {
				t.Error(time.Since(at))
			}
			res, err = resume(t, r)
			if is(t, graph.Done, res, err); c.of("slow") != 2 || c.of("b") != 1 {
				t.Errorf("ran %v", c.n)
			}
		})
	}
}

func TestGraceWithoutAPauseDoesNotDelayTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := time.Now()
		res, err := kept(parallel(t, graph.Node{Name: "a", Run: idle})).Invoke(t.Context(), graph.Input{Thread: thread, Pause: make(chan struct{}), Grace: time.Minute})
		if is(t, graph.Done, res, err); time.Since(at) != 0 {
			t.Errorf("the run took %s", time.Since(at))
		}
	})
}

func TestTwoResetsOfOneKeyAreAConflict(t *testing.T) {
	g := parallel(t, graph.Node{Name: "a", Run: writes(list.Set([]string{"a"}))}, graph.Node{Name: "b", Run: writes(list.Reset(nil), list.Reset([]string{"b"}))}, graph.Node{Name: "c", Run: writes(list.Reset(nil))})
	res, err := start(t, kept(g))
	is(t, graph.Failed, res, err)
	var e *graph.ConflictError
	if !errors.As(err, &e) || fmt.Sprint(e.Nodes) != "[b c]" {
		t.Error(err)
	}
	g = parallel(t, graph.Node{Name: "a", Run: writes(list.Reset([]string{"a"}))}, graph.Node{Name: "b", Run: writes(list.Set([]string{"b"}))})
	res, err = start(t, kept(g))
	if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != "[a b]" {
		t.Error(list.Get(res.State))
	}
}

func TestANodeThatHaltsIsNotAskedWhereItGoes(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{Halt: &graph.Halt{Value: 1}}, nil
	}}, {Name: "b", Run: idle}}, Edges: []graph.Edge{branch("a", map[string]string{"b": "b"}, func(graph.State) string { panic("asked") }), edge("b", graph.End)}})
	res, err := start(t, kept(g))
	is(t, graph.Done, res, err)
}

func TestANilKeyIsAFaultOfItsDef(t *testing.T) {
	var none *graph.Key[int]
	_, err := graph.Compile(graph.Def{Name: "g", Keys: []graph.AnyKey{none, nil}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: idle, Cache: &graph.CachePolicy{Keys: []graph.AnyKey{none}}}}, Edges: []graph.Edge{edge("a", graph.End)}})
	if err == nil || strings.Count(err.Error(), "was not made by") != 2 || !strings.Contains(err.Error(), "the cache of node") {
		t.Error(err)
	}
}

// What a node leaves running finds its own task in its context, over, however
// many steps have passed and whether it had looked before.
// However many siblings block, the others run: here each waits for all.
func TestSiblingsRunAtTheSameTime(t *testing.T) {
	const n = 100
	for _, topics := range []graph.Topic{0, graph.AllTopics} {
		arrived, all := make(chan struct{}, n), make(chan struct{})
		go func() {
			for range n {
				<-arrived
			}
			close(all)
		}()
		d := graph.Def{Name: "meet", Keys: []graph.AnyKey{counter}}
		for i := range n {
			name := "n" + string(rune('A'+i/26)) + string(rune('a'+i%26))
			d.Start = append(d.Start, name)
			d.Nodes = append(d.Nodes, graph.Node{Name: name, Run: func(context.Context, graph.State) (graph.Update, error) {
				arrived <- struct{}{}
				<-all
				return graph.Update{}, nil
			}})
			d.Edges = append(d.Edges, edge(name, graph.End))
		}
		r := &graph.Runner{Graph: compile(t, d)}
		for _, err := range r.Run(t.Context(), graph.Input{Topics: topics}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What a failed attempt leaves running is refused in the next: it takes no
// ordinal, no question and no child from it.
// A child that a failed attempt has left running is not run a second time while it runs.
