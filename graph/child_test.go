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

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// worker is a child with an effect, a question that the next answers, and large
// values that follow each other, so that snapshots fall due.
func worker(t testing.TB, c *tally) *graph.Graph {
	t.Helper()
	effect := func(ctx context.Context, what string) error {
		_, err := graph.Do(ctx, "do", func(context.Context) (int, error) { return c.add(what), nil })
		return err
	}
	return compile(t, graph.Def{Name: "worker", Keys: all, Start: []string{"dig"}, Nodes: []graph.Node{
		{Name: "dig", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			if len(list.Get(s)) > 0 && list.Get(s)[0] == "bad" {
				return graph.Update{}, errors.New("no luck")
			}
			err := effect(ctx, fmt.Sprint(list.Get(s)[0], newReducerKey.Get(s)))
			return graph.Put(newReducerKey.Set(1), only.Set(strings.Repeat("x", 9<<10))), err
		}},
		{Name: "ask", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			a, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: list.Get(s)[0] + "?"})
			if err != nil {
				return graph.Update{}, err
			}
			return graph.Put(list.Set([]string{a})), effect(ctx, list.Get(s)[0]+" told")
		}},
	}, Edges: []graph.Edge{{From: []string{"dig"}, Cases: map[string]string{"more": "dig", "ask": "ask"}, Pick: func(s graph.State) ([]string, error) {
		if newReducerKey.Get(s) < 6 {
			return []string{"more"}, nil
		}
		return []string{"ask"}, nil
	}}, edge("ask", graph.End)}})
}

// fanOut is a graph whose one node runs a worker for each name, all at once; that
// of "kept" is recorded as an effect and dropped. What then says with their
// outcomes is the node's update.
func fanOut(t testing.TB, c *tally, names []string, then func(ctx context.Context, got map[string]string) (graph.Update, error)) *graph.Graph {
	t.Helper()
	run := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		got := map[string]string{}
		for _, n := range names {
			wg.Go(func() {
				call := func(ctx context.Context) (string, error) {
					child, err := graph.CallChild(ctx, n, "worker", list.Set([]string{n}))
					if err != nil {
						return "", err
					}
					return strings.Join(list.Get(child.State), " "), nil
				}
				said, err := "", error(nil)
				if n != "kept" {
					said, err = call(ctx)
				} else if said, err = graph.Do(ctx, "outcome", call); err == nil {
					err = graph.DropChild(ctx, n)
				}
				if err != nil {
					said = fmt.Sprint(err)
				}
				mu.Lock()
				got[n] = said
				mu.Unlock()
			})
		}
		wg.Wait()
		return then(ctx, got)
	}
	return parallel(t, graph.Node{Name: "team", Run: run, Children: map[string]graph.ChildGraph{"worker": {Graph: worker(t, c)}}})
}

func tellAll(_ context.Context, got map[string]string) (graph.Update, error) {
	return graph.Put(list.Set([]string{fmt.Sprint(got)})), nil
}

// driven starts a run or resumes it, and answers one question at a time, the last
// first, until it is over or its store has died.
func driven(t testing.TB, r *graph.Runner) (graph.Result, error) {
	t.Helper()
	res, err := resume(t, r)
	if errors.Is(err, journal.ErrNoThread) {
		res, err = start(t, r)
	}
	for range 20 {
		if err != nil || res.Status != graph.Waiting {
			return res, err
		}
		q := res.Questions[len(res.Questions)-1]
		res, err = resume(t, r, says(q.ID, "to "+q.Prompt))
	}
	t.Fatal("it never ends")
	return res, err
}

func TestNamedChildrenAskTogether(t *testing.T) {
	var c tally
	r := kept(fanOut(t, &c, []string{"b", "a"}, tellAll))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	if diff := cmp.Diff([]string{"team/a/ask", "team/b/ask"}, ids(res.Questions)); diff != "" {
		t.Fatal(diff)
	}
	snap, err := history.Inspect(t.Context(), r.Store, "t", 0)
	if err != nil || !slices.Equal(ids(snap.Questions), ids(res.Questions)) {
		t.Errorf("the journal has %v open, %v", ids(snap.Questions), err)
	}
	res, err = resume(t, r, says("team/b/ask", "two"))
	if is(t, graph.Waiting, res, err); !slices.Equal(ids(res.Questions), []string{"team/a/ask"}) {
		t.Fatal(ids(res.Questions))
	}
	res, err = resume(t, r, says("team/a/ask", "one"))
	is(t, graph.Done, res, err)
	if got := list.Get(res.State)[0]; got != "map[a:a one b:b two]" {
		t.Error(got)
	}
	if c.of("a0") != 1 || c.of("b told") != 1 {
		t.Errorf("effects were repeated: %v", c.n)
	}
}

