package flow

import (
	"errors"
	"fmt"
	"slices"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/strictyaml"
)

// approvalNode asks a person to choose, and routes by the answer.
type approvalNode struct {
	question spec.Template // strict
	options  []string
	routes   []strictyaml.Pair // the answer and the node to which it leads, in file order
	onOther  string
	deadline spec.Deadline
}

var approvalKind = &kind{
	Kind: spec.Kind{
		Name:        "approval",
		Doc:         "Asks a person to choose and routes by the answer.",
		Required:    []string{"question", "options", "routes", "on_other"},
		Optional:    []string{"deadline", "on_deadline", "state_updates"},
		Scoped:      "choice",
		Routing:     spec.RouteOwn,
		BranchFault: "which is an approval node; approval/input nodes cannot run inside a parallel map branch (the CLI would prompt the user N times concurrently)",
	},
	decode: func(m *spec.NodeFields) nodeBody {
		b := &approvalNode{
			question: m.AddStrict("question", m.ReadText("question", strictyaml.Required)),
			options:  m.ReadTexts("options", strictyaml.Required),
			routes:   m.ReadPairs("routes", strictyaml.Required),
			onOther:  m.ReadText("on_other", strictyaml.Required),
		}
		for i, r := range b.routes {
			m.AddEdge(spec.Edge{To: r.Value, Field: "routes", Item: i, Role: spec.EdgeChoice, Picture: r.Key})
		}
		m.AddEdge(spec.Edge{To: b.onOther, Field: "on_other", Role: spec.EdgeChoice, Picture: "other"})
		b.deadline = m.ReadDeadline()
		return b
	},
}

// Checks returns the checks of the answers, and that no other node runs at the
// same time.
func (b *approvalNode) Checks() check.Checks {
	return check.Checks{check.Answers: b.checkAnswers, check.Parallel: b.checkParallel}
}

func (b *approvalNode) checkAnswers(c *check.Checker, n *spec.Node) {
	options := map[string]bool{}
	routes := map[string]bool{}
	for _, r := range b.routes {
		routes[r.Key] = true
	}
	optionAt := n.Source.ItemPositions("options")
	routeAt := n.Source.KeyPositions("routes")
	for i, o := range b.options {
		options[o] = true
		if !routes[o] {
			c.ErrorAt(n, optionAt(i), "option-without-route", "Approval option '%s' has no route defined", o)
		}
	}
	for i, r := range b.routes {
		if !options[r.Key] {
			c.WarnAt(n, routeAt(i), "route-without-option", fmt.Sprintf("Route '%s' has no corresponding option", r.Key))
		}
	}
}

func (b *approvalNode) checkParallel(c *check.Checker, n *spec.Node) {
	c.ErrorAt(n, n.Pos(), "parallel-approval", "approval node is an immediate target of a fan-out (`next: [...]`); approvals must run after the join, not inside a parallel branch")
}

// Advise reports an approval without options, and an answer of its deadline that is none of them.
func (b *approvalNode) Advise(a *check.Adviser, n *spec.Node) {
	if len(b.options) == 0 {
		a.WarnAt(n, n.At("options"), "no-options", "approval without options: every answer is free text", "an input node asks for text")
	}
	adviseDeadline(a, n, &b.deadline, func(answer string) string {
		if len(b.options) == 0 || slices.Contains(b.options, answer) {
			return ""
		}
		return fmt.Sprintf("'%s' is none of the options, so it leads to '%s'", answer, b.onOther)
	})
}

func (b *approvalNode) needs(*spec.Node) nodeNeeds { return nodeNeeds{} }

func (b *approvalNode) compile(_ *nodeCompiler, node *graph.Node) error {
	node.Quiet = true
	return nil
}

// target returns the node to which an answer leads: that of the route with
// exactly this text, else that of other answers.
func (b *approvalNode) target(answer string) string {
	for _, r := range b.routes {
		if r.Key == answer {
			return r.Value
		}
	}
	return b.onOther
}

// run asks a person to choose, and routes by the answer.
func (b *approvalNode) run(nr *nodeRun) error {
	question, err := nr.renderStrict(b.question, "Failed to interpolate approval question")
	if err != nil {
		return err
	}
	if nr.host().Headless {
		return spec.Errorf("Approval response missing 'answer' field")
	}
	answer, moved, err := nr.askUntil(&b.deadline, graph.Ask{Kind: "select", Prompt: question, Options: b.options, Free: true})
	if err != nil || moved {
		return nr.refusalError("user__ask failed", "Approval interaction failed", err)
	}
	answer = nr.host().redact(answer)
	nr.applyUpdates("choice", answer)
	return nr.goTo(b.target(answer))
}

// refusalError returns why a question has no answer: at the root the person
// refused it; in a child the question could not reach the person.
func (nr *nodeRun) refusalError(root, below string, err error) error {
	var refused *graph.RefusedError
	switch {
	case isWaiting(err) || !errors.As(err, &refused):
		return err
	case nr.agent.depth > 0:
		return newChainError(below, err)
	}
	return newChainError(root, err)
}
