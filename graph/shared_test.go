package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// allowance is a shared value: what is in use is not recorded.
type allowance struct {
	Spent int
	used  int
}

// spender is a child that takes one coin in each of three steps, inside an effect,
// when the allowance has an unused one.
func spender(t testing.TB, coins int) *graph.Graph {
	t.Helper()
	spend := func(ctx context.Context) (int, error) {
		p, err := graph.Share[allowance](ctx, "allowance")
		if err != nil {
			return 0, err
		}
		if err := p.Await(ctx, func(v *allowance) (bool, error) {
			switch {
			case v.Spent >= coins:
				return false, errors.New("no coin is left")
			case v.Spent+v.used >= coins:
				return false, nil
			}
			v.used++
			return true, nil
		}); err != nil {
			return 0, err
		}
		time.Sleep(time.Second)
		n := 0
		return n, p.Use(func(v *allowance) bool {
			v.used, v.Spent = v.used-1, v.Spent+1
			n = v.Spent
			return true
		})
	}
	return compile(t, graph.Def{Name: "spender", Keys: all, Start: []string{"spend"}, Nodes: []graph.Node{
		{Name: "spend", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Do(ctx, "spend", spend)
			return graph.Put(newReducerKey.Set(1), only.Set(strings.Repeat("x", 9<<10))), err // large, so that snapshots fall due
		}}}, Edges: []graph.Edge{{From: []string{"spend"}, Cases: map[string]string{"more": "spend", "end": graph.End}, Pick: func(s graph.State) ([]string, error) {
		if newReducerKey.Get(s) < 3 {
			return []string{"more"}, nil
		}
		return []string{"end"}, nil
	}}}})
}

// spenders runs four of them at once, and then says what is spent.
func spenders(t testing.TB, coins int) *graph.Graph {
	return compile(t, graph.Def{Name: "spenders", Keys: all, Start: []string{"all"}, Nodes: []graph.Node{
		{Name: "all", Children: map[string]graph.ChildGraph{"spender": {Graph: spender(t, coins)}}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			var wg sync.WaitGroup
			errs := make([]error, 4)
			for i := range errs {
				wg.Go(func() { _, errs[i] = graph.CallChild(ctx, fmt.Sprint("s", i), "spender") })
			}
			wg.Wait()
			return graph.Update{}, errors.Join(errs...)
		}},
		{Name: "say", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			p, err := graph.Share[allowance](ctx, "allowance")
			if err != nil {
				return graph.Update{}, err
			}
			n := 0
			err = p.Use(func(v *allowance) bool { n = v.Spent; return false })
			if _, wrong := graph.Share[int](ctx, "allowance"); wrong == nil || !strings.Contains(wrong.Error(), "graph_test.allowance") {
				err = fmt.Errorf("another type: %v", wrong)
			}
			return graph.Put(newReducerKey.Set(n)), err
		}},
	}, Edges: []graph.Edge{edge("all", "say"), edge("say", graph.End)}})
}

// What tasks at any depth have in common is in the journal: a drive that follows
// one that was killed knows it, through snapshots too, and counts nothing twice.
func TestSharedValueAfterACrash(t *testing.T) {
	const coins = 12
	run := func(st journal.Store) (res graph.Result, err error) {
		synctest.Test(t, func(t *testing.T) {
			r := &graph.Runner{Graph: spenders(t, coins), Store: st}
			res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
			if errors.Is(err, journal.ErrNoThread) {
				res, err = r.Invoke(t.Context(), graph.Input{Thread: "t"})
			}
		})
		return res, err
	}
	count := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
	res, err := run(count)
	if err != nil || newReducerKey.Get(res.State) != coins {
		t.Fatalf("%v, %d were spent", err, newReducerKey.Get(res.State))
	}
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
		t.Error("no snapshot fell due")
	}
	for limit := range count.RecordCount() - 2 {
		st := &graphtest.Crash{Store: journal.NewMemory(), Limit: limit}
		if _, err := run(st); !errors.Is(err, graphtest.ErrCrash) {
			t.Fatal(err)
		}
		spent, made := 0, 0 // as the journal has it
		for e, err := range history.Entries(t.Context(), st.Store, "t") {
			switch {
			case errors.Is(err, journal.ErrNoThread):
			case err != nil:
				t.Fatal(err)
			case strings.Contains(e.ID, "\x00shared\x00"):
				spent++
			case e.Kind == journal.KindEffect:
				made++
			}
		}
		res, err := run(st.Store)
		if lost := spent - made; lost > 0 { // paid for, and cut off before a child had it
			if err == nil || !strings.Contains(err.Error(), "no coin is left") {
				t.Errorf("crash after %d records: %d coins bought nothing, and all the same: %v", limit, lost, err)
			}
			continue
		}
		if err != nil || newReducerKey.Get(res.State) != coins {
			t.Errorf("crash after %d records: %v, %d were spent", limit, err, newReducerKey.Get(res.State))
		}
	}
}

