package spec

import "raddle.dev/internal/strictyaml"

// AgentNode runs another agent and waits for its result.
type AgentNode struct {
	Agent        string
	Prompt       Template // strict
	OutputSchema any      // nil: the text is not parsed
	Timeout      strictyaml.Seconds
}

// Kind returns "agent".
func (*AgentNode) Kind() string { return "agent" }

var agentKind = kind{
	Name:     "agent",
	Doc:      "Runs another agent with a prompt and waits for its result.",
	Required: []string{"agent", "prompt"},
	Optional: []string{"state_updates", "output_schema", "timeout"},
	Scoped:   "output",
	Decode: func(m *strictyaml.Fields) Body {
		return &AgentNode{
			Agent:        m.ReadText("agent", strictyaml.Required),
			Prompt:       ParseTemplate(m.ReadText("prompt", strictyaml.Required)),
			OutputSchema: m.ReadAny("output_schema"),
			Timeout:      m.ReadSeconds("timeout", 300),
		}
	},
}
