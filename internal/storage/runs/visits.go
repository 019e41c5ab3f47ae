package runs

import (
	"slices"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// visits are the nodes of a run's own graph that it has entered. It is fed the records of the run, oldest first.
type visits struct {
	steps   []any    // of steps that have ended: a name, or the names of a parallel step
	next    []string // of the step that has not ended
	entered bool     // a record inside that step shows that it was entered
}

// addEntry adds a record.
func (v *visits) addEntry(e *history.Entry) {
	if e.Path != "" {
		v.entered = true
		return
	}
	switch e.Kind {
	case journal.KindStart, journal.KindEdit, journal.KindFork:
		v.next = e.Next
		v.entered = false
	case journal.KindSnapshot:
		if v.next == nil { // earlier records were pruned
			v.next = e.Next
		}
	case journal.KindStep:
		v.steps = appendStep(v.steps, v.next)
		v.next = e.Next
		v.entered = false
	case journal.KindIntent, journal.KindEffect, journal.KindTask, journal.KindQuestion:
		v.entered = true
	}
}

// listSteps returns the nodes that the run has entered when it has a status. Those of a parallel step are in a list.
func (v *visits) listSteps(status graph.Status) []any {
	steps := append([]any{}, v.steps...)
	if v.entered || status == graph.Failed || status == graph.Waiting {
		steps = appendStep(steps, v.next)
	}
	return steps
}

// appendStep appends the nodes of a step.
func appendStep(steps []any, nodes []string) []any {
	switch len(nodes) {
	case 0:
		return steps
	case 1:
		return append(steps, nodes[0])
	}
	return append(steps, slices.Clone(nodes))
}
