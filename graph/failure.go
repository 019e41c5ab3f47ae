package graph

import (
	"errors"

	"raddle.dev/graph/internal/record"
)

// The functions between failures that OnError handles and what the journal holds of them.

// A handledFailure is one that OnError handles.
type handledFailure struct {
	text   string // with the node and its step: see Cause
	reason string // the node's own error
}

// newHandledFailure returns the failure of a task.
func newHandledFailure(err error) *handledFailure {
	f := &handledFailure{text: err.Error(), reason: err.Error()}
	if e, ok := err.(*NodeError); ok {
		f.reason = e.Err.Error()
	}
	return f
}

// describeFailure returns the failure of a task whose node handles it.
func (t *task) describeFailure() record.Failure {
	f := record.Failure{
		Path:  t.frame.public,
		Node:  t.node().Name,
		Task:  t.localID(),
		Index: t.ref.index,
		Step:  t.step,
		Text:  t.up.failed.reason,
	}
	if t.node().OnError != End {
		f.Handler = t.node().OnError
	}
	return f
}

// listFailures returns what the record of the current step holds of failures: those of children that ended a path
// there, and those of its tasks, each with the task that handles it.
func (f *frame) listFailures() (list []record.Failure) {
	for i := range f.ts {
		t := &f.ts[i]
		if t.inner != nil {
			for _, e := range t.inner.failures {
				list = append(list, describeNodeError(e))
			}
		}
		if t.up.failed != nil {
			list = append(list, t.describeFailure())
		}
	}
	if list == nil {
		return nil
	}
	handlers := map[string]int{} // by the task that failed
	for at := range f.next.tasks {
		for _, c := range f.next.tasks[at].causes {
			handlers[c.Task] = at + 1
		}
	}
	for i := range list {
		if list[i].Path == f.public {
			list[i].To = handlers[list[i].Task]
		}
	}
	return list
}

// describeNodeError returns what the journal holds of a failure that ended a path.
func describeNodeError(e *NodeError) record.Failure {
	return record.Failure{Path: e.Path, Node: e.Node, Task: e.Task, Index: e.Index, Step: e.Step, Text: e.Err.Error()}
}

// newNodeError returns a failure that the journal holds.
func newNodeError(f *record.Failure) *NodeError {
	return &NodeError{Path: f.Path, Node: f.Node, Task: f.Task, Index: f.Index, Step: f.Step, Err: errors.New(f.Text)}
}

// newNodeErrors returns failures that the journal holds.
func newNodeErrors(failures []record.Failure) (list []*NodeError) {
	for i := range failures {
		list = append(list, newNodeError(&failures[i]))
	}
	return list
}
