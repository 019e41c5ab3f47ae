package graphtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest/disturb"
	"raddle.dev/internal/testkit/testneed"
)

// A world is what planted graphs act on.
type world struct {
	mu   sync.Mutex
	made map[string]int
	keys map[string]string // by idempotency key
}

func newWorld() *world { return &world{made: map[string]int{}, keys: map[string]string{}} }

// act counts that something happens, and returns how often it has happened.
func (w *world) act(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made[what]++
	return w.made[what]
}

// actOnce is act for something that happens once for each key.
func (w *world) actOnce(key, what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys[key] == "" {
		w.keys[key] = what
		w.made[what]++
	}
	return w.made[what]
}

func (w *world) check(want map[string]int) func(EndOfRun) error {
	return func(EndOfRun) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for what, n := range want {
			if w.made[what] != n {
				return fmt.Errorf("%s happened %d times, want %d", what, w.made[what], n)
			}
		}
		return nil
	}
}

var (
	planText  = graph.Last[string]("text")
	planList  = graph.Append[string]("list")
	planItems = graph.Last[[]string]("items")
	planItem  = graph.Last[string]("item")
	planBag   = graph.Fold("bag", func(old []string, _ bool, upd []string) ([]string, error) {
		return slices.Concat(old, upd), nil
	})
	planSorted = graph.Fold("sorted", func(old []string, _ bool, upd []string) ([]string, error) {
		slices.Sort(upd) // in place: the fault
		return slices.Concat(old, upd), nil
	})
)

// row makes a graph of nodes that run one after the other: n0, n1 and so on.
func row(funcs ...graph.Func) (*graph.Runner, error) {
	d := graph.Def{Name: "row", Keys: []graph.AnyKey{planText, planList, planItems, planItem, planBag, planSorted}, Start: []string{"n0"}}
	for i, f := range funcs {
		to := graph.End
		if i+1 < len(funcs) {
			to = fmt.Sprint("n", i+1)
		}
		d.Nodes = append(d.Nodes, graph.Node{Name: fmt.Sprint("n", i), Run: f})
		d.Edges = append(d.Edges, graph.NewEdge(fmt.Sprint("n", i), to))
	}
	g, err := graph.Compile(d)
	return &graph.Runner{Graph: g}, err
}

// each makes a graph that runs work for three items at the same time, and then n1.
func each(work graph.Func) (*graph.Runner, error) {
	g, err := graph.Compile(graph.Def{Name: "each", Keys: []graph.AnyKey{planText, planList, planItem, planBag}, Start: []string{"split"}, Nodes: []graph.Node{
		{Name: "split", Routes: []string{"work"}, Run: func(context.Context, graph.State) (u graph.Update, _ error) {
			for _, item := range []string{"a", "b", "c"} {
				u.Send = append(u.Send, graph.Send{To: "work", Overlay: []graph.Write{planItem.Set(item)}})
			}
			return u, nil
		}},
		{Name: "work", Run: work},
	}, Edges: []graph.Edge{graph.NewEdge("work", graph.End)}})
	return &graph.Runner{Graph: g}, err
}

// do is an effect that happens in the world once for each of its keys, as effects must.
func do(ctx context.Context, w *world, name string) (string, error) {
	return graph.Do(ctx, name, func(ctx context.Context) (string, error) {
		w.actOnce(graph.EffectKey(ctx), name)
		return "<" + name + ">", nil
	})
}

// nothing does nothing.
func nothing(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }

// effect is a node that makes an effect.
func effect(w *world, name string) graph.Func {
	return func(ctx context.Context, _ graph.State) (graph.Update, error) {
		v, err := do(ctx, w, name)
		return graph.Put(planList.Set([]string{v})), err
	}
}

// A plant is a graph with a fault, and what finds it.
type plant struct {
	name    string
	make    func() Subject
	found   []disturb.Kind // exactly these, alone
	says    string         // is in the message
	minimal string         // the smallest schedule
}

