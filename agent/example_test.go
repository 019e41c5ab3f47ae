package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log"
	"slices"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
	"raddle.dev/tool"
)

// pretend is a model that replays a text instead of asking a provider.
func pretend(transcript string) llm.Model {
	m, err := script.Parse("example", []byte(transcript))
	if err != nil {
		log.Fatal(err)
	}
	return m
}

// count is a tool: a name, a schema and a function. What it says of itself decides
// how it is run: it changes nothing, and may run at the same time as other calls.
var count = tool.Tool{
	Name:        "count",
	Description: "How many of an article are in stock.",
	Schema:      json.RawMessage(`{"type":"object","properties":{"article":{"type":"string"}},"required":["article"]}`),
	Effect:      tool.ReadOnly,
	Parallel:    true,
	Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		var in struct{ Article string }
		if err := json.Unmarshal(c.Args, &in); err != nil {
			return tool.Result{}, err
		}
		return tool.JSONResult(map[string]int{in.Article: len(in.Article)}), nil
	},
}

// order is a tool that one does not want to happen twice.
var order = tool.Tool{
	Name:   "order",
	Effect: tool.Dangerous,
	Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		fmt.Println("ordering", string(c.Args))
		return tool.TextResult("ordered"), nil
	},
}

func Example() {
	model := pretend(`
- text: I will count both.
  tool_calls:
    - {id: a, name: count, args: {article: bolts}}
    - {id: b, name: count, args: {article: nuts}}
- text: There are 5 bolts and 4 nuts.
`)
	g, err := agent.Config{
		Model:   model,
		Request: llm.Request{System: "You keep the stock."},
		Tools:   []tool.Tool{count},
	}.Compile()
	if err != nil {
		log.Fatal(err)
	}
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(context.Background(), graph.Input{Thread: "t1", Set: agent.Turn("How many bolts and nuts?")})
	fmt.Println(res.Status, err)
	for _, m := range agent.History(res.State) {
		fmt.Printf("%s %q\n", m.Role, m.Text())
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				fmt.Println("  ", r.CallID, llm.Message{Parts: r.Content}.Text())
			}
		}
	}
	// Output:
	// done <nil>
	// user "How many bolts and nuts?"
	// assistant "I will count both."
	// tool ""
	//    a {"bolts":5}
	//    b {"nuts":4}
	// assistant "There are 5 bolts and 4 nuts."
}

// careful asks a person before anything dangerous.
type careful struct{}

func (careful) Decide(_ context.Context, t tool.Tool, c tool.Call, granted []string) (agent.Decision, error) {
	if t.Effect != tool.Dangerous || slices.Contains(granted, t.Name) {
		return agent.Decision{Verdict: agent.Allow}, nil
	}
	return agent.Decision{Verdict: agent.Ask, Prompt: fmt.Sprintf("May I %s %s?", t.Name, c.Args), Grant: []string{t.Name}, Lasting: true}, nil
}

func (careful) Always(_ context.Context, grant []string) error {
	fmt.Println("from now on always:", grant)
	return nil
}

func ExampleGate() {
	g, err := agent.Config{
		Model: pretend(`
- tool_calls: [{id: a, name: order, args: {bolts: 100}}, {id: b, name: order, args: {nuts: 100}}]
- text: Both are on their way.
`),
		Tools: []tool.Tool{order},
		Gate:  careful{},
	}.Compile()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "t1", Set: agent.Turn("Order what we need.")})
	fmt.Println(res.Status, err)
	q := res.Questions[0]
	fmt.Println(q.Prompt, q.Options)

	// "run" allows it for the rest of the turn: the second call does not ask.
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t1", Answers: []graph.Answer{{ID: q.ID, Value: "run"}}})
	fmt.Println(res.Status, err, agent.LastResponse(res.State))
	// Output:
	// waiting <nil>
	// May I order {"bolts":100}? [once run always no]
	// ordering {"bolts":100}
	// ordering {"nuts":100}
	// done <nil> Both are on their way.
}

