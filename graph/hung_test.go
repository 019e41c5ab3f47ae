package graph_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
)

// hangs is a node that does not look at its context, for a time. Then it tries
// everything that a node can do with it.
type hangs struct {
	took time.Duration
	runs atomic.Int32
	late chan error // what it gets, nil at the end
}

func newHang(took time.Duration) *hangs { return &hangs{took: took, late: make(chan error, 100)} }

func (d *hangs) run(ctx context.Context, s graph.State) (graph.Update, error) {
	if d.runs.Add(1) > 1 {
		return graph.Put(only.Set("second")), nil
	}
	share, err := graph.Share[int](ctx, "count")
	if err != nil {
		return graph.Update{}, err
	}
	_, err = graph.Do(ctx, "long", func(context.Context) (int, error) {
		time.Sleep(d.took)
		return 1, nil
	})
	d.late <- err
	_, err = graph.Do(ctx, "another", func(context.Context) (int, error) {
		d.late <- nil // it was made
		return 1, nil
	})
	d.late <- err
	_, err = graph.Interrupt[string](ctx, graph.Ask{})
	d.late <- err
	_, err = graph.Share[int](ctx, "other")
	d.late <- err
	d.late <- share.Use(func(n *int) bool { *n++; return true })
	_, err = graph.CallChild(ctx, "a", "kind")
	d.late <- err
	d.late <- graph.Suspend(ctx)
	graph.Emit(ctx, "late")
	close(d.late)
	return graph.Put(only.Set("late")), nil
}

// refused waits for the end of the node, and checks that all it did late was refused.
func (d *hangs) refused(t *testing.T) {
	t.Helper()
	n := 0
	for err := range d.late {
		n++
		if err == nil || errors.Is(err, graph.ErrWaiting) || errors.Is(err, graph.ErrPaused) || !strings.Contains(err.Error(), "the run has continued without it") {
			t.Errorf("call %d of the node that was left behind: %v", n, err)
		}
	}
	if n != 7 {
		t.Errorf("%d calls", n)
	}
}

// Whatever ends the context of a node that does not look at it: the run continues
// without the node after HungAfter, names it, and refuses what it still does.
func TestANodeThatDoesNotReturn(t *testing.T) {
	for name, test := range map[string]struct {
		node  graph.Node
		def   func(*graph.Def)
		in    func(*graph.Input)
		after time.Duration // the timeout
		want  graph.Status
	}{
		"node timeout": {node: graph.Node{Timeout: 50 * time.Millisecond}, after: 50 * time.Millisecond, want: graph.Failed},
		"step timeout": {def: func(d *graph.Def) { d.StepTimeout = 50 * time.Millisecond }, after: 50 * time.Millisecond, want: graph.Failed},
		"run timeout":  {def: func(d *graph.Def) { d.Timeout = 50 * time.Millisecond }, after: 50 * time.Millisecond, want: graph.TimedOut},
		"grace": {in: func(in *graph.Input) {
			pause := make(chan struct{})
			time.AfterFunc(time.Second, func() { close(pause) })
			in.Pause, in.Grace = pause, time.Second
		}, after: 2 * time.Second, want: graph.Paused},
		"cancelled":              {after: 3 * time.Second, want: graph.Canceled},
		"a reader that has left": {in: func(in *graph.Input) { in.Topics = graph.TopicEmit | graph.TopicTask }, want: graph.Canceled},
	} {
		for _, place := range []string{"alone", "beside another", "beside another, elsewhere", "in a child"} {
			t.Run(name+", "+place, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := newHang(time.Hour)
					n := test.node
					n.Name, n.Run = "deaf", d.run
					n.Children = map[string]graph.ChildGraph{"kind": {Graph: parallel(t, graph.Node{Name: "x", Run: idle})}}
					def := graph.Def{Name: "g", Keys: all, Start: []string{"deaf"}, Nodes: []graph.Node{n}, Edges: []graph.Edge{edge("deaf", graph.End)}}
					path := "deaf"
					switch place {
					case "beside another", "beside another, elsewhere":
						def.Nodes = append(def.Nodes, graph.Node{Name: "b", Run: idle})
						def.Start, def.Edges = append(def.Start, "b"), append(def.Edges, edge("b", graph.End))
					case "in a child":
						def = graph.Def{Name: "g", Keys: all, Start: []string{"sub"}, Nodes: []graph.Node{{Name: "sub", Graph: compile(t, def)}}, Edges: []graph.Edge{edge("sub", graph.End)}}
						path = "sub/deaf"
					}
					if test.def != nil {
						test.def(&def)
					}
					r := kept(compile(t, def))
					r.HungAfter = 200 * time.Millisecond
					r.Executor = executors[place]
					ctx := t.Context()
					if name == "cancelled" {
						c, cancel := context.WithTimeout(ctx, test.after)
						defer cancel()
						ctx = c
					}
					in := graph.Input{Thread: thread}
					if test.in != nil {
						test.in(&in)
					}
					begun := time.Now()
					if name == "a reader that has left" {
						for ev := range r.Run(ctx, in) {
							if ev.Node == "deaf" {
								break
							}
						}
						if took := time.Since(begun); took > time.Second {
							t.Errorf("leaving took %v", took)
						}
					} else {
						res, err := r.Invoke(ctx, in)
						is(t, test.want, res, err)
						if took := time.Since(begun); took < test.after+200*time.Millisecond || took > test.after+900*time.Millisecond {
							t.Errorf("it took %v", took)
						}
						if fmt.Sprint(res.Hung) != "["+path+"]" {
							t.Errorf("left behind: %v", res.Hung)
						}
						var hung *graph.HungError
						if err != nil && (!errors.As(err, &hung) || hung.Node != path || hung.For < 200*time.Millisecond || !strings.Contains(err.Error(), path+" has not returned")) {
							t.Error(err)
						}
						if timeout := strings.Contains(name, "node") || strings.Contains(name, "step"); timeout && !errors.Is(err, graph.ErrTimeout) {
							t.Error(err)
						}
					}
					if info := described(t, r.Store, thread); info.Status != test.want && name != "a reader that has left" || info.Lease.Owner != "" {
						t.Errorf("listed as %+v", info)
					}
					was := len(journalOf(t, r.Store, thread))
					time.Sleep(2 * time.Hour)
					d.refused(t)
					if is := len(journalOf(t, r.Store, thread)); is != was {
						t.Errorf("the journal had %d records, and has %d", was, is)
					}
					if test.want == graph.TimedOut {
						return // it has no time left
					}
					res, err := resume(t, r)
					if is(t, graph.Done, res, err); place != "in a child" && only.Get(res.State) != "second" || d.runs.Load() != 2 {
						t.Errorf("resumed: %q, %d runs", only.Get(res.State), d.runs.Load())
					}
				})
			})
		}
	}
}

