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

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// order is what an order has done so far, oldest first.
var order = graph.Append[string]("order")

// newOrderGraph returns a graph that books, charges and ships, the last of which does what ship says, and then undoes
// what it has done. Each effect is counted.
func newOrderGraph(t testing.TB, done *tally, ship graph.Func) *graph.Graph {
	t.Helper()
	effect := func(ctx context.Context, name string) error {
		_, err := graph.Do(ctx, name, func(context.Context) (int, error) { return done.add(name), nil })
		return err
	}
	does := func(name string) graph.Func {
		return func(ctx context.Context, _ graph.State) (graph.Update, error) {
			return graph.Put(order.Set([]string{name})), effect(ctx, name)
		}
	}
	undo := func(ctx context.Context, s graph.State) (graph.Update, error) {
		if graph.Cause(ctx) == "" {
			return graph.Update{}, errors.New("the cause is not known")
		}
		list := slices.Clone(order.Get(s))
		slices.Reverse(list)
		for _, name := range list {
			if err := effect(ctx, "undo "+name); err != nil {
				return graph.Update{}, err
			}
		}
		return graph.Put(order.Reset([]string{"undone"})), nil
	}
	g, err := graph.Compile(graph.Def{
		Name: "order",
		Keys: []graph.AnyKey{order},
		Nodes: []graph.Node{
			{Name: "book", Run: does("book")},
			{Name: "charge", Run: does("charge")},
			{Name: "ship", Run: ship},
			{Name: "undo", Run: undo},
		},
		Edges: []graph.Edge{
			graph.NewEdge("book", "charge"),
			graph.NewEdge("charge", "ship"),
			graph.NewEdge("ship", graph.End),
		},
		Start:   []string{"book"},
		Finally: "undo",
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// expectEnding checks that a run has ended by its Finally because of what text says.
func expectEnding(t testing.TB, want graph.Status, res graph.Result, err error, text string) {
	t.Helper()
	var ending *graph.EndingError
	if !errors.As(err, &ending) || ending.Finally != "undo" || !strings.Contains(err.Error(), text) {
		t.Errorf("the error is %v (%T), want that node undo has run after %q", err, err, text)
	}
	if res.Status != want {
		t.Errorf("the run is %s, want %s", res.Status, want)
	}
	if got := order.Get(res.State); !slices.Equal(got, []string{"undone"}) {
		t.Errorf("the state after Finally is %q", got)
	}
}

func TestFinallyRunsAfterAFailure(t *testing.T) {
	t.Parallel()
	var done tally
	r := kept(newOrderGraph(t, &done, fails("no truck")))
	res, err := start(t, r)
	expectEnding(t, graph.CleanedUp, res, err, "node ship (step 2, attempt 1): no truck")
	for _, name := range []string{"book", "charge", "undo book", "undo charge"} {
		if done.of(name) != 1 {
			t.Errorf("%s was done %d times, want once", name, done.of(name))
		}
	}
	again, err := resume(t, r)
	if err != nil || again.Status != graph.CleanedUp || done.of("undo book") != 1 {
		t.Errorf("a resume of the ended run: %s, %v; undone %d times", again.Status, err, done.of("undo book"))
	}
	snap, err := history.Inspect(t.Context(), r.Store, thread, 0)
	if err != nil || snap.Status != graph.CleanedUp {
		t.Errorf("the journal says %s, %v", snap.Status, err)
	}
}

func TestFinallyDoesNotRunAfterSuccess(t *testing.T) {
	t.Parallel()
	var done tally
	res, err := start(t, kept(newOrderGraph(t, &done, idle)))
	is(t, graph.Done, res, err)
	if done.of("undo book") != 0 {
		t.Error("Finally has run though the run is done")
	}
}

func TestFinallySurvivesADeathAtEachRecord(t *testing.T) {
	t.Parallel()
	var whole tally
	r := kept(newOrderGraph(t, &whole, fails("no truck")))
	if _, err := start(t, r); err == nil {
		t.Fatal("the run has not failed")
	}
	recs := journalOf(t, r.Store, thread)
	for at := 2; at <= len(recs); at++ {
		var done tally
		for _, rec := range recs[:at-1] { // what was recorded must not be done again
			if rec.Kind == journal.KindEffect {
				done.add(fmt.Sprint("recorded before ", at))
			}
		}
		left := &graph.Runner{Graph: newOrderGraph(t, &done, fails("no truck")), Store: copyBefore(t, r.Store, func(rec journal.Record) bool { return rec.Seq == int64(at) })}
		res, err := resume(t, left)
		why := "no truck"
		if recs[at-1].Kind == journal.KindEnd { // no store is left so: the two records are written together
			why = "the run has ended"
		}
		expectEnding(t, graph.CleanedUp, res, err, why)
		total := done.of(fmt.Sprint("recorded before ", at))
		for _, name := range []string{"book", "charge", "undo book", "undo charge"} {
			if done.of(name) > 1 {
				t.Errorf("death before record %d: %s was done %d times", at, name, done.of(name))
			}
			total += done.of(name)
		}
		if total != 4 {
			t.Errorf("death before record %d: %d effects in all, want 4", at, total)
		}
	}
}

func TestCancelRunsFinally(t *testing.T) {
	t.Parallel()
	var done tally
	r := kept(newOrderGraph(t, &done, asks(nil)))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Cancel: "the customer called"})
	expectEnding(t, graph.Abandoned, res, err, "the customer called")
	var why *graph.CancelError
	if !errors.As(err, &why) || why.Reason != "the customer called" || done.of("undo charge") != 1 {
		t.Errorf("the error is %v, and the charge was undone %d times", err, done.of("undo charge"))
	}
	if len(res.Questions) > 0 {
		t.Errorf("the run still asks %q", ids(res.Questions))
	}
}

// A cancel is recorded before Finally runs: a drive that continues there knows it.
func TestACancelThatWasRecordedContinues(t *testing.T) {
	t.Parallel()
	var done tally
	r := kept(newOrderGraph(t, &done, asks(nil)))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	paused := make(chan struct{})
	close(paused)
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Cancel: "the customer called", Pause: paused})
	is(t, graph.Paused, res, err)
	if done.of("undo charge") != 0 {
		t.Fatal("Finally has run in a drive that was to stop")
	}
	res, err = resume(t, r)
	expectEnding(t, graph.Abandoned, res, err, "the customer called")
}

