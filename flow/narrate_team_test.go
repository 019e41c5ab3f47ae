package flow

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// Lines of agents that work at the same time name the one they are about; those of
// the lead are the run's own.
func TestNarrateTeam(t *testing.T) {
	a := &Agent{Name: "boss", Config: &Config{}, host: &Host{}}
	var out strings.Builder
	n := Narrate(&out, a, false)
	at := time.Unix(0, 0)
	tell := func(after time.Duration, path, node string, body graph.Body) {
		at = at.Add(after)
		n.Event(graph.Event{Time: at, Path: path, Node: node, Task: "1." + node + ".0", Body: body})
	}
	emit := func(after time.Duration, path, node string, v any) { tell(after, path, node, graph.Emitted{Value: v}) }
	const one, two = "agent_explore_1f2e3d4c", "agent_explore_00000001"
	tell(0, "", "", graph.RunStarted{})
	emit(0, "team/lead/", "act", agent.ToolStarted{ID: "c1", Name: "agent__spawn", Args: []byte(`{}`)})
	emit(0, "", "team", team.AgentStarted{ID: one, Agent: "explore", Parent: team.Lead})
	emit(time.Second, "", "team", team.AgentStarted{ID: two, Agent: "explore", Parent: one, Task: "2", Resumed: true})
	tell(0, "team/"+one+"/", "think", graph.TaskStarted{Kind: "llm"})
	emit(0, "team/"+one+"/", "think", agent.Replied{Usage: llm.Usage{Input: 100, Output: 20}})
	emit(0, "team/"+one+"/", "act", agent.ToolStarted{ID: "c1", Name: "fs_read", Args: []byte(`{"path":"a"}`)})
	emit(0, "team/"+two+"/", "act", agent.ToolDone{ID: "c1", Name: "fs_read", Text: "no\x1b[2J\nway", Error: true})
	emit(0, "", "team", team.TaskWaiting{ID: "3", Subject: "three", Agent: "explore", Parent: team.Lead})
	tell(0, "", "", graph.RunEnded{Result: graph.Result{Status: graph.Waiting}})
	tell(time.Hour, "", "", graph.RunStarted{Resumed: true}) // somebody was asked meanwhile
	emit(0, "", "team", team.AgentStarted{ID: one, Agent: "explore", Parent: team.Lead, Resumed: true})
	emit(2*time.Second, "", "team", team.AgentEnded{ID: one, Agent: "explore", Status: "completed"})
	emit(0, "", "team", team.AgentEnded{ID: two, Agent: "explore", Status: "failed", Error: "it broke", Spent: agent.Spend{Calls: 1, Usage: llm.Usage{Input: 5}}})
	tell(0, "", "", graph.RunEnded{Result: graph.Result{Status: graph.Done}})
	want := `▸ agent: boss (model: )
▸   tool call: agent__spawn {}
▸ explore (agent_explore_1f2e3d4c) started
▸ explore (agent_explore_00000001) goes on, spawned by agent_explore_1f2e3d4c, for task 2
▸   [agent_explore_1f2e3d4c] tool call: fs_read {"path":"a"}
▸   [agent_explore_00000001] tool failed: fs_read: no way
▸ task 3 waits for a place: three (explore)
▸ explore (agent_explore_1f2e3d4c) completed in 3.00s (1 model call, 120 tokens)
▸ explore (agent_explore_00000001) failed in 2.00s (1 model call, 5 tokens): it broke
▸ agent done in 3.00s
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}
