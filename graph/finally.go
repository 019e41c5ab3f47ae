package graph

import (
	"context"
	"errors"
	"fmt"

	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// EndingError is the error of a run that ends without being done, after its Def.Finally has run: the run is then
// CleanedUp, or Abandoned if it was cancelled, and cannot be resumed. If Finally itself has failed, the run is Failed,
// and a resume repeats Finally.
type EndingError struct {
	// Finally is the node that has run.
	Finally string

	// Err is what ended the run. In a drive that has continued with the Finally of an earlier one, it has the text
	// only.
	Err error

	// Failure is why Finally has failed; nil: it has run.
	Failure error
}

// Error implements error.
func (e *EndingError) Error() string {
	if e.Failure != nil {
		return fmt.Sprintf("%v; then Finally has failed: %v", e.Err, e.Failure)
	}
	return fmt.Sprintf("%v; then node %s has run", e.Err, e.Finally)
}

// Unwrap returns what ended the run, and why Finally has failed.
func (e *EndingError) Unwrap() []error {
	if e.Failure == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Failure}
}

// A CancelError is why a run with Resume.Cancel has ended.
type CancelError struct{ Reason string }

// Error implements error.
func (e *CancelError) Error() string { return e.Reason }

// cancelTask is, in the journal, the task of a cause that is a cancel: a cause without a node.
const cancelTask = "cancel"

// restoreEnding returns what has decided the end, as the journal has it.
func restoreEnding(t *taskRef) error {
	for _, c := range t.causes {
		if c.Node == "" && c.Task == cancelTask {
			return &CancelError{Reason: t.cause}
		}
	}
	return errors.New(t.cause)
}

// isEnding reports whether the end of the frame was decided: its Finally is no route, so that only this leads to it.
func (f *frame) isEnding() bool { return f.g.finally >= 0 && f.visits[f.g.finally] > 0 }

// decidesEnd reports whether a frame that has stopped so cannot continue by itself: a failure of its nodes, or a limit.
// What stops the drive is none, nor is a journal that does not fit the graph.
func (f *frame) decidesEnd(ctx context.Context, status Status, err error) bool {
	d := f.drive
	switch {
	case ctx.Err() != nil || d.fatalError() != nil || d.journal != nil && d.journal.StoreError() != nil:
		return false
	case status == TimedOut || status == StepLimit || status == VisitLimit || status == Stuck:
		return true
	case status != Failed:
		return false
	}
	return errors.As(err, new(*StepError)) || errors.As(err, new(*ConflictError)) || errors.As(err, new(*HaltError)) || errors.As(err, new(*CancelError))
}

// driveToEnd drives a frame until it stops, and then its Finally if it cannot continue. limited is ctx with the time
// limit of the graph, which does not hold for Finally.
func (f *frame) driveToEnd(ctx, limited context.Context, cancel string) (status Status, err error) {
	if cancel != "" && !f.isEnding() {
		status, err = Failed, &CancelError{cancel}
		if f.g.finally < 0 {
			return Abandoned, err
		}
	} else {
		if f.isEnding() {
			limited = ctx
		}
		status, err = f.driveSteps(limited)
	}
	if f.g.finally < 0 {
		return status, err
	}
	if !f.isEnding() {
		if !f.decidesEnd(ctx, status, err) {
			return status, err
		}
		if err := f.decideEnd(err); err != nil {
			return Failed, err
		}
		status, err = f.driveSteps(ctx)
	}
	ended := &EndingError{Finally: f.g.nameOf(f.g.finally), Err: f.ending}
	if f.ending == nil { // the record of an earlier drive's end is missing: it is written together with the step of Finally
		ended.Err = errors.New("the run has ended")
	}
	switch status {
	case Done:
		f.halted = false
		f.value = nil
		if errors.As(ended.Err, new(*CancelError)) {
			return Abandoned, ended
		}
		return CleanedUp, ended
	case Failed:
		ended.Failure = err
		return status, ended
	}
	return status, err
}

// decideEnd records that the frame ends for a reason: what would have run next, or has not ended, is dropped, and
// Finally runs.
func (f *frame) decideEnd(reason error) error {
	d := f.drive
	was := f.next
	task := taskRef{node: f.g.finally, cause: reason.Error()}
	if failed := (*StepError)(nil); errors.As(reason, &failed) {
		for _, e := range failed.Tasks {
			task.causes = append(task.causes, describeNodeError(e))
		}
	} else {
		task.causes = []record.Failure{{Path: f.public, Step: f.step, Text: task.cause}}
		if errors.As(reason, new(*CancelError)) {
			task.causes[0].Task = cancelTask
		}
	}
	for i := range task.causes {
		task.causes[i].Handler = f.g.nameOf(f.g.finally)
		task.causes[i].To = 1
	}
	f.ending = reason
	f.next = frontier{tasks: []taskRef{task}}
	f.patchBuffer()
	var seq int64
	if d.journal != nil {
		var err error
		if seq, err = f.commitPatches(journal.KindStep, &record.Parts{Failures: task.causes}, d.settings.Durability < QuestionsOnly); err != nil {
			return err
		}
	}
	if d.topics&TopicStep != 0 {
		b := StepCommitted{Nodes: was.nodeNames(f.g), Next: f.next.nodeNames(f.g), Seq: seq, State: f.st.forReader()}
		for _, name := range b.Nodes {
			b.Moves = append(b.Moves, Move{From: name, To: b.Next})
		}
		f.deliverEvent(Event{Path: f.public, Step: f.step, Body: b})
	}
	f.step++
	f.countVisits()
	f.raw, f.again, f.asked, f.breaks, f.broke = nil, nil, nil, nil, nil
	if f.isRoot() {
		d.failures.Store(0)
	}
	return nil
}
