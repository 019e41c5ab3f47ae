package runs

import (
	"fmt"

	"raddle.dev/flow"
	"raddle.dev/graph/journal"
)

// A Failure is one that a run has survived: of a node whose failure has a route, or of an item of a map.
type Failure struct {
	At    int64  `json:"at"`    // number of the record that says so
	Node  string `json:"node"`  // path of the node, with the item of a map: "each/measure[3]" is the third
	Error string `json:"error"` // the reason
}

// Failures returns the failures that the run has survived, oldest first, those of child graphs included.
func (v *View) Failures() []Failure {
	list := []Failure{}
	for i := range v.parts.story.moments {
		m := &v.parts.story.moments[i]
		switch {
		case m.Kind == journal.KindStep:
			list = append(list, stepFailures(m)...)
		case m.Kind == journal.KindEffect && flow.IsFailure(m.ID):
			list = append(list, Failure{At: m.Entry.Seq, Node: m.Node, Error: m.Failure})
		}
	}
	return list
}

// stepFailures returns the failures of the tasks of a step. Those of the children that they called are in the steps of
// the children.
func stepFailures(m *Moment) (list []Failure) {
	for _, f := range m.Failures {
		if f.Path != drivePath(m.Path) || f.Node == "" { // else of a node: a limit or a cancel is none
			continue
		}
		node := joinNode(publicPath(m.Path), f.Node)
		if f.Index > 0 {
			node = fmt.Sprintf("%s[%d]", node, f.Index)
		}
		list = append(list, Failure{At: m.Entry.Seq, Node: node, Error: flow.PlainReason(f.Text)})
	}
	return list
}