// A timeout of a node that was left behind is a failure like others: the node is tried
// again, while the first attempt still runs, and OnError follows.
func TestANodeThatWasLeftBehindIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHang(time.Hour)
		r := kept(parallel(t, graph.Node{Name: "deaf", Run: d.run, Timeout: time.Second, Retry: graph.Retry{Attempts: 2, Delay: time.Second}, Children: map[string]graph.ChildGraph{"kind": {Graph: parallel(t, graph.Node{Name: "x", Run: idle})}}}))
		begun := time.Now()
		res, err := start(t, r)
		if is(t, graph.Done, res, err); only.Get(res.State) != "second" || time.Since(begun) != 12*time.Second || len(res.Hung) != 1 {
			t.Errorf("%q after %v, left behind: %v", only.Get(res.State), time.Since(begun), res.Hung)
		}
		time.Sleep(2 * time.Hour)
		d.refused(t)
	})
	synctest.Test(t, func(t *testing.T) {
		d := newHang(time.Hour)
		g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"deaf"}, Nodes: []graph.Node{
			{Name: "deaf", Run: d.run, Timeout: time.Second, OnError: "after", Children: map[string]graph.ChildGraph{"kind": {Graph: parallel(t, graph.Node{Name: "x", Run: idle})}}},
			{Name: "after", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				return graph.Put(only.Set(graph.Cause(ctx))), nil
			}},
		}, Edges: []graph.Edge{edge("deaf", graph.End), edge("after", graph.End)}})
		res, err := start(t, kept(g))
		if is(t, graph.Done, res, err); !strings.Contains(only.Get(res.State), "timed out after 1s: node deaf has not returned 10s after its context ended") {
			t.Error(only.Get(res.State))
		}
		time.Sleep(2 * time.Hour)
		d.refused(t)
	})
}

// A node that is left behind is listed, though its goroutine has served others before.
func TestANodeThatHangsAfterOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: idle},
			{Name: "deaf", Timeout: time.Second, Run: func(context.Context, graph.State) (graph.Update, error) { <-release; return graph.Update{}, nil }}},
			Edges: []graph.Edge{edge("a", "deaf"), edge("deaf", graph.End)}})
		res, err := start(t, kept(g))
		if is(t, graph.Failed, res, err); fmt.Sprint(res.Hung) != "[deaf]" {
			t.Error(res.Hung)
		}
		close(release)
	})
}

