package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A player drives one graph and writes down every event as a line of JSON. The clock moves only while something is waited for, and tasks
// run one at a time, so that the lines are the same each time.
type player struct {
	t *testing.T
	graph.Runner
	lines bytes.Buffer
}

func (p *player) tell(events iter.Seq2[graph.Event, error]) (res graph.Result) {
	p.t.Helper()
	for e, err := range events {
		if err != nil {
			if res.Err != err {
				p.t.Errorf("the run ends with %v, its last event with %v", err, res.Err)
			}
			break
		}
		line, err := json.Marshal(e)
		if err != nil {
			p.t.Fatal(err)
		}
		p.lines.Write(append(line, '\n'))
		if b, ok := e.Body.(graph.RunEnded); ok {
			res = b.Result
		}
	}
	return res
}

func (p *player) run(set ...graph.Write) graph.Result {
	p.t.Helper()
	return p.tell(p.Run(p.t.Context(), graph.Input{Thread: thread, Set: set, Topics: graph.AllTopics}))
}

func (p *player) resume(answers ...graph.Answer) graph.Result {
	p.t.Helper()
	return p.tell(p.Resume(p.t.Context(), graph.Resume{Thread: thread, Answers: answers, Topics: graph.AllTopics}))
}

// A shape is a graph, and what is done with it; nil: it is run once.
type shape struct {
	def  graph.Def
	play func(p *player)
}

// The events of each shape, from the start of its run to the end of its last
// drive, are those of testdata/events: what a consumer sees is a promise.
func TestEventsOfEachShape(t *testing.T) {
	for name, make := range shapes {
		t.Run(name, func(t *testing.T) {
			s := make(t)
			s.def.Name, s.def.Keys = name, all
			p := &player{t: t, Runner: graph.Runner{Graph: compile(t, s.def), Store: journal.NewMemory(), Executor: sequential{},
				Clock: &graphtest.Clock{}, IDs: graphtest.IDs("run"), Cache: &graph.MemoryCache{}}}
			if s.play == nil {
				s.play = func(p *player) { p.run() }
			}
			s.play(p)
			file := filepath.Join("testdata", "events", name+".jsonl")
			if *update {
				if err := os.WriteFile(file, p.lines.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), p.lines.String()); d != "" {
				t.Errorf("%s differs (-want +got), run with -update and look:\n%s", file, d)
			}
		})
	}
}

// Every golden file belongs to a shape.
func TestNoGoldenFileIsLeftOver(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "events", "*.jsonl"))
	if err != nil || len(files) != len(shapes) {
		t.Errorf("%d files for %d shapes: %v", len(files), len(shapes), err)
	}
}

var shapes = map[string]func(t *testing.T) shape{
	"step": func(*testing.T) shape {
		return shape{def: graph.Def{Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Kind: "greeting", Run: writes(only.Set("hello"))}}, Edges: []graph.Edge{edge("a", graph.End)}}}
	},
	"join": func(*testing.T) shape {
		return shape{def: graph.Def{Start: []string{"split"}, Nodes: []graph.Node{{Name: "split", Run: idle}, say("a"), say("b"), say("c"), say("j")},
			Edges: []graph.Edge{edge("split", "a", "b"), edge("b", "c"), join("j", "a", "c"), edge("j", graph.End)}}}
	},
	"loop": func(*testing.T) shape {
		return shape{def: graph.Def{Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: writes(newReducerKey.Set(1))}},
			Edges: []graph.Edge{branch("a", map[string]string{"again": "a", "enough": graph.End}, func(s graph.State) string {
				if newReducerKey.Get(s) < 3 {
					return "again"
				}
				return "enough"
			})}}}
	},
	"send": func(*testing.T) shape {
		return shape{def: graph.Def{Start: []string{"split"}, Nodes: []graph.Node{sends(3), work, say("gather")}, Edges: []graph.Edge{edge("work", "gather"), edge("gather", graph.End)}}}
	},
	"emit": func(*testing.T) shape {
		return shape{def: graph.Def{Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			graph.Emit(ctx, map[string]int{"found": 2})
			graph.EmitProgress(ctx, 7, "beyond the end")
			return graph.Update{Halt: &graph.Halt{Value: "enough"}}, nil
		}}, say("b")}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)}}}
	},
	"subgraph":   subgraphShape,
	"questions":  questionShape,
	"ahead":      aheadShape,
	"retry":      retryShape,
	"failure":    failureShape,
	"cache":      cacheShape,
	"breakpoint": breakShape,
	"pause":      pauseShape,
	"cancel":     cancelShape,
	"limit": func(*testing.T) shape {
		return shape{def: graph.Def{MaxSteps: 2, Start: []string{"a"}, Nodes: []graph.Node{say("a")}, Edges: []graph.Edge{edge("a", "a")}}}
	},
	"stuck": func(*testing.T) shape {
		return shape{def: graph.Def{Start: []string{"s"}, Nodes: []graph.Node{{Name: "s", Routes: []string{"a", "b"}, Run: goes(nil, "a")}, say("a"), say("b"), say("j")},
			Edges: []graph.Edge{join("j", "a", "b"), edge("j", graph.End)}}}
	},
}

