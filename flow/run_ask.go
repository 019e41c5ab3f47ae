package flow

import (
	"errors"
	"fmt"

	"raddle.dev/flow/spec"
	"raddle.dev/graph"
)

// runEnd finishes the run with a rendered output.
func (v *nodeRun) runEnd(b *spec.EndNode) error {
	v.applyUpdates("", nil)
	text, err := v.renderLenient(b.Output)
	if err != nil {
		return newChainError("the output of an end node", err)
	}
	v.halt = Outcome{Output: text, ExitCode: b.ExitCode}.toHalt()
	return nil
}

// runApproval asks a person to choose, and routes by the answer.
func (v *nodeRun) runApproval(b *spec.ApprovalNode) error {
	question, err := v.renderStrict(b.Question, "Failed to interpolate approval question")
	if err != nil {
		return err
	}
	if v.host().Headless {
		return spec.Failf("Approval response missing 'answer' field")
	}
	answer, err := graph.Interrupt[string](v, graph.Ask{Kind: "select", Prompt: question, Options: b.Options, Free: true})
	if err != nil {
		return v.refusalError("user__ask failed", "Approval interaction failed", err)
	}
	answer = v.host().redact(answer)
	v.applyUpdates("choice", answer)
	return v.goTo(b.Target(answer))
}

// takesDefault reports whether an answer selects the default, which is not
// validated. Without a default an empty answer is an ordinary answer.
func takesDefault(answer, fallback string) bool {
	return fallback != "" && (answer == "" || answer == fallback)
}

// checkInputAnswer returns why an answer fails the validation, before the answer is
// recorded. An invalid validation fails the node.
func checkInputAnswer(b *spec.InputNode, q graph.Question, a graph.Answer) error {
	answer, ok := a.Value.(string)
	if _, err := spec.ParsePredicate(b.Validation); !ok || err != nil || takesDefault(answer, q.Default) {
		return nil
	}
	return spec.ValidateInput(b.Validation, answer)
}

// runInput asks a person for a text.
func (v *nodeRun) runInput(b *spec.InputNode) error {
	question, err := v.renderStrict(b.Question, "Failed to interpolate input question")
	if err != nil {
		return err
	}
	fallback, err := b.Default.RenderLenientWithin(v.lookupKey, v.host().mostValue())
	if err != nil {
		return newChainError("the default of an input node", err)
	}
	if fallback != "" {
		question += " [default: " + fallback + "]"
	}
	ask := graph.Ask{Kind: "input", Prompt: question, Default: fallback}
	if n := graph.FailureCount(v); n > 0 && b.Validation != "" {
		ask.Name = fmt.Sprintf("after failure %d", n) // so that the rejected answer is not used again
	}
	answer, err := v.askText(ask)
	if err != nil {
		return v.refusalError("user__input failed", "Input interaction failed", err)
	}
	if takesDefault(answer, fallback) {
		answer = fallback
	} else if err := spec.ValidateInput(b.Validation, answer); err != nil {
		return err
	}
	v.applyUpdates("input", v.host().redact(answer))
	if v.node.Next == nil {
		return v.noNext()
	}
	return v.goTo(v.node.Next[:min(1, len(v.node.Next))]...)
}

// askText asks for a text. If there is no person to ask, it returns the default.
func (v *nodeRun) askText(ask graph.Ask) (string, error) {
	switch {
	case !v.host().Headless:
		return graph.Interrupt[string](v, ask)
	case ask.Default == "":
		return "", spec.Failf("Input response missing 'answer' field")
	}
	return ask.Default, nil
}

// refusalError returns why a question has no answer: at the root the person
// refused it; in a child the question could not reach the person.
func (v *nodeRun) refusalError(root, below string, err error) error {
	var refused *graph.RefusedError
	switch {
	case isWaiting(err) || !errors.As(err, &refused):
		return err
	case v.agent.depth > 0:
		return newChainError(below, err)
	}
	return newChainError(root, err)
}
