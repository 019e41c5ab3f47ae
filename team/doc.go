// Package team implements an agent that spawns other agents, which run
// concurrently with it. The agent collects their output; the agents send each
// other messages, ask questions and get answers, and work on a queue of tasks
// that depend on each other.
//
//	g, err := team.Config{
//		Lead:   team.Member{Agent: agent.Config{Model: model}, Spawn: &team.Spawn{}},
//		Agents: map[string]team.Member{"explore": {Agent: agent.Config{Model: model, Tools: files}}},
//	}.Compile()
//	r := &graph.Runner{Graph: g, Store: store}
//	res, err := r.Invoke(ctx, graph.Input{Thread: "t1", Set: agent.Turn("Where is the parser?")})
//	fmt.Println(agent.LastResponse(res.State))
//
// # How a team runs
//
// The graph has one node. Its task runs the lead and every spawned agent as a
// named child graph (graph.CallChild), so all of them are in one journal, and
// their questions are questions of the run: "team/agent_explore_1f2e3d4c/act".
// A person can answer them in any order, also while the lead waits in
// agent__collect.
//
// What the agents know of each other is a log: which agents were spawned, which
// messages were sent, which tasks are completed. Each entry is in the journal
// before any agent sees it, under the key of the call that made it. A process
// that resumes the run reads the log, continues the agents that were running
// where they stopped in their own loops, and does not run finished agents
// again. An interrupted call finds its own entry and does not make its change
// twice.
//
// When the lead ends its turn, the team ends: agents that still run are
// cancelled. Before that, the lead is reminded of them, at most three times.
// The same applies to every agent that has spawned others. After a fork or an
// edit inside a turn, the turn starts from scratch.
//
// A team can run inside an agent of another team, as part of that agent's
// graph. The depth comes from the context (see WithDepth), so that Spawn.Depth counts
// all agents above.
//
// # Limits
//
// Spawn.Max limits how many agents run at once, and Spawn.Depth how deep agents
// may spawn agents. A spawned agent, and a task of the queue that has an agent,
// wait for a free place and get it as soon as there is one, agents first. The
// lead's agent.Budget is the budget of the whole turn: all agents share it, at
// every depth, and near its end they wait for each other (see
// agent.Budget.Share). When it is used up, the run fails with an
// agent.BudgetError. The state of every agent is saved, and the run continues
// when it is resumed with a larger budget. The Budget of another agent is an
// additional limit for this agent only.
package team
