package graph_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
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

// Concat adds each write as a line, and Min keeps the least value. The first write to a key
// is kept as it is.
func ExampleConcat() {
	log, cheapest := graph.Concat("log"), graph.Min[int]("cheapest")
	offer := func(name string, price int) graph.Node {
		return aNode(name, func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(log.Set(fmt.Sprintf("%s: %d", name, price)), cheapest.Set(price)), nil
		})
	}
	g := sound(graph.Def{
		Name:  "offers",
		Keys:  []graph.AnyKey{log, cheapest},
		Nodes: []graph.Node{offer("a", 7), offer("b", 5), offer("c", 9)},
		Edges: []graph.Edge{anEdge("a", "b"), anEdge("b", "c"), anEdge("c", graph.End)},
		Start: []string{"a"},
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{})
	fmt.Println(log.Get(res.State))
	fmt.Println(cheapest.Get(res.State), err)
	// Output:
	// a: 7
	// b: 5
	// c: 9
	// 5 <nil>
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
	ctx, store := context.Background(), journal.NewMemory()
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
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}

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

// A node is a function: a test calls it with a state of writes, and reads what it
// writes.
func ExampleNewState() {
	words, longest := graph.Append[string]("words"), graph.Last[string]("longest")
	node := func(_ context.Context, s graph.State) (graph.Update, error) {
		best := ""
		for _, w := range words.Get(s) {
			if len(w) > len(best) {
				best = w
			}
		}
		return graph.Put(longest.Set(best)), nil
	}

	s, err := graph.NewState(words.Set([]string{"warp", "weft", "heddle"}))
	if err != nil {
		log.Fatal(err)
	}
	u, err := node(context.Background(), s)
	if err != nil {
		log.Fatal(err)
	}
	v, ok := longest.WrittenValue(u.Writes[0])
	fmt.Println(v, ok, len(u.Goto))
	// Output:
	// heddle true 0
}

// With Debug a run finds the node that modifies what it has read: here it sorts a
// list in place, which a concurrent node may read at the same time.
func Example_debug() {
	words := graph.Append[string]("words")
	g, err := graph.Compile(graph.Def{
		Name: "sort", Keys: []graph.AnyKey{words}, Start: []string{"upper"},
		Nodes: []graph.Node{{Name: "upper", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			list := words.Get(s) // slices.Clone(words.Get(s)) would be right
			list[0] = strings.ToUpper(list[0])
			return graph.Put(words.Reset(list)), nil
		}}},
		Edges: []graph.Edge{graph.NewEdge("upper", graph.End)},
	})
	if err != nil {
		log.Fatal(err)
	}
	in := graph.Input{Set: []graph.Write{words.Set([]string{"warp", "weft"})}}
	_, err = (&graph.Runner{Graph: g, Debug: true}).Invoke(context.Background(), in)
	var m *graph.ModifiedError
	fmt.Println(errors.As(err, &m), m.Keys)
	// Output:
	// true [words]
}

// What could be written and not read again is refused before anything runs.
func ExampleJSONCodec() {
	type note struct {
		Text  string
		Extra any
	}
	compile := func(k graph.AnyKey) error {
		_, err := graph.Compile(graph.Def{
			Name: "notes", Keys: []graph.AnyKey{k}, Start: []string{"n"},
			Nodes: []graph.Node{{Name: "n", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }}},
			Edges: []graph.Edge{graph.NewEdge("n", graph.End)},
		})
		return err
	}
	notes := graph.Append[note]("notes")
	var fault *graph.TypeError
	if errors.As(compile(notes), &fault) {
		fmt.Println(fault.Path, fault.Reason)
	}
	fmt.Println(compile(notes.WithCodec(graph.JSONCodec[[]note]())))
	// Output:
	// note.Extra is any: JSON would bring it back as another type (an int64 as a float64)
	// <nil>
}

