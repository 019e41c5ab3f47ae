package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/wording"
	"raddle.dev/llm"
)

// Explain returns an error of a run of this agent in the words of the file
// format, without secrets. errors.As still finds the engine's error in it.
func (a *Agent) Explain(err error) error {
	if err == nil {
		return nil
	}
	return &explainedError{a.host.redact(describeError(a, err)), err}
}

// describeError returns the text of Explain.
func describeError(a *Agent, err error) string {
	if answer := (*graph.AnswerError)(nil); errors.As(err, &answer) {
		return refusedAnswer(answer)
	}
	if a.Config != nil {
		return fmt.Sprintf("Agent '%s' failed: %s", a.Name, explainConversation(err))
	}
	text, cause := describeEngineError(a, err)
	text = fmt.Sprintf("Graph execution failed for agent '%s': %s", a.Name, text)
	if cause != nil {
		text += ": " + cause.Error()
	}
	return text
}

// refusedAnswer says which answer was rejected, and which rule rejects it.
func refusedAnswer(e *graph.AnswerError) string {
	if !failedValidation().MatchString(e.Reason) {
		return e.Error()
	}
	path, _, _ := strings.Cut(e.ID, "#")
	return fmt.Sprintf("answer to %q: at node '%s': %s", e.ID, path[strings.LastIndexByte(path, '/')+1:], e.Reason)
}

// engineNode matches the text in which the engine names a failed node.
var engineNode = pattern.CompileLater(`node (\S+) \(step \d+[^)]*\)`)

// These match how the file format says with what a script has ended: with a code, or by a signal.
var (
	scriptCode   = pattern.CompileLater(`failed with exit code Some\((\d+)\)`)
	scriptSignal = pattern.CompileLater(`failed with exit code None\b`)
)

// PlainReason returns the reason of a failure, as a journal or an error has it, in words for people: it names nodes as
// graph files do, and the exit code of a script as a number.
func PlainReason(reason string) string {
	reason = engineNode().ReplaceAllString(reason, "at node '$1'")
	reason = scriptCode().ReplaceAllString(reason, "failed with exit code $1")
	return scriptSignal().ReplaceAllString(reason, "was ended by a signal")
}

// explainedError is an error of the engine with a different text.
type explainedError struct {
	text string
	err  error
}

func (e *explainedError) Error() string { return e.text }

// Unwrap returns the engine's error.
func (e *explainedError) Unwrap() error { return e.err }

// describeEngineError returns the first part of the text, and the cause if there is one.
func describeEngineError(a *Agent, err error) (text string, cause error) {
	var (
		step     *graph.StepError
		conflict *graph.ConflictError
		halt     *graph.HaltError
		limit    *graph.LimitError
		canceled *graph.CanceledError
		stuck    *graph.StuckError
		ending   *graph.EndingError
		budget   *agent.BudgetError
	)
	name := a.File.Name
	switch {
	case errors.As(err, &ending) && ending.Failure != nil:
		text, cause = describeEngineError(a, ending.Failure)
		why, of := describeEngineError(a, ending.Err)
		if of != nil {
			why += ": " + of.Error()
		}
		return fmt.Sprintf("the run ends (%s), and its `finally` has failed: %s", PlainReason(why), text), cause
	case errors.As(err, &ending):
		text, cause = describeEngineError(a, ending.Err)
		return PlainReason(text), cause // after a resume, it is the text of the journal
	case errors.As(err, &budget): // which is a limit of the engine, too
		if errors.As(err, &step) && len(step.Tasks) > 0 {
			return fmt.Sprintf("at node '%s'", step.Tasks[0].Node), budget
		}
		return budget.Error(), nil
	case errors.As(err, &limit) && limit.Path == "" && limit.Status == graph.VisitLimit:
		return visitText(limit.Node, limit.Count, limit.Limit), nil
	case errors.As(err, &limit) && limit.Path == "" && limit.Status == graph.TimedOut:
		return fmt.Sprintf("Graph '%s' timed out after %ds%s", name, int64(limit.After/time.Second), describePlace(limit.Frontier, limit.During)), nil
	case errors.As(err, &canceled):
		return fmt.Sprintf("Graph '%s' aborted%s", name, describePlace(canceled.Frontier, canceled.During)), nil
	case errors.As(err, &step) && len(step.Tasks) > 0:
		return nodeText(step.Tasks[0])
	case errors.As(err, &limit):
		return childLimit(limit), nil
	case errors.As(err, &conflict):
		return fmt.Sprintf("Key '%s' was written by %d parallel branches but has no reducer declared. Add a reducer for '%s' to the graph's `reducers:` block, or rename one writer.", conflict.Key, len(conflict.Nodes), conflict.Key), nil
	case errors.As(err, &halt):
		ends := slices.Sorted(slices.Values(halt.Nodes))
		return fmt.Sprintf("super-step ended with multiple End targets (%s). Fan-out branches must converge at a join node before terminating. To fix: route all parallel branches to a single shared next-node, then terminate from there.", strings.Join(ends, ", ")), nil
	case errors.As(err, &stuck):
		return fmt.Sprintf("Graph '%s' frontier emptied without reaching an End node", name), nil
	}
	return err.Error(), nil
}

