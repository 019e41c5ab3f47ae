package agent_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
)

// TestRequestsAreValidForEveryInput gives nodes and agents every kind of input, with
// conversations that no loop would make and every visibility. A strict server accepts
// their requests.
func TestRequestsAreValidForEveryInput(t *testing.T) {
	s := strict(t, func(w http.ResponseWriter, _ *http.Request, _ []wireMessage) { saying(w, "Well.") })
	m := s.model()
	timelines := []agent.Timeline{agent.AllRuns, agent.ThisRun, agent.ThisVisit}
	branches := []agent.Branch{agent.RelatedBranches, agent.AllBranches, agent.OwnBranch}
	inputs := []func(graph.State) (llm.Message, error){nil, agent.FromLastResponse, agent.FromResponse("first"),
		func(s graph.State) (llm.Message, error) {
			return llm.User("As they say: " + agent.LastResponse(s)), nil
		}}
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 3))
		see := func() agent.Visibility {
			return agent.Visibility{Timeline: timelines[rng.IntN(len(timelines))], Branch: branches[rng.IntN(len(branches))]}
		}
		g := chain(t, agent.Think{Model: m, Visibility: see()}.Node("first"),
			agent.Agent{Graph: loop(t, m), Visibility: see(), Share: rng.IntN(2) == 0, Input: inputs[rng.IntN(len(inputs))]}.Node("second"),
			agent.Agent{Graph: loop(t, m), Visibility: see(), Input: inputs[rng.IntN(len(inputs))]}.Node("third"),
			agent.Think{Model: m, Visibility: see()}.Node("fourth"))
		r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
		for turn := range 2 {
			set := agent.TurnInput(fmt.Sprint("turn ", turn))
			for range rng.IntN(8) {
				set = append(set, anything(rng))
			}
			if rng.IntN(2) == 0 {
				set = append(set, agent.OneShotFor("fourth", unusualMessages(rng)...))
			}
			if rng.IntN(3) == 0 {
				set = append(set, agent.OneShot(unusualMessages(rng)...))
			}
			if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: set}); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	}
	s.check()
}

// unusualMessages returns messages that no real conversation has.
func unusualMessages(rng *rand.Rand) (list []llm.Message) {
	list = append(list, []llm.Message{llm.User("listen"), say("oh")}[rng.IntN(2)])
	for range rng.IntN(4) {
		list = append(list, []llm.Message{llm.User("hear"), say("aha"), call("x", "look", `[]`), {Role: llm.RoleUser},
			{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "x", Name: "look"}}}}[rng.IntN(5)])
	}
	return list
}
