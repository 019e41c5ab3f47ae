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
	"slices"
	"strings"
	"sync/atomic"
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

// damaged makes a thread as older versions left it: paused, with a value under the
// key that was written as JSON and does not decode into a report.
func damaged(t *testing.T, old graph.Key[report]) *graph.Runner {
	t.Helper()
	r := kept(compile(t, repairDef(old, old.Set(report{"x", errors.New("boom")}))))
	if res, err := start(t, r); err != nil || res.Status != graph.Paused {
		t.Fatal(res.Status, err)
	}
	return r
}

// repairDef is two nodes with a break between them. The first writes.
func repairDef(k graph.AnyKey, set graph.Write) graph.Def {
	return graph.Def{Name: "repair", Keys: []graph.AnyKey{k, graph.Sum[int]("n")}, Start: []string{"w"},
		Nodes: []graph.Node{{Name: "w", Run: writes(set, graph.Sum[int]("n").Set(1))}, {Name: "x", BreakBefore: true, Run: writes(graph.Sum[int]("n").Set(1))}},
		Edges: []graph.Edge{edge("w", "x"), edge("x", graph.End)}}
}

func TestAnUndecodableValueCanBeReplaced(t *testing.T) {
	old := graph.Last[report]("k").WithCodec(graph.JSONCodec[report]())
	r := damaged(t, old)
	if _, err := resume(t, r); err == nil || !strings.Contains(err.Error(), `key "k"`) || !strings.Contains(err.Error(), "Reset") {
		t.Fatalf("the value decodes, or the error does not say what to do: %v", err)
	}
	good := report{Name: "y"}
	repairs := map[string]func(*graph.Runner) (graph.Result, error){
		"Edit with Set": func(r *graph.Runner) (graph.Result, error) {
			if _, err := r.Edit(t.Context(), thread, old.Set(good)); err != nil {
				return graph.Result{}, err
			}
			return resume(t, r)
		},
		"Edit with Reset": func(r *graph.Runner) (graph.Result, error) {
			if _, err := r.Edit(t.Context(), thread, old.Reset(good)); err != nil {
				return graph.Result{}, err
			}
			return resume(t, r)
		},
		"EditNext": func(r *graph.Runner) (graph.Result, error) {
			if _, err := r.EditNext(t.Context(), thread, []string{"x"}, old.Reset(good)); err != nil {
				return graph.Result{}, err
			}
			return resume(t, r)
		},
		"Resume.Set": func(r *graph.Runner) (graph.Result, error) {
			return r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Set: []graph.Write{old.Set(good)}})
		},
		"a new run": func(r *graph.Runner) (graph.Result, error) {
			if err := history.Abandon(t.Context(), r.Store, thread, ""); err != nil {
				return graph.Result{}, err
			}
			res, err := start(t, r, old.Reset(good), graph.Sum[int]("n").Reset(1))
			if err != nil || res.Status != graph.Paused {
				return res, err
			}
			return r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Set: []graph.Write{old.Set(good), graph.Sum[int]("n").Reset(1)}})
		},
	}
	for name, repair := range repairs {
		r := damaged(t, old)
		res, err := repair(r)
		if err != nil || res.Status != graph.Done || old.Get(res.State) != good || graph.Sum[int]("n").Get(res.State) != 2 {
			t.Errorf("%s: %v %v %v", name, res.Status, err, res.State.Keys())
			continue
		}
		if s, err := r.State(t.Context(), thread, 0); err != nil || old.Get(s) != good {
			t.Errorf("%s: the journal holds %v, %v", name, old.Get(s), err)
		}
	}
}

// The type that cannot be read is refused by Compile, so that the graph that
// repairs the thread has another one.
func TestAnUndecodableValueCanBeReplacedByAnotherType(t *testing.T) {
	old := graph.Last[report]("k").WithCodec(graph.JSONCodec[report]())
	text := graph.Last[string]("k")
	repairs := map[string]func(*graph.Runner) (graph.Result, error){
		"Edit": func(r *graph.Runner) (graph.Result, error) {
			if _, err := r.Edit(t.Context(), thread, text.Set("y")); err == nil {
				return graph.Result{}, errors.New("Set folds onto a value of another type")
			}
			if _, err := r.Edit(t.Context(), thread, text.Reset("y")); err != nil {
				return graph.Result{}, err
			}
			return r.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true})
		},
		"Resume.Set": func(r *graph.Runner) (graph.Result, error) {
			return r.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true, Set: []graph.Write{text.Reset("y")}})
		},
	}
	for name, repair := range repairs {
		r := damaged(t, old)
		r.Graph = compile(t, repairDef(text, text.Set("")))
		res, err := repair(r)
		if err != nil || res.Status != graph.Done || text.Get(res.State) != "y" {
			t.Errorf("%s: %v %v %q", name, res.Status, err, text.Get(res.State))
			continue
		}
		if s, err := r.State(t.Context(), thread, 0); err != nil || text.Get(s) != "y" {
			t.Errorf("%s: the journal holds %q, %v", name, text.Get(s), err)
		}
		if snap, err := history.Inspect(t.Context(), r.Store, thread, 0); err != nil || snap.Values[0].Tag != "string" {
			t.Errorf("%s: %v %+v", name, err, snap)
		}
	}
}

