package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// The examples of this file and of example_from_run_test.go are those of the
// guide for people who come from other graph engines: one capability each. This
// file has graphs, failures, the cache and hooks.

// invoke runs a graph without a store.
func invoke(g *graph.Graph, set ...graph.Write) (graph.Result, error) {
	return (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{Set: set})
}

// A node has names of its own for where it may go.
func Example_namedEnds() {
	log := graph.Append[string]("log")
	g := sound(graph.Def{
		Name: "ends",
		Keys: []graph.AnyKey{log},
		Nodes: []graph.Node{
			{Name: "review", Ends: map[string]string{"approved": "publish", "rejected": graph.End}, Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Update{Goto: []string{"approved"}}, nil
			}},
			aLine("publish", log, "published"),
		},
		Edges: []graph.Edge{anEdge("publish", graph.End)},
		Start: []string{"review"},
	})
	res, err := invoke(g)
	fmt.Println(log.Get(res.State), err)
	// Output: [published] <nil>
}

// A branch may pick several labels: their targets run side by side, with those of
// the node's other edges. A label that has no case is an error.
func Example_severalCases() {
	log, topics := graph.Append[string]("log"), graph.Last[[]string]("topics")
	g := sound(graph.Def{
		Name:  "cases",
		Keys:  []graph.AnyKey{log, topics},
		Nodes: []graph.Node{aNode("classify", doNothing), aLine("bill", log, "bill"), aLine("ship", log, "ship"), aLine("return", log, "return"), aLine("file", log, "file")},
		Edges: []graph.Edge{
			anEdge("classify", "file"),
			{From: []string{"classify"}, Cases: map[string]string{"money": "bill", "parcel": "ship", "regret": "return"},
				Pick: func(s graph.State) ([]string, error) { return topics.Get(s), nil }},
			anEdge("bill", graph.End), anEdge("ship", graph.End), anEdge("return", graph.End), anEdge("file", graph.End),
		},
		Start: []string{"classify"},
	})
	res, err := invoke(g, topics.Set([]string{"regret", "money"}))
	fmt.Println(log.Get(res.State), err)
	_, err = invoke(g, topics.Set([]string{"weather"}))
	fmt.Println(err)
	// Output:
	// [bill return file] <nil>
	// node classify (step 0, attempt 1): branch to "weather"; it may name money, parcel, regret
}

// A join that has fired is armed again: in a loop it waits for all its sources
// in every round.
func Example_joinInALoop() {
	log := graph.Append[string]("log")
	g := sound(graph.Def{
		Name:  "rounds",
		Keys:  []graph.AnyKey{log},
		Nodes: []graph.Node{aLine("a", log, "a"), aNode("b", doNothing), aLine("b2", log, "b2"), aLine("both", log, "both")},
		Edges: []graph.Edge{
			anEdge("b", "b2"),
			{From: []string{"a", "b2"}, To: []string{"both"}},
			{From: []string{"both"}, Cases: map[string]string{"a": "a", "b": "b", "enough": graph.End}, Pick: func(s graph.State) ([]string, error) {
				if len(log.Get(s)) < 6 {
					return []string{"a", "b"}, nil
				}
				return []string{"enough"}, nil
			}},
		},
		Start: []string{"a", "b"},
	})
	res, err := invoke(g)
	fmt.Println(log.Get(res.State), err)
	// Output: [a b2 both a b2 both] <nil>
}

// A join whose source takes another way is an error when nothing else is left to
// run, not an end.
func Example_stuck() {
	g := sound(graph.Def{
		Name: "stuck",
		Nodes: []graph.Node{
			aNode("a", doNothing), aNode("both", doNothing),
			{Name: "b", Routes: []string{graph.End}, Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Update{Goto: []string{graph.End}}, nil // not the join
			}},
		},
		Edges: []graph.Edge{{From: []string{"a", "b"}, To: []string{"both"}}, anEdge("both", graph.End)},
		Start: []string{"a", "b"},
	})
	res, err := invoke(g)
	fmt.Println(res.Status)
	fmt.Println(err)
	// Output:
	// stuck
	// graph stuck: the join before "both" waits for b, which will not run any more (arrived: a)
}