// The model asks the user. The run ends, and continues when there is an answer: in
// another process, with the same store, just as well.
func ExampleUserTools() {
	config := agent.Config{
		Model: pretend(`
- tool_calls: [{id: a, name: user__ask, args: {question: Which colour?, options: [red, blue]}}]
- text: Blue it is.
`),
		Tools: agent.UserTools(false),
	}
	g, err := config.Compile()
	if err != nil {
		log.Fatal(err)
	}
	ctx, store := context.Background(), journal.NewMemory()
	first := &graph.Runner{Graph: g, Store: store}
	res, err := first.Invoke(ctx, graph.Input{Thread: "t1", Set: agent.Turn("Paint the shed.")})
	fmt.Println(res.Status, err)

	later := &graph.Runner{Graph: g, Store: store}
	for _, q := range res.Questions {
		fmt.Println(q.ID, q.Prompt, q.Options)
		res, err = later.InvokeResume(ctx, graph.Resume{Thread: "t1", Answers: []graph.Answer{{ID: q.ID, Value: "blue"}}})
	}
	fmt.Println(res.Status, err, agent.LastResponse(res.State))
	// Output:
	// waiting <nil>
	// act Which colour? [red blue]
	// done <nil> Blue it is.
}

func ExampleOutput() {
	type stock struct {
		Bolts int `json:"bolts"`
		Nuts  int `json:"nuts"`
	}
	g, err := agent.Config{
		Model: pretend(`[{text: '{"bolts": 5, "nuts": 4}'}]`),
		Request: llm.Request{
			Schema: json.RawMessage(`{"type":"object","properties":{"bolts":{"type":"integer"},"nuts":{"type":"integer"}}}`),
		},
	}.Compile()
	if err != nil {
		log.Fatal(err)
	}
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{Set: agent.Turn("How many?")})
	if err != nil {
		log.Fatal(err)
	}
	s, err := agent.Output[stock](res.State)
	fmt.Printf("%+v %v\n", s, err)
	// Output:
	// {Bolts:5 Nuts:4} <nil>
}

// A turn that was stopped is followed by another: the model is informed of what happened to
// of the call that was cut off.
func ExampleNext() {
	ctx, cancel := context.WithCancel(context.Background())
	slow := tool.Tool{Name: "slow", Run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		cancel() // the user presses Ctrl-C
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}}
	g, err := agent.Config{
		Model: pretend(`
- tool_calls: [{id: a, name: slow, args: {}}]
- text: All right, I leave it.
`),
		Tools: []tool.Tool{slow},
	}.Compile()
	if err != nil {
		log.Fatal(err)
	}
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	_, err = r.Invoke(ctx, graph.Input{Thread: "t1", Set: agent.Turn("Go.")})
	fmt.Println(err)

	for ev, err := range agent.Next(context.Background(), r, graph.Input{Thread: "t1", Set: agent.Turn("Never mind."), Topics: graph.TopicEmit}) {
		if err != nil {
			log.Fatal(err)
		}
		switch b := ev.Body.(type) {
		case graph.ValueEmitted:
			if d, ok := b.Value.(agent.TextDelta); ok {
				fmt.Print(d.Text)
			}
		case graph.RunEnded:
			fmt.Println("\n" + b.Result.Status.String())
		}
	}
	// Output:
	// graph agent: canceled in the step of act: context canceled
	// All right, I leave it.
	// done
}

// The nodes work in a graph of one's own, with one's own nodes around them.
func ExampleToolsEdge() {
	articles := graph.Last[string]("articles")
	tools := []tool.Tool{count}
	d := graph.Def{
		Name: "own",
		Keys: append(agent.Keys(), articles),
		Nodes: []graph.Node{
			{Name: "prepare", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				return graph.Put(agent.AppendMessages(llm.User("Count " + articles.Get(s) + "."))), nil
			}},
			agent.Think{Model: pretend(`[{tool_calls: [{id: a, name: count, args: {article: bolts}}]}, {text: Five.}]`), Tools: tools}.Node("clerk"),
			agent.Act{Tools: tools}.Node("stock"),
			{Name: "report", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				fmt.Println("the clerk says:", agent.Response(s, "clerk"))
				return graph.Update{}, nil
			}},
		},
		Edges: []graph.Edge{{From: []string{"prepare"}, To: []string{"clerk"}}, {From: []string{"report"}, To: []string{graph.End}}},
		Start: []string{"prepare"},
	}
	if err := agent.ToolsEdge(&d, "clerk", "stock", "report"); err != nil {
		log.Fatal(err)
	}
	g, err := graph.Compile(d)
	if err != nil {
		log.Fatal(err)
	}
	_, err = (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{Set: []graph.Write{articles.Set("bolts")}})
	fmt.Println(err)
	// Output:
	// the clerk says: Five.
	// <nil>
}