// A Sum needs the value that was: the others do not.
func TestAnEditReadsOnlyWhatItFolds(t *testing.T) {
	old := graph.Last[report]("k").WithCodec(graph.JSONCodec[report]())
	r := damaged(t, old)
	n := graph.Sum[int]("n")
	if _, err := r.Edit(t.Context(), thread, n.Set(5)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Edit(t.Context(), thread, old.Reset(report{Name: "y"})); err != nil {
		t.Fatal(err)
	}
	s, err := r.State(t.Context(), thread, 0)
	if err != nil || n.Get(s) != 6 {
		t.Errorf("n is %d, %v", n.Get(s), err)
	}
}

// debugged is a Runner that looks for nodes that modify what they read.
func debugged(g *graph.Graph, st journal.Store) *graph.Runner {
	return &graph.Runner{Graph: g, Store: st, Debug: true}
}

func wantModified(t *testing.T, err error, node, by string, keys ...string) {
	t.Helper()
	var m *graph.ModifiedError
	var n *graph.NodeError
	if !errors.As(err, &m) || !errors.As(err, &n) {
		t.Errorf("error %v", err)
		return
	}
	for below := n; errors.As(below.Err, &below); {
		n = below
	}
	if n.Node != node || !strings.Contains(m.By, by) || !slices.Equal(m.Keys, keys) {
		t.Errorf("node %q, by %q, keys %q; want %q, %q, %q", n.Node, m.By, m.Keys, node, by, keys)
	}
}

func TestDebugFindsTheNodeThatModifiesWhatItReads(t *testing.T) {
	list, bag := graph.Append[string]("list"), graph.Merge[string, int]("bag")
	seen := ""
	g := compile(t, graph.Def{
		Name: "two", Keys: []graph.AnyKey{list, bag}, Start: []string{"a", "b"},
		First: []graph.Write{list.Set([]string{"old"}), bag.Set(map[string]int{"x": 0})},
		Nodes: []graph.Node{
			{Name: "a", OnError: graph.End, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				list.Get(s)[0] = "x"
				bag.Get(s)["y"] = 1
				return graph.Update{}, nil
			}},
			{Name: "b", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				seen = list.Get(s)[0]
				return graph.Update{}, nil
			}},
		},
		Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)},
	})
	for _, st := range []journal.Store{nil, journal.NewMemory()} {
		res, err := debugged(g, st).Invoke(t.Context(), graph.Input{Thread: thread})
		wantModified(t, err, "a", "the node", "bag", "list")
		if res.Status != graph.Failed || seen != "old" {
			t.Errorf("status %v, the sibling reads %q", res.Status, seen)
		}
	}
	if res, err := (&graph.Runner{Graph: g, Executor: sequential{}}).Invoke(t.Context(), graph.Input{}); err != nil {
		t.Errorf("without Debug: %v %v", res.Status, err)
	}
}

// An attempt that fails after it has modified what it read is found, too, and no
// attempt follows it.
func TestDebugFindsAttemptsThatModify(t *testing.T) {
	bag := graph.Merge[string, int]("bag")
	attempts := 0
	g := compile(t, graph.Def{
		Name: "retry", Keys: []graph.AnyKey{bag}, Start: []string{"a"}, First: []graph.Write{bag.Set(map[string]int{})},
		Nodes: []graph.Node{{Name: "a", Retry: graph.Retry{Attempts: 3}, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			attempts++
			bag.Get(s)["x"]++
			return graph.Update{}, errors.New("not yet")
		}}},
		Edges: []graph.Edge{edge("a", graph.End)},
	})
	_, err := debugged(g, nil).Invoke(t.Context(), graph.Input{})
	wantModified(t, err, "a", "the node", "bag")
	if attempts != 1 {
		t.Errorf("%d attempts", attempts)
	}
}