// Fold takes a reducer of your own, which may fail. Reset goes past it.
func Example_reducer() {
	budget := graph.Fold("budget", func(old int, present bool, upd int) (int, error) {
		if present && old+upd < 0 {
			return 0, fmt.Errorf("%d is more than the %d that are left", -upd, old)
		}
		return old + upd, nil
	})
	spend := func(w graph.Write) *graph.Graph {
		return sound(graph.Def{
			Name:  "budget",
			Keys:  []graph.AnyKey{budget},
			Nodes: []graph.Node{aNode("spend", func(context.Context, graph.State) (graph.Update, error) { return graph.Put(w), nil })},
			Edges: []graph.Edge{anEdge("spend", graph.End)},
			Start: []string{"spend"},
		})
	}
	for _, w := range []graph.Write{budget.Set(-3), budget.Set(-30), budget.Reset(0)} {
		res, err := invoke(spend(w), budget.Set(10))
		fmt.Println(res.Status, budget.Get(res.State), err)
	}
	// Output:
	// done 7 <nil>
	// failed 10 node spend (step 0, attempt 1): key "budget": 30 is more than the 10 that are left
	// done 0 <nil>
}

// Merge folds entries, one level deep.
func Example_merge() {
	prices := graph.Merge[string, int]("prices")
	quote := func(name string, price int) graph.Node {
		return aNode(name, func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(prices.Set(map[string]int{name: price})), nil
		})
	}
	g := sound(graph.Def{
		Name:  "quotes",
		Keys:  []graph.AnyKey{prices},
		Nodes: []graph.Node{quote("tea", 3), quote("milk", 1)},
		Edges: []graph.Edge{anEdge("tea", graph.End), anEdge("milk", graph.End)},
		Start: []string{"tea", "milk"},
	})
	res, err := invoke(g, prices.Set(map[string]int{"milk": 2, "salt": 1}))
	fmt.Println(prices.Get(res.State), err)
	// Output: map[milk:1 salt:1 tea:3] <nil>
}

// Two nodes of one step that overwrite one key are an error: there is no last
// writer.
func Example_conflict() {
	color := graph.Last[string]("color")
	paint := func(name string) graph.Node {
		return aNode(name, func(context.Context, graph.State) (graph.Update, error) { return graph.Put(color.Set(name)), nil })
	}
	g := sound(graph.Def{
		Name:  "paint",
		Keys:  []graph.AnyKey{color},
		Nodes: []graph.Node{paint("red"), paint("blue")},
		Edges: []graph.Edge{anEdge("red", graph.End), anEdge("blue", graph.End)},
		Start: []string{"red", "blue"},
	})
	_, err := invoke(g)
	fmt.Println(err)
	// Output: key "color" is overwritten by 2 tasks of one step (red, blue): give it a reducer, or let one node write it
}

// A graph writes the keys it declares. One with Open writes any.
func Example_unknownKeys() {
	def := graph.Def{
		Name: "keys",
		Nodes: []graph.Node{aNode("learn", func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(graph.Dyn("capital").Set("Quito")), nil
		})},
		Edges: []graph.Edge{anEdge("learn", graph.End)},
		Start: []string{"learn"},
	}
	_, err := invoke(sound(def))
	fmt.Println(err)

	def.Open = func(name string) graph.AnyKey { return graph.Dyn(name) }
	res, err := invoke(sound(def))
	capital, _ := res.State.Value("capital")
	fmt.Println(res.State.Keys(), capital, err)
	// Output:
	// node learn (step 0, attempt 1): key "capital" is not declared in the graph; add it to Def.Keys
	// [capital] Quito <nil>
}

// Retry.If says which errors are worth another attempt, Within how long.
func Example_retryCondition() {
	busy := errors.New("busy")
	g := sound(graph.Def{
		Name: "retry",
		Nodes: []graph.Node{{
			Name: "fetch",
			Retry: graph.Retry{Attempts: 5, Delay: time.Millisecond, Jitter: 0.5, Within: time.Minute,
				If: func(err error) bool { return errors.Is(err, busy) }},
			Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if graph.Attempt(ctx) == 1 {
					return graph.Update{}, busy
				}
				return graph.Update{}, fs.ErrNotExist
			},
		}},
		Edges: []graph.Edge{anEdge("fetch", graph.End)},
		Start: []string{"fetch"},
	})
	_, err := invoke(g)
	fmt.Println(err)
	// Output: node fetch (step 0, attempt 2): file does not exist
}

