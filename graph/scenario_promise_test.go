package graph_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
)

// A step begins when all tasks of the one before it are done. Branches that are
// graphs of their own do not wait for each other.
func TestAStepWaitsForItsSlowestTask(t *testing.T) {
	for _, children := range []bool{false, true} {
		settled(t, func(t *testing.T) {
			begun := time.Now()
			var at time.Duration
			slow := func(context.Context, graph.State) (graph.Update, error) {
				time.Sleep(200 * time.Millisecond)
				return graph.Update{}, nil
			}
			next := func(context.Context, graph.State) (graph.Update, error) {
				at = time.Since(begun)
				return graph.Update{}, nil
			}
			d := graph.Def{Name: "g", Start: []string{"slow", "fast"}, Nodes: []graph.Node{{Name: "slow", Run: slow}, {Name: "fast", Run: idle}, {Name: "next", Run: next}},
				Edges: []graph.Edge{edge("slow", graph.End), edge("fast", "next"), edge("next", graph.End)}}
			want := 200 * time.Millisecond
			if children {
				want = 0
				d.Start[1], d.Edges = "branch", []graph.Edge{edge("slow", graph.End), edge("branch", graph.End)}
				branch := graph.Def{Name: "branch", Start: []string{"fast"}, Nodes: slices.Clone(d.Nodes[1:]), Edges: []graph.Edge{edge("fast", "next"), edge("next", graph.End)}}
				d.Nodes = append(d.Nodes[:1], graph.Node{Name: "branch", Graph: compile(t, branch)})
			}
			res, err := start(t, kept(compile(t, d)))
			if is(t, graph.Done, res, err); at != want || time.Since(begun) != 200*time.Millisecond {
				t.Errorf("in graphs of their own %v: next began after %v, want %v", children, at, want)
			}
		})
	}
}

// Twelve chunks are scored, the four best are worked on side by side, and what
// they made is put together once, in order.
func TestMapReduce(t *testing.T) {
	type chunk struct{ N, Score int }
	chunks, mine := graph.Append[chunk]("chunks"), graph.Last[chunk]("mine")
	var c tally
	g := compile(t, graph.Def{Name: "mapreduce", Keys: append(slices.Clone(all), chunks, mine), Start: []string{"cut"}, Nodes: []graph.Node{
		{Name: "cut", Run: func(context.Context, graph.State) (graph.Update, error) {
			var cs []chunk
			for i := range 12 {
				cs = append(cs, chunk{N: i, Score: i * 5 % 12})
			}
			return graph.Put(chunks.Set(cs)), nil
		}},
		{Name: "best", Routes: []string{"work"}, Run: func(_ context.Context, s graph.State) (u graph.Update, _ error) {
			best := slices.SortedFunc(slices.Values(chunks.Get(s)), func(a, b chunk) int { return cmp.Compare(b.Score, a.Score) })[:4]
			for _, b := range best {
				u.Send = append(u.Send, graph.Send{To: "work", Overlay: []graph.Write{mine.Set(b)}})
			}
			return u, nil
		}},
		{Name: "work", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			c.add("work")
			return graph.Put(list.Set([]string{fmt.Sprint(mine.Get(s).Score)})), nil
		}},
		{Name: "reduce", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			c.add("reduce")
			return graph.Put(only.Set(strings.Join(list.Get(s), "+"))), nil
		}},
	}, Edges: []graph.Edge{edge("cut", "best"), edge("work", "reduce"), edge("reduce", graph.End)}})
	res, err := start(t, kept(g))
	if is(t, graph.Done, res, err); only.Get(res.State) != "11+10+9+8" || c.of("work") != 4 || c.of("reduce") != 1 || len(chunks.Get(res.State)) != 12 {
		t.Errorf("%s; %d workers, reduced %d times", only.Get(res.State), c.of("work"), c.of("reduce"))
	}
	if _, present := mine.Lookup(res.State); present {
		t.Error("an overlay has reached the state")
	}
}