func subgraphShape(t *testing.T) shape {
	child := compile(t, graph.Def{Name: "inner", Keys: all, Start: []string{"x"}, Nodes: []graph.Node{say("x"), say("y")}, Edges: []graph.Edge{edge("x", "y"), edge("y", graph.End)}})
	return shape{def: graph.Def{Start: []string{"sub"}, Nodes: []graph.Node{{Name: "sub", Kind: "graph", Graph: child,
		In: func(graph.State) ([]graph.Write, error) { return []graph.Write{list.Set([]string{"in"})}, nil },
		Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
			return graph.Put(list.Set(list.Get(c.State))), nil
		}}},
		Edges: []graph.Edge{edge("sub", graph.End)}}}
}

// Two children ask side by side, next to a node that is done; they are answered
// one after the other.
func questionShape(t *testing.T) shape {
	child := compile(t, graph.Def{Name: "inner", Start: []string{"ask"}, Nodes: []graph.Node{{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Kind: "select", Prompt: "which?", Options: []string{"left", "right"}, Default: "left", Data: map[string]int{"cost": 3}})
		return graph.Update{}, err
	}}}, Edges: []graph.Edge{edge("ask", graph.End)}})
	return shape{
		def: graph.Def{Start: []string{"p", "q", "r"}, Nodes: []graph.Node{{Name: "p", Graph: child}, {Name: "q", Graph: child}, say("r"), say("j")},
			Edges: []graph.Edge{join("j", "p", "q", "r"), edge("j", graph.End)}},
		play: func(p *player) {
			p.run()
			p.resume(says("q/ask", "right"))
			p.resume(graph.Answer{ID: "p/ask", Value: "left"})
		},
	}
}

func aheadShape(*testing.T) shape {
	return shape{
		def: graph.Def{Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: asks(nil)}}, Edges: []graph.Edge{edge("a", graph.End)}},
		play: func(p *player) {
			p.tell(p.Run(p.t.Context(), graph.Input{Thread: thread, Label: "told before", Topics: graph.AllTopics, Ahead: []graph.Answer{says("a", "yes")}}))
		},
	}
}

// A node is tried three times, and its handler takes over.
func retryShape(*testing.T) shape {
	return shape{def: graph.Def{Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Retry: graph.Retry{Attempts: 3, Delay: time.Second}, OnError: "h", Run: fails("down")},
		{Name: "h", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			return graph.Put(only.Set(graph.Cause(ctx))), nil
		}},
	}, Edges: []graph.Edge{edge("a", graph.End), edge("h", graph.End)}}}
}

