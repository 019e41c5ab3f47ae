package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// Two agents in a row: the second gets what the first has said, and nothing else.
func ExampleAgent() {
	first := compiled(agent.Config{Model: tells("Bolts are out of stock.")}.Compile())
	second := compiled(agent.Config{Model: tells("Order bolts.")}.Compile())
	g := line(
		agent.Agent{Graph: first}.Node("look"),
		agent.Agent{Graph: second, Input: agent.FromLastResponse, Visibility: agent.IsolatedInvocation}.Node("advise"),
	)
	s := turn(g, agent.TurnInput("What is missing?")...)
	fmt.Println(agent.Responses(s))
	// Output:
	// user: What is missing?
	// user: Bolts are out of stock.
	// map[advise:Order bolts. look:Bolts are out of stock.]
}

// Values go into an agent and come out of it: they are keys with types on both
// sides.
func Example_agentMapping() {
	article, count := graph.Last[string]("article"), graph.Last[int]("count")
	keys := append(agent.Keys(), article, count)
	child := compiled(graph.Compile(graph.Def{Name: "child", Keys: keys, Start: []string{"count"},
		Nodes: []graph.Node{{Name: "count", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			return graph.Put(count.Set(len(article.Get(s)))), nil
		}}},
		Edges: []graph.Edge{{From: []string{"count"}, To: []string{graph.End}}}}))
	node := agent.Agent{Graph: child,
		In: func(s graph.State) ([]graph.Write, error) { return []graph.Write{article.Set(article.Get(s))}, nil },
		Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
			return graph.Put(count.Set(count.Get(c.State))), nil
		},
	}.Node("counter")
	g := compiled(graph.Compile(graph.Def{Name: "g", Keys: keys, Nodes: []graph.Node{node}, Start: []string{"counter"},
		Edges: []graph.Edge{{From: []string{"counter"}, To: []string{graph.End}}}}))
	fmt.Println(count.Get(turn(g, append(agent.TurnInput("Count."), article.Set("bolts"))...)))
	// Output:
	// 5
}

// An agent that sees nothing of the conversation still sees its own calls.
func Example_isolatedAgent() {
	m := &asked{answers: []llm.Message{call("a", "count", `{"article":"bolts"}`), say("Five.")}}
	helper := compiled(agent.Config{Model: m, Tools: []tool.Tool{count}}.Compile())
	g := line(agent.Agent{Graph: helper, Visibility: agent.IsolatedInvocation}.Node("helper"))
	turn(g, append([]graph.Write{agent.AppendMessages(llm.User("My PIN is 1234."), say("Noted."))}, agent.TurnInput("How many bolts?")...)...)
	fmt.Println(m.seen(1))
	// Output:
	// user: How many bolts? | call a count{"article":"bolts"} | result a: {"bolts":5}
}

// A failure of an agent is one of its node, unless the node makes something of it.
func Example_toleratedAgent() {
	down := compiled(agent.Config{Model: countReplies()}.Compile())
	node := agent.Agent{Graph: down, Failed: func(_ graph.State, failure error) (graph.Update, error) {
		fmt.Println(strings.Contains(failure.Error(), "no reply is left"))
		return graph.Put(agent.AppendMessages(say("The helper is away."))), nil
	}}.Node("helper")
	fmt.Println(agent.LastResponse(turn(line(node), agent.TurnInput("Help!")...)))
	_, err := (&graph.Runner{Graph: line(agent.Agent{Graph: down}.Node("helper"))}).Invoke(context.Background(), graph.Input{Set: agent.TurnInput("Help!")})
	var failed *graph.NodeError
	fmt.Println(errors.As(err, &failed))
	// Output:
	// true
	// The helper is away.
	// true
}

