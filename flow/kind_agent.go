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
			Agent:        m.str("agent", required),
			Prompt:       ParseTemplate(m.str("prompt", required)),
			OutputSchema: m.any("output_schema"),
			Timeout:      m.seconds("timeout", 300),
		}
	},
}
