package flow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
)

// askUntil asks a person for a text, until the deadline of the node. moved reports that no one has answered and that
// the node leads to that of on_deadline.
func (nr *nodeRun) askUntil(d *spec.Deadline, ask graph.Ask) (answer string, moved bool, err error) {
	span, again, err := nr.renderDeadline(d)
	if err != nil {
		return "", false, err
	}
	ask.Deadline = span
	ask.Name = cmp.Or(ask.Name, again)
	answer, err = graph.Interrupt[string](nr, ask)
	if errors.Is(err, graph.ErrDeadline) {
		return nr.passDeadline(d, err)
	}
	return answer, false, err
}

// renderDeadline returns how long a question waits, 0 for without limit, and a name for it, "" for none: one whose
// deadline let the node fail is asked again when the run is resumed.
func (nr *nodeRun) renderDeadline(d *spec.Deadline) (span time.Duration, again string, err error) {
	if d.After.Text == "" {
		return 0, "", nil
	}
	if span, err = nr.renderSpan(d.After, "deadline"); err != nil {
		return 0, "", err
	}
	if n := graph.FailureCount(nr); n > 0 && d.To == "" && !d.HasAnswer {
		again = fmt.Sprintf("after failure %d", n)
	}
	return max(span, time.Microsecond), again, nil
}

// passDeadline does what on_deadline says: it leads to a node, returns an answer, or returns err.
func (nr *nodeRun) passDeadline(d *spec.Deadline, err error) (answer string, moved bool, _ error) {
	switch {
	case d.To != "":
		return "", true, nr.goTo(d.To)
	case d.HasAnswer:
		answer, err = nr.renderStrict(d.Answer, "Failed to interpolate on_deadline")
		return answer, false, err
	}
	return "", false, err
}

// adviseDeadline reports an answer of a deadline that a node would not accept from a person, and a node whose id means
// failing in on_deadline. refuse returns why an answer without placeholders would not be accepted, or "".
func adviseDeadline(a *check.Adviser, n *spec.Node, d *spec.Deadline, refuse func(answer string) string) {
	at := n.At("on_deadline")
	if d.HasAnswer && len(d.Answer.Paths()) == 0 {
		if why := refuse(d.Answer.Text); why != "" {
			a.WarnAt(n, at, "deadline-answer", "the answer of on_deadline: "+why, "")
		}
	}
	fails := d.After.Text != "" && d.To == "" && !d.HasAnswer && n.Source.FieldNode("on_deadline") != nil
	if fails && slices.ContainsFunc(a.File.Nodes, func(o *spec.Node) bool { return o.ID == "fail" }) {
		a.WarnAt(n, at, "deadline-fail", "`fail` lets this node fail; it does not lead to the node 'fail'", "give that node another id")
	}
}