func TestCrashInNamedChildren(t *testing.T) {
	names := []string{"a", "b", "kept"}
	var whole tally
	count := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
	r := kept(fanOut(t, &whole, names, tellAll))
	r.Store = count
	want, err := driven(t, r)
	is(t, graph.Done, want, err)
	snapshots := 0
	for e, err := range history.Entries(t.Context(), count.Store, "t") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == journal.KindSnapshot {
			snapshots++
		}
	}
	if snapshots == 0 {
		t.Error("no snapshot was written while children ran")
	}
	for limit := range count.RecordCount() {
		var c tally
		store := &graphtest.Crash{Store: journal.NewMemory(), Limit: limit}
		r := kept(fanOut(t, &c, names, tellAll))
		r.Store = store
		if _, err := driven(t, r); !errors.Is(err, graphtest.ErrCrash) {
			t.Fatalf("crash after %d records: %v", limit, err)
		}
		recorded := 0
		for e, err := range history.Entries(t.Context(), store.Store, "t") {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == journal.KindEffect && strings.Contains(e.ID, "\x00do\x00") {
				recorded++
			}
		}
		made := 0
		for _, n := range c.n {
			made += n
		}
		r.Store = store.Store
		got, err := driven(t, r)
		is(t, graph.Done, got, err)
		if diff := cmp.Diff(list.Get(want.State), list.Get(got.State)); diff != "" {
			t.Fatalf("crash after %d records:\n%s", limit, diff)
		}
		again := -made
		for _, n := range c.n {
			again += n
		}
		if all := len(names) * 7; recorded+again != all {
			t.Errorf("crash after %d records: %d effects were recorded and %d made after it; they are %d", limit, recorded, again, all)
		}
	}
}

func TestNamedChildThatFails(t *testing.T) {
	var c tally
	r := kept(fanOut(t, &c, []string{"a", "bad"}, func(ctx context.Context, got map[string]string) (graph.Update, error) {
		if !strings.Contains(got["bad"], "no luck") {
			t.Errorf("the child that fails says %q", got["bad"])
		}
		return tellAll(ctx, got)
	}))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err) // the other child continues
	res, err = resume(t, r, says("team/a/ask", "one"))
	if is(t, graph.Done, res, err); !strings.Contains(list.Get(res.State)[0], "a:a one") {
		t.Error(list.Get(res.State))
	}
}

func TestDropOfAChildThatAsks(t *testing.T) {
	var c tally
	r := kept(fanOut(t, &c, []string{"a", "b"}, func(ctx context.Context, got map[string]string) (graph.Update, error) {
		if err := errors.Join(graph.DropChild(ctx, "a"), graph.DropChild(ctx, "unknown")); err != nil {
			return graph.Update{}, err
		}
		return tellAll(ctx, got)
	}))
	res, err := start(t, r)
	if is(t, graph.Waiting, res, err); !slices.Equal(ids(res.Questions), []string{"team/b/ask"}) {
		t.Fatal(ids(res.Questions))
	}
	if snap, err := history.Inspect(t.Context(), r.Store, "t", 0); err != nil || !slices.Equal(ids(snap.Questions), []string{"team/b/ask"}) {
		t.Errorf("the journal has %v open, %v", ids(snap.Questions), err)
	}
	if c.of("a0") != 1 {
		t.Errorf("a began %d times", c.of("a0"))
	}
}

