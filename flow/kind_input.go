package flow

// InputNode asks a person for a text.
type InputNode struct {
	Question   Template // strict
	Default    Template // lenient; replaces an empty answer
	Validation string   // a length predicate; empty: none
}

// Kind returns "input".
func (*InputNode) Kind() string { return "input" }

var inputKind = kind{
	name:     "input",
	doc:      "Asks a person for a text.",
	required: []string{"question"},
	optional: []string{"default", "validation", "state_updates"},
	scoped:   "input",
	decode: func(m *fields) Body {
		return &InputNode{
			Question:   ParseTemplate(m.readText("question", required)),
			Default:    ParseTemplate(m.readText("default", optional)),
			Validation: m.readText("validation", optional),
		}
	},
}