// A graph of your own can look at a reply before its calls are made.
func ExampleHasCalls() {
	for _, reply := range []llm.Message{call("a", "count", `{"article":"bolts"}`), say("Five.")} {
		s, err := graph.NewState(agent.AppendMessages(llm.User("How many bolts?"), reply))
		fmt.Println(agent.HasCalls(s), err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

// A conversation can be read without its graph.
func ExampleReadEntries() {
	ctx, store := context.Background(), journal.NewMemory()
	g := compiled(agent.Config{Model: &asked{answers: []llm.Message{say("Five.")}}}.Compile())
	if _, err := (&graph.Runner{Graph: g, Store: store}).Invoke(ctx, graph.Input{Thread: "t1", Set: agent.TurnInput("How many bolts?")}); err != nil {
		fmt.Println(err)
		return
	}
	snap, err := history.Inspect(ctx, store, "t1", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	entries, err := agent.ReadEntries(snap.Values, 0)
	for _, e := range entries {
		fmt.Println(e.Message.Role, e.Message.Text())
	}
	fmt.Println(err)
	_, err = agent.ReadEntries([]history.StoredValue{{Key: "messages", Parts: [][]byte{[]byte(`"text"`)}}}, 0)
	fmt.Println(err != nil)
	// Output:
	// user How many bolts?
	// assistant Five.
	// <nil>
	// true
}

// A person ends the turn while the model speaks. What it has said is its reply, and the run
// is done: the next turn can start.
func ExampleWithInterrupt() {
	stop := make(chan struct{})
	speaks := agent.ModelFunc(func(ctx context.Context, _ llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			if !yield(llm.Delta{Text: "There are five bolts, and "}, nil) {
				return
			}
			close(stop) // the user presses Esc
			<-ctx.Done()
			yield(llm.Delta{}, ctx.Err())
		}
	})
	g := compiled(agent.Config{Model: speaks}.Compile())
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	ctx := agent.WithInterrupt(context.Background(), stop)
	res, err := r.Invoke(ctx, graph.Input{Thread: "t1", Set: agent.Turn("How many?")})
	fmt.Println(res.Status, err, agent.WasInterrupted(res.State))
	fmt.Printf("%q\n", agent.LastResponse(res.State))
	// Output:
	// done <nil> true
	// "There are five bolts, and"
}

// A model that stops early is reminded of the items that are open on its list.
func ExampleContinue() {
	g := compiled(agent.Config{
		Model: pretend(`
- tool_calls: [{id: a, name: todo__init, args: {goal: Count all}}, {id: b, name: todo__add, args: {task: Count the bolts}}]
- text: I am finished.
- tool_calls: [{id: c, name: todo__done, args: {id: 1}}]
- text: Now I am finished.
`),
		Continue: agent.Continue{Max: 3},
	}.Compile())
	s := turn(g, agent.Turn("Count all.")...)
	fmt.Println(agent.LastResponse(s))
	fmt.Println("reminders:", agent.Continued.Get(s), "open items:", agent.Todo.Get(s).Open())
	// Output:
	// Now I am finished.
	// reminders: 1 open items: 0
}

// A node of your own graph asks a model, with the retries and the limits of an agent. The
// request is inside of an effect, so that the reply is requested once only.
func ExampleAskModel() {
	model := pretend(`[{text: Five.}]`)
	g := line(graph.Node{Name: "clerk", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		reply, err := graph.Do(ctx, "ask", func(ctx context.Context) (llm.Reply, error) {
			req := llm.Request{Messages: []llm.Message{llm.User("How many bolts?")}}
			return agent.AskModel(ctx, model, req, agent.Retry{}, agent.Budget{Calls: 1})
		})
		if err != nil {
			return graph.Update{}, err
		}
		return graph.Put(agent.AppendMessages(reply.Message)), nil
	}})
	fmt.Println(agent.History(turn(g))[0].Text())
	// Output:
	// Five.
}

// The user asks for a summary. The next request contains it instead of the beginning of the
// conversation, which the thread keeps.
func ExampleCompactTurn() {
	m := &asked{name: "m", answers: []llm.Message{say("Five."), say("Four."), say("They count."), say("Nine.")}}
	r := &graph.Runner{Graph: compiled(agent.Config{Model: m}.Compile()), Store: journal.NewMemory()}
	for _, set := range [][]graph.Write{
		agent.Turn("How many bolts?"), agent.Turn("And nuts?"),
		append(agent.ResetTurn(), agent.CompactTurn()...),
		agent.Turn("Together?"),
	} {
		res, err := r.Invoke(context.Background(), graph.Input{Thread: "t1", Set: set})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(agent.TurnText(res.State), len(agent.History(res.State)))
	}
	fmt.Println(m.seen(3))
	// Output:
	// Five. 2
	// Four. 4
	// Four. 4
	// Nine. 6
	// user: [Summary of 3 earlier messages, which were left out to fit the context window.]
	// They count. | assistant: Four. | user: Together?
}
