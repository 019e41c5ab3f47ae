package spec

import "raddle.dev/internal/strictyaml"

// LLMNode is one conversation with a model, with tools if it lists some.
type LLMNode struct {
	Instructions      *Template // strict; nil: no system prompt
	Prompt            Template  // strict
	Tools             []string
	Model             string // empty: the graph's
	Temperature, TopP *float64
	ReasoningEffort   string
	Fallback          string // the node after a failure; empty: the next
	MaxAttempts       int
	MaxIterations     int
	OutputSchema      any                 // nil: the text is not parsed
	Timeout           *strictyaml.Seconds // nil: none
	Patience          *strictyaml.Seconds // retry_patience; nil: the graph's
	Skills            Skills
}

// Kind returns "llm".
func (*LLMNode) Kind() string { return "llm" }

var llmKind = kind{
	Name:     "llm",
	Doc:      "Asks a model, which may use the listed tools.",
	Required: []string{"prompt"},
	Optional: []string{
		"instructions", "tools", "model", "temperature", "top_p", "fallback", "max_attempts",
		"max_iterations", "state_updates", "output_schema", "timeout", "reasoning_effort", "retry_patience",
		"skills_enabled", "enabled_skills", "inject_skill_instructions", "skill_instructions",
	},
	Scoped: "output",
	Decode: func(m *strictyaml.Fields) Body {
		l := &LLMNode{
			Prompt:          ParseTemplate(m.ReadText("prompt", strictyaml.Required)),
			Tools:           m.ReadTexts("tools", strictyaml.Optional),
			Model:           m.ReadText("model", strictyaml.Optional),
			Temperature:     m.ReadFloat("temperature"),
			TopP:            m.ReadFloat("top_p"),
			ReasoningEffort: m.ReadText("reasoning_effort", strictyaml.Optional),
			Fallback:        m.ReadText("fallback", strictyaml.Optional),
			MaxAttempts:     m.ReadCount("max_attempts", 1),
			MaxIterations:   m.ReadCount("max_iterations", 10),
			OutputSchema:    m.ReadAny("output_schema"),
			Timeout:         m.ReadOptionalSeconds("timeout"),
			Patience:        m.ReadOptionalSeconds("retry_patience"),
			Skills: Skills{
				Enabled:      m.ReadOptionalFlag("skills_enabled"),
				Names:        m.ReadTexts("enabled_skills", strictyaml.Optional),
				Inject:       m.ReadOptionalFlag("inject_skill_instructions"),
				Instructions: m.ReadText("skill_instructions", strictyaml.Optional),
			},
		}
		if m.HasValue("instructions") {
			t := ParseTemplate(m.ReadText("instructions", strictyaml.Optional))
			l.Instructions = &t
		}
		return l
	},
}
