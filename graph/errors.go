package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/journal"
)

var (
	// ErrWaiting ends a task that asked a question. A node must return it unchanged.
	ErrWaiting = errors.New("graph: waiting for an answer")

	// ErrPaused ends a task whose child graph was paused. A node must return it.
	ErrPaused = errors.New("graph: paused")

	// ErrDeadline is what a *RefusedError is (errors.Is) if no one has answered before the Ask.Deadline.
	ErrDeadline = errors.New("graph: the deadline of the question has passed")

	// ErrTimeout is inside the error of a node that exceeded Node.Timeout, or whose
	// step exceeded Def.StepTimeout.
	ErrTimeout = errors.New("graph: a timeout has passed")

	errNoGraph = errors.New("graph: the Runner has no Graph: make one with Compile")
)

// NodeError is a failure of a node: the error that it returned, or a panic in it.
type NodeError struct {
	// Path is that of the child frame: the nodes above, each with a '/'. It is "" at the
	// root.
	Path string

	// Node is the name of the node.
	Node string

	// Task identifies the task in its frame: step.node.index.
	Task string

	// Index is the task's place among those of a Send; 0 for the others.
	Index int

	// Step is the number of the step.
	Step int

	// Attempt is the last attempt, from 1; 0: an earlier drive ran the node.
	Attempt int

	// Err is the node's own error.
	Err error

	// Stack is that of a panic; nil: there was none.
	Stack []byte
}

// Error implements error.
func (e *NodeError) Error() string {
	if e.Attempt == 0 {
		return fmt.Sprintf("node %s%s (step %d): %v", e.Path, e.Node, e.Step, e.Err)
	}
	return fmt.Sprintf("node %s%s (step %d, attempt %d): %v", e.Path, e.Node, e.Step, e.Attempt, e.Err)
}

// Unwrap returns the node's own error.
func (e *NodeError) Unwrap() error { return e.Err }

// StateSizeError says that the state would be larger than Runner.MaxState. Nothing of
// the step was stored.
type StateSizeError struct {
	// Key is the key with the largest write of the step, and Write its bytes.
	Key   string
	Write int

	// Size is what the state would have, in bytes, and Limit is Runner.MaxState.
	Size, Limit int
}

// Error implements error.
func (e *StateSizeError) Error() string {
	return fmt.Sprintf("the state would have %d bytes, and %d is the limit; the largest write is %d bytes to the key %q", e.Size, e.Limit, e.Write, e.Key)
}

// StepError holds all failures of a step, in task order.
type StepError struct {
	// Path is that of the child frame; "" at the root.
	Path string

	// Step is the number of the step.
	Step int

	// Tasks are the failures, at least one.
	Tasks []*NodeError
}