const (
	crashBefore, crashAfter, crashMade = disturb.CrashBefore, disturb.CrashAfter, disturb.CrashMade
	failBefore, failAfter, takeover    = disturb.FailBefore, disturb.FailAfter, disturb.Takeover
)

// plants has, for each kind of disturbance, a fault that this kind finds and no other, and the faults that are made most often.
var plants = []plant{
	{name: "a reducer that sorts what it gets in place", make: func() Subject {
		return Subject{Runner: func() (*graph.Runner, error) {
			return row(func(context.Context, graph.State) (graph.Update, error) {
				return graph.Put(planSorted.Set([]string{"b", "a"})), nil
			})
		}}
	}, found: []disturb.Kind{disturb.Poison}, says: "a reducer changed what it read: key sorted", minimal: "poison"},

	{name: "numbers in the order of parallel tasks", make: func() Subject {
		w := newWorld()
		numbers := map[string]int{}
		return Subject{Runner: func() (*graph.Runner, error) {
			return each(func(ctx context.Context, s graph.State) (graph.Update, error) {
				item := planItem.Get(s)
				n, err := graph.Do(ctx, "number", func(context.Context) (int, error) {
					w.mu.Lock()
					defer w.mu.Unlock()
					if numbers[item] == 0 {
						numbers[item] = len(numbers) + 1
					}
					return numbers[item], nil
				})
				return graph.Put(planList.Set([]string{fmt.Sprint(item, n)})), err
			})
		}}
	}, found: []disturb.Kind{disturb.Order}, says: `the key list is ["a3","b2","c1"], and undisturbed ["a1","b2","c3"]`, minimal: "order@reversed"},

	{name: "memory outside of the graph", make: func() Subject {
		w := newWorld()
		return Subject{Runner: func() (*graph.Runner, error) {
			seen := "" // of this process
			return row(func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := graph.Do(ctx, "fetch", func(context.Context) (int, error) {
					seen = "what was fetched"
					return w.act("fetch"), nil
				})
				return graph.Update{}, err
			}, func(context.Context, graph.State) (graph.Update, error) {
				return graph.Put(planText.Set(seen)), nil
			})
		}, Check: func(EndOfRun) error { return nil }}
	}, found: []disturb.Kind{crashBefore, crashAfter}, says: `the key text is "", and undisturbed "what was fetched"`, minimal: "crash-after@effect:0.n0.0/fetch/0"},

	{name: "an effect that must not begin twice, recorded with its step", make: func() Subject {
		w := newWorld()
		open := false
		return Subject{Runner: func() (*graph.Runner, error) {
			r, err := row(func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := graph.Do(ctx, "open", func(context.Context) (int, error) {
					if open {
						return 0, errors.New("it is open already")
					}
					open = true
					return w.act("open"), nil
				})
				if err != nil {
					return graph.Update{}, err
				}
				_, err = graph.Do(ctx, "close", func(context.Context) (int, error) {
					open = false
					return w.act("close"), nil
				})
				return graph.Update{}, err
			})
			r.Durability = graph.EveryStep
			return r, err
		}}
	}, found: []disturb.Kind{crashMade}, says: "it is open already", minimal: "crash-made@made:0.n0.0/open/0"},

	{name: "giving up for good after an error of the store", make: func() Subject {
		w := newWorld()
		return Subject{Runner: func() (*graph.Runner, error) {
			var broken atomic.Bool // of this process
			return row(func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if broken.Load() {
					return graph.Update{}, errors.New("the backend is down")
				}
				_, err := do(ctx, w, "call")
				if err != nil && !errors.Is(err, graph.ErrLeaseLost) {
					broken.Store(true)
				}
				return graph.Update{}, err
			})
		}}
	}, found: []disturb.Kind{failBefore, failAfter}, says: "the backend is down", minimal: "fail-before@effect:0.n0.0/call/0"},

	{name: "a deadline of its own that an outage exceeds", make: func() Subject {
		w := newWorld()
		return Subject{Runner: func() (*graph.Runner, error) {
			return row(func(ctx context.Context, _ graph.State) (graph.Update, error) {
				began := time.Now()
				_, err := do(ctx, w, "call")
				if time.Since(began) > 30*time.Second {
					return graph.Update{}, errors.New("the backend is too slow")
				}
				return graph.Update{}, err
			})
		}}
	}, found: []disturb.Kind{disturb.Away}, says: "the backend is too slow", minimal: "away@effect:0.n0.0/call/0"},

	{name: "no patience with a store that is busy", make: func() Subject {
		w := newWorld()
		return Subject{Runner: func() (*graph.Runner, error) {
			return row(func(ctx context.Context, _ graph.State) (graph.Update, error) {
				ctx, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
				defer cancel()
				if _, err := do(ctx, w, "call"); err != nil {
					return graph.Update{}, err
				}
				return graph.Update{}, ctx.Err()
			})
		}}
	}, found: []disturb.Kind{disturb.Busy, disturb.Away, disturb.AnswerLost}, says: "deadline exceeded", minimal: "answer-lost@effect:0.n0.0/call/0"},

	{name: "taking the loss of a lease for the end", make: func() Subject {
		w := newWorld()
		return Subject{Runner: func() (*graph.Runner, error) {
			var over atomic.Bool // in this process
			return row(func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if over.Load() {
					return graph.Update{}, errors.New("it belongs to another process")
				}
				if _, err := do(ctx, w, "first"); err != nil {
					return graph.Update{}, err
				}
				_, err := do(ctx, w, "second")
				over.Store(errors.Is(err, graph.ErrLeaseLost))
				return graph.Update{}, err
			})
		}}
	}, found: []disturb.Kind{disturb.LeaseLost}, says: "it belongs to another process", minimal: "lease-lost@effect:0.n0.0/first/0"},

	{name: "a lock of the process", make: func() Subject {
		w := newWorld()
		return Subject{Runner: func() (*graph.Runner, error) {
			var busy atomic.Bool // of this process
			return row(func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if !busy.CompareAndSwap(false, true) {
					return graph.Update{}, errors.New("it is running already")
				}
				defer busy.Store(false)
				_, err := do(ctx, w, "call")
				return graph.Update{}, err
			})
		}}
	}, found: []disturb.Kind{takeover}, says: "it is running already", minimal: "takeover@effect:0.n0.0/call/0"},

	{name: "reading a clock", make: func() Subject {
		w := newWorld()
		return Subject{Runner: func() (*graph.Runner, error) {
			return row(effect(w, "call"), func(context.Context, graph.State) (graph.Update, error) {
				return graph.Put(planText.Set(time.Now().Format(time.DateOnly))), nil
			})
		}}
	}, found: []disturb.Kind{disturb.Pause}, says: `the key text is "2000-01-02", and undisturbed "2000-01-01"`, minimal: "pause@start"},

	{name: "an effect that another branch cannot make", make: func() Subject {
		by := map[string]string{} // names, and who took them
		return Subject{Runner: func() (*graph.Runner, error) {
			return row(func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := graph.Do(ctx, "register", func(ctx context.Context) (bool, error) {
					key := graph.EffectKey(ctx)
					if by["ada"] != "" && by["ada"] != key {
						return false, errors.New("the name is taken")
					}
					by["ada"] = key
					return true, nil
				})
				return graph.Update{}, err
			})
		}}
	}, found: []disturb.Kind{disturb.Fork}, says: "the name is taken", minimal: "fork@start"},

	{name: "an effect that is not idempotent", make: func() Subject {
		w := newWorld()
		return Subject{Check: w.check(map[string]int{"pay": 1}), Runner: func() (*graph.Runner, error) {
			return row(effect(w, "look"), func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := graph.Do(ctx, "pay", func(context.Context) (int, error) { return w.act("pay"), nil })
				return graph.Update{}, err
			})
		}}
	}, found: []disturb.Kind{crashBefore, failBefore, takeover}, says: "pay happened 2 times, want 1", minimal: "crash-before@effect:1.n1.0/pay/0"},

	{name: "an undo that is not idempotent", make: func() Subject {
		w := newWorld()
		return Subject{Check: w.check(map[string]int{"reserve": 1, "undo": 1}), Runner: func() (*graph.Runner, error) {
			g, err := graph.Compile(graph.Def{Name: "saga", Start: []string{"reserve"}, Nodes: []graph.Node{
				{Name: "reserve", Run: effect(w, "reserve")},
				{Name: "pay", OnError: "undo", Run: func(context.Context, graph.State) (graph.Update, error) {
					return graph.Update{}, errors.New("no funds")
				}},
				{Name: "undo", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
					_, err := graph.Do(ctx, "undo", func(context.Context) (int, error) { return w.act("undo"), nil })
					return graph.Update{}, err
				}},
			}, Keys: []graph.AnyKey{planList}, Edges: []graph.Edge{graph.NewEdge("reserve", "pay"), graph.NewEdge("pay", graph.End), graph.NewEdge("undo", graph.End)}})
			return &graph.Runner{Graph: g}, err
		}}
	}, found: []disturb.Kind{crashBefore, failBefore, takeover}, says: "undo happened 2 times, want 1", minimal: "crash-before@effect:2.undo.0/undo/0"},

	{name: "an effect outside of Do", make: func() Subject {
		w := newWorld()
		return Subject{Check: w.check(map[string]int{"send": 1}), Runner: func() (*graph.Runner, error) {
			return row(func(ctx context.Context, _ graph.State) (graph.Update, error) {
				w.act("send")
				_, err := do(ctx, w, "note")
				return graph.Update{}, err
			})
		}}
	}, found: []disturb.Kind{crashBefore, crashAfter, failBefore, failAfter, disturb.LeaseLost, takeover}, says: "send happened 2 times, want 1", minimal: "crash-before@effect:0.n0.0/note/0"},

	{name: "swallowing the error of Do", make: func() Subject {
		w := newWorld()
		return Subject{Check: w.check(map[string]int{"charge": 1, "refund": 0}), Runner: func() (*graph.Runner, error) {
			return row(func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if _, err := do(ctx, w, "charge"); err != nil {
					w.act("refund")
				}
				return graph.Update{}, nil
			})
		}}
	}, found: []disturb.Kind{failBefore, failAfter, takeover}, says: "refund happened 1 times, want 0", minimal: "fail-before@effect:0.n0.0/charge/0"},
}

