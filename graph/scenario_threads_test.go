package graph_test

import (
	"errors"
	"fmt"
	"testing"

	"raddle.dev/graph"
)

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
	if err := graph.Fork(t.Context(), r.Store, thread, 0, "copy"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: "copy", Run: "r1"}); !errors.Is(err, graph.ErrNoPoint) {
		t.Errorf("a run of the original: %v", err)
	}
	if _, err := graph.Prune(t.Context(), r.Store, thread, graph.Keep{}); err != nil {
		t.Fatal(err)
	}
	if _, err := begin("r0"); !errors.Is(err, graph.ErrNoPoint) {
		t.Errorf("a run that was pruned: %v", err)
	}
	if c.of("a") != 3 {
		t.Errorf("%d runs", c.of("a"))
	}
	res, err := begin("r3")
	is(t, graph.Done, res, err)
}