// A Before hook hands a context to the node and its children, and gets how the
// attempt ended: that is what the span of a trace needs.
func ExampleSetup() {
	type span struct{}
	trace := graph.Hooks{Before: func(ctx context.Context, i graph.Info, _ graph.State) (graph.Setup, error) {
		above, _ := ctx.Value(span{}).(string)
		here := above + "/" + i.Node
		fmt.Println("begin", here)
		return graph.Setup{
			Context: context.WithValue(ctx, span{}, here),
			End:     func(err error) { fmt.Println("end", here, err) },
		}, nil
	}}
	idle := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	inner, err := graph.Compile(graph.Def{
		Name: "inner", Start: []string{"draft"}, Hooks: []graph.Hooks{trace},
		Nodes: []graph.Node{{Name: "draft", Run: idle}}, Edges: []graph.Edge{graph.NewEdge("draft", graph.End)},
	})
	if err != nil {
		log.Fatal(err)
	}
	g, err := graph.Compile(graph.Def{
		Name: "outer", Start: []string{"write"}, Hooks: []graph.Hooks{trace},
		Nodes: []graph.Node{{Name: "write", Graph: inner}}, Edges: []graph.Edge{graph.NewEdge("write", graph.End)},
	})
	if err != nil {
		log.Fatal(err)
	}
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{})
	fmt.Println(res.Status, err)
	// Output:
	// begin /write
	// begin /write/draft
	// end /write/draft <nil>
	// end /write <nil>
	// done <nil>
}