func TestCausesOfFinally(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]graph.Def{
		"a limit":   {MaxSteps: 1, Nodes: []graph.Node{{Name: "work", Run: idle}}, Edges: []graph.Edge{graph.NewEdge("work", "work")}},
		"a failure": {Nodes: []graph.Node{{Name: "work", Run: fails("no truck")}}, Edges: []graph.Edge{graph.NewEdge("work", graph.End)}},
	} {
		var seen []*graph.NodeError
		d.Name = name
		d.Start = []string{"work"}
		d.Finally = "undo"
		d.Nodes = append(d.Nodes, graph.Node{Name: "undo", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			seen = append(seen, graph.Causes(ctx)...)
			_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "continue?"})
			return graph.Update{}, err
		}})
		g, err := graph.Compile(d)
		if err != nil {
			t.Fatal(err)
		}
		r := kept(g)
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		if res, err = resume(t, r, says(res.Questions[0].ID, "yes")); res.Status != graph.CleanedUp {
			t.Fatalf("%s: the result is %s, %v", name, res.Status, err)
		}
		if len(seen) != 2 || seen[0].Node != seen[1].Node || seen[0].Err.Error() != seen[1].Err.Error() {
			t.Fatalf("%s: the causes are %v before and after a resume", name, seen)
		}
		if want := map[string]string{"a limit": "", "a failure": "work"}[name]; seen[0].Node != want {
			t.Errorf("%s: the cause is of node %q, want %q", name, seen[0].Node, want)
		}
	}
}

