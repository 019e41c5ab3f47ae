package team_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
	"raddle.dev/team"
)

// parserTeam is a team whose lead starts an agent that looks for the parser, and waits for it.
// The ids of agents are made of the run and the call, so that a transcript can name them.
func parserTeam() *graph.Graph {
	lead := played("lead.yaml", `
- tool_calls:
    - {id: a, name: agent__spawn, args: {agent: explore, prompt: Find the parser.}}
- tool_calls:
    - {id: b, name: agent__collect, args: {id: agent_explore_205316bd}}
- text: The parser is in flow/parse.go.
`)
	explore := played("explore.yaml", "- text: flow/parse.go")
	g, err := team.Config{
		Lead:   team.Member{Agent: agent.Config{Model: lead}, Spawn: &team.Spawn{}},
		Agents: map[string]team.Member{"explore": {Agent: agent.Config{Model: explore}, Description: "looks for things in the code"}},
	}.Compile()
	if err != nil {
		log.Fatal(err)
	}
	return g
}

// played is a model that says what a transcript says.
func played(name, text string) llm.Model {
	m, err := script.Parse(name, []byte(text))
	if err != nil {
		panic(err)
	}
	return m
}

// A lead starts an agent, waits for it, and reports what it has found.
func ExampleConfig() {
	r := &graph.Runner{Graph: parserTeam(), Store: journal.NewMemory()}
	for e, err := range r.Run(context.Background(), graph.Input{Thread: "t", Run: "r1", Set: agent.Turn("Where is the parser?"), Topics: graph.TopicEmit}) {
		if err != nil {
			fmt.Println(err)
		}
		sent, _ := e.Body.(graph.ValueEmitted)
		switch v := sent.Value.(type) {
		case team.AgentStarted, team.AgentEnded:
			fmt.Println(v)
		case agent.ToolDone:
			fmt.Println(v.Text)
		case agent.ReplyDone:
			if text := v.Message.Text(); text != "" {
				fmt.Println(e.Path, text)
			}
		}
	}
	// Unordered output:
	// agent agent_explore_205316bd started
	// {"status":"ok","id":"agent_explore_205316bd","agent":"explore","message":"Agent 'explore' spawned as 'agent_explore_205316bd'. Use agent__check or agent__collect to get results."}
	// team/agent_explore_205316bd/ flow/parse.go
	// agent agent_explore_205316bd completed
	// {"status":"completed","id":"agent_explore_205316bd","agent":"explore","exit_status":"Completed","output":"flow/parse.go"}
	// team/lead/ The parser is in flow/parse.go.
}

// What the agents of a run did can be read from its journal, without the team.
func ExampleHistory() {
	ctx, store := context.Background(), journal.NewMemory()
	r := &graph.Runner{Graph: parserTeam(), Store: store}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "t", Run: "r1", Set: agent.Turn("Where is the parser?")}); err != nil {
		log.Fatal(err)
	}

	past, err := readTeamLog(ctx, store, "t")
	fmt.Println(err)
	for _, a := range past.Agents {
		fmt.Printf("%s, started by %s: %q %s, %d request\n", a.ID, a.Parent, a.Purpose, a.Status, a.Spent.Calls)
	}
	// Output:
	// <nil>
	// agent_explore_205316bd, started by lead: "Find the parser." completed, 1 request
}

// readTeamLog returns the history of the team whose run is the newest one of a thread.
func readTeamLog(ctx context.Context, store journal.Store, thread string) (h team.History, err error) {
	var found []int64
	for e, err := range history.Entries(ctx, store, thread) {
		if err != nil {
			return h, err
		}
		if e.Kind == journal.KindEffect && team.IsLog(e.ID) {
			found = append(found, e.Seq)
		}
	}
	for r, err := range store.Read(ctx, thread, journal.Range{}) {
		if err != nil {
			return h, err
		}
		if !slices.Contains(found, r.Seq) {
			continue
		}
		var data json.RawMessage
		if err := json.Unmarshal(r.Data, &data); err != nil {
			return h, err
		}
		if err := h.Add(data); err != nil {
			return h, err
		}
	}
	return h, nil
}

// A catalogue is the part of a system prompt that lists the agents. Those that a rule
// does not name are not in it.
func ExampleConfig_Catalogue() {
	c := team.Config{Agents: map[string]team.Member{
		"explore": {Description: "looks for things in the code"},
		"review":  {Description: "reads a change"},
		"secret":  {Description: "is for the lead only"},
	}}
	fmt.Print(c.Catalogue(team.Spawn{Only: []string{"explore", "review"}}))
	// Output:
	// The agents are:
	// - explore: looks for things in the code
	// - review: reads a change
}

// An agent of a team can be any graph. It gets the prompt, and its output is what Output returns.
func ExampleMember() {
	in, out := graph.Last[string]("in"), graph.Last[string]("out")
	upper, err := graph.Compile(graph.Def{
		Name: "upper",
		Keys: []graph.AnyKey{in, out},
		Nodes: []graph.Node{{Name: "upper", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			return graph.Put(out.Set(strings.ToUpper(in.Get(s)))), nil
		}}},
		Edges: []graph.Edge{{From: []string{"upper"}, To: []string{graph.End}}},
		Start: []string{"upper"},
	})
	if err != nil {
		log.Fatal(err)
	}
	g, err := team.Config{
		Lead: team.Member{Agent: agent.Config{Model: played("lead.yaml", `
- tool_calls:
    - {id: a, name: agent__spawn, args: {agent: upper, prompt: louder}}
- tool_calls:
    - {id: b, name: agent__collect, args: {id: agent_upper_0e6a5055}}
- text: Done.
`)}, Spawn: &team.Spawn{}},
		Agents: map[string]team.Member{"upper": {
			Graph:  upper,
			Input:  func(prompt string) []graph.Write { return []graph.Write{in.Set(prompt)} },
			Output: func(child graph.Child) string { return out.Get(child.State) },
		}},
	}.Compile()
	if err != nil {
		log.Fatal(err)
	}
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(context.Background(), graph.Input{Thread: "t", Run: "r1", Set: agent.Turn("Say it louder.")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(agent.LastResponse(res.State))
	fmt.Println(agent.LastToolResponse(res.State))
	// Output:
	// Done.
	// {"status":"completed","id":"agent_upper_0e6a5055","agent":"upper","exit_status":"Completed","output":"LOUDER"}
}
