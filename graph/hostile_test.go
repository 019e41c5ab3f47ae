package graph_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/testneed"
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
					if s, err := history.Inspect(t.Context(), r.Store, thread, 0); err != nil || s.Status != graph.Failed {
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

var errAway = errors.New("the store is away")

// A shaky store fails at one call, counted over all that a drive makes: each
// append, each beginning of a read, each record read.
type shaky struct {
	journal.Store
	panics bool
	mu     sync.Mutex
	left   int // calls until it fails; negative: never again
	failed bool
	looks  bool // the call that failed was a look at the head of the thread
}

func (s *shaky) call(look bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left--
	if s.left != 0 {
		return nil
	}
	s.failed, s.looks = true, look
	if s.panics {
		panic(errAway)
	}
	return errAway
}

func (s *shaky) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	if err := s.call(false); err != nil {
		return err
	}
	return s.Store.Append(ctx, thread, after, recs)
}

func (s *shaky) Read(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		look := r.Newest && r.Limit == 1
		if err := s.call(look); err != nil {
			yield(journal.Record{}, err)
			return
		}
		for rec, err := range s.Store.Read(ctx, thread, r) {
			if fault := s.call(look); fault != nil {
				yield(journal.Record{}, fault)
				return
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// A store that fails, or panics, at any one call of a run and its resumes ends
// that drive with an error that says so, unless the call was a look before an effect, which is repeated. Nothing is left running, what was
// journaled loads, and another drive ends like one that nothing happened to.
func TestAStoreMayFailAtAnyCall(t *testing.T) {
	e := newEverything(t)
	want := outcome(*e.finish(t, &graph.Runner{Graph: e.g, Store: journal.NewMemory()}, true))
	for _, panics := range []bool{false, true} {
		for at := 1; ; at++ {
			failed := false
			settled(t, func(t *testing.T) {
				e := newEverything(t)
				s := &shaky{Store: journal.NewMemory(), panics: panics, left: at}
				r := &graph.Runner{Graph: e.g, Store: s, Executor: sequential{}}
				err := untilItFails(t, r)
				if failed = s.failed; !failed {
					return
				}
				if s.looks && err == nil { // the drive has looked again
					if len(journalOf(t, s.Store, thread)) == 0 || repeated(e.hits) > 1 {
						t.Errorf("call %d, panics %v: effects %v", at, panics, e.hits)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), errAway.Error()) || !errors.Is(err, errAway) {
					t.Fatalf("call %d, panics %v: %v", at, panics, err)
				}
				if info, err := history.Inspect(t.Context(), s.Store, thread, 0); err != nil && !errors.Is(err, journal.ErrNoThread) {
					t.Fatalf("call %d, panics %v: %+v, %v", at, panics, info, err)
				}
				r.Store = s.Store
				if d := cmp.Diff(want, outcome(*e.finish(t, r, false))); d != "" || repeated(e.hits) > 1 {
					t.Errorf("call %d, panics %v: effects %v\n%s", at, panics, e.hits, d)
				}
			})
			if !failed {
				if at < 40 {
					t.Errorf("only %d calls", at)
				}
				break
			}
		}
	}
}

// untilItFails drives the thread to its end, with all events, or to its first
// error.
func untilItFails(t *testing.T, r *graph.Runner) error {
	_, res, err := collect(r.Run(t.Context(), graph.Input{Thread: thread, Run: "r", Topics: graph.AllTopics}))
	for err == nil && res.Status != graph.Done {
		in := graph.Resume{Thread: thread, Topics: graph.AllTopics}
		for _, q := range res.Questions {
			in.Answers = append(in.Answers, answer(q))
		}
		_, res, err = collect(r.Resume(t.Context(), in))
	}
	return err
}

// What reads a thread without driving it passes a store's error on, wherever in
// the reading it is.
func TestReadersPassAStoresErrorOn(t *testing.T) {
	e := newEverything(t)
	mem := journal.NewMemory()
	e.finish(t, &graph.Runner{Graph: e.g, Store: mem}, true)
	ctx := t.Context()
	for what, read := range map[string]func(st journal.Store) error{
		"History":     func(st journal.Store) error { return drained(history.Entries(ctx, st, thread)) },
		"Checkpoints": func(st journal.Store) error { return drained(history.Checkpoints(ctx, st, thread)) },
		"Inspect":     func(st journal.Store) error { _, err := history.Inspect(ctx, st, thread, 0); return err },
		"State": func(st journal.Store) error {
			_, err := (&graph.Runner{Graph: e.g, Store: st}).State(ctx, thread, 0)
			return err
		},
		"Diff": func(st journal.Store) error {
			_, err := history.Diff(ctx, st, journal.Point{Thread: thread, Seq: 1}, journal.Point{Thread: thread})
			return err
		},
		"Blame": func(st journal.Store) error { _, err := history.Blame(ctx, st, thread, "notes"); return err },
		"Fork": func(st journal.Store) error {
			return history.Fork(ctx, st, thread, 0, fmt.Sprint("copy of ", st.(*shaky).left))
		},
		"Prune": func(st journal.Store) error {
			_, err := history.Prune(ctx, st, thread, history.Keep{Records: 1 << 30})
			return err
		},
	} {
		calls := 0
		for at := 1; ; at++ {
			s := &shaky{Store: mem, left: at}
			err := read(s)
			if !s.failed {
				if err != nil || calls == 0 {
					t.Errorf("%s with a store that works, after %d that did not: %v", what, calls, err)
				}
				break
			}
			if calls++; !errors.Is(err, errAway) {
				t.Fatalf("%s, call %d: %v", what, at, err)
			}
		}
	}
}

func drained[T any](seq iter.Seq2[T, error]) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

// deaf is a node that ignores its context for three seconds.
func deaf(then error) graph.Func {
	return func(context.Context, graph.State) (graph.Update, error) {
		time.Sleep(3 * time.Second)
		return graph.Put(list.Set([]string{"late"})), then
	}
}

// A node that ignores its context holds its run up until it returns: nothing can
// end a goroutine from outside. Then the run ends as it would have; a result that
// came too late for the node's timeout is one all the same, an error is not taken
// for the node's own.
func TestANodeThatIgnoresItsContext(t *testing.T) {
	for name, c := range map[string]struct {
		def    graph.Def
		then   error
		cancel bool
		want   graph.Status
		keeps  bool // its late update
		cause  error
	}{
		"past its timeout":              {want: graph.Done, keeps: true, def: graph.Def{}},
		"past its timeout, with errors": {want: graph.Failed, then: errors.New("gave up"), cause: graph.ErrTimeout},
		"past the step's":               {want: graph.Done, keeps: true, def: graph.Def{StepTimeout: 2 * time.Second}},
		"past the run's":                {want: graph.TimedOut, keeps: true, def: graph.Def{Timeout: 2 * time.Second}},
		"past the run's, with errors":   {want: graph.TimedOut, then: errors.New("gave up"), def: graph.Def{Timeout: 2 * time.Second}},
		"when cancelled":                {want: graph.Canceled, keeps: true, cancel: true, cause: context.Canceled},
		"when cancelled, with errors":   {want: graph.Canceled, then: errors.New("gave up"), cancel: true, cause: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			settled(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel {
					time.AfterFunc(time.Second, cancel)
				}
				d := c.def
				d.Name, d.Keys, d.Start = "g", all, []string{"a"}
				d.Nodes = []graph.Node{{Name: "a", Timeout: time.Second, Run: deaf(c.then)}, say("b")}
				d.Edges = []graph.Edge{edge("a", "b"), edge("b", graph.End)}
				r, begun := kept(compile(t, d)), time.Now()
				_, res, err := collect(r.Run(ctx, graph.Input{Thread: thread, Topics: graph.AllTopics}))
				is(t, c.want, res, err)
				if kept := len(list.Get(res.State)) > 0; kept != c.keeps || c.cause != nil && !errors.Is(err, c.cause) || time.Since(begun) != 3*time.Second {
					t.Errorf("state %v after %v: %v", list.Get(res.State), time.Since(begun), err)
				}
				if s, err := history.Inspect(t.Context(), r.Store, thread, 0); err != nil || s.Status != c.want {
					t.Errorf("%v, %v", s.Status, err)
				}
			})
		})
	}
}

// A reader that is slow slows the run; one that stops and comes back finds it
// where it was, cancelled or not; one that pulls and stops has left the loop.
func TestReadersThatStop(t *testing.T) {
	chatty := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		for i := range 100 {
			graph.Emit(ctx, i)
		}
		return graph.Update{}, ctx.Err()
	}
	settled(t, func(t *testing.T) {
		r, seen := kept(parallel(t, graph.Node{Name: "a", Run: chatty}, graph.Node{Name: "b", Run: chatty})), 0
		for e, err := range r.Run(t.Context(), graph.Input{Topics: graph.TopicEmit}) {
			if err != nil {
				t.Error(err)
			}
			if _, ok := e.Body.(graph.ValueEmitted); ok {
				if seen++; seen == 10 {
					time.Sleep(24 * time.Hour)
				}
			}
		}
		if seen != 200 {
			t.Errorf("%d values", seen)
		}
	})
	settled(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last error
		for e, err := range kept(parallel(t, graph.Node{Name: "a", Run: chatty}, graph.Node{Name: "b", Run: chatty})).Run(ctx, graph.Input{Topics: graph.TopicEmit}) {
			if _, ok := e.Body.(graph.ValueEmitted); ok && ctx.Err() == nil {
				cancel()
				time.Sleep(24 * time.Hour)
			}
			last = err
		}
		var c *graph.CanceledError
		if !errors.As(last, &c) {
			t.Error(last)
		}
	})
	for pulls := range 6 {
		settled(t, func(t *testing.T) {
			r := kept(parallel(t, graph.Node{Name: "a", Run: chatty}, graph.Node{Name: "b", Run: chatty}))
			next, stop := iter.Pull2(r.Run(t.Context(), graph.Input{Thread: thread, Topics: graph.AllTopics}))
			for range pulls {
				if _, err, ok := next(); err != nil || !ok {
					t.Error(err, ok)
				}
			}
			stop()
			if pulls == 0 {
				return // it has not started
			}
			res, err := resume(t, r)
			is(t, graph.Done, res, err)
		})
	}
}