// Error implements error.
func (e *StepError) Error() string {
	if len(e.Tasks) == 1 {
		return e.Tasks[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d tasks of step %d failed:", len(e.Tasks), e.Step)
	for _, t := range e.Tasks {
		b.WriteString("\n  " + strings.ReplaceAll(t.Error(), "\n", "\n  "))
	}
	return b.String()
}

// Unwrap returns the failures.
func (e *StepError) Unwrap() []error {
	errs := make([]error, len(e.Tasks))
	for i, t := range e.Tasks {
		errs[i] = t
	}
	return errs
}

// LimitError says that a run reached a limit of its graph. Status says which one:
// StepLimit, VisitLimit or TimedOut.
type LimitError struct {
	// Status says which limit: StepLimit, VisitLimit or TimedOut.
	Status Status

	// Graph is the name of the graph, and Path the place of its frame; "" is the root.
	Graph string
	Path  string

	// Node and Count are set for VisitLimit: the node, and the visit that was refused.
	Node  string
	Count int

	// Limit is the number of steps or visits allowed.
	Limit int

	// After is set for TimedOut: the time allowed.
	After time.Duration

	// Frontier are the nodes that were to run, or ran, sorted.
	Frontier []string

	// During is set for TimedOut: the time passed inside the step, not before it.
	During bool
}

// Error implements error.
func (e *LimitError) Error() string {
	switch e.Status {
	case VisitLimit:
		return fmt.Sprintf("graph %s: node %q would run again (visit %d); the limit is %d", e.Graph, e.Node, e.Count, e.Limit)
	case TimedOut:
		return fmt.Sprintf("graph %s: timed out after %v %s", e.Graph, e.After, describeMoment(e.During, e.Frontier))
	}
	return fmt.Sprintf("graph %s: %d steps done, and %s would run next; the limit is Def.MaxSteps", e.Graph, e.Limit, strings.Join(e.Frontier, ", "))
}

// CanceledError says that the run's context ended. Recorded results are kept, and the
// run can be resumed.
type CanceledError struct {
	// Graph is the name of the graph.
	Graph string

	// Frontier are the nodes that were to run, or ran, sorted.
	Frontier []string

	// During reports whether the context ended inside the step, not before it.
	During bool

	// Err says why: the context's cause.
	Err error
}

// Error implements error.
func (e *CanceledError) Error() string {
	return fmt.Sprintf("graph %s: canceled %s: %v", e.Graph, describeMoment(e.During, e.Frontier), e.Err)
}

// describeMoment says when a run was stopped: before or in the step of some nodes.
func describeMoment(during bool, nodes []string) string {
	when := "before"
	if during {
		when = "in"
	}
	return when + " the step of " + strings.Join(nodes, ", ")
}

// Unwrap returns the context's cause.
func (e *CanceledError) Unwrap() error { return e.Err }

// ConflictError says that several tasks of one step overwrote one key.
type ConflictError struct {
	// Key is the name of the key.
	Key string

	// Nodes are the writers, in task order.
	Nodes []string

	tasks []int // by place
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("key %q is overwritten by %d tasks of one step (%s): give it a reducer, or let one node write it",
		e.Key, len(e.Nodes), strings.Join(e.Nodes, ", "))
}

// HaltError says that several tasks of one step ended the run.
type HaltError struct {
	// Nodes are those that halted, in task order.
	Nodes []string

	tasks []int // by place
}

// Error implements error.
func (e *HaltError) Error() string {
	return fmt.Sprintf("nodes %s all halt the run in one step", strings.Join(e.Nodes, ", "))
}

// RouteError says that a node named a target that it may not name. Its text does not
// name the node: the NodeError around it does.
type RouteError struct {
	// Node is the node, and Target the name that it used; "": it named none, and has no
	// edge.
	Node, Target string

	// Allowed are the names that it may use, sorted.
	Allowed []string

	// By is "goto", "send" or "branch".
	By string
}

// Error implements error.
func (e *RouteError) Error() string {
	if e.Target == "" {
		return fmt.Sprintf("it has no edges and named no target; it may name %s", strings.Join(e.Allowed, ", "))
	}
	return fmt.Sprintf("%s to %q; it may name %s", e.By, e.Target, strings.Join(e.Allowed, ", "))
}

// StuckError says that no task is left to run although the run is not done: a join
// still waits, or Def.MustHalt is set and no node halted the run.
type StuckError struct {
	// Graph is the name of the graph.
	Graph string

	// Target is the node behind the join; "": no node halted, and Def.MustHalt is set.
	Target string

	// Have are the sources of the join that arrived, and Miss those that cannot any more.
	Have []string
	Miss []string
}

// Error implements error.
func (e *StuckError) Error() string {
	if e.Target == "" {
		return fmt.Sprintf("graph %s: nothing is left to run, and no node halted the run", e.Graph)
	}
	return fmt.Sprintf("graph %s: the join before %q waits for %s, which will not run any more (arrived: %s)",
		e.Graph, e.Target, strings.Join(e.Miss, ", "), strings.Join(e.Have, ", "))
}

// BusyError says that a thread has a run that has not ended. With a Lease, another
// drive works on it; without one, the run can be resumed.
type BusyError struct {
	// Thread and Run are the thread and its last run.
	Thread, Run string

	// Status is that of the run: Running if there is a Lease.
	Status Status

	// Lease says who drives the run, and until when unless the lease is renewed. If zero,
	// nothing drives it.
	Lease journal.Lease
}

// Error implements error.
func (e *BusyError) Error() string {
	if e.Lease.Owner != "" {
		run := "a run"
		if e.Run != "" {
			run = "run " + e.Run
		}
		until := ""
		if !e.Lease.Until.IsZero() {
			until = ", with a lease until " + e.Lease.Until.Format(time.RFC3339)
		}
		return fmt.Sprintf("thread %s: %s drives %s%s: wait for it, or take the run over (Resume.Takeover)", e.Thread, e.Lease, run, until)
	}
	return fmt.Sprintf("thread %s has an unfinished run %s (%s): resume it", e.Thread, e.Run, e.Status)
}

// Unwrap returns journal.ErrConflict if another drive works on the run.
func (e *BusyError) Unwrap() error {
	if e.Lease.Owner == "" {
		return nil
	}
	return journal.ErrConflict
}

// AnswerError says why an answer is refused. Nothing was recorded.
type AnswerError struct {
	// ID is the question that the answer names.
	ID string

	// Open are the ids of the questions that can be answered.
	Open []string

	// Reason says why, for people.
	Reason string

	// Err is what Node.CheckAnswer returned; else nil or an error with the text of
	// Reason.
	Err error
}

// Unwrap returns Err.
func (e *AnswerError) Unwrap() error { return e.Err }

// Error implements error.
func (e *AnswerError) Error() string {
	if len(e.Open) == 0 {
		return fmt.Sprintf("answer to %q: %s; no question is open", e.ID, e.Reason)
	}
	return fmt.Sprintf("answer to %q: %s; open questions: %s", e.ID, e.Reason, strings.Join(e.Open, ", "))
}

// RefusedError is the error of Interrupt when no answer will come: the person declined,
// or a deadline passed.
type RefusedError struct {
	// Reason is Answer.Refused.
	Reason string

	// Value is the JSON of Answer.Value.
	Value json.RawMessage

	// Due is, if a deadline passed, when that was; zero: someone declined.
	Due time.Time
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Reason }

// Is reports whether the target is ErrDeadline and a deadline passed.
func (e *RefusedError) Is(target error) bool { return target == ErrDeadline && !e.Due.IsZero() }

// TypeError says that values of a type can be written to the journal but cannot be read
// back unchanged. Compile returns it for keys; Do, Interrupt and Share return it before
// anything happens. Its fields are texts: Type is the type of the key, the result or the
// answer; Path is the place inside the type, such as result.Err; Reason says what is
// wrong there, and Fix what to do.
type TypeError = value.TypeError

// ModifiedError says that a function changed a slice, a map or the target of a pointer
// that it had read from a State. Only runs with Runner.Debug detect it.
type ModifiedError struct {
	// By says which function: "the node", "a reducer", or another one of the graph.
	By string

	// Keys are the keys whose values the function changed, sorted.
	Keys []string
}

// Error implements error.
func (e *ModifiedError) Error() string {
	return fmt.Sprintf("%s changed what it read: key %s. All readers share the state: copy a slice or map before you change it, and write the copy",
		e.By, strings.Join(e.Keys, ", "))
}

// isModified reports whether an error is about a function that changed what it read.
func isModified(err error) bool {
	if err == nil { // nearly always the case, and then nothing is allocated
		return false
	}
	var m *ModifiedError
	return errors.As(err, &m)
}

// errRunTimeout is the cause of a context that ended because of Def.Timeout.
var errRunTimeout = errors.New("graph: the run's timeout has passed")
