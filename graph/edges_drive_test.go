package graph_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// stolen is a store in which the lease of a thread is another's as soon as a drive has it.
type stolen struct {
	*journal.Memory
	by journal.Lease
}

func (s *stolen) ReadLease(context.Context, string) (journal.Lease, error) { return s.by, nil }

// A drive that finds a crashed run, and whose lease another has taken before it could write, writes nothing.
func TestALeaseThatIsTakenBeforeTheClaim(t *testing.T) {
	r := kept(parallel(t, graph.Node{Name: "n", Run: asker("a")}))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	crashed := copyBefore(t, r.Store, nth(journal.KindEnd, 1))
	before := len(journalOf(t, crashed, thread))
	for name, by := range map[string]journal.Lease{
		"taken":               {Owner: "another", Until: time.Now().Add(time.Hour)},
		"taken, and released": {},
	} {
		r.Store = &stolen{crashed, by}
		_, err := resume(t, r)
		var busy *graph.BusyError
		if !errors.As(err, &busy) || busy.Status != graph.Running {
			t.Errorf("%s: %v", name, err)
		}
		if after := len(journalOf(t, crashed, thread)); after != before {
			t.Fatalf("%s: %d records were added", name, after-before)
		}
	}
}

// unsure is a store whose leases cannot be read, once.
type unsure struct {
	*journal.Memory
	left   int // readings until it fails
	failed bool
}

func (s *unsure) ReadLease(ctx context.Context, thread string) (journal.Lease, error) {
	if s.left--; s.left == 0 {
		s.failed = true
		return journal.Lease{}, errAway
	}
	return s.Memory.ReadLease(ctx, thread)
}

// A drive that cannot find out whether a crashed run is its own writes nothing.
func TestALeaseThatCannotBeReadBeforeTheClaim(t *testing.T) {
	r := kept(parallel(t, graph.Node{Name: "n", Run: asker("a")}))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	for at := 1; ; at++ {
		crashed := copyBefore(t, r.Store, nth(journal.KindEnd, 1))
		before := len(journalOf(t, crashed, thread))
		st := &unsure{Memory: crashed, left: at}
		r.Store = st
		_, err := resume(t, r)
		if !st.failed {
			if err != nil || at == 1 {
				t.Errorf("after %d readings: %v", at-1, err)
			}
			return
		}
		if after := len(journalOf(t, crashed, thread)); !errors.Is(err, errAway) || after != before {
			t.Errorf("reading %d has failed: %d records were added, %v", at, after-before, err)
		}
	}
}

// The failures that have ended paths of named children are those of the run.
func TestFailuresOfNamedChildren(t *testing.T) {
	child := compile(t, graph.Def{
		Name:  "child",
		Nodes: []graph.Node{{Name: "try", OnError: graph.End, Run: fails("no luck")}},
		Start: []string{"try"},
		Edges: []graph.Edge{edge("try", graph.End)},
	})
	for _, st := range []journal.Store{nil, journal.NewMemory()} {
		g := parallel(t, graph.Node{
			Name:     "n",
			Children: map[string]graph.ChildGraph{"k": {Graph: child}},
			Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				for _, name := range []string{"x", "y"} {
					if _, err := graph.CallChild(ctx, name, "k"); err != nil {
						return graph.Update{}, err
					}
				}
				return graph.Update{}, nil
			},
		})
		res, err := (&graph.Runner{Graph: g, Store: st}).Invoke(t.Context(), graph.Input{Thread: thread})
		is(t, graph.Done, res, err)
		var paths []string
		for _, f := range res.Failures {
			paths = append(paths, f.Path+f.Node)
		}
		if slices.Sort(paths); !slices.Equal(paths, []string{"n/x/try", "n/y/try"}) {
			t.Errorf("with the store %v the failures are %q", st, paths)
		}
	}
}

