package spec

import "raddle.dev/internal/strictyaml"

// InputNode asks a person for a text.
type InputNode struct {
	Question   Template // strict
	Default    Template // lenient; replaces an empty answer
	Validation string   // a length predicate; empty: none
}

// Kind returns "input".
func (*InputNode) Kind() string { return "input" }

var inputKind = kind{
	Name:     "input",
	Doc:      "Asks a person for a text.",
	Required: []string{"question"},
	Optional: []string{"default", "validation", "state_updates"},
	Scoped:   "input",
	Decode: func(m *strictyaml.Fields) Body {
		return &InputNode{
			Question:   ParseTemplate(m.ReadText("question", strictyaml.Required)),
			Default:    ParseTemplate(m.ReadText("default", strictyaml.Optional)),
			Validation: m.ReadText("validation", strictyaml.Optional),
		}
	},
}