func TestDropEndsAChildThatRuns(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	block := parallel(t, graph.Node{Name: "block", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		close(started)
		<-ctx.Done()
		close(ended)
		return graph.Update{}, context.Cause(ctx)
	}})
	g := parallel(t, graph.Node{Name: "team", Children: map[string]graph.ChildGraph{"k": {Graph: block}}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		failed := make(chan error, 1)
		go func() { _, err := graph.CallChild(ctx, "x", "k"); failed <- err }()
		<-started
		if err := graph.DropChild(ctx, "x"); err != nil {
			return graph.Update{}, err
		}
		select {
		case <-ended:
		default:
			t.Error("Drop has not waited for the child")
		}
		var canceled *graph.CanceledError
		if err := <-failed; !errors.As(err, &canceled) {
			t.Errorf("the call returned %v", err)
		}
		return graph.Update{}, nil
	}})
	res, err := start(t, kept(g))
	is(t, graph.Done, res, err)
}

func TestNodeThatReturnsEndsItsChildren(t *testing.T) {
	started, ended := make(chan struct{}), false
	block := parallel(t, graph.Node{Name: "block", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		close(started)
		<-ctx.Done()
		ended = true
		return graph.Update{}, context.Cause(ctx)
	}})
	var called sync.WaitGroup
	g := parallel(t, graph.Node{Name: "team", Children: map[string]graph.ChildGraph{"k": {Graph: block}}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		called.Go(func() {
			if _, err := graph.CallChild(ctx, "x", "k"); err == nil {
				t.Error("a child that was cut off has returned")
			}
			if _, err := graph.CallChild(ctx, "y", "k"); err == nil {
				t.Error("a child began after its node had returned")
			}
		})
		<-started
		return graph.Put(only.Set("over")), nil
	}})
	res, err := start(t, kept(g))
	if is(t, graph.Done, res, err); !ended || only.Get(res.State) != "over" {
		t.Errorf("the child had ended: %v; the node wrote %q", ended, only.Get(res.State))
	}
	called.Wait()
}

func TestPauseOfNamedChildren(t *testing.T) {
	var c tally
	pause := make(chan struct{})
	step := parallel(t, graph.Node{Name: "one", Run: func(context.Context, graph.State) (graph.Update, error) {
		if c.add("one") == 2 {
			close(pause)
		}
		<-pause
		return graph.Put(newReducerKey.Set(1)), nil
	}})
	two := compile(t, graph.Def{Name: "two", Keys: all, Start: []string{"sub"}, Nodes: []graph.Node{
		{Name: "sub", Graph: step}, {Name: "last", Run: c.counts("last")}}, Edges: []graph.Edge{edge("sub", "last"), edge("last", graph.End)}})
	g := parallel(t, graph.Node{Name: "team", Children: map[string]graph.ChildGraph{"k": {Graph: two}}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { _, errs[i] = graph.CallChild(ctx, fmt.Sprint("x", i), "k") })
		}
		wg.Wait()
		names, err := graph.ChildNames(ctx)
		return graph.Put(list.Set(names)), errors.Join(append(errs, err)...)
	}})
	r := kept(g)
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Pause: pause})
	is(t, graph.Paused, res, err)
	res, err = resume(t, r)
	if is(t, graph.Done, res, err); c.of("one") != 2 || c.of("last") != 2 {
		t.Errorf("nodes ran: %v", c.n)
	}
	if diff := cmp.Diff([]string{"x0", "x1"}, list.Get(res.State)); diff != "" {
		t.Errorf("children that an earlier drive had begun: %s", diff)
	}
}

// A child that waits for another suspends itself, and both continue after the answer.
func TestSuspend(t *testing.T) {
	asks := parallel(t, graph.Node{Name: "ask", Run: asker("q")})
	ready := false
	waits := parallel(t, graph.Node{Name: "wait", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		if !ready {
			return graph.Update{}, graph.Suspend(ctx)
		}
		return graph.Update{}, nil
	}})
	g := parallel(t, graph.Node{Name: "team", Children: map[string]graph.ChildGraph{"asks": {Graph: asks}, "waits": {Graph: waits}},
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			child, err := graph.CallChild(ctx, "a", "asks")
			ready = err == nil
			_, problem := graph.CallChild(ctx, "w", "waits")
			if err = errors.Join(err, problem); err != nil {
				return graph.Update{}, err
			}
			return graph.Put(list.Set(list.Get(child.State))), nil
		}})
	r := kept(g)
	res, err := start(t, r)
	if is(t, graph.Waiting, res, err); len(res.Questions) != 1 {
		t.Fatal(res.Questions)
	}
	res, err = resume(t, r, says("team/a/ask", "yes"))
	if is(t, graph.Done, res, err); list.Get(res.State)[0] != "q=yes" {
		t.Error(list.Get(res.State))
	}
	ready = false
	alone := parallel(t, graph.Node{Name: "wait", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		return graph.Update{}, graph.Suspend(ctx)
	}})
	res, err = start(t, kept(alone))
	is(t, graph.Paused, res, err)
}

