package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
)

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
	if _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Set: []graph.Write{graph.Last[int]("nobody").Set(1)}}); err == nil {
		t.Error("a key that the graph does not have")
	}
	res, err = resume(t, r, says("a", "x"))
	if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != "[given x1new]" || c.of("effect") != 1 || c.of("b") != 1 {
		t.Errorf("%v, ran %v", list.Get(res.State), c.n)
	}
	w, err := graph.Blame(t.Context(), r.Store, thread, "only")
	if err != nil || len(w) != 2 || w[0].Kind != graph.KindClaim && w[1].Kind != graph.KindClaim {
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
