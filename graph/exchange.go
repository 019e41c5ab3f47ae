package graph

import (
	"encoding/json"
	"time"
)

// Status is the state of a run when a drive has stopped.
type Status uint8

// The statuses. Only Done, Abandoned and CleanedUp end a run permanently; every other run can be
// resumed.
const (
	Running Status = iota // a drive is running, according to its lease; a Result never has it
	Done                  // no task is left to run, or a node halted the run
	Waiting               // questions are open
	Paused                // Pause was closed; the step that ran was committed
	Failed                // a node, a reducer or the store failed; resuming runs the failed tasks again
	// Canceled means that the context ended, or the run was edited or taken over elsewhere; recorded results are kept.
	Canceled
	StepLimit  // Def.MaxSteps
	VisitLimit // Node.MaxVisits or Def.MaxVisits
	TimedOut   // Def.Timeout
	Stuck      // a join waits for a source that will not run any more
	Abandoned  // the run was ended by history.Abandon or Resume.Cancel
	// Crashed means that the last drive has not recorded that it stopped, and that no lease shows that it is running;
	// only listings report it.
	Crashed
	// NotStarted means that the drive did not start and has recorded nothing: its input was refused, the thread was
	// busy, or the store or the context failed; only a Result has it.
	NotStarted
	CleanedUp // the run could not continue, and Def.Finally has run
)

var statusNames = [...]string{"running", "done", "waiting", "paused", "failed", "canceled", "step-limit", "visit-limit", "timed-out", "stuck", "abandoned", "crashed", "not-started", "cleaned-up"}

// String returns the word for the status: "done", "waiting", …; "unknown" for another
// number.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "unknown"
}

// MarshalText returns the same text as String, so that statuses are the same on the
// wire as in messages.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Final reports whether the run has ended permanently: it cannot be resumed.
func (s Status) Final() bool { return s == Done || s == Abandoned || s == CleanedUp }

// Question is an open question as the caller of a run sees it.
type Question struct {
	// ID is the path of the asking node, with "#n" from the node's second question on.
	ID string `json:"id"`

	// Node is the node that asks.
	Node string `json:"node"`

	// Kind, Prompt, Options, Free and Default are those of the Ask. Free is also true
	// without Options.
	Kind    string   `json:"kind,omitempty"`
	Prompt  string   `json:"prompt"`
	Options []string `json:"options,omitempty"`
	Free    bool     `json:"free,omitempty"`
	Default string   `json:"default,omitempty"`

	// Type is the JSON type of the answer: string, number, boolean, array or object; "":
	// any.
	Type string `json:"type,omitempty"`

	// Data is the JSON of Ask.Data.
	Data json.RawMessage `json:"data,omitempty"`

	// Integer is the Go type of a number that must be an integer: int, uint8, …
	Integer string `json:"integer,omitempty"`

	// Rejected says why the last answer did not fit, if it was recorded: the question is
	// open again.
	Rejected string `json:"rejected,omitempty"`

	// Due is when time answers the question, in UTC: see Ask.Deadline and Sleep. Zero: never.
	Due time.Time `json:"due,omitzero"`

	// Expired reports that time has answered it.
	Expired bool `json:"expired,omitempty"`
}

// Answer answers one question.
type Answer struct {
	// ID is that of the question; "" if only one is open. In Input.Ahead it may also be
	// the name or the path of its node or of a node above that, or "" for the next
	// question, in the order of tasks.
	ID string

	// Value is the answer. It is stored as JSON.
	Value any

	// Refused says that there will be no answer, and why: Interrupt returns a
	// *RefusedError. If empty, Value is the answer.
	Refused string

	// By is the name of who answers, for those who look at the run later. It is recorded with
	// the answer; "": no name. Answers given with Input.Ahead have none.
	By string

	// Ahead is for Node.CheckAnswer: the answer was given with Input.Ahead. Resume
	// ignores it.
	Ahead bool
}

// Break is a place where a run stops because a node or the caller asks for it: see
// Node.BreakBefore, Node.BreakAfter and Input.Break. The run is Paused. Resuming it
// continues past this stop once: in a loop the next visit stops again.
type Break struct {
	// Node is the path of the node: the nodes above it, each followed by '/', then its
	// name.
	Node string `json:"node"`

	// After stops the run after the node, not before it.
	After bool `json:"after,omitempty"`
}
