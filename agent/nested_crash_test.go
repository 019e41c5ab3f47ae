package agent_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
)

// nestedAgents are the agents of one graph: two in one step, one that has an agent as a
// tool, and a model with messages and settings for this turn only.
type nestedAgents struct{ alone, shared, boss, helper, last *world }

func newNestedAgents() *nestedAgents {
	return &nestedAgents{newWorld(), newWorld(), newWorld(), newWorld(), newWorld()}
}

func (c *nestedAgents) worlds() []*world {
	return []*world{c.alone, c.shared, c.boss, c.helper, c.last}
}

func (c *nestedAgents) graph(t testing.TB) *graph.Graph {
	alone := compile(t, agent.Config{Model: c.alone.model([][]planned{{{"read"}, {"send"}}}), Tools: c.alone.tools()})
	shared := compile(t, agent.Config{Model: c.shared.model([][]planned{{{"asks"}, {"keep"}}}), Tools: c.shared.tools()})
	helper := compile(t, agent.Config{Model: c.helper.model([][]planned{{{"send"}, {"asks"}}}), Tools: c.helper.tools()})
	boss := compile(t, agent.Config{Model: c.boss.model([][]planned{{{"helper"}}}), Tools: c.boss.tools(),
		Agents: []agent.AgentTool{{Spec: llm.ToolSpec{Name: "helper", Schema: []byte(`{"type":"object"}`)}, Graph: helper}}})
	g, err := graph.Compile(graph.Def{Name: "crew", Keys: agent.Keys(), Start: []string{"prepare"},
		Nodes: []graph.Node{
			prepare("prepare", agent.OneShotFor("last", llm.User("only this"))),
			agent.Agent{Graph: alone, Visibility: agent.IsolatedInvocation}.Node("alone"),
			agent.Agent{Graph: shared, Share: true}.Node("shared"),
			agent.Agent{Graph: boss, Input: agent.FromResponse("shared"), Visibility: agent.IsolatedInvocation}.Node("boss"),
			agent.Think{Model: c.last.model(nil)}.Node("last")},
		Edges: []graph.Edge{{From: []string{"prepare"}, To: []string{"alone", "shared"}}, {From: []string{"alone", "shared"}, To: []string{"boss"}},
			{From: []string{"boss"}, To: []string{"last"}}, {From: []string{"last"}, To: []string{graph.End}}}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestAgentsInAgentsCrashAfterEveryRecord ends a run of agents in agents after each of
// its records, including those of agents that are tools, and continues it. The result is
// that of a run without a crash.
func TestAgentsInAgentsCrashAfterEveryRecord(t *testing.T) {
	in := graph.Input{Thread: "t", Run: "run", Set: append(agent.TurnInput("Go."), agent.Overrides.Set(map[string]agent.Override{"last": {MaxTokens: new(9)}}))}
	whole := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
	want, _ := finish(t, &graph.Runner{Graph: newNestedAgents().graph(t), Store: whole}, in)
	equal(t, "the run without a crash", conversation(want.State), `user: only this | assistant: round 1 | assistant: round 0 | `+
		`call r0c0 asks{"n":0,"r":0} | call r0c1 keep{"n":1,"r":0} | result r0c0: {"output":"asked, and got yes"} | result r0c1: {"output":"did r0c1"} | assistant: round 1 | assistant: round 1 | assistant: round 0`)
	for limit := range whole.RecordCount() {
		store := &graphtest.Crash{Store: journal.NewMemory(), Limit: limit, Lost: limit%2 == 1}
		c := newNestedAgents()
		finish(t, &graph.Runner{Graph: c.graph(t), Store: store}, in)
		res, _ := finish(t, &graph.Runner{Graph: c.graph(t), Store: store.Store}, in)
		where := fmt.Sprintf("crash after record %d", limit)
		if d := cmp.Diff(agent.Messages.Get(want.State), agent.Messages.Get(res.State)); d != "" {
			t.Fatalf("%s: the conversation differs (-want +got):\n%s", where, d)
		}
		if res.Status != graph.Done || agent.Spent.Get(res.State) != agent.Spent.Get(want.State) {
			t.Errorf("%s: status %v, spent %+v, want %+v", where, res.Status, agent.Spent.Get(res.State), agent.Spent.Get(want.State))
		}
		for i, w := range c.worlds() {
			for id, n := range w.calls {
				if n > 2 {
					t.Errorf("%s: agent %d made the call %s %d times", where, i, id, n)
				}
			}
			for round, n := range w.requests {
				if n > 2 {
					t.Errorf("%s: agent %d asked %d times for the reply of round %d", where, i, n, round)
				}
			}
		}
	}
}
