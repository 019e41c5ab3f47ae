package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
)

// The examples are a course: each of them adds one idea to those before it.

// aNode makes a node of a name and a function.
func aNode(name string, run graph.Func) graph.Node { return graph.Node{Name: name, Run: run} }

// anEdge makes an edge.
func anEdge(from string, targets ...string) graph.Edge {
	return graph.Edge{From: []string{from}, To: targets}
}

// aLine makes a node that only adds a line to a key.
func aLine(name string, key graph.Key[[]string], line string) graph.Node {
	return aNode(name, func(context.Context, graph.State) (graph.Update, error) {
		return graph.Put(key.Set([]string{line})), nil
	})
}

// sound compiles a definition that is known to be sound.
func sound(d graph.Def) *graph.Graph {
	g, err := graph.Compile(d)
	if err != nil {
		panic(err)
	}
	return g
}

// A key names a value of the state, a node reads the state and returns what to
// write, an edge says what comes next.
func Example() {
	name := graph.Last[string]("name")
	greeting := graph.Last[string]("greeting")

	g, err := graph.Compile(graph.Def{
		Name: "hello",
		Keys: []graph.AnyKey{name, greeting},
		Nodes: []graph.Node{{Name: "greet", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			return graph.Put(greeting.Set("Hello " + name.Get(s))), nil
		}}},
		Edges: []graph.Edge{{From: []string{"greet"}, To: []string{graph.End}}},
		Start: []string{"greet"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &graph.Runner{Graph: g}
	res, err := r.Invoke(context.Background(), graph.Input{Set: []graph.Write{name.Set("Ada")}})
	fmt.Println(res.Status, greeting.Get(res.State), err)
	// Output: done Hello Ada <nil>
}

// Compile reports everything that is wrong with a definition at once.
func ExampleCompile() {
	_, err := graph.Compile(graph.Def{
		Name:  "wrong",
		Nodes: []graph.Node{{Name: "a"}, aNode("b", doNothing)},
		Edges: []graph.Edge{anEdge("a", "nowhere")},
		Start: []string{"a"},
	})
	fmt.Println(err)
	// Output:
	// graph wrong: node "a" has neither Run nor Graph
	// graph wrong: an edge from "a" names node "nowhere", which is not declared
	// graph wrong: node "a" leads nowhere: give it an edge (to END, if it ends a path) or Routes
	// graph wrong: node "b" leads nowhere: give it an edge (to END, if it ends a path) or Routes
}

func doNothing(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }

// Nodes behind several targets of one edge run at the same time. They see the
// state before the step; their writes meet in the reducers of the keys, in the
// order of the nodes' declaration.
func ExampleAppend() {
	log, count, best := graph.Append[string]("log"), graph.Sum[int]("count"), graph.Max[int]("best")
	work := func(name string, points int) graph.Node {
		return aNode(name, func(_ context.Context, s graph.State) (graph.Update, error) {
			return graph.Put(log.Set([]string{name}), count.Set(1), best.Set(points)), nil
		})
	}
	g := sound(graph.Def{
		Name:  "reducers",
		Keys:  []graph.AnyKey{log, count, best},
		Nodes: []graph.Node{work("a", 1), work("b", 7), work("c", 3)},
		Edges: []graph.Edge{anEdge("a", "b", "c"), anEdge("b", graph.End), anEdge("c", graph.End)},
		Start: []string{"a"},
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{})
	fmt.Println(log.Get(res.State), count.Get(res.State), best.Get(res.State), err)
	// Output: [a b c] 3 7 <nil>
}

// An edge with Pick is a branch: it is asked after the step for the labels to
// follow. A branch that leads back is a loop.
func ExampleEdge() {
	draft := graph.Last[string]("draft")
	g := sound(graph.Def{
		Name: "loop",
		Keys: []graph.AnyKey{draft},
		Nodes: []graph.Node{aNode("write", func(ctx context.Context, s graph.State) (graph.Update, error) {
			fmt.Println("visit", graph.Visit(ctx))
			return graph.Put(draft.Set(draft.Get(s) + "x")), nil
		})},
		Edges: []graph.Edge{{
			From: []string{"write"},
			Pick: func(s graph.State) ([]string, error) {
				if len(draft.Get(s)) < 3 {
					return []string{"short"}, nil
				}
				return []string{"long enough"}, nil
			},
			Cases: map[string]string{"short": "write", "long enough": graph.End},
		}},
		Start:     []string{"write"},
		MaxVisits: 10,
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{})
	fmt.Println(draft.Get(res.State), err)
	// Output:
	// visit 1
	// visit 2
	// visit 3
	// xxx <nil>
}

// An edge with several sources is a join: it waits for all of them, however many
// steps each takes.
func ExampleEdge_join() {
	log := graph.Append[string]("log")
	g := sound(graph.Def{
		Name:  "join",
		Keys:  []graph.AnyKey{log},
		Nodes: []graph.Node{aLine("quick", log, "quick"), aLine("slow", log, "slow"), aLine("slower", log, "slower"), aLine("both", log, "both")},
		Edges: []graph.Edge{anEdge("slow", "slower"), {From: []string{"quick", "slower"}, To: []string{"both"}}, anEdge("both", graph.End)},
		Start: []string{"quick", "slow"},
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{})
	fmt.Println(log.Get(res.State), err)
	// Output: [quick slow slower both] <nil>
}

// A node may name its next node itself. Routes lists the candidates, so that
// Compile still sees every way through the graph.
func ExampleUpdate() {
	log := graph.Append[string]("log")
	g := sound(graph.Def{
		Name: "goto",
		Keys: []graph.AnyKey{log},
		Nodes: []graph.Node{
			{Name: "triage", Routes: []string{"page", "file"}, Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Update{Writes: []graph.Write{log.Set([]string{"triage"})}, Goto: []string{"page"}}, nil
			}},
			aLine("page", log, "page"), aLine("file", log, "file"),
		},
		Edges: []graph.Edge{anEdge("page", graph.End), anEdge("file", graph.End)},
		Start: []string{"triage"},
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{})
	fmt.Println(log.Get(res.State), err)
	// Output: [triage page] <nil>
}

// Send starts one task of a node for each item. Each task sees its own overlay;
// what they write arrives in the order of the items.
func ExampleSend() {
	items, item := graph.Last[[]string]("items"), graph.Last[string]("item")
	results := graph.Append[string]("results")
	g := sound(graph.Def{
		Name: "map",
		Keys: []graph.AnyKey{items, item, results},
		Nodes: []graph.Node{
			{Name: "split", Routes: []string{"work"}, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				var u graph.Update
				for _, i := range items.Get(s) {
					u.Send = append(u.Send, graph.Send{To: "work", Overlay: []graph.Write{item.Set(i)}})
				}
				return u, nil
			}},
			aNode("work", func(_ context.Context, s graph.State) (graph.Update, error) {
				return graph.Put(results.Set([]string{strings.ToUpper(item.Get(s))})), nil
			}),
		},
		Edges:       []graph.Edge{anEdge("work", graph.End)},
		Start:       []string{"split"},
		Concurrency: 2,
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{Set: []graph.Write{items.Set([]string{"a", "b", "c"})}})
	_, left := item.Lookup(res.State)
	fmt.Println(results.Get(res.State), left, err)
	// Output: [A B C] false <nil>
}

// Nodes that have no policy of their own are tried again as the Runner says.
func ExampleRunner_retry() {
	g := sound(graph.Def{
		Name: "default",
		Nodes: []graph.Node{
			aNode("fetch", func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if graph.Attempt(ctx) == 1 {
					return graph.Update{}, errors.New("the line is busy")
				}
				return graph.Update{}, nil
			}),
			{Name: "pay", Retry: graph.Retry{Attempts: 1}, Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Update{}, errors.New("refused")
			}},
		},
		Edges: []graph.Edge{anEdge("fetch", "pay"), anEdge("pay", graph.End)},
		Start: []string{"fetch"},
	})
	r := &graph.Runner{Graph: g, Retry: graph.Retry{Attempts: 3}}
	for ev, err := range r.Run(context.Background(), graph.Input{Topics: graph.TopicTask}) {
		if err != nil {
			fmt.Println(err)
			break
		}
		if b, ok := ev.Body.(graph.TaskRetry); ok {
			fmt.Printf("%s: attempt %d of %d failed\n", ev.Node, b.Attempt, b.MaxAttempts)
		}
	}
	// Output:
	// fetch: attempt 1 of 3 failed
	// node pay (step 1, attempt 1): refused
}

// A node that fails is tried again. What has succeeded inside Do is not repeated.
func ExampleRetry() {
	done := graph.Last[string]("done")
	g := sound(graph.Def{
		Name: "retry",
		Keys: []graph.AnyKey{done},
		Nodes: []graph.Node{{
			Name:  "send",
			Retry: graph.Retry{Attempts: 3, Delay: time.Second},
			Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
				text, err := graph.Do(ctx, "write", func(context.Context) (string, error) {
					fmt.Println("writing")
					return "the text", nil
				})
				if err != nil {
					return graph.Update{}, err
				}
				if fmt.Println("attempt", graph.Attempt(ctx)); graph.Attempt(ctx) < 3 {
					return graph.Update{}, errors.New("the line is busy")
				}
				return graph.Put(done.Set(text)), nil
			},
		}},
		Edges: []graph.Edge{anEdge("send", graph.End)},
		Start: []string{"send"},
	})
	clock := &graphtest.Clock{} // no waiting in an example
	res, err := (&graph.Runner{Graph: g, Clock: clock}).Invoke(context.Background(), graph.Input{})
	fmt.Println(done.Get(res.State), err)
	// Output:
	// writing
	// attempt 1
	// attempt 2
	// attempt 3
	// the text <nil>
}

// The process dies, here by a store that fails after two records. Another Runner
// resumes the run from what was stored, and asks nothing twice.
func ExampleDo() {
	answer := graph.Last[string]("answer")
	ask := func(ctx context.Context, s graph.State) (graph.Update, error) {
		a, err := graph.Do(ctx, "model", func(context.Context) (string, error) {
			fmt.Println("asking the model")
			return "42", nil
		})
		return graph.Put(answer.Set(a)), err
	}
	g := sound(graph.Def{
		Name:  "effects",
		Keys:  []graph.AnyKey{answer},
		Nodes: []graph.Node{aNode("first", ask), aNode("second", doNothing)},
		Edges: []graph.Edge{anEdge("first", "second"), anEdge("second", graph.End)},
		Start: []string{"first"},
	})
	ctx, store := context.Background(), graph.NewMemory()
	dying := &graphtest.Crash{Store: store, Limit: 2} // the start, and the effect

	_, err := (&graph.Runner{Graph: g, Store: dying}).Invoke(ctx, graph.Input{Thread: "t1"})
	fmt.Println("crashed:", errors.Is(err, graphtest.ErrCrash))

	res, err := (&graph.Runner{Graph: g, Store: store}).InvokeResume(ctx, graph.Resume{Thread: "t1"})
	fmt.Println(res.Status, answer.Get(res.State), err)
	// Output:
	// asking the model
	// crashed: true
	// done 42 <nil>
}

// A node asks with Interrupt. The run waits in the store until a process resumes
// it with an answer; the process may end meanwhile.
func ExampleInterrupt() {
	sent := graph.Last[bool]("sent")
	g := sound(graph.Def{
		Name: "ask",
		Keys: []graph.AnyKey{sent},
		Nodes: []graph.Node{aNode("review", func(ctx context.Context, s graph.State) (graph.Update, error) {
			text, err := graph.Do(ctx, "draft", func(context.Context) (string, error) {
				fmt.Println("drafting")
				return "Dear all", nil
			})
			if err != nil {
				return graph.Update{}, err
			}
			ok, err := graph.Interrupt[bool](ctx, graph.Ask{Kind: "confirm", Prompt: "Send " + text + "?"})
			if err != nil {
				return graph.Update{}, err // ErrWaiting, until there is an answer
			}
			return graph.Put(sent.Set(ok)), nil
		})},
		Edges: []graph.Edge{anEdge("review", graph.End)},
		Start: []string{"review"},
	})
	ctx := context.Background()
	r := &graph.Runner{Graph: g, Store: graph.NewMemory()}

	res, err := r.Invoke(ctx, graph.Input{Thread: "t1"})
	fmt.Println(res.Status, err)
	for _, q := range res.Questions {
		fmt.Println(q.ID, q.Type, q.Prompt)
	}
	_, err = r.InvokeResume(ctx, graph.Resume{Thread: "t1", Answers: []graph.Answer{{ID: "reveiw", Value: true}}})
	fmt.Println(err)
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t1", Answers: []graph.Answer{{ID: "review", Value: true}}})
	fmt.Println(res.Status, sent.Get(res.State), err)
	// Output:
	// drafting
	// waiting <nil>
	// review boolean Send Dear all?
	// answer to "reveiw": no such question is open; open questions: review
	// done true <nil>
}

// A graph may be a node of another one. In and Out carry values across; its
// steps, effects and questions are in the journal of the parent's run.
func ExampleNode() {
	word, shout := graph.Last[string]("word"), graph.Last[string]("shout")
	child := sound(graph.Def{
		Name: "shouting",
		Keys: []graph.AnyKey{word},
		Nodes: []graph.Node{aNode("upper", func(_ context.Context, s graph.State) (graph.Update, error) {
			return graph.Put(word.Set(strings.ToUpper(word.Get(s)))), nil
		})},
		Edges: []graph.Edge{anEdge("upper", graph.End)},
		Start: []string{"upper"},
	})
	g := sound(graph.Def{
		Name: "parent",
		Keys: []graph.AnyKey{shout},
		Nodes: []graph.Node{{
			Name: "shout", Graph: child,
			In: func(s graph.State) ([]graph.Write, error) { return []graph.Write{word.Set(shout.Get(s))}, nil },
			Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
				return graph.Put(shout.Set(word.Get(c.State) + "!")), nil
			},
		}},
		Edges: []graph.Edge{anEdge("shout", graph.End)},
		Start: []string{"shout"},
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{Set: []graph.Write{shout.Set("hey")}})
	fmt.Println(shout.Get(res.State), err)
	// Output: HEY! <nil>
}

// Run yields what happens. Only the topics that were asked for are built; the end
// is always told.
func ExampleRunner_Run() {
	g := sound(graph.Def{
		Name: "events",
		Nodes: []graph.Node{aNode("speak", func(ctx context.Context, _ graph.State) (graph.Update, error) {
			graph.Emit(ctx, "a word")
			return graph.Update{}, nil
		})},
		Edges: []graph.Edge{anEdge("speak", graph.End)},
		Start: []string{"speak"},
	})
	r := &graph.Runner{Graph: g}
	for ev, err := range r.Run(context.Background(), graph.Input{Topics: graph.TopicRun | graph.TopicStep | graph.TopicEmit}) {
		if err != nil {
			fmt.Println(err) // always the last
			break
		}
		switch b := ev.Body.(type) {
		case graph.RunStarted:
			fmt.Println("started", b.Graph)
		case graph.ValueEmitted:
			fmt.Println(ev.Node, "says", b.Value)
		case graph.StepCommitted:
			fmt.Println("step", ev.Step, "ran", b.Nodes)
		case graph.RunEnded:
			fmt.Println("ended", b.Result.Status)
		}
	}
	// Output:
	// started events
	// speak says a word
	// step 0 ran [speak]
	// ended done
}

// A node that takes too long has failed. OnError names the node that runs then,
// and Cause tells it why.
func ExampleCause() {
	g := sound(graph.Def{
		Name: "timeout",
		Nodes: []graph.Node{
			{Name: "slow", Timeout: time.Millisecond, OnError: "sorry", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				<-ctx.Done() // a call that is given ctx returns when the time is over
				return graph.Update{}, ctx.Err()
			}},
			aNode("sorry", func(ctx context.Context, _ graph.State) (graph.Update, error) {
				fmt.Println("because:", graph.Cause(ctx))
				return graph.Update{}, nil
			}),
		},
		Edges: []graph.Edge{anEdge("slow", graph.End), anEdge("sorry", graph.End)},
		Start: []string{"slow"},
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{})
	fmt.Println(res.Status, err)
	// Output:
	// because: node slow (step 0, attempt 1): timed out after 1ms: context deadline exceeded
	// done <nil>
}

// Every way to end has a status and a type of error.
func ExampleLimitError() {
	g := sound(graph.Def{
		Name:      "endless",
		Nodes:     []graph.Node{aNode("again", doNothing)},
		Edges:     []graph.Edge{anEdge("again", "again")},
		Start:     []string{"again"},
		MaxVisits: 3,
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{})
	var limit *graph.LimitError
	if errors.As(err, &limit) {
		fmt.Println(res.Status, limit.Node, limit.Limit)
	}
	// Output: visit-limit again 3
}

// Halt ends the run at once, with a value; a plain end only ends its path.
func ExampleHalt() {
	g := sound(graph.Def{
		Name: "halt",
		Nodes: []graph.Node{
			{Name: "decide", Routes: []string{graph.End}, Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Update{Halt: &graph.Halt{Value: "enough"}}, nil
			}},
			aNode("other", doNothing),
		},
		Edges: []graph.Edge{anEdge("other", graph.End)},
		Start: []string{"decide", "other"},
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{})
	fmt.Println(res.Status, res.Value, err)
	// Output: done enough <nil>
}

// A journal can be read without the graph that wrote it.
func ExampleInspect() {
	n := graph.Sum[int]("n")
	g := sound(graph.Def{
		Name: "count",
		Keys: []graph.AnyKey{n},
		Nodes: []graph.Node{aNode("add", func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(n.Set(2)), nil
		})},
		Edges: []graph.Edge{anEdge("add", graph.End)},
		Start: []string{"add"},
	})
	ctx, store := context.Background(), graph.NewMemory()
	r := &graph.Runner{Graph: g, Store: store}
	for range 2 { // a finished thread may be continued by another run, on its state
		if _, err := r.Invoke(ctx, graph.Input{Thread: "t1"}); err != nil {
			fmt.Println(err)
		}
	}
	snap, err := graph.Inspect(ctx, store, "t1", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %s = %s\n", snap.Status, snap.Values[0].Key, snap.Values[0].Parts[0])
	for e, err := range graph.History(ctx, store, "t1") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.Seq, e.Kind, e.Next)
	}
	// Output:
	// done: n = 4
	// 6 end []
	// 5 step []
	// 4 start [add]
	// 3 end []
	// 2 step []
	// 1 start [add]
}
