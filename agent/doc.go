// Package agent implements the loop of a model and its tools as a graph: the
// node think calls the model, the node act makes the tool calls of the reply,
// and a conditional edge leads back. The loop survives a crash: each reply and
// each outcome of a call is in the journal before it is used.
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
// You can also use the parts separately: [Think] and [Act] make nodes for your
// own graph, [ToolsEdge] connects them, and [Keys] are the keys that they
// share.
//
// # Guarantees
//
// A recorded reply is never requested again, and a call with a recorded outcome
// is never made again. A call that was running when its process died follows
// the tool's [tool.Effect]: read-only and idempotent tools run again, with the
// same [tool.Call.Key]; for other tools a person is asked. Every call has an
// outcome before the next request, so that a provider accepts the history: the
// outcome of a call that was interrupted and is not continued says so.
//
// The calls of one reply run in the order of the reply; adjacent calls whose
// tools are [tool.Tool.Parallel] run concurrently. Outcomes are in the order of
// the calls.
//
// Nothing is ever removed from the conversation's key. What does not fit in the
// model's [Window] is only left out of requests.
//
// # Interruptions
//
// A person can end a turn at any moment: see [WithInterrupt]. What the model has
// said so far is its reply, calls that run are cancelled, every call has an
// outcome, and the run is done. The journal says so before anything depends on
// it: whatever a crash leaves of an interrupted turn ends in the same way, and no
// model is asked again.
//
// # The cost of a turn
//
// A [Budget] limits one agent. [Budget.Share] makes one budget for all agents
// below a context, which may run concurrently: their calls wait for each other
// when there is not enough left for all, so that together they exceed the
// budget by at most one call. A resumed run knows what was spent. In a team the
// lead's budget is shared by all agents; to limit a whole graph, pass the
// budget to the run:
//
//	ctx = agent.Budget{Tokens: 100_000}.Share(ctx, "", agent.Spend{})
//	res, err := r.Invoke(ctx, in)
//
// # The input of a model
//
// A model node takes the first of these inputs that exists: messages of
// [OneShotFor] for this node, messages of [OneShot], what the user says in
// [UserInput], or the conversation as it is. The input is removed in the same
// update that appends the reply. [Visibility] selects the part of the
// conversation that the node sees, [Instruction] fills in its system prompt,
// and [Override] changes its settings for one turn.
//
// # Agents in graphs
//
// An [Agent] is a node that runs an agent, and an [AgentTool] is a tool that
// runs one. Each entry of a conversation says which node wrote it, in which run
// and at which path. [LastResponse], [Response] and [Responses] return what
// nodes have said; readers of events use [FinalReply] and [TerminalFilter].
//
// # Tools that need the engine
//
// The context of [tool.Tool.Run] is that of the act node, inside the effect of
// the call: a tool may ask with graph.Interrupt and remember with graph.Do. The
// calls of a reply share one node, so put the [tool.Call.ID] into the name of
// every question and effect. A tool that waits runs again from the start.
package agent
