package graph_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"raddle.dev/graph"
)

// A fuse panics once, in whatever calls it.
type fuse struct{ blown atomic.Bool }

func (f *fuse) burn() {
	if f.blown.CompareAndSwap(false, true) {
		panic(errBurnt)
	}
}

var errBurnt = errors.New("the fuse has burnt")

// A brittle value cannot be made JSON while its fuse is whole.
type brittle struct{ f *fuse }

func (b brittle) MarshalJSON() ([]byte, error) {
	if b.f != nil {
		b.f.burn()
	}
	return []byte("1"), nil
}

func (b *brittle) UnmarshalJSON([]byte) error { return nil }

// panicking is every place where the engine calls what a user has written, while a
// run is in progress: each makes the node that calls it, or the definition and the
// runner around it.
var panicking = map[string]func(f *fuse, n *graph.Node, d *graph.Def, r *graph.Runner){
	"a node": func(f *fuse, n *graph.Node, _ *graph.Def, _ *graph.Runner) {
		n.Run = func(context.Context, graph.State) (graph.Update, error) { f.burn(); return graph.Update{}, nil }
	},
	"an error handler": func(f *fuse, n *graph.Node, d *graph.Def, _ *graph.Runner) {
		n.Run, n.OnError = fails("on purpose"), "handler"
		d.Nodes = append(d.Nodes, graph.Node{Name: "handler", Run: func(context.Context, graph.State) (graph.Update, error) { f.burn(); return graph.Update{}, nil }})
		d.Edges = append(d.Edges, edge("handler", graph.End))
	},
	"a hook before": func(f *fuse, n *graph.Node, _ *graph.Def, _ *graph.Runner) {
		n.Hooks = []graph.Hooks{{Before: func(context.Context, graph.Info, graph.State) (graph.Setup, error) {
			f.burn()
			return graph.Setup{}, nil
		}}}
	},
	"a hook after": func(f *fuse, n *graph.Node, _ *graph.Def, _ *graph.Runner) {
		n.Hooks = []graph.Hooks{{After: func(_ context.Context, _ graph.Info, _ graph.State, u graph.Update, err error) (graph.Update, error) {
			f.burn()
			return u, err
		}}}
	},
	"a hook of the graph for errors": func(f *fuse, n *graph.Node, d *graph.Def, _ *graph.Runner) {
		n.Run = func(context.Context, graph.State) (graph.Update, error) {
			if !f.blown.Load() {
				return graph.Update{}, errors.New("on purpose")
			}
			return graph.Update{}, nil
		}
		d.Hooks = []graph.Hooks{{Error: func(context.Context, graph.Info, error) { f.burn() }}}
	},
	"a reducer": func(f *fuse, n *graph.Node, d *graph.Def, _ *graph.Runner) {
		k := graph.Fold("fold", func(int, bool, int) (int, error) { f.burn(); return 1, nil })
		d.Keys, n.Run = append(d.Keys, k), writes(k.Set(1))
	},
	"a branch": func(f *fuse, n *graph.Node, d *graph.Def, _ *graph.Runner) {
		d.Edges = append(d.Edges, branch(n.Name, map[string]string{"": graph.End}, func(graph.State) string { f.burn(); return "" }))
	},
	"the input of a child": func(f *fuse, n *graph.Node, _ *graph.Def, _ *graph.Runner) {
		n.Run, n.Graph = nil, quiet
		n.In = func(graph.State) ([]graph.Write, error) { f.burn(); return nil, nil }
	},
	"the output of a child": func(f *fuse, n *graph.Node, _ *graph.Def, _ *graph.Runner) {
		n.Run, n.Graph = nil, quiet
		n.Out = func(graph.State, graph.Child) (graph.Update, error) { f.burn(); return graph.Update{}, nil }
	},
	"a condition of retries": func(f *fuse, n *graph.Node, _ *graph.Def, _ *graph.Runner) {
		n.Run = func(context.Context, graph.State) (graph.Update, error) {
			if !f.blown.Load() {
				return graph.Update{}, errors.New("on purpose")
			}
			return graph.Update{}, nil
		}
		n.Retry = graph.Retry{Attempts: 2, If: func(error) bool { f.burn(); return false }}
	},
	"an effect": func(f *fuse, n *graph.Node, _ *graph.Def, _ *graph.Runner) {
		n.Run = func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Do(ctx, "e", func(context.Context) (int, error) { f.burn(); return 1, nil })
			return graph.Update{}, err
		}
	},
	"the result of an effect": func(f *fuse, n *graph.Node, _ *graph.Def, _ *graph.Runner) {
		n.Run = func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Do(ctx, "e", func(context.Context) (brittle, error) { return brittle{f}, nil })
			return graph.Update{}, err
		}
	},
	"a written value": func(f *fuse, n *graph.Node, d *graph.Def, _ *graph.Runner) {
		k := graph.Last[brittle]("brittle")
		d.Keys, n.Run = append(d.Keys, k), writes(k.Set(brittle{f}))
	},
	"a value of the graph's end": func(f *fuse, n *graph.Node, _ *graph.Def, _ *graph.Runner) {
		n.Run = func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Halt: &graph.Halt{Value: brittle{f}}}, nil
		}
	},
	"the overlay of a task": func(f *fuse, n *graph.Node, d *graph.Def, _ *graph.Runner) {
		k := graph.Last[brittle]("brittle")
		d.Keys, n.Routes = append(d.Keys, k), []string{"worker"}
		d.Nodes, d.Edges = append(d.Nodes, graph.Node{Name: "worker", Run: idle}), append(d.Edges, edge("worker", graph.End))
		n.Run = func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Send: []graph.Send{{To: "worker", Overlay: []graph.Write{k.Set(brittle{f})}}}}, nil
		}
	},
	"the data of a question": func(f *fuse, n *graph.Node, _ *graph.Def, _ *graph.Runner) {
		n.Run = func(ctx context.Context, _ graph.State) (graph.Update, error) {
			if f.blown.Load() {
				return graph.Update{}, nil
			}
			_, err := graph.Interrupt[string](ctx, graph.Ask{Data: brittle{f}})
			return graph.Update{}, err
		}
	},
	"a codec": func(f *fuse, n *graph.Node, d *graph.Def, _ *graph.Runner) {
		k := graph.Last[string]("coded").WithCodec(graph.Codec[string]{Tag: "t", Encode: func(b []byte, v string) ([]byte, error) { f.burn(); return append(b, v...), nil },
			Decode: func(b []byte) (string, error) { return string(b), nil }})
		d.Keys, n.Run = append(d.Keys, k), writes(k.Set("x"))
	},
	"the key of a cache": func(f *fuse, n *graph.Node, d *graph.Def, r *graph.Runner) {
		k := graph.Dyn("input")
		d.Keys, d.Open = append(d.Keys, k), nil
		n.Hooks = []graph.Hooks{{Before: func(context.Context, graph.Info, graph.State) (graph.Setup, error) {
			return graph.Setup{See: []graph.Write{k.Set(brittle{f})}}, nil
		}}}
		n.Cache, r.Cache = &graph.CachePolicy{Keys: []graph.AnyKey{k}}, &graph.MemoryCache{}
	},
	"a cache that looks up": func(f *fuse, n *graph.Node, _ *graph.Def, r *graph.Runner) {
		n.Cache, r.Cache = &graph.CachePolicy{Keys: []graph.AnyKey{only}}, &brittleCache{get: f}
	},
	"a cache that keeps": func(f *fuse, n *graph.Node, _ *graph.Def, r *graph.Runner) {
		n.Cache, r.Cache = &graph.CachePolicy{Keys: []graph.AnyKey{only}}, &brittleCache{set: f}
	},
	"a maker of open keys": func(f *fuse, n *graph.Node, d *graph.Def, _ *graph.Runner) {
		d.Open = func(name string) graph.AnyKey { return graph.Dyn(name) }
		n.Run = func(context.Context, graph.State) (graph.Update, error) {
			f.burn()
			return graph.Put(graph.Dyn("new").Set(1)), nil
		}
	},
}