// Children that wait for each other's coins do not wait forever: neither when
// one is cut off nor when there are none.
func TestSharedValueIsWaitedFor(t *testing.T) {
	for _, coins := range []int{0, 1, 5} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer cancel()
			_, err := (&graph.Runner{Graph: spenders(t, coins)}).Invoke(ctx, graph.Input{})
			if coins < 5 && (err == nil || !strings.Contains(err.Error(), "no coin is left")) {
				t.Errorf("%d coins: %v", coins, err)
			}
		})
	}
}

// A run, a fork and an edit each begin with the zero value.
func TestSharedValueStartsAgain(t *testing.T) {
	pay := compile(t, graph.Def{Name: "pay", Keys: all, Start: []string{"pay", "stop"}, Nodes: []graph.Node{
		{Name: "pay", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			p, err := graph.Share[allowance](ctx, "allowance")
			if err != nil {
				return graph.Update{}, err
			}
			n := 0
			err = p.Use(func(v *allowance) bool { v.Spent++; n = v.Spent; return true })
			return graph.Put(list.Set([]string{fmt.Sprint(n)})), err
		}},
		{Name: "stop", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "Go on?"})
			return graph.Update{}, err
		}},
		{Name: "again", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			p, err := graph.Share[allowance](ctx, "allowance")
			if err != nil {
				return graph.Update{}, err
			}
			return graph.Put(list.Set([]string{"again"})), p.Use(func(v *allowance) bool { v.Spent++; return true })
		}},
	}, Edges: []graph.Edge{edge("pay", graph.End), edge("stop", "again"), edge("again", graph.End)}})
	r := &graph.Runner{Graph: pay, Store: journal.NewMemory()}
	said := func(thread string) string {
		t.Helper()
		res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread})
		if err == nil && res.Status == graph.Waiting {
			res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Answers: []graph.Answer{{Value: "yes", ID: res.Questions[0].ID}}})
		}
		if err != nil || res.Status != graph.Done {
			t.Fatal(res.Status, err)
		}
		return strings.Join(list.Get(res.State), " ")
	}
	for i := range 2 { // the second run knows nothing of the first
		if res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil || res.Status != graph.Waiting {
			t.Fatal(res.Status, err)
		}
		if err := history.Fork(t.Context(), r.Store, "t", 0, fmt.Sprint("fork ", i)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Edit(t.Context(), "t", newReducerKey.Set(1)); err != nil {
			t.Fatal(err)
		}
		if got := said("t"); !strings.HasSuffix(got, "1 again") {
			t.Errorf("the run has said %q", got)
		}
	}
	for i := range 2 {
		if got := said(fmt.Sprint("fork ", i)); !strings.HasSuffix(got, "1 again") {
			t.Errorf("the fork has said %q", got)
		}
	}
}

// Share gives all tasks of a run one value, for example a budget. What Use records is
// there again after a crash, a pause or a question.
func ExampleShare() {
	type budget struct{ Used int }
	spent := graph.Sum[int]("spent")
	spend := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		shared, err := graph.Share[budget](ctx, "budget")
		if err != nil {
			return graph.Update{}, err
		}
		granted := 0
		err = shared.Use(func(b *budget) bool {
			granted = min(3, 5-b.Used)
			b.Used += granted
			return true
		})
		return graph.Put(spent.Set(granted)), err
	}
	g := sound(graph.Def{
		Name:  "spenders",
		Keys:  []graph.AnyKey{spent},
		Nodes: []graph.Node{aNode("a", spend), aNode("b", spend)},
		Edges: []graph.Edge{anEdge("a", graph.End), anEdge("b", graph.End)},
		Start: []string{"a", "b"}, // at the same time
	})
	res, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(context.Background(), graph.Input{})
	fmt.Println(res.Status, spent.Get(res.State), err)
	// Output: done 5 <nil>
}
