package spec

import "raddle.dev/internal/strictyaml"

// ApprovalNode asks a person to choose, and routes by the answer.
type ApprovalNode struct {
	Question Template // strict
	Options  []string
	Routes   []Route // in file order
	OnOther  string
}

// Kind returns "approval".
func (*ApprovalNode) Kind() string { return "approval" }

// Target returns the node to which an answer leads: that of the route with
// exactly this text, else OnOther.
func (a *ApprovalNode) Target(answer string) string {
	for _, r := range a.Routes {
		if r.Answer == answer {
			return r.Target
		}
	}
	return a.OnOther
}

var approvalKind = kind{
	Name:     "approval",
	Doc:      "Asks a person to choose and routes by the answer.",
	Required: []string{"question", "options", "routes", "on_other"},
	Optional: []string{"state_updates"},
	Scoped:   "choice",
	Decode: func(m *strictyaml.Fields) Body {
		a := &ApprovalNode{
			Question: ParseTemplate(m.ReadText("question", strictyaml.Required)),
			Options:  m.ReadTexts("options", strictyaml.Required),
		}
		for _, p := range m.ReadPairs("routes", strictyaml.Required) {
			a.Routes = append(a.Routes, Route{p.Key, p.Value})
		}
		a.OnOther = m.ReadText("on_other", strictyaml.Required)
		return a
	},
}
