package flow

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
	OutputSchema      any      // nil: the text is not parsed
	Timeout           *Seconds // nil: none
	Patience          *Seconds // retry_patience; nil: the graph's
	Skills            Skills
}

// Kind returns "llm".
func (*LLMNode) Kind() string { return "llm" }

var llmKind = kind{
	name:     "llm",
	doc:      "Asks a model, which may use the listed tools.",
	required: []string{"prompt"},
	optional: []string{
		"instructions", "tools", "model", "temperature", "top_p", "fallback", "max_attempts",
		"max_iterations", "state_updates", "output_schema", "timeout", "reasoning_effort", "retry_patience",
		"skills_enabled", "enabled_skills", "inject_skill_instructions", "skill_instructions",
	},
	scoped: "output",
	decode: func(m *fields) Body {
		l := &LLMNode{
			Prompt:          ParseTemplate(m.readText("prompt", required)),
			Tools:           m.readTexts("tools", optional),
			Model:           m.readText("model", optional),
			Temperature:     m.readFloat("temperature"),
			TopP:            m.readFloat("top_p"),
			ReasoningEffort: m.readText("reasoning_effort", optional),
			Fallback:        m.readText("fallback", optional),
			MaxAttempts:     m.readCount("max_attempts", 1),
			MaxIterations:   m.readCount("max_iterations", 10),
			OutputSchema:    m.readAny("output_schema"),
			Timeout:         m.maybeSeconds("timeout"),
			Patience:        m.maybeSeconds("retry_patience"),
			Skills: Skills{
				Enabled:      m.maybeFlag("skills_enabled"),
				Names:        m.readTexts("enabled_skills", optional),
				Inject:       m.maybeFlag("inject_skill_instructions"),
				Instructions: m.readText("skill_instructions", optional),
			},
		}
		if m.hasValue("instructions") {
			t := ParseTemplate(m.readText("instructions", optional))
			l.Instructions = &t
		}
		return l
	},
}