// quiet is a graph that does nothing.
var quiet = func() *graph.Graph {
	g, err := graph.Compile(graph.Def{Name: "quiet", Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: idle}}, Edges: []graph.Edge{edge("x", graph.End)}})
	if err != nil {
		panic(err)
	}
	return g
}()

type brittleCache struct {
	graph.MemoryCache
	get, set *fuse
}

func (c *brittleCache) Get(ctx context.Context, key string) ([]byte, bool, error) {
	if c.get != nil {
		c.get.burn()
	}
	return c.MemoryCache.Get(ctx, key)
}

func (c *brittleCache) Set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if c.set != nil {
		c.set.burn()
	}
	return c.MemoryCache.Set(ctx, key, value, ttl)
}

// Whatever of a user's panics, wherever: the run fails with an error that names
// the node and has the stack, nothing is left running, and the journal leads on.
func TestAPanicAnywhereIsAFailureThatCanBeResumed(t *testing.T) {
	graph.Register[brittle]("graph_test.brittle")
	for what, arm := range panicking {
		for _, where := range []string{"alone", "beside others", "in a child"} {
			t.Run(what+" "+where, func(t *testing.T) {
				settled(t, func(t *testing.T) {
					f := &fuse{}
					r := kept(nil)
					r.Graph = armed(t, where, func(n *graph.Node, d *graph.Def) { arm(f, n, d, r) })
					_, res, err := collect(r.Run(t.Context(), graph.Input{Thread: thread, Topics: graph.AllTopics}))
					var e *graph.NodeError
					if res.Status != graph.Failed || !errors.As(err, &e) || !strings.Contains(err.Error(), errBurnt.Error()) {
						t.Fatalf("%v, %v", res.Status, err)
					}
					if where == "in a child" && !errors.As(e.Err, &e) {
						t.Errorf("the child's node is not named: %v", err)
					}
					if e.Stack == nil || e.Node != "a" && e.Node != "handler" {
						t.Errorf("node %s, %d bytes of stack: %v", e.Node, len(e.Stack), err)
					}
					if s, err := graph.Inspect(t.Context(), r.Store, thread, 0); err != nil || s.Status != graph.Failed {
						t.Errorf("%+v, %v", s, err)
					}
					res, err = resume(t, r)
					is(t, graph.Done, res, err)
				})
			})
		}
	}
}