func TestNamedChildrenOfAnotherAttempt(t *testing.T) {
	var c tally
	step := parallel(t, graph.Node{Name: "one", Run: c.counts("one")})
	g := parallel(t, graph.Node{Name: "team", Retry: graph.Retry{Attempts: 3}, Children: map[string]graph.ChildGraph{"k": {Graph: step}},
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			before, err := graph.ChildNames(ctx)
			if err != nil {
				return graph.Update{}, err
			}
			for _, n := range []string{"x", "y"} {
				if _, err := graph.CallChild(ctx, n, "k"); err != nil {
					return graph.Update{}, err
				}
			}
			if graph.Attempt(ctx) == 2 {
				err = graph.DropChild(ctx, "x")
			}
			if graph.Attempt(ctx) < 3 {
				err = errors.Join(err, errors.New("once more"))
			}
			return graph.Put(list.Set(before)), err
		}})
	res, err := start(t, kept(g))
	if is(t, graph.Done, res, err); c.of("one") != 3 || !slices.Equal(list.Get(res.State), []string{"y"}) {
		t.Errorf("a dropped child runs anew and the others do not: %d runs, then there were %v", c.of("one"), list.Get(res.State))
	}
}

func TestNamedChildrenAreRefused(t *testing.T) {
	step := parallel(t, graph.Node{Name: "one", Run: asker()})
	g := parallel(t, graph.Node{Name: "team", Children: map[string]graph.ChildGraph{"k": {Graph: step}}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, first := graph.CallChild(ctx, "x", "k")
		_, twice := graph.CallChild(ctx, "x", "k")
		_, kind := graph.CallChild(ctx, "y", "other")
		_, name := graph.CallChild(ctx, "a/b", "k")
		for want, err := range map[string]error{"twice": twice, `"other"`: kind, `"a/b"`: name} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error with %s", err, want)
			}
		}
		return graph.Update{}, first
	}})
	res, err := start(t, kept(g))
	is(t, graph.Done, res, err)

	_, err = graph.Compile(graph.Def{Name: "bad", Start: []string{"a"}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)}, Nodes: []graph.Node{
		{Name: "a", Graph: step, Children: map[string]graph.ChildGraph{"k": {}}}, {Name: "b", Run: asker(), Children: map[string]graph.ChildGraph{"k": {}}}}})
	if err == nil || !strings.Contains(err.Error(), `node "a" has Children`) || !strings.Contains(err.Error(), `child "k" of node "b" has no Graph`) {
		t.Error(err)
	}
	other := parallel(t, graph.Node{Name: "team", Run: asker(), Children: map[string]graph.ChildGraph{"k": {Graph: parallel(t, graph.Node{Name: "two", Run: asker()})}}})
	if g.Digest() == other.Digest() {
		t.Error("another child, and the digest is the same")
	}
}

func TestBreakInANamedChild(t *testing.T) {
	step := parallel(t, graph.Node{Name: "one", Run: asker()})
	g := parallel(t, graph.Node{Name: "team", Children: map[string]graph.ChildGraph{"k": {Graph: step}}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.CallChild(ctx, "x", "k")
		return graph.Update{}, err
	}})
	r := kept(g)
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Break: []graph.Break{{Node: "team/x/one"}}})
	if is(t, graph.Paused, res, err); !slices.Equal(res.Breaks, []graph.Break{{Node: "team/x/one"}}) {
		t.Error(res.Breaks)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Break: []graph.Break{{Node: "team/x/one"}}})
	is(t, graph.Done, res, err)
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: "u", Break: []graph.Break{{Node: "team/x/nowhere"}}}); err == nil {
		t.Error("a break at an unknown node was taken")
	}
}

