package agent_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// The examples that docs/guide/coming-from.md names for conversations.

// tells is a model that prints what it gets and answers with a text.
func tells(answer string) llm.Model {
	return agent.ModelFunc(func(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			if r.System != "" {
				fmt.Println("system:", r.System)
			}
			fmt.Println(strings.Join(shape(r.Messages), " | "))
			yield(llm.Delta{Done: &llm.Reply{Message: say(answer)}}, nil)
		}
	})
}

// line is a graph of nodes that run one after the other.
func line(nodes ...graph.Node) *graph.Graph {
	d := graph.Def{Name: "line", Keys: agent.Keys(), Nodes: nodes, Start: []string{nodes[0].Name}}
	for i, n := range nodes {
		to := graph.End
		if i+1 < len(nodes) {
			to = nodes[i+1].Name
		}
		d.Edges = append(d.Edges, graph.Edge{From: []string{n.Name}, To: []string{to}})
	}
	return compiled(graph.Compile(d))
}

func compiled(g *graph.Graph, err error) *graph.Graph {
	if err != nil {
		log.Fatal(err)
	}
	return g
}

func turn(g *graph.Graph, set ...graph.Write) graph.State {
	res, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(context.Background(), graph.Input{Thread: "t1", Set: set})
	if err != nil {
		log.Fatal(err)
	}
	return res.State
}

// A node changes what the user says before a model reads it, in the same turn.
func ExampleTurnInput() {
	trim := graph.Node{Name: "trim", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
		return graph.Put(agent.UserInput.Set(strings.TrimSpace(agent.UserInput.Get(s)))), nil
	}}
	turn(line(trim, agent.Think{Model: tells("Hello.")}.Node("greet")), agent.TurnInput("   hi ")...)
	// Output:
	// user: hi
}

// Messages for one request of one node replace the conversation in that request; the conversation
// itself stays as it is.
func ExampleOneShotFor() {
	g := line(agent.Think{Model: tells("Bonjour.")}.Node("translate"), agent.Think{Model: tells("Bye.")}.Node("part"))
	s := turn(g, append(agent.Turn("Hello."), agent.OneShotFor("translate",
		llm.User("Cat."), say("Chat."), llm.User("Hello.")))...)
	fmt.Println(agent.Response(s, "translate"))
	// Output:
	// user: Cat. | assistant: Chat. | user: Hello.
	// user: Hello. | assistant: Bonjour. | user: [Continue.]
	// Bonjour.
}

// Between two models the conversation starts again, and the journal keeps all.
func ExampleRemoveAll() {
	anew := graph.Node{Name: "anew", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
		return graph.Put(agent.RemoveAll(), agent.UserInput.Set("Judge this: "+agent.LastResponse(s))), nil
	}}
	s := turn(line(agent.Think{Model: tells("A poem.")}.Node("write"), anew, agent.Think{Model: tells("Good.")}.Node("judge")), agent.Turn("Write.")...)
	fmt.Println(len(agent.History(s)), "messages of", len(agent.Messages.Get(s)), "entries")
	// Output:
	// user: Write.
	// user: Judge this: A poem.
	// 2 messages of 5 entries
}

func ExampleReplaceLastUser() {
	s := turn(line(agent.Think{Model: tells("Yes.")}.Node("m")), append(agent.Turn("drfat"), agent.ReplaceLastUser("draft"))...)
	fmt.Println(len(agent.History(s)), "messages")
	// Output:
	// user: draft
	// 2 messages
}

// Places in an instruction are filled in from sources of one's own: keys of the
// state, maps in keys, values of the program.
func ExampleInstruction() {
	user := graph.Last[map[string]any]("user_values")
	in := agent.Instruction{
		Text: "You help {user:name} of {app:company}. {user:plan?}{run:mood}",
		Values: map[string]agent.Source{
			"user": agent.FromKey(user),
			"app":  agent.FromMap(map[string]string{"company": "Bolts & Nuts"}),
			"run":  agent.FromMap(map[string]string{}),
		},
	}
	g := compiled(graph.Compile(graph.Def{Name: "g", Keys: append(agent.Keys(), user), Start: []string{"m"},
		Nodes: []graph.Node{agent.Think{Model: tells("Hello."), System: in.System}.Node("m")},
		Edges: []graph.Edge{{From: []string{"m"}, To: []string{graph.End}}}}))
	turn(g, append(agent.Turn("Who is {user:name}?"), user.Set(map[string]any{"name": "Ada"}))...)
	// Output:
	// system: You help Ada of Bolts & Nuts. {run:mood}
	// user: Who is {user:name}?
}