// Events outside Topics are not built: a run that reports only questions
// allocates what a run without a reader does, whatever its length.
func TestUnheardEventsCostNothing(t *testing.T) {
	g := chainOf(t, 200)
	r := &graph.Runner{Graph: g}
	none := testing.AllocsPerRun(20, func() {
		if _, err := r.Invoke(context.Background(), graph.Input{Run: "r"}); err != nil {
			t.Error(err)
		}
	})
	heard := func(topics graph.Topic) float64 {
		return testing.AllocsPerRun(20, func() {
			for _, err := range r.Run(context.Background(), graph.Input{Run: "r", Topics: topics}) {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	if few := heard(graph.TopicQuestion); few > none+40 {
		t.Errorf("%v allocations with a reader of questions, %v without", few, none)
	}
	if many := heard(graph.TopicTask | graph.TopicStep); many < none+200 {
		t.Errorf("%v allocations with a reader of tasks and steps: nothing is proved", many)
	}
}

// The reader hears of a node's start while the node runs, not afterwards.
func TestAStartIsToldBeforeTheEnd(t *testing.T) {
	for _, topics := range []graph.Topic{graph.TopicTask, graph.AllTopics} {
		for n := 1; n <= 3; n++ {
			settled(t, func(t *testing.T) {
				told := make(chan string, n)
				var nodes []graph.Node
				for i := range n {
					nodes = append(nodes, graph.Node{Name: fmt.Sprint("n", i), Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
						select {
						case <-told:
							return graph.Update{}, nil
						case <-time.After(time.Minute):
							return graph.Update{}, errors.New("nobody has heard of it")
						}
					}})
				}
				for e, err := range kept(parallel(t, nodes...)).Run(t.Context(), graph.Input{Topics: topics}) {
					if err != nil {
						t.Fatal(err)
					}
					if _, ok := e.Body.(graph.TaskStarted); ok {
						told <- e.Node
					}
				}
			})
		}
	}
}

// Tasks of a Send that fail run again, all of them and each with its overlay.
func TestSendsThatFailedRunAgain(t *testing.T) {
	var c tally
	worker := graph.Node{Name: "work", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
		if c.add("work") <= 3 {
			return graph.Update{}, errors.New("down")
		}
		return work.Run(ctx, s)
	}}
	d := graph.Def{Name: "g", Keys: all, Start: []string{"split"}, Nodes: []graph.Node{sends(3), work, say("gather")}, Edges: []graph.Edge{edge("work", "gather"), edge("gather", graph.End)}}
	want, err := start(t, kept(compile(t, d)))
	is(t, graph.Done, want, err)
	d.Nodes[1] = worker
	r := kept(compile(t, d))
	res, err := start(t, r)
	is(t, graph.Failed, res, err)
	res, err = resume(t, r)
	if is(t, graph.Done, res, err); !slices.Equal(list.Get(res.State), list.Get(want.State)) || c.of("work") != 6 {
		t.Errorf("%v, want %v; %d calls", list.Get(res.State), list.Get(want.State), c.of("work"))
	}
}

// Graphs that share their keys share nothing else: not hooks, not nodes.
func TestGraphsThatShareKeysAreStrangers(t *testing.T) {
	var c tally
	hook := graph.Hooks{Before: func(_ context.Context, i graph.Info, _ graph.State) (graph.Setup, error) {
		c.add(i.Graph)
		return graph.Setup{}, nil
	}}
	def := func(name string, hooks ...graph.Hooks) graph.Def {
		return graph.Def{Name: name, Keys: all, Hooks: hooks, Start: []string{"a"}, Nodes: []graph.Node{say("a")}, Edges: []graph.Edge{edge("a", graph.End)}}
	}
	for _, g := range []*graph.Graph{compile(t, def("watched", hook)), compile(t, def("plain"))} {
		res, err := start(t, kept(g))
		is(t, graph.Done, res, err)
	}
	if c.of("watched") != 1 || c.of("plain") != 0 {
		t.Errorf("the hook of one graph was called %d times for it and %d times for the other", c.of("watched"), c.of("plain"))
	}
}

// A value that contains itself, or is deeper than what is read back, is refused
// where it would be stored; what is accepted is read back.
func TestValuesThatContainThemselvesAreRefused(t *testing.T) {
	round := map[string]any{"n": 1}
	round["self"] = []any{round}
	nested := func(depth int) any {
		var v any = "end"
		for range depth {
			v = []any{v}
		}
		return v
	}
	bag := graph.Dyn("bag")
	def := graph.Def{Name: "g", Keys: []graph.AnyKey{bag}, Start: []string{"a"}, Edges: []graph.Edge{edge("a", graph.End)}}
	for i, v := range []any{nested(10_000), nested(10_001), round} {
		fits := i == 0
		for _, run := range []graph.Func{writes(bag.Set(v)), func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Halt: &graph.Halt{Value: v}}, nil
		}} {
			def.Nodes = []graph.Node{{Name: "a", Run: run}}
			r := kept(compile(t, def))
			res, err := start(t, r)
			if !fits {
				if is(t, graph.Failed, res, err); !strings.Contains(err.Error(), "does it contain itself?") {
					t.Error(err)
				}
				continue
			}
			is(t, graph.Done, res, err)
			if _, err := r.State(t.Context(), thread, 0); err != nil {
				t.Error(err)
			}
		}
	}
}