// explainConversation returns why a conversation with tools did not end normally.
func explainConversation(err error) string {
	var limit *graph.LimitError
	var canceled *graph.CanceledError
	switch {
	case errors.As(err, &limit) && limit.Status == graph.VisitLimit && limit.Node == agent.NodeThink:
		return fmt.Sprintf("it asked its model %d times and did not finish (max_iterations=%d)", limit.Limit, limit.Limit)
	case errors.As(err, &limit) && limit.Status == graph.TimedOut:
		return fmt.Sprintf("it timed out after %ds", int64(limit.After/time.Second))
	case errors.As(err, &canceled):
		return "it was stopped"
	}
	return childCause(err).Error()
}

// nodeText returns the text for the failure of a node; some failures are
// reported without its name.
func nodeText(e *graph.NodeError) (string, error) {
	var plain *plainError
	if errors.As(e.Err, &plain) {
		return plain.text, nil
	}
	return fmt.Sprintf("at node '%s'", e.Node), e.Err
}

// childLimit returns the text for a limit that a child graph reached.
func childLimit(l *graph.LimitError) string {
	if l.Status == graph.VisitLimit {
		return visitText(l.Node, l.Count, l.Limit)
	}
	return fmt.Sprintf("Graph '%s' timed out after %ds%s", l.Graph, int64(l.After/time.Second), describePlace(l.Frontier, l.During))
}

func visitText(node string, count, limit int) string {
	return fmt.Sprintf("Node '%s' visited %d times (max_loop_iterations=%d). Possible infinite loop.", node, count, limit)
}

// describePlace says where a run was stopped.
func describePlace(frontier []string, during bool) string {
	if len(frontier) == 1 && !during {
		return fmt.Sprintf(" at '%s'", frontier[0])
	}
	quoted := make([]string, len(frontier))
	for i, id := range frontier {
		quoted[i] = `"` + id + `"`
	}
	when := "before"
	if during {
		when = "during"
	}
	return fmt.Sprintf(" %s super-step with frontier [%s]", when, strings.Join(quoted, ", "))
}

// chainError is an error whose own text is needed without its cause: some of these
// texts become part of a state.
type chainError struct {
	text  string
	cause error
}

func newChainError(text string, cause error) error { return &chainError{text, cause} }

func (e *chainError) Error() string { return e.text + ": " + e.cause.Error() }

// Unwrap returns the cause.
func (e *chainError) Unwrap() error { return e.cause }

// outermostText returns the text of an error without its causes if the error is a
// chain, and otherwise its whole text.
func outermostText(err error) string {
	if c, ok := err.(*chainError); ok {
		return c.text
	}
	return err.Error()
}

// plainError is a failure that the file format reports without the name of the
// node.
type plainError struct{ text string }

func (e *plainError) Error() string { return e.text }

// isFatal reports whether a failure must end the run, even if the file has a
// route for failures: the run was stopped, the provider rejects the
// credentials, or a budget is used up.
func isFatal(ctx context.Context, err error) bool {
	var provider *llm.Error
	return ctx.Err() != nil || errors.As(err, &provider) && provider.Class == llm.Auth || agent.IsBudgetExhausted(ctx, err)
}

// isWaiting reports whether an error only means that the run stops here for
// now.
func isWaiting(err error) bool {
	return errors.Is(err, graph.ErrWaiting) || errors.Is(err, graph.ErrPaused)
}

// childCause returns the failure that caused the error of a child graph.
func childCause(err error) error {
	var step *graph.StepError
	for errors.As(err, &step) && len(step.Tasks) > 0 {
		err = step.Tasks[0].Err
	}
	return err
}

// maxReason is how many characters of a reason a sentence has.
const maxReason = 160

// DescribeFailure says what a failure that [ReadFailure] has read means for what the node was to write: the end of a
// sentence about the node, such as "whose reply was not JSON".
func DescribeFailure(reason string) string {
	switch {
	case strings.HasPrefix(reason, extractionFailed):
		return "whose reply was not JSON"
	case strings.Contains(reason, scriptNotJSON), strings.Contains(reason, scriptNotObject), strings.HasPrefix(reason, "Failed to merge output from script"):
		return "whose output was not a JSON object"
	case strings.Contains(reason, "produced no output"):
		return "which printed nothing"
	}
	first, _, _ := strings.Cut(reason, "\n")
	return "which had failed: " + wording.CutText(first, maxReason, "…")
}

// ListWriters returns the nodes of a file that are to write a key of the state: those whose fields name it, or else those
// that may write any key.
func ListWriters(f *spec.File, key string) (ids []string) {
	var others []string
	for _, n := range f.Nodes {
		byUpdate := slices.ContainsFunc(n.Updates, func(u spec.Update) bool { return u.Key == key })
		byBranch := n.Branch != nil && (n.Branch.CollectInto == key || n.CountsKey() == key)
		switch {
		case byUpdate, byBranch, slices.Contains(n.SchemaProperties(), key):
			ids = append(ids, n.ID)
		case n.WritesAnyKey():
			others = append(others, n.ID)
		}
	}
	if ids == nil {
		return others
	}
	return ids
}