// Many runs of one graph and one store at the same time, each with its own state,
// sends, children, questions and events, do not see each other.
func TestManyRunsAtOnceKeepApart(t *testing.T) {
	runs := 512
	if testneed.Soaks() {
		runs = 2048
	}
	child := compile(t, graph.Def{Name: "c", Keys: all, Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
		a, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: only.Get(s)})
		return graph.Put(list.Set([]string{only.Get(s) + a})), err
	}}}, Edges: []graph.Edge{edge("x", graph.End)}})
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"split", "count"}, Nodes: []graph.Node{
		{Name: "split", Routes: []string{"sub"}, Run: func(_ context.Context, s graph.State) (u graph.Update, _ error) {
			for _, part := range []string{"l", "r"} {
				u.Send = append(u.Send, graph.Send{To: "sub", Overlay: []graph.Write{only.Set(only.Get(s) + part)}})
			}
			return u, nil
		}},
		{Name: "count", Run: writes(newReducerKey.Set(1))},
		{Name: "sub", Graph: child, Inherit: true, Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
			return graph.Put(list.Set(list.Get(c.State)), newReducerKey.Set(1)), nil
		}},
		say("end"),
	}, Edges: []graph.Edge{edge("count", graph.End), edge("sub", "end"), edge("end", graph.End)}})
	r := &graph.Runner{Graph: g, Store: journal.NewMemory(), Durability: graph.QuestionsOnly}
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			name := fmt.Sprint("t", i)
			first := graph.Input{Thread: name, Set: []graph.Write{only.Set(name)}}
			if i%8 == 0 {
				first.Topics = graph.AllTopics
			}
			_, res, err := collect(r.Run(t.Context(), first))
			if err != nil || res.Status != graph.Waiting || len(res.Questions) != 2 || res.Questions[0].Prompt != name+"l" {
				t.Errorf("%s: %v, %v, %v", name, res.Status, res.Questions, err)
				return
			}
			in := graph.Resume{Thread: name}
			for _, q := range res.Questions {
				in.Answers = append(in.Answers, says(q.ID, "!"))
			}
			res, err = r.InvokeResume(t.Context(), in)
			want := strings.ReplaceAll("Tl! Tr! end", "T", name)
			if got := strings.Join(list.Get(res.State), " "); err != nil || res.Status != graph.Done || got != want || newReducerKey.Get(res.State) != 3 {
				t.Errorf("%s: %v with %q and %d, want %q: %v", name, res.Status, got, newReducerKey.Get(res.State), want, err)
			}
		})
	}
	wg.Wait()
}