// A second drive of a thread learns which process drives it, and can wait or take over.
func ExampleBusyError() {
	ctx := context.Background()
	begun, goOn := make(chan bool), make(chan bool)
	g, err := graph.Compile(graph.Def{Name: "slow", Start: []string{"work"}, Edges: []graph.Edge{anEdge("work", graph.End)},
		Nodes: []graph.Node{{Name: "work", Run: func(context.Context, graph.State) (graph.Update, error) {
			begun <- true
			<-goOn
			return graph.Update{}, nil
		}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	done := make(chan graph.Result)
	go func() {
		res, _ := r.Invoke(ctx, graph.Input{Thread: "t1"})
		done <- res
	}()
	<-begun
	_, err = r.InvokeResume(ctx, graph.Resume{Thread: "t1"})
	var busy *graph.BusyError
	if errors.As(err, &busy) {
		fmt.Println(busy.Status, busy.Lease.IsLive(), time.Until(busy.Lease.Until) < 15*time.Second)
	}
	goOn <- true
	fmt.Println((<-done).Status)
	// Output:
	// running true true
	// done
}

// The run continues without a node that does not look at its context.
func ExampleHungError() {
	g, err := graph.Compile(graph.Def{Name: "deaf", Start: []string{"call"}, Edges: []graph.Edge{anEdge("call", graph.End)},
		Nodes: []graph.Node{{Name: "call", Timeout: time.Millisecond, Run: func(context.Context, graph.State) (graph.Update, error) {
			select {} // a library that blocks
		}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &graph.Runner{Graph: g, HungAfter: 10 * time.Millisecond}
	res, err := r.Invoke(context.Background(), graph.Input{})
	var hung *graph.HungError
	fmt.Println(res.Status, errors.As(err, &hung), errors.Is(err, graph.ErrTimeout), res.Hung)
	// Output: failed true true [call]
}

// Two children of one task work at the same time, and both ask. The run waits with
// both questions; each child gets its own answer.
func ExampleCallChild() {
	told := graph.Last[string]("told")
	news := graph.Append[string]("news")
	reporter, err := graph.Compile(graph.Def{Name: "reporter", Keys: []graph.AnyKey{told}, Start: []string{"ask"},
		Nodes: []graph.Node{{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			answer, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "What is new?"})
			return graph.Put(told.Set(answer)), err
		}}},
		Edges: []graph.Edge{{From: []string{"ask"}, To: []string{graph.End}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	team := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		names := []string{"alice", "bob"}
		said, errs := make([]string, len(names)), make([]error, len(names))
		var wg sync.WaitGroup
		for i, name := range names {
			wg.Go(func() {
				var child graph.Child
				if child, errs[i] = graph.CallChild(ctx, name, "reporter"); errs[i] == nil {
					said[i] = name + ": " + told.Get(child.State)
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return graph.Update{}, err
		}
		return graph.Put(news.Set(said)), nil
	}
	g, err := graph.Compile(graph.Def{Name: "paper", Keys: []graph.AnyKey{news}, Start: []string{"team"},
		Nodes: []graph.Node{{Name: "team", Run: team, Children: map[string]graph.ChildGraph{"reporter": {Graph: reporter}}}},
		Edges: []graph.Edge{{From: []string{"team"}, To: []string{graph.End}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, r := context.Background(), &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, _ := r.Invoke(ctx, graph.Input{Thread: "t"})
	for _, q := range res.Questions {
		fmt.Println(q.ID, q.Prompt)
	}
	res, _ = r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: "team/bob/ask", Value: "rain"}}})
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: "team/alice/ask", Value: "sun"}}})
	fmt.Println(res.Status, news.Get(res.State), err)
	// Output:
	// team/alice/ask What is new?
	// team/bob/ask What is new?
	// done [alice: sun bob: rain] <nil>
}

// The examples below steer a run from outside: by what one drive of it is
// given, and by an edit between two drives.

// Set folds writes into the state when a run continues: new input, or a correction.
// What is recorded stays as it is.
func ExampleResume() {
	ctx := context.Background()
	r := &graph.Runner{Graph: newspaper(), Store: journal.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "monday", Break: []graph.Break{{Node: "review"}}})
	fmt.Println(res.Status, story.Get(res.State), err)
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "monday", Set: []graph.Write{story.Reset([]string{"another draft"})}})
	fmt.Println(res.Status, story.Get(res.State), err)
	// Output:
	// paused [a draft] <nil>
	// done [another draft reviewed: another draft printed] <nil>
}

// Breaks hold for one drive, and need nothing in the graph. The next drive continues
// from there, with breaks of its own or none.
func ExampleBreak() {
	ctx := context.Background()
	r := &graph.Runner{Graph: newspaper(), Store: journal.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "monday", Break: []graph.Break{{Node: "review"}, {Node: "print"}}})
	fmt.Println(res.Status, res.Breaks, err)
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "monday", Break: []graph.Break{{Node: "review", After: true}}})
	fmt.Println(res.Status, res.Breaks, err)
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "monday"})
	fmt.Println(res.Status, res.Breaks, err)
	// Output:
	// paused [{review false}] <nil>
	// paused [{review true}] <nil>
	// done [] <nil>
}

// A pause lets the current step finish. Grace bounds that: when it has passed
// the tasks are cancelled, and run again on resume.
func Example_pauseWithGrace() {
	ctx, pause := context.Background(), make(chan struct{})
	slow := true
	g := sound(graph.Def{
		Name: "slow", Keys: []graph.AnyKey{story}, Start: []string{"write"},
		Nodes: []graph.Node{{Name: "write", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			if slow {
				close(pause)
				<-ctx.Done() // longer than a person waits
				return graph.Update{}, ctx.Err()
			}
			return graph.Put(story.Set([]string{"a draft"})), nil
		}}},
		Edges: []graph.Edge{anEdge("write", graph.End)},
	})
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "t1", Pause: pause, Grace: time.Millisecond})
	fmt.Println(res.Status, story.Get(res.State), err)
	slow = false
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t1"})
	fmt.Println(res.Status, story.Get(res.State), err)
	// Output:
	// paused [] <nil>
	// done [a draft] <nil>
}

