// Package team is an agent that spawns others, which work while it goes on: it
// collects what they say, they send each other messages, ask and are answered, and
// work through a queue of tasks that depend on each other.
//
//	g, err := team.Config{
//		Lead:   team.Member{Agent: agent.Config{Model: model}, Spawn: &team.Spawn{}},
//		Agents: map[string]team.Member{"explore": {Agent: agent.Config{Model: model, Tools: files}}},
//	}.Compile()
//	r := &graph.Runner{Graph: g, Store: store}
//	res, err := r.Invoke(ctx, graph.Input{Thread: "t1", Set: agent.Turn("Where is the parser?")})
//	fmt.Println(agent.LastResponse(res.State))
//
// # What a team is
//
// The graph has one node. Its task runs the lead and every spawned agent as a named
// child graph (graph.CallNamed), so all of them are in one journal, and their
// questions are questions of the run: "team/agent_explore_1f2e3d4c/act". A person
// answers them in any order, also while the lead waits in agent__collect.
//
// What the agents know of each other is a log: who was spawned, what was sent, which
// task is done. Each entry is in the journal before anybody sees it, under the key
// of the call that made it. A process that goes on with the run reads the log,
// goes on with those that were at work inside their own loops, and runs nobody
// again who has finished; a call that was cut off finds its own entry and does
// nothing twice.
//
// When the lead ends its turn, the team has ended: what still runs is cancelled.
// Before that the lead is reminded of it, three times at most. The same holds for
// every agent that has spawned others. After a fork or an edit inside a turn the
// turn begins anew.
//
// A team may work inside of an agent of another one, as part of that one's graph. How
// deep that is comes with the context (see At), so that Spawn.Depth counts all agents
// above.
//
// # Limits
//
// Spawn.Max counts agents that run, Spawn.Depth how deep agents may spawn agents.
// A spawned agent and a task of the queue that has an agent wait for a free place and
// get it as soon as there is one, agents first. The lead's agent.Budget is that of the whole turn: all agents
// spend from it, however deep, and near its end they wait for each other (see
// agent.Budget.Share). When it is used up the run fails with an agent.BudgetError,
// keeps where everybody was, and goes on when it is resumed with a larger one. The
// Budget of another agent is a further bound for this one alone.
package team
