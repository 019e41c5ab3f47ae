package flow

// AgentNode runs another agent and waits for its result.
type AgentNode struct {
	Agent        string
	Prompt       Template // strict
	OutputSchema any      // nil: the text is not parsed
	Timeout      Seconds
}

// Kind returns "agent".
func (*AgentNode) Kind() string { return "agent" }

var agentKind = kind{
	name:     "agent",
	doc:      "Runs another agent with a prompt and waits for its result.",
	required: []string{"agent", "prompt"},
	optional: []string{"state_updates", "output_schema", "timeout"},
	scoped:   "output",
	decode: func(m *fields) Body {
		return &AgentNode{
			Agent:        m.readText("agent", required),
			Prompt:       ParseTemplate(m.readText("prompt", required)),
			OutputSchema: m.readAny("output_schema"),
			Timeout:      m.readSeconds("timeout", 300),
		}
	},
}
