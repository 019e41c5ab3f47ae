package flow

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
	name:     "approval",
	doc:      "Asks a person to choose and routes by the answer.",
	required: []string{"question", "options", "routes", "on_other"},
	optional: []string{"state_updates"},
	scoped:   "choice",
	decode: func(m *fields) Body {
		a := &ApprovalNode{
			Question: ParseTemplate(m.readText("question", required)),
			Options:  m.readTexts("options", required),
		}
		for _, p := range m.readPairs("routes", required) {
			a.Routes = append(a.Routes, Route{p.key, p.value})
		}
		a.OnOther = m.readText("on_other", required)
		return a
	},
}