// In and Out belong to a child that the node runs by itself.
func TestFunctionsAroundAChild(t *testing.T) {
	in := func(graph.State) ([]graph.Write, error) { return nil, nil }
	out := func(graph.State, graph.Child) (graph.Update, error) { return graph.Update{}, nil }
	for name, n := range map[string]graph.Node{"In": {In: in}, "Out": {Out: out}, "both": {In: in, Out: out}} {
		n.Name = "n"
		n.Run = idle
		for want, child := range map[string]*graph.Graph{"has In, Out or Inherit but no Graph": nil, "has both Run and In or Out": quiet} {
			n.Graph = child
			d := graph.Def{Name: "g", Nodes: []graph.Node{n}, Start: []string{"n"}, Edges: []graph.Edge{edge("n", graph.End)}}
			if _, err := graph.Compile(d); err == nil || !strings.Contains(err.Error(), `node "n" `+want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}

// With Debug, the nodes read what a resumed run would read of the result of a reducer.
func TestDebugReadsBackWhatAReducerMakes(t *testing.T) {
	k := graph.Fold("k", func(old string, _ bool, upd string) (string, error) { return old + upd + "!", nil }).WithCodec(graph.Codec[string]{
		Tag:    "quiet",
		Encode: func(dst []byte, v string) ([]byte, error) { return append(dst, strings.Trim(v, "!")...), nil },
		Decode: func(b []byte) (string, error) { return string(b), nil },
	})
	seen := ""
	look := func(_ context.Context, s graph.State) (graph.Update, error) {
		seen = k.Get(s)
		return graph.Update{}, nil
	}
	g := compile(t, graph.Def{
		Name:  "reducer",
		Keys:  []graph.AnyKey{k},
		Nodes: []graph.Node{{Name: "a", Run: writes(k.Set("x"))}, {Name: "b", Run: look}},
		Start: []string{"a"},
		Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)},
	})
	for debug, want := range map[bool]string{false: "x!", true: "x"} {
		res, err := (&graph.Runner{Graph: g, Debug: debug}).Invoke(t.Context(), graph.Input{})
		if is(t, graph.Done, res, err); k.Get(res.State) != want {
			t.Errorf("with Debug %t the result is %q", debug, k.Get(res.State))
		}
		if seen != "x" && debug {
			t.Errorf("the next node reads %q", seen)
		}
	}
}

// A store that fails while a retried node looks for its children ends the drive with the store's error.
func TestAStoreThatFailsBetweenAttempts(t *testing.T) {
	for at := 1; ; at++ {
		var c tally
		step := parallel(t, graph.Node{Name: "one", Run: c.counts("one")})
		names := 0
		g := parallel(t, graph.Node{
			Name:     "n",
			Retry:    graph.Retry{Attempts: 2},
			Children: map[string]graph.ChildGraph{"k": {Graph: step}},
			Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				list, err := graph.ChildNames(ctx)
				if err != nil {
					return graph.Update{}, err
				}
				names = len(list)
				if _, err := graph.CallChild(ctx, "x", "k"); err != nil {
					return graph.Update{}, err
				}
				if c.add("attempt") == 1 {
					return graph.Update{}, errors.New("once more")
				}
				return graph.Update{}, nil
			},
		})
		failing := &shaky{Store: journal.NewMemory(), left: at}
		res, err := (&graph.Runner{Graph: g, Store: failing, Executor: sequential{}}).Invoke(t.Context(), graph.Input{Thread: thread})
		switch {
		case !failing.failed:
			if is(t, graph.Done, res, err); c.of("one") != 1 || names != 1 || at < 6 {
				t.Errorf("%d runs of the child, %d names, %d calls", c.of("one"), names, at)
			}
			return
		case failing.looks && err == nil: // the drive has looked again
		case !errors.Is(err, errAway):
			t.Errorf("call %d has failed: %s, %v; the child has run %d times", at, res.Status, err, c.of("one"))
		}
	}
}

// The contexts of nodes end with their drive.
func TestContextsEndWithTheDrive(t *testing.T) {
	for _, st := range []journal.Store{nil, journal.NewMemory()} {
		var kept context.Context
		g := parallel(t, graph.Node{Name: "n", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			kept = ctx
			return graph.Update{}, ctx.Err()
		}})
		res, err := (&graph.Runner{Graph: g, Store: st}).Invoke(t.Context(), graph.Input{})
		if is(t, graph.Done, res, err); kept.Err() == nil {
			t.Errorf("with the store %v a context has not ended", st)
		}
	}
}

// What a start has recorded for its caller stays if a resume says nothing about it.
func TestMetaOfAStartStays(t *testing.T) {
	r := kept(parallel(t, graph.Node{Name: "n", Run: asker("a", "b", "c")}))
	res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Meta: []byte("first")})
	is(t, graph.Waiting, res, err)
	for _, c := range []struct{ meta, want string }{{"", "first"}, {"second", "second"}, {"", "second"}} {
		in := graph.Resume{Thread: thread, Answers: []graph.Answer{says("", "yes")}}
		if c.meta != "" {
			in.Meta = []byte(c.meta)
		}
		_, err := r.InvokeResume(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if snap, err := history.Inspect(t.Context(), r.Store, thread, 0); err != nil || string(snap.Meta) != c.want {
			t.Errorf("after a resume with %q it is %q, %v", c.meta, snap.Meta, err)
		}
	}
}

// A pause without a time of grace waits for the nodes that work.
func TestAPauseWithoutGrace(t *testing.T) {
	settled(t, func(t *testing.T) {
		pause := make(chan struct{})
		g := compile(t, graph.Def{
			Name: "pause",
			Nodes: []graph.Node{
				{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
					close(pause)
					<-time.After(time.Hour)
					return graph.Update{}, ctx.Err()
				}},
				{Name: "b", Run: idle},
			},
			Start: []string{"a"},
			Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)},
		})
		r := kept(g)
		res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Pause: pause})
		if is(t, graph.Paused, res, err); res.Steps != 1 {
			t.Errorf("%d steps", res.Steps)
		}
	})
}

// Each run of a thread has its own number of steps.
func TestTheStepsOfAFurtherRun(t *testing.T) {
	g := compile(t, graph.Def{
		Name:     "steps",
		Keys:     all,
		MaxSteps: 3,
		Nodes:    []graph.Node{say("a"), say("b"), say("c")},
		Start:    []string{"a"},
		Edges:    []graph.Edge{edge("a", "b"), edge("b", "c"), edge("c", graph.End)},
	})
	r := kept(g)
	for range 3 {
		res, err := start(t, r)
		is(t, graph.Done, res, err)
	}
}

// A state as large as the limit is taken, and one that has a byte more is not.
func TestAStateAsLargeAsTheLimit(t *testing.T) {
	text := graph.Last[string]("text")
	run := func(limit int) (*graph.StateSizeError, error) {
		r := kept(compile(t, graph.Def{
			Name:  "size",
			Keys:  []graph.AnyKey{text},
			Nodes: []graph.Node{{Name: "a", Run: writes(text.Set(strings.Repeat("x", 100)))}},
			Start: []string{"a"},
			Edges: []graph.Edge{edge("a", graph.End)},
		}))
		r.MaxState = limit
		_, err := start(t, r)
		var large *graph.StateSizeError
		errors.As(err, &large)
		return large, err
	}
	large, err := run(10)
	if large == nil || large.Size < 100 {
		t.Fatal(err)
	}
	if _, err := run(large.Size); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if again, err := run(large.Size - 1); again == nil {
		t.Errorf("above the limit: %v", err)
	}
}