// executors are those of places that have their own.
var executors = map[string]graph.Executor{"beside another, elsewhere": inTurn{}}

// inTurn is an Executor that runs one task after the other.
type inTurn struct{}

func (inTurn) Execute(n, _ int, task func(i int)) {
	for i := range n {
		task(i)
	}
}

// Each attempt of a node may hang, and so may the nodes behind it: the run continues each
// time. A node that was left behind and then ends its goroutine ends nothing else.
func TestNodesThatHangOneAfterTheOther(t *testing.T) {
	for _, topics := range []graph.Topic{0, graph.AllTopics} {
		for _, siblings := range []int{0, 3} {
			synctest.Test(t, func(t *testing.T) {
				var runs atomic.Int32
				hang := func(context.Context, graph.State) (graph.Update, error) {
					runs.Add(1)
					time.Sleep(time.Hour)
					if runs.Load()%2 == 0 {
						runtime.Goexit()
					}
					panic("late")
				}
				node := func(name, next string) graph.Node {
					return graph.Node{Name: name, Run: hang, Timeout: time.Second, Retry: graph.Retry{Attempts: 3}, OnError: next}
				}
				def := graph.Def{Name: "g", Keys: all, StepTimeout: 24 * time.Hour, Start: []string{"a"}, Concurrency: 2,
					Nodes: []graph.Node{node("a", "b"), node("b", "c"), say("c")},
					Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End), edge("c", graph.End)}}
				for i := range siblings {
					n := say(fmt.Sprint("s", i))
					def.Nodes, def.Start, def.Edges = append(def.Nodes, n), append(def.Start, n.Name), append(def.Edges, edge(n.Name, graph.End))
				}
				r, begun := kept(compile(t, def)), time.Now()
				_, res, err := collect(r.Run(t.Context(), graph.Input{Thread: thread, Topics: topics}))
				is(t, graph.Done, res, err)
				if n := len(list.Get(res.State)); n != 1+siblings || len(res.Hung) != 6 {
					t.Errorf("%d nodes have written, left behind: %v after %v", n, res.Hung, time.Since(begun))
				}
				time.Sleep(2 * time.Hour)
			})
		}
	}
}

// Watching for nodes that hang costs something for each drive, and nothing for each
// step.
func TestWatchingCostsNothingForAStep(t *testing.T) {
	per := func(ctx context.Context, steps int) float64 {
		r := &graph.Runner{Graph: chainOf(t, steps)}
		return testing.AllocsPerRun(10, func() {
			if _, err := r.Invoke(ctx, graph.Input{}); err != nil {
				t.Error(err)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, steps := range []int{20, 400} {
		if watched, plain := per(ctx, steps), per(context.Background(), steps); watched-plain > 20 {
			t.Errorf("%d steps: %v allocations, %v without a context that can end", steps, watched, plain)
		}
	}
	var at []int
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Routes: []string{"a", graph.End}, Run: func(context.Context, graph.State) (graph.Update, error) {
		at = append(at, runtime.NumGoroutine())
		if len(at) < 50 {
			return graph.Update{Goto: []string{"a"}}, nil
		}
		return graph.Update{Goto: []string{graph.End}}, nil
	}}}})
	if res, err := (&graph.Runner{Graph: g}).Invoke(ctx, graph.Input{}); res.Status != graph.Done || err != nil {
		t.Fatal(res.Status, err)
	}
	if most := slices.Max(at); most > at[0] {
		t.Errorf("the first step sees %d goroutines, later ones up to %d", at[0], most)
	}
}

// A node that returns in time counts, and one that is to be waited for is.
func TestANodeThatReturnsLateButInTime(t *testing.T) {
	for after, took := range map[time.Duration]time.Duration{0: 9 * time.Second, -1: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			g := parallel(t, graph.Node{Name: "a", Timeout: time.Second, Run: func(context.Context, graph.State) (graph.Update, error) {
				time.Sleep(took)
				return graph.Put(only.Set("counts")), nil
			}})
			res, err := (&graph.Runner{Graph: g, HungAfter: after}).Invoke(t.Context(), graph.Input{})
			if is(t, graph.Done, res, err); only.Get(res.State) != "counts" || res.Hung != nil {
				t.Errorf("%q, %v", only.Get(res.State), res.Hung)
			}
		})
	}
}
