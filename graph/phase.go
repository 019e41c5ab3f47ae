package graph

// Phase is a part of a step.
type Phase string

// The phases of a step, in their order. A step whose tasks fail or wait has no update.
const (
	PhasePlanning  Phase = "planning"  // the tasks of the step are made, with what the journal holds of them
	PhaseExecution Phase = "execution" // the tasks run
	PhaseUpdate    Phase = "update"    // their writes are folded, the next tasks are chosen, and the step is recorded
)

// PhaseStarted says that a phase of a step starts. The phase lasts until the next event
// of the same Path that is a PhaseStarted, a StepCommitted or the end.
type PhaseStarted struct {
	Phase Phase    `json:"phase"`
	Nodes []string `json:"nodes"` // of the step, each once, in task order
}

// startPhase delivers the event of a phase if the consumer asks for it.
func (x *drive) startPhase(f *frame, p Phase, root bool) {
	if x.topics&TopicPhase == 0 {
		return
	}
	e := Event{Path: f.public, Step: f.step, Body: PhaseStarted{Phase: p, Nodes: f.next.nodeNames(f.g)}}
	if root {
		x.out.deliverEvent(e)
	} else {
		x.out.sendEvent(e)
	}
}