// TestExploreFindsPlantedFaults explores each graph with a fault: exactly the kinds that can find it do, the smallest schedule is printed, and
// it replays.
func TestExploreFindsPlantedFaults(t *testing.T) {
	for _, p := range plants {
		t.Run(strings.ReplaceAll(p.name, " ", "_"), func(t *testing.T) {
			r := exploreQuietly(t, p.make, ExploreOptions{})
			if r.smallest == nil {
				t.Fatalf("nothing is found in %d schedules", r.tried)
			}
			text := r.describeFound(t.Name())
			t.Log(text)
			if got := r.listKinds(); !slices.Equal(got, p.found) {
				t.Errorf("found by %v, want %v", got, p.found)
			}
			if got := r.smallest.Trial.Schedule.String(); got != p.minimal || !strings.Contains(text, p.says) {
				t.Errorf("the smallest schedule is %s, want %s with %q", got, p.minimal, p.says)
			}
			again := exploreQuietly(t, p.make, ExploreOptions{Replay: p.minimal})
			if again.smallest == nil || !slices.Equal(again.smallest.What, r.smallest.What) {
				t.Errorf("%s does not replay", p.minimal)
			}
		})
	}
}

// exploreQuietly explores in bubbles, and returns what was found.
func exploreQuietly(t *testing.T, newSubject func() Subject, o ExploreOptions) *explored {
	t.Helper()
	x := newExplorer(newSubject, o)
	x.useBubbles(t)
	r, err := x.exploreAll()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs", x.search.RunCount())
	return r
}

