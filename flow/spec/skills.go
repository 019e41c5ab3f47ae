package spec

import "raddle.dev/internal/base/strictyaml"

// Skills are the skill fields of an agent, a graph or an llm node.
type Skills struct {
	Enabled      *bool
	Names        []string // enabled_skills; nil: not given
	Preload      []string // preload_skills: with which a conversation begins; nil: not given
	Inject       *bool    // inject_skill_instructions
	Instructions string
}

// readSkills reads the skill fields of an agent, a graph or a node.
func readSkills(m *strictyaml.Fields) Skills {
	return Skills{
		Enabled:      m.ReadOptionalFlag("skills_enabled"),
		Names:        m.ReadTexts("enabled_skills", strictyaml.Optional),
		Preload:      m.ReadTexts("preload_skills", strictyaml.Optional),
		Inject:       m.ReadOptionalFlag("inject_skill_instructions"),
		Instructions: m.ReadText("skill_instructions", strictyaml.Optional),
	}
}