func TestDebugFindsReducersBranchesAndChildren(t *testing.T) {
	type box struct{ N []int }
	bad := graph.Fold("bad", func(old *box, present bool, upd *box) (*box, error) {
		if present {
			old.N = append(old.N, upd.N...)
			return old, nil
		}
		return upd, nil
	})
	one := bad.Set(&box{[]int{1}})
	g := compile(t, graph.Def{Name: "reducer", Keys: []graph.AnyKey{bad}, Start: []string{"a"}, First: []graph.Write{one},
		Nodes: []graph.Node{{Name: "a", Run: writes(one)}}, Edges: []graph.Edge{edge("a", graph.End)}})
	_, err := debugged(g, nil).Invoke(t.Context(), graph.Input{})
	wantModified(t, err, "a", "reducer", "bad")

	list := graph.Append[int]("list")
	sorts := func(s graph.State) string { slices.Sort(list.Get(s)); return "end" }
	g = compile(t, graph.Def{Name: "branch", Keys: []graph.AnyKey{list}, Start: []string{"a"}, First: []graph.Write{list.Set([]int{2, 1})},
		Nodes: []graph.Node{{Name: "a", Run: idle}}, Edges: []graph.Edge{branch("a", map[string]string{"end": graph.End}, sorts)}})
	_, err = debugged(g, nil).Invoke(t.Context(), graph.Input{})
	wantModified(t, err, "a", "the branch function", "list")

	child := compile(t, graph.Def{Name: "child", Keys: []graph.AnyKey{list}, Start: []string{"in"}, Edges: []graph.Edge{edge("in", graph.End)},
		Nodes: []graph.Node{{Name: "in", Run: func(_ context.Context, s graph.State) (graph.Update, error) { sorts(s); return graph.Update{}, nil }}}})
	g = compile(t, graph.Def{Name: "parent", Keys: []graph.AnyKey{list}, Start: []string{"a"}, First: []graph.Write{list.Set([]int{2, 1})},
		Nodes: []graph.Node{{Name: "a", Graph: child, Inherit: true}}, Edges: []graph.Edge{edge("a", graph.End)}})
	_, err = debugged(g, journal.NewMemory()).Invoke(t.Context(), graph.Input{Thread: thread})
	wantModified(t, err, "in", "the node", "list")
}

// With Debug a run continues with what a resumed run would read.
func TestDebugReadsBackEveryValue(t *testing.T) {
	type secretive struct {
		Shown  string
		hidden string
	}
	v := secretive{"a", "b"}
	k, halves := graph.Last[secretive]("k"), graph.Fold("f", func(_ secretive, _ bool, upd secretive) (secretive, error) {
		return secretive{upd.Shown, "made by the reducer"}, nil
	})
	var got []secretive
	g := compile(t, graph.Def{Name: "back", Keys: []graph.AnyKey{k, halves}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			d, err := graph.Do(ctx, "d", func(context.Context) (secretive, error) { return v, nil })
			got = append(got, d, k.Get(s))
			return graph.Update{Writes: []graph.Write{halves.Set(v)}, Goto: []string{}, Send: []graph.Send{{To: "b", Overlay: []graph.Write{k.Set(v)}}}}, err
		}, Routes: []string{"b"}}, {Name: "b", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			got = append(got, k.Get(s), halves.Get(s))
			return graph.Update{}, nil
		}}},
		Edges: []graph.Edge{edge("b", graph.End)}})
	for _, st := range []journal.Store{nil, journal.NewMemory()} {
		got = nil
		if _, err := debugged(g, st).Invoke(t.Context(), graph.Input{Thread: thread, Set: []graph.Write{k.Set(v)}}); err != nil {
			t.Fatal(err)
		}
		want := secretive{Shown: "a"}
		if !slices.Equal(got, []secretive{want, want, want, want}) {
			t.Errorf("read %+v", got)
		}
	}
}

// A value that is stored but cannot be read again fails the run that writes it.
func TestDebugFindsValuesThatCannotBeReadAgain(t *testing.T) {
	half := graph.Last[string]("half").WithCodec(graph.Codec[string]{
		Tag:    "half",
		Encode: func(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil },
		Decode: func([]byte) (string, error) { return "", errors.New("cannot be read") },
	})
	def := graph.Def{Name: "half", Keys: []graph.AnyKey{half}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: writes(half.Set("x"))}}, Edges: []graph.Edge{edge("a", graph.End)}}
	if _, err := start(t, kept(compile(t, def))); err != nil {
		t.Fatal(err)
	}
	_, err := debugged(compile(t, def), journal.NewMemory()).Invoke(t.Context(), graph.Input{Thread: thread})
	if err == nil || !strings.Contains(err.Error(), `node a`) || !strings.Contains(err.Error(), `key "half": cannot be read`) {
		t.Errorf("error %v", err)
	}
}

// A codec may store one value in many forms, as encryption does.
func TestDebugAcceptsCodecsThatAreNotStable(t *testing.T) {
	var n atomic.Int64
	k := graph.Last[[]string]("k").WithCodec(graph.Codec[[]string]{
		Tag: "salted",
		Encode: func(dst []byte, v []string) ([]byte, error) {
			return append(append(dst, byte(n.Add(1))), strings.Join(v, ",")...), nil
		},
		Decode: func(b []byte) ([]string, error) { return strings.Split(string(b[1:]), ","), nil },
	})
	node := func(change bool) graph.Node {
		return graph.Node{Name: "a", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			if change {
				k.Get(s)[0] = "changed"
			}
			return graph.Update{}, nil
		}}
	}
	for _, change := range []bool{false, true} {
		g := compile(t, graph.Def{Name: "salt", Keys: []graph.AnyKey{k}, Start: []string{"a"}, First: []graph.Write{k.Set([]string{"a", "b"})},
			Nodes: []graph.Node{node(change)}, Edges: []graph.Edge{edge("a", graph.End)}})
		_, err := debugged(g, nil).Invoke(t.Context(), graph.Input{})
		if change {
			wantModified(t, err, "a", "the node", "k")
		} else if err != nil {
			t.Error(err)
		}
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
