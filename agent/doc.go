// Package agent is the loop of a model and its tools as a graph: think asks the
// model, act runs what it called, and a conditional edge leads back. Unlike a
// loop in a program, it never loses its place: each reply and each outcome is in
// the journal before it is used.
//
//	g, err := agent.Config{
//		Model:   model,
//		Request: llm.Request{System: "You keep the stock."},
//		Tools:   []tool.Tool{count, order},
//	}.Compile()
//	r := &graph.Runner{Graph: g, Store: store}
//	res, err := r.Invoke(ctx, graph.Input{Thread: "t1", Set: agent.Turn("How many bolts?")})
//	fmt.Println(agent.LastResponse(res.State))
//
// The parts can be had alone: [Think] and [Act] make nodes for a graph of your
// own, [ToolsEdge] joins them, [Keys] are the keys they share.
//
// # What is promised
//
// A recorded reply is never requested again and a recorded outcome never made
// again. A call that was under way when its process died follows the tool's
// [tool.Effect]: read-only and idempotent tools run again, with the same
// [tool.Call.Key]; for the others a person is asked. Whatever happens, every
// call has an outcome before the next request, so that a provider accepts the
// history: a call that was cut off and is not continued is told as such.
//
// Calls of one reply run in the order of the reply; neighbours whose tools are
// [tool.Tool.Parallel] run together. Outcomes stand in the order of the calls.
//
// Nothing is ever removed from the conversation's key. What does not fit the
// model's [Window] is left out of requests only.
//
// # What a turn may cost
//
// A [Budget] bounds one agent. [Budget.Share] makes one of all agents below a
// context, which may work at the same time: their calls wait for each other when
// there is no longer room for all, so that together they exceed it by one call at
// most, and a run that is resumed knows what was spent. A lead's budget is shared
// by its team; of a graph, give it to the run:
//
//	ctx = agent.Budget{Tokens: 100_000}.Share(ctx, "", agent.Spend{})
//	res, err := r.Invoke(ctx, in)
//
// # What a model is told
//
// A model node takes the first of these that is there: messages of [OneShotFor]
// for it, messages of [OneShot], what the user says in [UserInput], the
// conversation as it is. What it takes is used up in the same update that appends
// the reply. [Visibility] chooses what it sees of the conversation, [Instruction]
// fills in its system prompt, [Override] changes its settings for one turn.
//
// # Agents in graphs
//
// An [Agent] makes a node of an agent, and an [AgentTool] is one that is a tool. A
// conversation says of each entry who wrote it, in which run and at which path.
// [LastResponse], [Response] and [Responses] read what nodes have said; a reader of
// events finds it with [Final] and [Terminal].
//
// # Tools that need the engine
//
// The context of [tool.Tool.Run] is that of the act node, inside the effect of
// the call: a tool may ask with graph.Interrupt and remember with graph.Do. The
// calls of a reply share one node, so put the [tool.Call.ID] into the name of
// every question and effect. A tool that waits runs again from its top.
package agent
