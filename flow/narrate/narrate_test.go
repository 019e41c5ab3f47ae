package narrate

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// Lines of agents that work at the same time name the one they are about; those of
// the lead are the run's own.
func TestNarrateTeam(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "boss")
	testfile.WriteFile(t, filepath.Join(dir, "config.yaml"), "name: boss\n")
	a, err := flow.Load(dir, flow.Host{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	n := New(&out, a, false)
	at := time.Unix(0, 0)
	tell := func(after time.Duration, path, node string, body graph.Body) {
		at = at.Add(after)
		n.Event(graph.Event{Time: at, Path: path, Node: node, Task: "1." + node + ".0", Body: body})
	}
	emit := func(after time.Duration, path, node string, v any) {
		tell(after, path, node, graph.ValueEmitted{Value: v})
	}
	const one, two, three = "agent_explore_1f2e3d4c", "agent_explore_00000001", "agent_explore_00000003"
	tell(0, "", "", graph.RunStarted{})
	emit(0, "team/lead/", "act", agent.ToolStarted{ID: "c1", Name: "agent__spawn", Args: []byte(`{}`)})
	emit(0, "", "team", team.AgentStarted{ID: one, Agent: "explore", Parent: team.Lead, Purpose: "find the cellar"})
	emit(time.Second, "", "team", team.AgentStarted{ID: two, Agent: "explore", Parent: one, Task: "2", Purpose: "look through all the rooms of the house, and the garden", Resumed: true})
	emit(0, "", "team", team.AgentQueued{ID: three, Agent: "explore", Parent: team.Lead, Purpose: "read"})
	tell(0, "team/"+one+"/", "think", graph.TaskStarted{Kind: "llm"})
	emit(0, "team/"+one+"/", "think", agent.ReplyDone{Usage: llm.Usage{Input: 100, Output: 20}})
	emit(0, "team/"+one+"/", "act", agent.ToolStarted{ID: "c1", Name: "fs_read", Args: []byte(`{"path":"a"}`)})
	emit(0, "team/"+two+"/", "act", agent.ToolDone{ID: "c1", Name: "fs_read", Text: "no\x1b[2J\nway", Error: true})
	emit(0, "", "team", team.TaskWaiting{ID: "3", Subject: "three", Agent: "explore", Parent: team.Lead})
	tell(0, "", "", graph.RunEnded{Result: graph.Result{Status: graph.Waiting}})
	tell(time.Hour, "", "", graph.RunStarted{Resumed: true}) // a person was asked meanwhile
	emit(0, "", "team", team.AgentStarted{ID: one, Agent: "explore", Parent: team.Lead, Purpose: "find the cellar", Resumed: true})
	emit(0, "", "team", team.AgentQueued{ID: three, Agent: "explore", Parent: team.Lead, Purpose: "read"})
	emit(2*time.Second, "", "team", team.AgentEnded{ID: one, Agent: "explore", Status: "completed"})
	emit(0, "", "team", team.AgentEnded{ID: two, Agent: "explore", Status: "failed", Error: "it broke", Spent: agent.Spend{Calls: 1, Usage: llm.Usage{Input: 5}}})
	emit(0, "", "team", team.AgentEnded{ID: three, Agent: "explore", Status: "cancelled"})
	tell(0, "", "", graph.RunEnded{Result: graph.Result{Status: graph.Done}})
	want := `▸ agent: boss (model: )
▸   tool call: agent__spawn {}
▸ explore (agent_explore_1f2e3d4c: find the cellar) started
▸ explore (agent_explore_00000001: look through all the rooms of the house, and the garden) continues, spawned by agent_explore_1f2e3d4c, for task 2
▸ explore (agent_explore_00000003: read) waits for a place
▸   [agent_explore_1f2e3d4c: find the cellar] tool call: fs_read {"path":"a"}
▸   [agent_explore_00000001: look through all the rooms of the house,...] tool failed: fs_read: no way
▸ task 3 waits for a place: three (explore)
▸ explore (agent_explore_1f2e3d4c: find the cellar) completed in 3.00s (1 model call, 120 tokens)
▸ explore (agent_explore_00000001: look through all the rooms of the house, and the garden) failed in 2.00s (1 model call, 5 tokens): it broke
▸ explore (agent_explore_00000003: read) cancelled
▸ agent done in 3.00s
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

// The time that a narrator reports is that of the drives: between them a run waits for a person.
func TestNarratorCountsDrives(t *testing.T) {
	var out strings.Builder
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	n := New(&out, &flow.Agent{File: &spec.File{Name: "g", Start: "a"}}, false)
	for _, e := range []graph.Event{
		{Time: at, Body: graph.RunStarted{}},
		{Time: at.Add(time.Second), Path: "child/", Body: graph.RunStarted{}},
		{Time: at.Add(2 * time.Second), Body: graph.RunEnded{Result: graph.Result{Status: graph.Waiting}}},
		{Time: at.Add(time.Hour), Body: graph.RunStarted{Resumed: true}},
		{Time: at.Add(time.Hour + time.Second), Body: graph.RunEnded{Result: graph.Result{Status: graph.Done}}},
	} {
		n.Event(e)
	}
	if want := "▸ graph: g (start: a)\n▸ graph done in 3.00s\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