// armed is a graph with one hostile node, called a.
func armed(t *testing.T, where string, arm func(*graph.Node, *graph.Def)) *graph.Graph {
	n := graph.Node{Name: "a", Run: idle}
	d := graph.Def{Name: "armed", Keys: all, Start: []string{"a"}}
	arm(&n, &d)
	d.Nodes = append([]graph.Node{n}, d.Nodes...)
	if len(d.Edges) == 0 || d.Edges[0].From[0] != "a" {
		d.Edges = append(d.Edges, edge("a", graph.End))
	}
	if where == "beside others" {
		for _, name := range []string{"b", "c"} {
			d.Start, d.Nodes, d.Edges = append(d.Start, name), append(d.Nodes, say(name)), append(d.Edges, edge(name, graph.End))
		}
	}
	g := compile(t, d)
	if where == "in a child" {
		g = parallel(t, graph.Node{Name: "outer", Graph: g}, say("z"))
	}
	return g
}

// An Executor that panics, or forgets tasks, fails them; those that ran are kept.
func TestAnExecutorThatFailsFailsItsTasks(t *testing.T) {
	for want, exec := range map[string]graph.Executor{
		"panic in the Executor: the pool is closed": executor(func(_ int, task func(int)) { task(0); panic("the pool is closed") }),
		"without running the task":                  executor(func(_ int, task func(int)) { task(0) }),
	} {
		for _, topics := range []graph.Topic{0, graph.AllTopics} {
			settled(t, func(t *testing.T) {
				var c tally
				r := kept(parallel(t, graph.Node{Name: "a", Run: c.counts("a")}, graph.Node{Name: "b", Run: c.counts("b")}))
				r.Executor = exec
				_, res, err := collect(r.Run(t.Context(), graph.Input{Thread: thread, Topics: topics}))
				var e *graph.NodeError
				if res.Status != graph.Failed || !errors.As(err, &e) || e.Node != "b" || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, %v", res.Status, err)
				}
				r.Executor = nil
				res, err = resume(t, r)
				if is(t, graph.Done, res, err); c.of("a") != 1 || c.of("b") != 1 {
					t.Errorf("a ran %d times, b %d times", c.of("a"), c.of("b"))
				}
			})
		}
	}
}

type executor func(n int, task func(int))

func (e executor) Execute(n, _ int, task func(int)) { e(n, task) }