// What one turn changes: of all nodes, of one, and of one inside an agent.
func ExampleOverride() {
	show := agent.ModelFunc(func(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			fmt.Println(*r.Temperature, r.MaxTokens, r.System)
			yield(llm.Delta{Done: &llm.Reply{Message: say("Done.")}}, nil)
		}
	})
	helper := compiled(agent.Config{Model: show, Request: llm.Request{System: "Help.", MaxTokens: 500}}.Compile())
	g := line(agent.Think{Model: show, Request: llm.Request{System: "Plan.", MaxTokens: 900}}.Node("plan"), agent.Agent{Graph: helper}.Node("helper"))
	brief := "Help, and be brief."
	turn(g, append(agent.Turn("Go."), agent.Overrides.Set(map[string]agent.Override{
		"":             {Temperature: new(0.1)},
		"plan":         {MaxTokens: new(100)},
		"helper/think": {Temperature: new(0.7), System: &brief},
	}))...)
	// Output:
	// 0.1 100 Plan.
	// 0.7 500 Help, and be brief.
}

// A model is chosen for each request.
func Example_modelSelector() {
	small, large := tells("Small."), tells("Large.")
	choose := func(llm.Model) llm.Model {
		return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
			if len(r.Messages) > 1 {
				return large.Stream(ctx, r)
			}
			return small.Stream(ctx, r)
		})
	}
	g := compiled(agent.Config{Model: small, AroundModel: []agent.ModelMiddleware{choose}}.Compile())
	fmt.Println(agent.LastResponse(turn(g, agent.Turn("Hi.")...)))
	// Output:
	// user: Hi.
	// Small.
}

// Functions around the requests of a model and the calls of tools: they change
// what goes in and what comes out, or answer themselves.
func Example_middleware() {
	censor := func(next llm.Model) llm.Model {
		return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
			if strings.Contains(r.Messages[0].Text(), "secret") {
				return func(yield func(llm.Delta, error) bool) { yield(llm.Delta{Done: &llm.Reply{Message: say("No.")}}, nil) }
			}
			return next.Stream(ctx, r)
		})
	}
	cached := func(next agent.ToolFunc) agent.ToolFunc {
		return func(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
			if t.Name == "count" {
				return tool.TextResult("as before"), nil
			}
			return next(ctx, t, c)
		}
	}
	model := countReplies(call("a", "count", `{"article":"bolts"}`), say("Five."))
	g := compiled(agent.Config{Model: model, Tools: []tool.Tool{count}, AroundModel: []agent.ModelMiddleware{censor}, AroundTools: []agent.ToolMiddleware{cached}}.Compile())
	fmt.Println(agent.LastResponse(turn(g, agent.Turn("the secret, please")...)))
	fmt.Println(agent.LastToolResponse(turn(g, agent.Turn("count")...)))
	// Output:
	// No.
	// {"output":"as before"}
}

// At most two calls of db at once, in all runs; and a call is made again where the
// connection broke.
func ExampleLimitCalls() {
	tries := 0
	db := tool.Tool{Name: "db", Effect: tool.ReadOnly, Run: func(context.Context, tool.Call) (tool.Result, error) {
		if tries++; tries == 1 {
			return tool.Result{}, errBusy
		}
		return tool.TextResult("3 rows"), nil
	}}
	g := compiled(agent.Config{Model: countReplies(call("a", "db", `{}`), say("Three.")), Tools: []tool.Tool{db},
		AroundTools: []agent.ToolMiddleware{agent.LimitCalls(2, "db")},
		Calls:       agent.Calls{Retry: agent.ToolRetry{Attempts: 3, If: func(err error) bool { return err == errBusy }}}}.Compile())
	fmt.Println(agent.LastToolResponse(turn(g, agent.Turn("How many?")...)), "after", tries)
	// Output:
	// {"output":"3 rows"} after 2
}

var errBusy = fmt.Errorf("busy")

// A set of tools that changes is asked for in every step.
func Example_refreshedTools() {
	installed := []tool.Tool{}
	g := compiled(agent.Config{Model: countReplies(call("a", "count", `{"article":"nuts"}`), say("Done.")),
		ListTools: func(context.Context) ([]tool.Tool, error) { return slices.Clone(installed), nil }}.Compile())
	installed = append(installed, count)
	fmt.Println(agent.LastToolResponse(turn(g, agent.Turn("count")...)))
	// Output:
	// {"nuts":4}
}