// TestEachKindFindsAFault requires that every kind of disturbance finds a planted fault.
func TestEachKindFindsAFault(t *testing.T) {
	for _, k := range disturb.Kinds {
		if !slices.ContainsFunc(plants, func(p plant) bool { return slices.Contains(p.found, k) }) {
			t.Errorf("no planted fault is found by %s", k)
		}
	}
}

// TestExploreCombines plants a fault that one disturbance alone does not find. Of the schedule that has found it, two are left.
func TestExploreCombines(t *testing.T) {
	newSubject := func() Subject {
		w := newWorld()
		return Subject{Runner: func() (*graph.Runner, error) {
			return row(effect(w, "look"), func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := graph.Do(ctx, "pay", func(context.Context) (int, error) { return w.act("pay"), nil })
				return graph.Update{}, err
			}, effect(w, "note"))
		}, Check: func(EndOfRun) error {
			if n := w.act("pay") - 1; n > 2 {
				return fmt.Errorf("%d payments: one repetition would have been noticed", n)
			}
			return nil
		}}
	}
	r := exploreQuietly(t, newSubject, ExploreOptions{})
	if r.smallest == nil || len(r.listKinds()) > 0 || len(r.smallest.Trial.Schedule) != 2 {
		t.Fatalf("%v by one, smallest %+v", r.listKinds(), r.smallest)
	}
	text := r.smallest.Trial.Schedule.String()
	t.Log(r.describeFound(t.Name()))
	if n := strings.Count(text, "@effect:1.n1.0/pay/0"); n != 2 {
		t.Errorf("%s is not minimal", text)
	}
	if again := exploreQuietly(t, newSubject, ExploreOptions{Replay: text}); again.smallest == nil {
		t.Errorf("%s does not replay", text)
	}
}