// When one node of a step fails the others finish, and what they did is kept.
// The errors of all can be asked for; a resume runs only those that failed.
func Example_failedSibling() {
	ran, broken := 0, true
	g := sound(graph.Def{
		Name: "siblings",
		Nodes: []graph.Node{
			aNode("good", func(context.Context, graph.State) (graph.Update, error) { ran++; return graph.Update{}, nil }),
			aNode("bad", func(context.Context, graph.State) (graph.Update, error) {
				if broken {
					return graph.Update{}, fmt.Errorf("read the config: %w", fs.ErrNotExist)
				}
				return graph.Update{}, nil
			}),
		},
		Edges: []graph.Edge{anEdge("good", graph.End), anEdge("bad", graph.End)},
		Start: []string{"good", "bad"},
	})
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(context.Background(), graph.Input{Thread: "t1"})
	var failed *graph.NodeError
	fmt.Println(res.Status, errors.Is(err, fs.ErrNotExist), errors.As(err, &failed) && failed.Node == "bad")

	broken = false
	res, err = r.InvokeResume(context.Background(), graph.Resume{Thread: "t1"})
	fmt.Println(res.Status, err, "good ran", ran, "time")
	// Output:
	// failed true true
	// done <nil> good ran 1 time
}

// A panic is a failure of its node, and has a stack.
func Example_panic() {
	g := sound(graph.Def{
		Name:  "panic",
		Nodes: []graph.Node{aNode("careless", func(context.Context, graph.State) (graph.Update, error) { panic("no such thing") })},
		Edges: []graph.Edge{anEdge("careless", graph.End)},
		Start: []string{"careless"},
	})
	res, err := invoke(g)
	var failed *graph.NodeError
	fmt.Println(res.Status, errors.As(err, &failed) && len(failed.Stack) > 0)
	fmt.Println(err)
	// Output:
	// failed true
	// node careless (step 0, attempt 1): panic in node careless: no such thing
}

// An attempt, a step and a run have timeouts of their own.
func Example_timeouts() {
	slow := graph.Node{Name: "slow", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		<-ctx.Done()
		return graph.Update{}, ctx.Err()
	}}
	hasty := slow
	hasty.Timeout = time.Millisecond
	for _, d := range []graph.Def{
		{Name: "attempt", Nodes: []graph.Node{hasty}},
		{Name: "step", Nodes: []graph.Node{slow}, StepTimeout: time.Millisecond},
		{Name: "run", Nodes: []graph.Node{slow}, Timeout: time.Millisecond},
	} {
		d.Edges, d.Start = []graph.Edge{anEdge("slow", graph.End)}, []string{"slow"}
		res, err := invoke(sound(d))
		fmt.Printf("%s: %v %T %v\n", d.Name, res.Status, err, errors.Is(err, graph.ErrTimeout))
	}
	// Output:
	// attempt: failed *graph.StepError true
	// step: failed *graph.StepError true
	// run: timed-out *graph.LimitError false
}

// The step limit has a status and an error that says what would have run.
func Example_stepLimit() {
	g := sound(graph.Def{
		Name:     "pingpong",
		Nodes:    []graph.Node{aNode("ping", doNothing), aNode("pong", doNothing)},
		Edges:    []graph.Edge{anEdge("ping", "pong"), anEdge("pong", "ping")},
		Start:    []string{"ping"},
		MaxSteps: 5,
	})
	res, err := invoke(g)
	var limit *graph.LimitError
	if errors.As(err, &limit) {
		fmt.Println(res.Status, limit.Limit, limit.Frontier)
	}
	// Output: step-limit 5 [pong]
}