// One of two tasks fails; the resume runs that one alone.
func failureShape(*testing.T) shape {
	var c tally
	return shape{
		def: graph.Def{Start: []string{"a", "b"}, Nodes: []graph.Node{say("a"), {Name: "b", Run: func(context.Context, graph.State) (graph.Update, error) {
			if c.add("b") == 1 {
				return graph.Update{}, errors.New("not yet")
			}
			return graph.Put(list.Set([]string{"b"})), nil
		}}}, Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)}},
		play: func(p *player) {
			p.run()
			p.resume()
		},
	}
}

// A second run of the same input finds the first one's update.
func cacheShape(*testing.T) shape {
	return shape{
		def: graph.Def{Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Cache: &graph.CachePolicy{Keys: []graph.AnyKey{only}}, Run: writes(newReducerKey.Set(1))}}, Edges: []graph.Edge{edge("a", graph.End)}},
		play: func(p *player) {
			p.run(only.Set("x"))
			p.run(only.Set("x"))
		},
	}
}

func breakShape(*testing.T) shape {
	a, b := say("a"), say("b")
	a.BreakAfter, b.BreakBefore = true, true
	return shape{
		def: graph.Def{Start: []string{"a"}, Nodes: []graph.Node{a, b}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)}},
		play: func(p *player) {
			p.run()
			p.resume()
		},
	}
}

func pauseShape(*testing.T) shape {
	pause := make(chan struct{})
	return shape{
		def: graph.Def{Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
			close(pause)
			return graph.Put(list.Set([]string{"a"})), nil
		}}, say("b")}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)}},
		play: func(p *player) {
			p.tell(p.Run(p.t.Context(), graph.Input{Thread: thread, Topics: graph.AllTopics, Pause: pause}))
			p.resume()
		},
	}
}

func cancelShape(t *testing.T) shape {
	ctx, cancel := context.WithCancelCause(t.Context())
	return shape{
		def: graph.Def{Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", OnError: "b", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			cancel(errors.New("the machine is needed elsewhere"))
			return graph.Update{}, ctx.Err()
		}}, say("b")}, Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)}},
		play: func(p *player) {
			p.tell(p.Run(ctx, graph.Input{Thread: thread, Topics: graph.AllTopics}))
		},
	}
}

// An effect that must not happen twice says what to do if its outcome is unknown.
// EffectKey is the same in every attempt, for services that accept an idempotency key;
// Note records what a person needs to find out what happened.
func ExampleDoEffect() {
	receipt := graph.Last[string]("receipt")
	pay := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		e := graph.Effect{Name: "pay", Key: "invoice 7", InDoubt: graph.DoubtAsk}
		r, err := graph.DoEffect(ctx, e, func(ctx context.Context) (string, error) {
			fmt.Println("paying with the key", graph.EffectKey(ctx))
			return "paid", graph.Note(ctx, []byte("order 12"))
		})
		return graph.Put(receipt.Set(r)), err
	}
	g := sound(graph.Def{
		Name:  "payment",
		Keys:  []graph.AnyKey{receipt},
		Nodes: []graph.Node{aNode("pay", pay)},
		Edges: []graph.Edge{anEdge("pay", graph.End)},
		Start: []string{"pay"},
	})
	ctx, store := context.Background(), journal.NewMemory()
	dying := &graphtest.Crash{Store: store, Limit: 3} // the start, the intent and the note
	_, err := (&graph.Runner{Graph: g, Store: dying}).Invoke(ctx, graph.Input{Thread: "t1", Run: "r1"})
	fmt.Println("crashed:", errors.Is(err, graphtest.ErrCrash))

	s, err := history.Inspect(ctx, store, "t1", 0)
	fmt.Printf("in doubt: %s %v\n", s.InDoubt[0].Note, err)
	res, err := (&graph.Runner{Graph: g, Store: store}).InvokeResume(ctx, graph.Resume{Thread: "t1"})
	fmt.Println(res.Status, res.Questions[0].Prompt, res.Questions[0].Options, err)
	// Output:
	// paying with the key r1/0.pay.0/pay/=invoice 7
	// crashed: true
	// in doubt: order 12 <nil>
	// waiting "pay" was cut off before its outcome was recorded, and may or may not have happened. Do it again? [retry skip fail] <nil>
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