// TestExploreAcceptsWhatIsRight explores a graph without a fault: effects under each policy of doubt, parallel questions, a child, and a value
// that all share.
func TestExploreAcceptsWhatIsRight(t *testing.T) {
	options := ExploreOptions{Runs: 400}
	if testneed.Soaks() {
		options.Runs = 0 // as many as by default
	}
	policies := map[string]graph.InDoubt{"retry": graph.DoubtRetry, "ask": graph.DoubtAsk, "skip": graph.DoubtSkip, "fail": graph.DoubtFail}
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			Explore(t, func() Subject {
				w := newWorld()
				return Subject{
					Input:  graph.Input{Set: []graph.Write{planText.Set("hello")}},
					Answer: func(q graph.Question) any { return "re " + q.Prompt },
					Runner: func() (*graph.Runner, error) { return each(rightWork(w, policy)) },
					Check: func(o EndOfRun) error {
						most := 1
						if policy == graph.DoubtAsk || policy == graph.DoubtRetry { // it is made again, after a yes
							most = 9
						}
						for _, item := range []string{"a", "b", "c"} {
							if n := w.made["send "+item]; n > most || n == 0 && o.Status == graph.Done && len(o.InDoubt) == 0 {
								return fmt.Errorf("%s was sent %d times, %v", item, n, o.Status)
							}
						}
						return nil
					},
				}
			}, options)
		})
	}
}

// rightWork makes an effect, asks, and counts in a value that all share.
func rightWork(w *world, policy graph.InDoubt) graph.Func {
	return func(ctx context.Context, s graph.State) (graph.Update, error) {
		item := planItem.Get(s)
		v, err := graph.DoEffect(ctx, graph.Effect{Name: "send", InDoubt: policy}, func(context.Context) (string, error) {
			w.act("send " + item)
			return "sent " + item, nil
		})
		if err != nil {
			return graph.Update{}, err
		}
		all, err := graph.Share[map[string]bool](ctx, "all")
		if err != nil {
			return graph.Update{}, err
		}
		err = all.Use(func(m *map[string]bool) bool {
			if *m == nil {
				*m = map[string]bool{}
			}
			(*m)[item] = true
			return true
		})
		if err != nil {
			return graph.Update{}, err
		}
		yes, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: item})
		return graph.Put(planList.Set([]string{v, yes})), err
	}
}