// A node with a cache is skipped when it has run with the same input before, in
// any run. Its routing is replayed with its writes.
func Example_nodeCache() {
	city, note, weather := graph.Last[string]("city"), graph.Last[string]("note"), graph.Last[string]("weather")
	g := sound(graph.Def{
		Name: "weather",
		Keys: []graph.AnyKey{city, note, weather},
		Nodes: []graph.Node{{
			Name:  "ask",
			Cache: &graph.CachePolicy{Keys: []graph.AnyKey{city}, Version: "1", TTL: time.Hour},
			Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				fmt.Println("asking about", city.Get(s))
				return graph.Put(weather.Set("rain in " + city.Get(s))), nil
			},
		}},
		Edges: []graph.Edge{anEdge("ask", graph.End)},
		Start: []string{"ask"},
	})
	ctx, cache := context.Background(), &graph.MemoryCache{}
	r := &graph.Runner{Graph: g, Cache: cache}
	run := func(where, why string) {
		res, err := r.Invoke(ctx, graph.Input{Set: []graph.Write{city.Set(where), note.Set(why)}})
		fmt.Println(weather.Get(res.State), err)
	}
	run("Bergen", "first")
	run("Bergen", "the note is not part of the input")
	fmt.Println(cache.Clear(ctx, graph.CacheKey("weather", "ask")))
	run("Bergen", "cleared")
	// Output:
	// asking about Bergen
	// rain in Bergen <nil>
	// rain in Bergen <nil>
	// <nil>
	// asking about Bergen
	// rain in Bergen <nil>
}

// A hook before a node may take its place. Hooks of the graph are around every
// node; hooks do not change the digest, so a run can be resumed with others.
func Example_hookReplaces() {
	reply := graph.Last[string]("reply")
	g := sound(graph.Def{
		Name: "replaced",
		Keys: []graph.AnyKey{reply},
		Nodes: []graph.Node{{Name: "ask", Kind: "llm", Run: func(context.Context, graph.State) (graph.Update, error) {
			fmt.Println("never called")
			return graph.Update{}, nil
		}}},
		Edges: []graph.Edge{anEdge("ask", graph.End)},
		Start: []string{"ask"},
		Hooks: []graph.Hooks{{Before: func(_ context.Context, i graph.Info, _ graph.State) (graph.Setup, error) {
			if i.Kind != "llm" {
				return graph.Setup{}, nil
			}
			canned := graph.Put(reply.Set("a canned reply of " + i.Node))
			return graph.Setup{Result: &canned}, nil
		}}},
	})
	res, err := invoke(g)
	fmt.Println(reply.Get(res.State), err)
	// Output: a canned reply of ask <nil>
}

// A hook after a node sees its error, and may continue with an update instead:
// here failures are collected in a key. Error is called for each failed attempt.
func Example_hookRecovers() {
	problems := graph.Append[string]("problems")
	g := sound(graph.Def{
		Name: "recovered",
		Keys: []graph.AnyKey{problems},
		Nodes: []graph.Node{aNode("fragile", func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{}, errors.New("dropped")
		})},
		Edges: []graph.Edge{anEdge("fragile", graph.End)},
		Start: []string{"fragile"},
		Hooks: []graph.Hooks{{
			After: func(_ context.Context, i graph.Info, _ graph.State, u graph.Update, err error) (graph.Update, error) {
				if err == nil {
					return u, nil
				}
				return graph.Put(problems.Set([]string{i.Node + ": " + err.Error()})), nil
			},
		}},
	})
	res, err := invoke(g)
	fmt.Println(res.Status, problems.Get(res.State), err)
	// Output: done [fragile: dropped] <nil>
}

// A child with Inherit reads the keys of its parent. What it writes is its own
// until Out hands it over; Out may also say where the parent goes.
func Example_inherit() {
	name, greeting := graph.Last[string]("name"), graph.Last[string]("greeting")
	child := sound(graph.Def{
		Name: "greeter",
		Keys: []graph.AnyKey{name, greeting},
		Nodes: []graph.Node{aNode("greet", func(_ context.Context, s graph.State) (graph.Update, error) {
			return graph.Put(greeting.Set("Hello "+name.Get(s)), name.Set("overwritten")), nil
		})},
		Edges: []graph.Edge{anEdge("greet", graph.End)},
		Start: []string{"greet"},
	})
	g := sound(graph.Def{
		Name: "parent",
		Keys: []graph.AnyKey{name, greeting},
		Nodes: []graph.Node{{Name: "greet", Graph: child, Inherit: true, Routes: []string{graph.End}, Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
			return graph.Update{Writes: []graph.Write{greeting.Set(greeting.Get(c.State))}, Goto: []string{graph.End}}, nil
		}}},
		Start: []string{"greet"},
	})
	res, err := invoke(g, name.Set("Ada"))
	fmt.Println(greeting.Get(res.State), "/", name.Get(res.State), err)
	// Output: Hello Ada / Ada <nil>
}

