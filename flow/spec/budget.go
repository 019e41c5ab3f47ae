package spec

import (
	"fmt"
	"path/filepath"

	"raddle.dev/internal/base/strictyaml"
)

// A Budget limits what the models of a graph or a node may use together.
type Budget struct {
	Calls      int      // of models; 0: no limit
	Tokens     int      // of requests and replies; 0: no limit
	Cost       *float64 // in US dollars; nil: no limit
	OnExceeded string   // StopWord, AskWord, or the id of the node that runs next
	Source     strictyaml.Mapping

	unknown []strictyaml.Finding
}

// What happens when a budget is used up, if no node runs then.
const (
	StopWord = "stop" // the run fails, and can be continued
	AskWord  = "ask"  // a person is asked whether as much again may be used
)

// Handler returns the id of the node that runs when the budget is used up; "": there is none.
func (b *Budget) Handler() string {
	if b == nil || b.OnExceeded == StopWord || b.OnExceeded == AskWord {
		return ""
	}
	return b.OnExceeded
}

// Place returns where the budget is set: the directory, the file and the line.
func (b *Budget) Place() string {
	at := b.Source.Pos
	return fmt.Sprintf("%s/%s:%d", filepath.Base(filepath.Dir(at.File)), filepath.Base(at.File), at.Line)
}

// readBudget reads the budget among the members of m; nil: there is none.
func readBudget(m *strictyaml.Fields, node string) *Budget {
	const field = "budget"
	at := m.ReadMapping(field)
	if at == nil {
		return nil
	}
	path := field
	if m.Path != "" {
		path = m.Path + "." + field
	}
	s := strictyaml.NewFields(m.Problems, strictyaml.Mapping{Pos: m.Source.PositionOf(at), Node: at}, path)
	b := &Budget{
		Calls:      s.ReadCount("calls", 0),
		Tokens:     s.ReadCount("tokens", 0),
		Cost:       s.ReadFloat("cost"),
		OnExceeded: StopWord,
		Source:     s.Source,
	}
	if to := s.ReadText("on_exceeded", strictyaml.Optional); to != "" {
		b.OnExceeded = to
	}
	for _, name := range []string{"calls", "tokens"} {
		if n := s.FindField(name); n != nil && strictyaml.ResolveAlias(n).Value == "0" {
			s.AddFault(n, name, "invalid-value", "invalid value: 0, expected at least 1; without the line there is no limit")
		}
	}
	if b.Cost != nil && *b.Cost <= 0 {
		s.AddFault(s.FindField("cost"), "cost", "invalid-value", fmt.Sprintf("invalid value: %v, expected an amount in US dollars above 0", *b.Cost))
	}
	if b.Calls == 0 && b.Tokens == 0 && b.Cost == nil && s.FindField("calls") == nil && s.FindField("tokens") == nil {
		m.AddFault(at, field, "missing-field", "there is no limit: add `calls`, `tokens` or `cost`")
	}
	b.unknown = s.UnknownKeys(node, nil)
	return b
}

// addBudgetEdges adds, to each node that may use models, the edge to the node that runs when the budget of the graph is
// used up.
func (p *FileParser) addBudgetEdges() {
	to := p.File.Budget.Handler()
	if to == "" {
		return
	}
	branches := map[string]bool{to: true}
	for _, n := range p.File.Nodes {
		if n.Branch != nil {
			for _, id := range n.Branch.Nodes() {
				branches[id] = true
			}
		}
	}
	for _, n := range p.File.Nodes {
		if n.Type != nil && n.Type.hasField("budget") && !branches[n.ID] && n.Budget.Handler() != to {
			n.edges = append(n.edges, budgetEdge(to))
		}
	}
}

func budgetEdge(to string) Edge {
	return Edge{To: to, Field: "budget", Role: EdgeFailure, Picture: "budget"}
}