// A printer is a testing.TB that prints. Explore uses real time with it.
type printer struct {
	testing.TB
	text *strings.Builder
}

func (p printer) Helper()                         {}
func (p printer) Name() string                    { return "TestPay" }
func (p printer) Error(args ...any)               { fmt.Fprintln(p.text, args...) }
func (p printer) Logf(format string, args ...any) { fmt.Fprintf(p.text, format+"\n", args...) }
func (p printer) Fatalf(format string, args ...any) {
	p.Logf(format, args...)
	runtime.Goexit()
}

// TestExploreInRealTime explores without a bubble, and what cannot be explored.
func TestExploreInRealTime(t *testing.T) {
	kinds := ExploreOptions{Kinds: []disturb.Kind{crashBefore, crashAfter, failBefore, disturb.Busy, disturb.Fork, disturb.Pause}}
	calls := 0
	for _, test := range []struct {
		name string
		make func() Subject
		o    ExploreOptions
		want string
	}{
		{"right", func() Subject {
			w := newWorld()
			return Subject{Runner: func() (*graph.Runner, error) { return row(effect(w, "look")) }}
		}, kinds, "no difference"},
		{"two runs differ", func() Subject {
			return Subject{Runner: func() (*graph.Runner, error) {
				return row(func(context.Context, graph.State) (graph.Update, error) {
					calls++
					return graph.Put(planText.Set(fmt.Sprint(calls))), nil
				})
			}}
		}, kinds, "two runs differ that nothing has disturbed: the key text is"},
		{"the check fails at once", func() Subject {
			return Subject{Runner: func() (*graph.Runner, error) { return row(nothing) }, Check: func(EndOfRun) error { return errors.New("no") }}
		}, kinds, "the check fails without a disturbance: no"},
		{"no graph", func() Subject {
			return Subject{Runner: func() (*graph.Runner, error) { return nil, errors.New("it does not compile") }}
		}, kinds, "make the runner: it does not compile"},
		{"a schedule of another graph", func() Subject {
			return Subject{Runner: func() (*graph.Runner, error) { return row(nothing) }}
		}, ExploreOptions{Replay: "crash-before@effect:9"}, "no run has reached the schedule crash-before@effect:9: has the graph changed?"},
		{"no such schedule", func() Subject {
			return Subject{Runner: func() (*graph.Runner, error) { return row(nothing) }}
		}, ExploreOptions{Replay: "burn@effect:9"}, `there is no disturbance "burn"`},
	} {
		p := printer{t, &strings.Builder{}}
		var done sync.WaitGroup
		done.Go(func() { Explore(p, test.make, test.o) })
		if done.Wait(); !strings.Contains(p.text.String(), test.want) {
			t.Errorf("%s: %s", test.name, p.text)
		}
	}
}

// TestExploreEndsWhatDoesNotEnd explores a node that waits forever in the second process.
func TestExploreEndsWhatDoesNotEnd(t *testing.T) {
	r := exploreQuietly(t, func() Subject {
		w, processes := newWorld(), 0
		return Subject{Runner: func() (*graph.Runner, error) {
			processes++
			second := processes > 1
			return row(effect(w, "look"), func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if second {
					<-ctx.Done()
				}
				return graph.Update{}, ctx.Err()
			})
		}}
	}, ExploreOptions{Replay: "crash-after@start"})
	if r.smallest == nil || !strings.Contains(r.describeFound(t.Name()), "the run does not end") {
		t.Errorf("%+v", r.smallest)
	}
}