// Hooks around an agent's node answer in its place, or look at what it has done.
func Example_agentHooks() {
	node := agent.Agent{Graph: compiled(agent.Config{Model: tells("Five.")}.Compile())}.Node("helper")
	node.Hooks = []graph.Hooks{{
		Before: func(_ context.Context, _ graph.Info, s graph.State) (graph.Setup, error) {
			if agent.UserInput.Get(s) == "ping" {
				u := graph.Put(agent.UserInput.Set(""), agent.AppendMessages(llm.User("ping"), say("pong")))
				return graph.Setup{Result: &u}, nil
			}
			return graph.Setup{}, nil
		},
		After: func(_ context.Context, i graph.Info, _ graph.State, u graph.Update, err error) (graph.Update, error) {
			fmt.Println("after", i.Node, err)
			return u, err
		},
	}}
	fmt.Println(agent.LastResponse(turn(line(node), agent.TurnInput("ping")...)))
	fmt.Println(agent.LastResponse(turn(line(node), agent.TurnInput("How many?")...)))
	// Output:
	// pong
	// user: How many?
	// after helper <nil>
	// Five.
}

// A hook of an agent's node gets what happens in the agent: here without a caller that
// reads the events of the run.
func Example_agentEvents() {
	helper := compiled(agent.Config{Model: countReplies(call("a", "count", `{"article":"bolts"}`), say("Five.")), Tools: []tool.Tool{count}}.Compile())
	node := agent.Agent{Graph: helper}.Node("helper")
	node.Hooks = []graph.Hooks{{Emit: func(_ context.Context, i graph.Info, v any) {
		switch v := v.(type) {
		case agent.ToolStarted:
			fmt.Println(i.Path+i.Node, "calls", v.Name)
		case agent.ReplyDone:
			fmt.Printf("%s replies %q\n", i.Path+i.Node, v.Message.Text())
		}
	}}}
	turn(line(node), agent.TurnInput("How many bolts?")...)
	// Output:
	// helper/think replies ""
	// helper/act calls count
	// helper/think replies "Five."
}

// Two nodes have one budget: the second request would exceed it.
func ExampleBudget_Share() {
	g := line(agent.Think{Model: tells("Red.")}.Node("first"), agent.Think{Model: tells("Blue.")}.Node("second"))
	ctx := agent.Budget{Calls: 1}.Share(context.Background(), "", agent.Spend{})
	res, err := (&graph.Runner{Graph: g}).Invoke(ctx, graph.Input{Set: agent.Turn("Which colour?")})
	fmt.Println(agent.LastResponse(res.State))
	fmt.Println(err)
	// Output:
	// user: Which colour?
	// Red.
	// node second (step 1, attempt 1): the budget of the run and the agents below it for calls is used up: 1 of 1; raise it and resume, or start a new turn
}

// A model calls an agent as it calls any tool. What the agent asks, the run asks.
func ExampleAgentTool() {
	painter := compiled(agent.Config{Tools: agent.UserTools(false),
		Model: countReplies(call("q", "user__input", `{"question":"Which colour?"}`), say("A red one."))}.Compile())
	r := &graph.Runner{Store: journal.NewMemory(), Graph: compiled(agent.Config{
		Model:  countReplies(call("a", "paint", `{"request":"Paint a door."}`), say("It is painted.")),
		Agents: []agent.AgentTool{{Spec: llm.ToolSpec{Name: "paint"}, Graph: painter}}}.Compile())}
	res, err := r.Invoke(context.Background(), graph.Input{Thread: "t1", Set: agent.Turn("A door, please.")})
	fmt.Println(res.Status, err, res.Questions[0].ID, res.Questions[0].Prompt)
	res, err = r.InvokeResume(context.Background(), graph.Resume{Thread: "t1", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "red"}}})
	fmt.Println(agent.LastToolResponse(res.State), agent.LastResponse(res.State), err)
	// Output:
	// waiting <nil> act/a/act Which colour?
	// {"output":"A red one."} It is painted. <nil>
}