func TestCancelOfAGraphWithoutFinally(t *testing.T) {
	t.Parallel()
	g, err := graph.Compile(graph.Def{
		Name:  "plain",
		Nodes: []graph.Node{{Name: "ask", Run: asks(nil)}},
		Edges: []graph.Edge{graph.NewEdge("ask", graph.End)},
		Start: []string{"ask"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := kept(g)
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	ctx := journal.WithAuthor(t.Context(), "ada")
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: thread, Cancel: "not needed"})
	if why := (*graph.CancelError)(nil); !errors.As(err, &why) || res.Status != graph.Abandoned {
		t.Fatalf("the result is %s, %v", res.Status, err)
	}
	last, err := history.Inspect(t.Context(), r.Store, thread, 0)
	if err != nil || last.Status != graph.Abandoned || last.Reason != "not needed" {
		t.Errorf("the journal says %s, %q, %v", last.Status, last.Reason, err)
	}
}

func TestFinallyThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	var done tally
	ready := false
	g, err := graph.Compile(graph.Def{
		Name: "twice",
		Nodes: []graph.Node{
			{Name: "work", Run: fails("no truck")},
			{Name: "undo", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if _, err := graph.Do(ctx, "first", func(context.Context) (int, error) { return done.add("first"), nil }); err != nil {
					return graph.Update{}, err
				}
				if !ready {
					return graph.Update{}, errors.New("the bank is closed")
				}
				return graph.Update{}, nil
			}},
		},
		Edges:   []graph.Edge{graph.NewEdge("work", graph.End)},
		Start:   []string{"work"},
		Finally: "undo",
	})
	if err != nil {
		t.Fatal(err)
	}
	r := kept(g)
	res, err := start(t, r)
	end := (*graph.EndingError)(nil)
	if res.Status != graph.Failed || !errors.As(err, &end) || !strings.Contains(end.Err.Error(), "no truck") || !strings.Contains(end.Failure.Error(), "the bank is closed") {
		t.Fatalf("the result is %s, %v, want a failure that names both", res.Status, err)
	}
	ready = true
	res, err = resume(t, r)
	if !errors.As(err, &end) || end.Failure != nil || res.Status != graph.CleanedUp || !strings.Contains(err.Error(), "no truck") {
		t.Errorf("the result is %s, %v", res.Status, err)
	}
	if done.of("first") != 1 {
		t.Errorf("the recorded effect of Finally was made %d times", done.of("first"))
	}
}

func TestFinallyRunsAfterEachLimit(t *testing.T) {
	t.Parallel()
	loop := graph.NewEdge("work", "work")
	for name, d := range map[string]graph.Def{
		"steps":  {MaxSteps: 3},
		"visits": {MaxVisits: 3},
		"time":   {Timeout: time.Nanosecond},
		"stuck":  {MustHalt: true},
	} {
		var done tally
		d.Name = name
		d.Nodes = []graph.Node{{Name: "work", Run: done.counts("work")}, {Name: "undo", Run: done.counts("undo")}}
		d.Edges = []graph.Edge{loop}
		if name == "stuck" {
			d.Edges = []graph.Edge{graph.NewEdge("work", graph.End)}
		}
		d.Start = []string{"work"}
		d.Finally = "undo"
		g, err := graph.Compile(d)
		if err != nil {
			t.Fatal(err)
		}
		res, err := start(t, kept(g))
		if end := (*graph.EndingError)(nil); !errors.As(err, &end) || res.Status != graph.CleanedUp || done.of("undo") != 1 {
			t.Errorf("%s: the result is %s, %v; Finally ran %d times", name, res.Status, err, done.of("undo"))
		}
	}
}

func TestTheEndOfTheContextIsNoEnd(t *testing.T) {
	t.Parallel()
	var done tally
	ctx, stop := context.WithCancel(t.Context())
	first := true
	r := kept(newOrderGraph(t, &done, func(ctx context.Context, _ graph.State) (graph.Update, error) {
		if first {
			first = false
			stop()
			<-ctx.Done()
			return graph.Update{}, ctx.Err()
		}
		return graph.Update{}, nil
	}))
	res, err := r.Invoke(ctx, graph.Input{Thread: thread})
	if res.Status != graph.Canceled || err == nil || done.of("undo book") != 0 {
		t.Fatalf("the result is %s, %v; undone %d times", res.Status, err, done.of("undo book"))
	}
	res, err = resume(t, r)
	is(t, graph.Done, res, err)
}

func TestFinallyOfAChild(t *testing.T) {
	t.Parallel()
	for _, store := range []bool{true, false} {
		var done tally
		child, err := graph.Compile(graph.Def{
			Name: "child",
			Nodes: []graph.Node{
				{Name: "first", Run: done.counts("first")},
				{Name: "work", Run: func(context.Context, graph.State) (graph.Update, error) {
					if done.add("work") == 1 {
						return graph.Update{}, errors.New("no truck")
					}
					return graph.Update{}, nil
				}},
				{Name: "undo", Run: done.counts("undo")},
			},
			Edges:   []graph.Edge{graph.NewEdge("first", "work"), graph.NewEdge("work", graph.End)},
			Start:   []string{"first"},
			Finally: "undo",
		})
		if err != nil {
			t.Fatal(err)
		}
		g, err := graph.Compile(graph.Def{
			Name:  "parent",
			Nodes: []graph.Node{{Name: "call", Graph: child, Retry: graph.Retry{Attempts: 2}}},
			Edges: []graph.Edge{graph.NewEdge("call", graph.End)},
			Start: []string{"call"},
		})
		if err != nil {
			t.Fatal(err)
		}
		r := kept(g)
		if !store {
			r.Store = nil
		}
		res, err := start(t, r)
		is(t, graph.Done, res, err)
		if done.of("first") != 2 || done.of("undo") != 1 {
			t.Errorf("with a store %v: the child began %d times and was undone %d times, want 2 and 1", store, done.of("first"), done.of("undo"))
		}
	}
}

