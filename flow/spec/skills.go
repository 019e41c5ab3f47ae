package spec

import "raddle.dev/internal/strictyaml"

// Skills are the four skill fields of a graph or of an llm node.
type Skills struct {
	Enabled      *bool
	Names        []string // enabled_skills; nil: not given
	Inject       *bool    // inject_skill_instructions
	Instructions string
}

// readSkills reads the four skill fields of a graph or of a node.
func readSkills(m *strictyaml.Fields) Skills {
	return Skills{
		Enabled:      m.ReadOptionalFlag("skills_enabled"),
		Names:        m.ReadTexts("enabled_skills", strictyaml.Optional),
		Inject:       m.ReadOptionalFlag("inject_skill_instructions"),
		Instructions: m.ReadText("skill_instructions", strictyaml.Optional),
	}
}