// The caller of the run makes the call: the run waits for its result.
func ExampleCallerTool() {
	r := &graph.Runner{Store: journal.NewMemory(), Graph: compiled(agent.Config{
		Model: countReplies(call("a", "locate", `{"precise":true}`), say("You are in Oslo.")),
		Tools: []tool.Tool{agent.CallerTool(llm.ToolSpec{Name: "locate", Description: "Where the user is."})}}.Compile())}
	res, err := r.Invoke(context.Background(), graph.Input{Thread: "t1", Set: agent.Turn("Where am I?")})
	if err != nil {
		log.Fatal(err)
	}
	q := res.Questions[0]
	fmt.Println(q.Kind, string(q.Data))
	res, err = r.InvokeResume(context.Background(), graph.Resume{Thread: "t1", Answers: []graph.Answer{{ID: q.ID, Value: map[string]string{"city": "Oslo"}}}})
	fmt.Println(agent.LastResponse(res.State), err)
	// Output:
	// caller {"id":"a","tool":"locate","args":{"precise":true}}
	// You are in Oslo. <nil>
}

// A reader gets what the last model says, not what is said on the way.
func ExampleTerminalFilter() {
	g := line(agent.Think{Model: countReplies(say("draft"))}.Node("draft"), agent.Think{Model: countReplies(say("final"))}.Node("polish"))
	shown := agent.TerminalFilter(g)
	for ev, err := range (&graph.Runner{Graph: g}).Run(context.Background(), graph.Input{Set: agent.Turn("Write."), Topics: graph.TopicEmit}) {
		if err != nil {
			log.Fatal(err)
		}
		if m, ok := agent.FinalReply(ev); ok && shown(ev) {
			fmt.Println(ev.Node, m.Text())
		}
	}
	// Output:
	// polish final
}

// What an agent sees of a session: of all runs or of this one, of others or of
// itself.
func ExampleVisibleEntries() {
	session := []agent.Entry{
		{Message: llm.User("first")}, {Message: say("A says"), By: "a", Run: "r1", Path: "a/"},
		{Message: llm.User("second")}, {Message: say("A again"), By: "a", Run: "r2", Path: "a/"}, {Message: say("B says"), By: "b", Run: "r2", Path: "b/"},
	}
	for _, see := range []agent.Visibility{agent.FullContext, agent.RequestContext, agent.IsolatedRequest} {
		entries := agent.VisibleEntries(session, see, agent.Viewer{Run: "r2", Path: "a/"})
		fmt.Println(strings.Join(shape(agent.Conversation(entries)), " | "))
	}
	// Output:
	// user: first | assistant: A says | user: second | assistant: A again
	// user: second | assistant: A again
	// user: second | assistant: A again
}

// A thread is a session: it continues with what was said, and a new one may begin
// with what another holds.
func Example_session() {
	r := &graph.Runner{Graph: compiled(agent.Config{Model: tells("Yes.")}.Compile()), Store: journal.NewMemory()}
	ask := func(thread string, set ...graph.Write) graph.State {
		res, err := r.Invoke(context.Background(), graph.Input{Thread: thread, Set: set})
		if err != nil {
			log.Fatal(err)
		}
		return res.State
	}
	ask("ada", agent.Turn("One?")...)
	s := ask("ada", agent.Turn("Two?")...)
	ask("eve", append([]graph.Write{agent.Messages.Set(agent.Messages.Get(s)[:2])}, agent.Turn("Three?")...)...)
	// Output:
	// user: One?
	// user: One? | assistant: Yes. | user: Two?
	// user: One? | assistant: Yes. | user: Three?
}

// The request has a summary of what no longer fits, in words that the program chooses.
func Example_summary() {
	m := &asked{name: "m"}
	r := &graph.Runner{Store: journal.NewMemory(), Graph: compiled(agent.Config{Model: m, Window: agent.Window{
		Tokens: 300, Reply: 50, Summary: countReplies(say("They counted a lot.")),
		Format: func(summary string, messages int) string {
			return fmt.Sprintf("Before (%d messages): %s", messages, summary)
		},
	}}.Compile())}
	for _, text := range []string{strings.Repeat("one two ", 60), strings.Repeat("three four ", 60)} {
		if _, err := r.Invoke(context.Background(), graph.Input{Thread: "t1", Set: agent.Turn(text)}); err != nil {
			log.Fatal(err)
		}
	}
	first, _, _ := strings.Cut(m.seen(1), "\n")
	fmt.Println(first)
	// Output:
	// user: Before (2 messages): They counted a lot.
}