func TestCompileChecksFinally(t *testing.T) {
	t.Parallel()
	node := func(name string) graph.Node { return graph.Node{Name: name, Run: idle} }
	toEnd := graph.NewEdge("a", graph.End)
	for want, d := range map[string]graph.Def{
		`Finally names node "x", which is not declared`:         {Nodes: []graph.Node{node("a")}, Edges: []graph.Edge{toEnd}, Finally: "x"},
		"Finally names END: it must be a node":                  {Nodes: []graph.Node{node("a")}, Edges: []graph.Edge{toEnd}, Finally: graph.End},
		`node "a" leads to "b", which is Finally`:               {Nodes: []graph.Node{node("a"), node("b")}, Edges: []graph.Edge{graph.NewEdge("a", "b")}, Finally: "b"},
		`node "b" is Finally, so nothing but END can follow it`: {Nodes: []graph.Node{node("a"), node("b")}, Edges: []graph.Edge{toEnd, graph.NewEdge("b", "a")}, Finally: "b"},
		`Start names "a", which is Finally`:                     {Nodes: []graph.Node{node("a")}, Edges: []graph.Edge{toEnd}, Finally: "a"},
		`the join of a, c leads to "b"`:                         {Nodes: []graph.Node{node("a"), node("b"), node("c")}, Edges: []graph.Edge{toEnd, graph.NewEdge("c", graph.End), join("b", "a", "c")}, Start: []string{"a", "c"}, Finally: "b"},
	} {
		d.Name = "g"
		if d.Start == nil {
			d.Start = []string{"a"}
		}
		if _, err := graph.Compile(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

func TestEditCannotChooseFinally(t *testing.T) {
	t.Parallel()
	var done tally
	r := kept(newOrderGraph(t, &done, asks(nil)))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	if _, err := r.EditNext(t.Context(), thread, []string{"undo"}); err == nil || !strings.Contains(err.Error(), `node "undo" of graph order runs when a run ends`) {
		t.Errorf("the edit: %v", err)
	}
	res, err = resume(t, r, says(res.Questions[0].ID, "yes"))
	is(t, graph.Done, res, err)
}

func TestFinallyRunsBehindANodeThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var done tally
		release := make(chan struct{})
		g, err := graph.Compile(graph.Def{
			Name: "hung",
			Nodes: []graph.Node{
				{Name: "work", Timeout: time.Second, Run: func(context.Context, graph.State) (graph.Update, error) {
					<-release
					return graph.Update{}, nil
				}},
				{Name: "undo", Run: done.counts("undo")},
			},
			Edges:   []graph.Edge{graph.NewEdge("work", graph.End)},
			Start:   []string{"work"},
			Finally: "undo",
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, topics := range []graph.Topic{0, graph.TopicTask | graph.TopicStep | graph.TopicRun} {
			r := kept(g)
			r.HungAfter = time.Second
			var res graph.Result
			if topics == 0 {
				res, err = start(t, r)
			} else {
				for ev, e := range r.Run(t.Context(), graph.Input{Thread: thread, Topics: topics}) {
					if end, ok := ev.Body.(graph.RunEnded); ok {
						res = end.Result
					}
					err = e
				}
			}
			if end := (*graph.EndingError)(nil); !errors.As(err, &end) || res.Status != graph.CleanedUp || len(res.Hung) != 1 {
				t.Errorf("the result is %s, %v, with %q left behind", res.Status, err, res.Hung)
			}
		}
		if done.of("undo") != 2 {
			t.Errorf("Finally ran %d times in two runs", done.of("undo"))
		}
		close(release)
	})
}

func TestFinallyIsNoTargetOfAnyRoute(t *testing.T) {
	t.Parallel()
	g, err := graph.Compile(graph.Def{
		Name: "routes",
		Nodes: []graph.Node{
			{Name: "a", AnyRoute: true, Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Update{Goto: []string{"undo"}}, nil
			}},
			{Name: "undo", Run: idle},
		},
		Start:   []string{"a"},
		Finally: "undo",
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = start(t, kept(g))
	if err == nil || !strings.Contains(err.Error(), `"undo"`) {
		t.Errorf("a node that names Finally: %v", err)
	}
}

// An appendCounter remembers the kinds of records of each append.
type appendCounter struct {
	*journal.Memory
	last []journal.Kind
}

func (c *appendCounter) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	c.last = nil
	for _, r := range recs {
		c.last = append(c.last, r.Kind)
	}
	return c.Memory.Append(ctx, thread, after, recs)
}

func TestTheEndIsWrittenWithTheStepOfFinally(t *testing.T) {
	t.Parallel()
	var done tally
	st := &appendCounter{Memory: journal.NewMemory()}
	r := &graph.Runner{Graph: newOrderGraph(t, &done, fails("no truck")), Store: st}
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: thread}); err == nil {
		t.Fatal("the run has not failed")
	}
	if want := []journal.Kind{journal.KindStep, journal.KindEnd}; !slices.Equal(st.last, want) {
		t.Errorf("the last append has %v, want %v", st.last, want)
	}
}

