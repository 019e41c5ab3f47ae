package team_test

import (
	"context"
	"fmt"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
	"raddle.dev/team"
)

// played is a model that says what a transcript says.
func played(name, text string) llm.Model {
	m, err := script.Parse(name, []byte(text))
	if err != nil {
		panic(err)
	}
	return m
}

// A lead starts an agent, waits for it, and reports what it has found. The ids of
// agents are made of the run and the call, so that a transcript can name them.
func ExampleConfig() {
	lead := played("lead.yaml", `
- tool_calls:
    - {id: a, name: agent__spawn, args: {agent: explore, prompt: Find the parser.}}
- tool_calls:
    - {id: b, name: agent__collect, args: {id: agent_explore_205316bd}}
- text: The parser is in flow/parse.go.
`)
	explore := played("explore.yaml", `
- text: flow/parse.go
`)
	g, err := team.Config{
		Lead:   team.Member{Agent: agent.Config{Model: lead}, Spawn: &team.Spawn{}},
		Agents: map[string]team.Member{"explore": {Agent: agent.Config{Model: explore}, Description: "looks for things in the code"}},
	}.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
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
