package flow

import (
	"fmt"
	"strconv"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/strictyaml"
)

// inputNode asks a person for a text.
type inputNode struct {
	question   spec.Template // strict
	fallback   spec.Template // lenient; replaces an empty answer
	validation string        // a length predicate; empty: none
	deadline   spec.Deadline
}

var inputKind = &kind{
	Kind: spec.Kind{
		Name:        "input",
		Doc:         "Asks a person for a text.",
		Required:    []string{"question"},
		Optional:    []string{"default", "validation", "deadline", "on_deadline", "state_updates"},
		Scoped:      "input",
		Routing:     spec.RouteFirst,
		BranchFault: "which is an input node; input nodes cannot run inside a parallel map branch",
	},
	decode: func(m *spec.NodeFields) nodeBody {
		return &inputNode{
			question:   m.AddStrict("question", m.ReadText("question", strictyaml.Required)),
			fallback:   m.AddLenient("default", m.ReadText("default", strictyaml.Optional)),
			validation: m.ReadText("validation", strictyaml.Optional),
			deadline:   m.ReadDeadline(),
		}
	},
}

// Checks returns the check that no other node runs at the same time.
func (b *inputNode) Checks() check.Checks { return check.Checks{check.Parallel: b.checkParallel} }

func (b *inputNode) checkParallel(c *check.Checker, n *spec.Node) {
	c.ErrorAt(n, n.Pos(), "parallel-input", "input node is an immediate target of a fan-out (`next: [...]`); input nodes must run after the join, not inside a parallel branch")
}

// Advise reports a validation that cannot be read, and an answer of the deadline that fails it.
func (b *inputNode) Advise(a *check.Adviser, n *spec.Node) {
	adviseDeadline(a, n, &b.deadline, func(answer string) string {
		if b.validation == "" || takesDefault(answer, b.fallback.Text) {
			return ""
		}
		if err := spec.ValidateInput(b.validation, answer); err != nil {
			return err.Error()
		}
		return ""
	})
	if b.validation == "" {
		return
	}
	if _, err := spec.ParsePredicate(b.validation); err != nil {
		a.WarnAt(n, n.At("validation"), "validation", err.Error()+": every answer is refused", "write for example `len(input) > 0`")
	}
}

func (b *inputNode) needs(*spec.Node) nodeNeeds { return nodeNeeds{} }

func (b *inputNode) compile(_ *nodeCompiler, node *graph.Node) error {
	node.CheckAnswer = b.checkAnswer
	node.Quiet = true
	return nil
}

// takesDefault reports whether an answer selects the default, which is not
// validated. Without a default an empty answer is an ordinary answer.
func takesDefault(answer, fallback string) bool {
	return fallback != "" && (answer == "" || answer == fallback)
}

// checkAnswer returns why an answer fails the validation, before the answer is
// recorded. An invalid validation fails the node.
func (b *inputNode) checkAnswer(q graph.Question, a graph.Answer) error {
	answer, ok := a.Value.(string)
	if _, err := spec.ParsePredicate(b.validation); !ok || err != nil || takesDefault(answer, q.Default) {
		return nil
	}
	return spec.ValidateInput(b.validation, answer)
}

// run asks a person for a text.
func (b *inputNode) run(nr *nodeRun) error {
	question, err := nr.renderStrict(b.question, "Failed to interpolate input question")
	if err != nil {
		return err
	}
	fallback, err := b.fallback.RenderLenientWithin(nr.lookupPlaceholder, nr.host().maxValue())
	if err != nil {
		return newChainError("the default of an input node", err)
	}
	if fallback != "" {
		question += " [default: " + fallback + "]"
	}
	ask := graph.Ask{Kind: "input", Prompt: question, Default: fallback}
	if n := graph.FailureCount(nr); n > 0 && b.validation != "" {
		ask.Name = fmt.Sprintf("after failure %d", n) // so that the rejected answer is not used again
	}
	answer, moved, err := nr.askText(&b.deadline, ask)
	if err != nil || moved {
		return nr.refusalError("user__input failed", "Input interaction failed", err)
	}
	if takesDefault(answer, fallback) {
		answer = fallback
	} else if err := spec.ValidateInput(b.validation, answer); err != nil {
		return err
	}
	nr.applyUpdates("input", nr.host().redact(answer))
	if nr.lacksNext() {
		return spec.Errorf("Input node has no `next` set")
	}
	return nr.goTo(nr.node.Next[:min(1, len(nr.node.Next))]...)
}

// askText asks for a text, as askUntil does. If there is no person to ask, it returns the default.
func (nr *nodeRun) askText(d *spec.Deadline, ask graph.Ask) (answer string, moved bool, err error) {
	switch {
	case !nr.host().Headless:
		return nr.askUntil(d, ask)
	case ask.Default == "":
		return "", false, spec.Errorf("Input response missing 'answer' field")
	}
	return ask.Default, false, nil
}

// failedValidation matches the fixed text of an answer that fails its
// validation.
var failedValidation = pattern.CompileLater(`^(?:at node '[^']*': )?Input failed validation '(.*)' \(got (\d+) chars\)$`)

// AnswerHeadline returns the reason why an answer is rejected in plain words
// for a person at a terminal. It returns an unknown reason unchanged.
func AnswerHeadline(reason string) string {
	found := failedValidation().FindStringSubmatch(reason)
	if found == nil {
		return reason
	}
	p, err := spec.ParsePredicate(found[1])
	got, _ := strconv.ParseUint(found[2], 10, 64) // an overflow is the largest number
	if err != nil {
		return reason
	}
	text := describeRequirement(p)
	if p.IsSatisfiedBy(got) { // the length counts bytes
		text += " Letters such as é count as two or more."
	}
	return text
}

// describeRequirement says what the predicate requires of a text that does not satisfy it.
func describeRequirement(p spec.Predicate) string {
	switch {
	case p.Op == ">" && p.Limit < ^uint64(0):
		return "Too short: at least " + formatCharacters(p.Limit+1) + "."
	case p.Op == ">=":
		return "Too short: at least " + formatCharacters(p.Limit) + "."
	case p.Op == "<" && p.Limit > 0:
		return "Too long: at most " + formatCharacters(p.Limit-1) + "."
	case p.Op == "<=":
		return "Too long: at most " + formatCharacters(p.Limit) + "."
	case p.Op == "==":
		return "Wrong length: exactly " + formatCharacters(p.Limit) + "."
	}
	return fmt.Sprintf("No answer can satisfy len(input) %s %d.", p.Op, p.Limit)
}

func formatCharacters(n uint64) string {
	if n == 1 {
		return "1 character"
	}
	return strconv.FormatUint(n, 10) + " characters"
}