// A child that fails has failed its node, which may have an OnError like any
// other.
func Example_childError() {
	child := sound(graph.Def{
		Name: "child",
		Nodes: []graph.Node{aNode("inner", func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{}, errors.New("broken")
		})},
		Edges: []graph.Edge{anEdge("inner", graph.End)},
		Start: []string{"inner"},
	})
	def := graph.Def{
		Name:  "parent",
		Nodes: []graph.Node{{Name: "outer", Graph: child}},
		Edges: []graph.Edge{anEdge("outer", graph.End)},
		Start: []string{"outer"},
	}
	_, err := invoke(sound(def))
	fmt.Println(err)

	def.Nodes[0].OnError = "plan-b"
	def.Nodes = append(def.Nodes, aNode("plan-b", doNothing))
	def.Edges = append(def.Edges, anEdge("plan-b", graph.End))
	res, err := invoke(sound(def))
	fmt.Println(res.Status, err)
	// Output:
	// node outer (step 0, attempt 1): node outer/inner (step 0, attempt 1): broken
	// done <nil>
}

// A node may do more around its child: Call runs it, in the same journal.
func Example_call() {
	n := graph.Sum[int]("n")
	child := sound(graph.Def{
		Name: "child",
		Keys: []graph.AnyKey{n},
		Nodes: []graph.Node{aNode("add", func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(n.Set(1)), nil
		})},
		Edges: []graph.Edge{anEdge("add", graph.End)},
		Start: []string{"add"},
	})
	g := sound(graph.Def{
		Name: "parent",
		Keys: []graph.AnyKey{n},
		Nodes: []graph.Node{{Name: "call", Graph: child, Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			if n.Get(s) > 100 {
				return graph.Update{}, nil // without it
			}
			c, err := graph.Call(ctx, n.Set(10*n.Get(s)))
			if err != nil {
				return graph.Update{}, err
			}
			return graph.Put(n.Reset(n.Get(c.State))), nil
		}}},
		Edges: []graph.Edge{anEdge("call", graph.End)},
		Start: []string{"call"},
	})
	res, err := invoke(g, n.Set(4))
	fmt.Println(n.Get(res.State), err)
	// Output: 41 <nil>
}

// Branches that should not wait for each other's steps are child graphs: here the
// second step of one is what the first step of the other waits for.
func Example_ownPace() {
	ready := make(chan struct{})
	chain := func(name string, first, second graph.Func) graph.Node {
		return graph.Node{Name: name, Graph: sound(graph.Def{
			Name:  name,
			Nodes: []graph.Node{aNode("first", first), aNode("second", second)},
			Edges: []graph.Edge{anEdge("first", "second"), anEdge("second", graph.End)},
			Start: []string{"first"},
		})}
	}
	tell := func(context.Context, graph.State) (graph.Update, error) { close(ready); return graph.Update{}, nil }
	wait := func(context.Context, graph.State) (graph.Update, error) { <-ready; return graph.Update{}, nil }
	g := sound(graph.Def{
		Name:  "pace",
		Nodes: []graph.Node{chain("a", doNothing, tell), chain("b", wait, doNothing)},
		Edges: []graph.Edge{anEdge("a", graph.End), anEdge("b", graph.End)},
		Start: []string{"a", "b"},
	})
	res, err := invoke(g)
	fmt.Println(res.Status, err)
	// Output: done <nil>
}

// Structure is a graph as data, children included; package draw makes pictures
// of it.
func Example_structure() {
	child := sound(graph.Def{Name: "child", Nodes: []graph.Node{aNode("x", doNothing)}, Edges: []graph.Edge{anEdge("x", graph.End)}, Start: []string{"x"}})
	g := sound(graph.Def{
		Name: "shape",
		Nodes: []graph.Node{
			{Name: "ask", Kind: "llm", Title: "Ask the model", Run: doNothing, Ends: map[string]string{"fine": graph.End}, OnError: "repair"},
			{Name: "repair", Graph: child},
		},
		Edges: []graph.Edge{anEdge("ask", "repair"), anEdge("repair", graph.End)},
		Start: []string{"ask"},
	})
	s := g.Structure()
	for _, n := range s.Nodes {
		fmt.Println(n.Name, n.Kind, n.Title, n.Child != nil)
	}
	for _, e := range s.Edges {
		fmt.Printf("%s: %s -> %s %q\n", e.Kind, e.From, e.To, e.Label)
	}
	b, err := json.Marshal(s.Nodes[1])
	fmt.Println(string(b), err)
	// Output:
	// ask llm Ask the model false
	// repair   true
	// edge: ask -> repair ""
	// route: ask -> END "fine"
	// error: ask -> repair ""
	// edge: repair -> END ""
	// {"name":"repair","child":{"name":"child","start":["x"],"nodes":[{"name":"x"}],"edges":[{"from":"x","to":"END","kind":"edge"}]}} <nil>
}