func TestStructureShowsNamedChildren(t *testing.T) {
	g := fanOut(t, &tally{}, nil, tellAll)
	s := g.Structure()
	if got := s.Nodes[0].Children["worker"]; got.Name != "worker" || len(got.Nodes) != 2 {
		t.Errorf("%+v", s.Nodes[0])
	}
}

// DropChild removes a child whose outcome is recorded elsewhere, so that a node with many
// children stays small.
func ExampleDropChild() {
	square := graph.Last[int]("square")
	worker := sound(graph.Def{
		Name: "worker",
		Keys: []graph.AnyKey{square},
		Nodes: []graph.Node{aNode("work", func(_ context.Context, s graph.State) (graph.Update, error) {
			return graph.Put(square.Set(square.Get(s) * square.Get(s))), nil
		})},
		Edges: []graph.Edge{anEdge("work", graph.End)},
		Start: []string{"work"},
	})
	all := graph.Append[int]("all")
	lead := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		var got []int
		for i := range 3 {
			name := fmt.Sprint("worker", i)
			child, err := graph.CallChild(ctx, name, "worker", square.Set(i+1))
			if err != nil {
				return graph.Update{}, err
			}
			got = append(got, square.Get(child.State))
			if err := graph.DropChild(ctx, name); err != nil {
				return graph.Update{}, err
			}
		}
		return graph.Put(all.Set(got)), nil
	}
	g := sound(graph.Def{
		Name:  "squares",
		Keys:  []graph.AnyKey{all},
		Nodes: []graph.Node{{Name: "lead", Run: lead, Children: map[string]graph.ChildGraph{"worker": {Graph: worker}}}},
		Edges: []graph.Edge{anEdge("lead", graph.End)},
		Start: []string{"lead"},
	})
	res, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(context.Background(), graph.Input{})
	fmt.Println(res.Status, all.Get(res.State), err)
	// Output: done [1 4 9] <nil>
}

// A node that can continue only after something else suspends its run. It runs again
// when the run is resumed.
func ExampleSuspend() {
	ready := false
	g := sound(graph.Def{
		Name: "patient",
		Nodes: []graph.Node{aNode("wait", func(ctx context.Context, _ graph.State) (graph.Update, error) {
			if !ready {
				return graph.Update{}, graph.Suspend(ctx)
			}
			return graph.Update{}, nil
		})},
		Edges: []graph.Edge{anEdge("wait", graph.End)},
		Start: []string{"wait"},
	})
	ctx, r := context.Background(), &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "t"})
	fmt.Println(res.Status, err)
	ready = true
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t"})
	fmt.Println(res.Status, err)
	// Output:
	// paused <nil>
	// done <nil>
}

// ChildNames lists what earlier drives have started: here a node starts one child in each
// drive, under the next free name.
func ExampleChildNames() {
	worker := sound(graph.Def{Name: "worker", Nodes: []graph.Node{aNode("work", doNothing)}, Edges: []graph.Edge{anEdge("work", graph.End)}, Start: []string{"work"}})
	lead := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		names, err := graph.ChildNames(ctx)
		if err != nil || len(names) == 2 {
			fmt.Println("found", names)
			return graph.Update{}, err
		}
		fmt.Println("found", names, "and started one more")
		if _, err := graph.CallChild(ctx, fmt.Sprint("worker", len(names)), "worker"); err != nil {
			return graph.Update{}, err
		}
		return graph.Update{}, graph.Suspend(ctx)
	}
	g := sound(graph.Def{
		Name:  "shifts",
		Nodes: []graph.Node{{Name: "lead", Run: lead, Children: map[string]graph.ChildGraph{"worker": {Graph: worker}}}},
		Edges: []graph.Edge{anEdge("lead", graph.End)},
		Start: []string{"lead"},
	})
	ctx, r := context.Background(), &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "t"})
	for err == nil && res.Status == graph.Paused {
		res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t"})
	}
	fmt.Println(res.Status, err)
	// Output:
	// found [] and started one more
	// found [worker0] and started one more
	// found [worker0 worker1]
	// done <nil>
}