// The time limit of a graph does not hold for its Finally, also in the drives that continue it.
func TestFinallyThatAsksAfterTheTimeOfTheGraph(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := compile(t, graph.Def{
			Name:    "late",
			Timeout: time.Second,
			Nodes: []graph.Node{
				{Name: "work", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
					<-ctx.Done()
					return graph.Update{}, context.Cause(ctx)
				}},
				{Name: "undo", Run: asks(func(string) { <-time.After(time.Minute) })},
			},
			Edges:   []graph.Edge{edge("work", graph.End)},
			Start:   []string{"work"},
			Finally: "undo",
		})
		r := kept(g)
		res, err := start(t, r)
		if res.Status != graph.Waiting || len(res.Questions) != 1 {
			t.Fatal(res.Status, err)
		}
		res, err = resume(t, r, says("", "yes"))
		if end := (*graph.EndingError)(nil); !errors.As(err, &end) || res.Status != graph.CleanedUp {
			t.Errorf("the result is %s, %v", res.Status, err)
		}
	})
}

// A store that fails at any append ends the drive with its error, and another drive ends the run with its Finally.
func TestFinallyAfterAStoreThatFailed(t *testing.T) {
	t.Parallel()
	for at := 1; ; at++ {
		var done tally
		failing := &shaky{Store: journal.NewMemory(), left: at}
		r := &graph.Runner{Graph: newOrderGraph(t, &done, fails("no truck")), Store: failing, Executor: sequential{}}
		res, err := r.Invoke(t.Context(), graph.Input{Thread: thread})
		if !failing.failed {
			if at < 10 {
				t.Errorf("only %d calls", at)
			}
			return
		}
		if failing.looks && !errors.Is(err, errAway) { // the drive has looked again
			continue
		}
		if !errors.Is(err, errAway) {
			t.Fatalf("call %d: %s, %v", at, res.Status, err)
		}
		r.Store = failing.Store
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread})
		if errors.Is(err, journal.ErrNoThread) {
			res, err = start(t, r)
		}
		if end := (*graph.EndingError)(nil); !errors.As(err, &end) || res.Status != graph.CleanedUp || !slices.Equal(order.Get(res.State), []string{"undone"}) {
			t.Errorf("call %d, then: %s, %v, %q", at, res.Status, err, order.Get(res.State))
		}
	}
}

func TestTheDigestHasFinally(t *testing.T) {
	digests := map[string]string{}
	for _, finally := range []string{"", "a", "b"} {
		g := compile(t, graph.Def{
			Name:    "ends",
			Nodes:   []graph.Node{{Name: "n", Run: idle, AnyRoute: true}, {Name: "a", Run: idle}, {Name: "b", Run: idle}},
			Start:   []string{"n"},
			Edges:   []graph.Edge{edge("n", graph.End), edge("a", graph.End), edge("b", graph.End)},
			Finally: finally,
		})
		if other, known := digests[g.Digest()]; known {
			t.Errorf("the digest of a graph that ends with %q is that of one that ends with %q", finally, other)
		}
		digests[g.Digest()] = finally
	}
}