// A compiled graph is immutable: any number of runs may use it at once.
func Example_reuse() {
	n := graph.Sum[int]("n")
	def := graph.Def{
		Name: "count",
		Keys: []graph.AnyKey{n},
		Nodes: []graph.Node{aNode("add", func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(n.Set(1)), nil
		})},
		Edges: []graph.Edge{anEdge("add", graph.End)},
		Start: []string{"add"},
	}
	r := &graph.Runner{Graph: sound(def), Store: journal.NewMemory()}
	def.Start[0] = "changed too late"
	counts := make(chan int)
	for range 100 {
		go func() {
			res, _ := r.Invoke(context.Background(), graph.Input{})
			counts <- n.Get(res.State)
		}()
	}
	wrong := 0
	for range 100 {
		if <-counts != 1 {
			wrong++
		}
	}
	fmt.Println(wrong, "wrong")
	// Output: 0 wrong
}

var story = graph.Append[string]("story")

// newspaper is a graph in which a draft is written, reviewed and printed.
func newspaper() *graph.Graph {
	line := func(node, text string) graph.Node {
		return graph.Node{Name: node, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			if node == "review" {
				return graph.Put(story.Set([]string{"reviewed: " + story.Get(s)[0]})), nil
			}
			return graph.Put(story.Set([]string{text})), nil
		}}
	}
	g, err := graph.Compile(graph.Def{
		Name: "newspaper", Keys: []graph.AnyKey{story}, Start: []string{"write"},
		Nodes: []graph.Node{line("write", "a draft"), line("review", ""), line("print", "printed")},
		Edges: []graph.Edge{graph.NewEdge("write", "review"), graph.NewEdge("review", "print"), graph.NewEdge("print", graph.End)},
	})
	if err != nil {
		panic(err)
	}
	return g
}

// A guide may name examples of these packages: those of graph by their names,
// those of the others as in draw.ExampleWriteMermaid.
var guideExamples = map[string]string{"": ".", "graphtest": "graphtest", "history": "history", "journal": "journal", "draw": "../draw", "agent": "../agent", "shape": "../agent/shape", "team": "../team", "rag": "../rag", "sqlite": "../store/sqlite", "memory": "../memory"}

// namedExample finds the examples in a guide's text.
var namedExample = regexp.MustCompile("`(?:([a-z]+)[.])?(Example[A-Za-z0-9_]*)`")

func TestTheGuideNamesExamplesThatExist(t *testing.T) {
	text, err := os.ReadFile("../docs/guide/coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for pkg, dir := range guideExamples {
		for _, name := range examples(t, dir) {
			known[pkg+"."+name] = true
		}
	}
	named := map[string]bool{}
	for _, m := range namedExample.FindAllStringSubmatch(string(text), -1) {
		name := m[1] + "." + m[2]
		if named[name] = true; !known[name] {
			t.Errorf("the guide names %s, which no test file has", strings.TrimPrefix(name, "."))
		}
	}
	if len(named) == 0 {
		t.Error("the guide names no example")
	}
	for _, f := range []string{"example_from_test.go", "example_from_run_test.go"} {
		for _, name := range examplesOf(t, f) {
			if !named["."+name] {
				t.Errorf("%s is an example for the guide, which does not name it", name)
			}
		}
	}
}

// The tables of the guide have an example, or a reason, in every row.
func TestTheGuideLeavesNoCellEmpty(t *testing.T) {
	text, err := os.ReadFile("../docs/guide/coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("line %d has an empty cell: %s", i+1, line)
			}
		}
	}
}

// examples lists the examples of the test files in a directory that the
// compiler checks: those with an output are run.
func examples(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no test files: %v", dir, err)
	}
	for _, f := range files {
		names = append(names, examplesOf(t, f)...)
	}
	return names
}

func examplesOf(t *testing.T, file string) (names []string) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Example") {
			names = append(names, f.Name.Name)
		}
	}
	return names
}