// EditNext changes the state between two drives and says which nodes run next.
func ExampleRunner_EditNext() {
	ctx := context.Background()
	r := &graph.Runner{Graph: newspaper(), Store: journal.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "monday", Break: []graph.Break{{Node: "review"}}})
	fmt.Println(res.Status, err)
	if _, err := r.EditNext(ctx, "monday", []string{"print"}, story.Set([]string{"reviewed by hand"})); err != nil {
		fmt.Println(err)
		return
	}
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "monday"})
	fmt.Println(res.Status, story.Get(res.State), err)
	// Output:
	// paused <nil>
	// done [a draft reviewed by hand printed] <nil>
}

// Each committed step has its record: a reader can fork there while the run continues.
func ExampleStepCommitted() {
	ctx, st := context.Background(), journal.NewMemory()
	r := &graph.Runner{Graph: newspaper(), Store: st}
	for ev, err := range r.Run(ctx, graph.Input{Thread: "monday", Topics: graph.TopicStep}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if b, ok := ev.Body.(graph.StepCommitted); ok && b.Nodes[0] == "write" {
			if err := history.Fork(ctx, st, "monday", b.Seq, "another"); err != nil {
				fmt.Println(err)
			}
		}
	}
	res, err := r.InvokeResume(ctx, graph.Resume{Thread: "another", Set: []graph.Write{story.Reset([]string{"its own draft"})}})
	fmt.Println(res.Status, story.Get(res.State), err)
	// Output:
	// done [its own draft reviewed: its own draft printed] <nil>
}

// First writes to a thread when it begins, before what the caller sets; to a child
// when its node calls it. A later run of the thread finds what is there.
func ExampleDef_first() {
	ctx := context.Background()
	g := sound(graph.Def{
		Name: "first", Keys: []graph.AnyKey{story}, Start: []string{"write"},
		First: []graph.Write{story.Set([]string{"once upon a time"})},
		Nodes: []graph.Node{aLine("write", story, "there was a graph")},
		Edges: []graph.Edge{anEdge("write", graph.End)},
	})
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	for range 2 {
		res, err := r.Invoke(ctx, graph.Input{Thread: "tale"})
		fmt.Printf("%q %v\n", story.Get(res.State), err)
	}
	// Output:
	// ["once upon a time" "there was a graph"] <nil>
	// ["once upon a time" "there was a graph" "there was a graph"] <nil>
}

// The way through the package's documentation: write a graph, run it, pause and
// resume it, go back and try something else.
func Example_tour() {
	ctx, name := context.Background(), graph.Last[string]("name")
	g, err := graph.Compile(graph.Def{
		Name: "hello",
		Keys: []graph.AnyKey{name},
		Nodes: []graph.Node{{Name: "greet", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			return graph.Put(name.Set("hello " + name.Get(s))), nil
		}}},
		Edges: []graph.Edge{{From: []string{"greet"}, To: []string{graph.End}}},
		Start: []string{"greet"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "t1", Set: []graph.Write{name.Set("ada")}})
	fmt.Println(res.Status, name.Get(res.State), err)

	in := graph.Input{Thread: "t2", Set: []graph.Write{name.Set("ada")}, Break: []graph.Break{{Node: "greet"}}}
	res, err = r.Invoke(ctx, in)
	fmt.Println(res.Status, name.Get(res.State), err)
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t2"})
	fmt.Println(res.Status, name.Get(res.State), err)

	for c, err := range history.Checkpoints(ctx, r.Store, "t2") {
		fmt.Println(c.Seq, c.Kind, c.Next, err)
	}
	err = history.Fork(ctx, r.Store, "t2", 1, "t3")
	if err == nil {
		_, err = r.Edit(ctx, "t3", name.Set("grace"))
	}
	if err == nil {
		res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t3"})
	}
	fmt.Println(res.Status, name.Get(res.State), err)
	// Output:
	// done hello ada <nil>
	// paused ada <nil>
	// done hello ada <nil>
	// 4 step [] <nil>
	// 1 start [greet] <nil>
	// done hello grace <nil>
}
