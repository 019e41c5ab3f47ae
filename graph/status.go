package graph

// Status is the state of a run when a drive has stopped.
type Status uint8

// The statuses. Only Done and Abandoned end a run permanently; every other run can be
// resumed.
const (
	Running    Status = iota // a drive is running, according to its lease; a Result never has it
	Done                     // no task is left to run, or a node halted the run
	Waiting                  // questions are open
	Paused                   // Pause was closed; the step that ran was committed
	Failed                   // a node, a reducer or the store failed; resuming runs the failed tasks again
	Canceled                 // the context ended; recorded results are kept
	StepLimit                // Def.MaxSteps
	VisitLimit               // Node.MaxVisits or Def.MaxVisits
	TimedOut                 // Def.Timeout
	Stuck                    // a join waits for a source that will not run any more
	Abandoned                // the run was ended by Abandon
	Crashed                  // the last drive has not recorded that it stopped, and no lease shows that it is running; only listings report it
	NotStarted               // the drive did not start and has recorded nothing: its input was refused, the thread was busy, or the store or the context failed; only a Result has it
)

var statusNames = [...]string{"running", "done", "waiting", "paused", "failed", "canceled", "step-limit", "visit-limit", "timed-out", "stuck", "abandoned", "crashed", "not-started"}

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
func (s Status) Final() bool { return s == Done || s == Abandoned }

// Result is the outcome of a drive.
type Result struct {
	Thread    string
	Run       string
	Status    Status
	State     State
	Value     any          // of the Halt that ended the run
	Breaks    []Break      // where it stopped because nodes or Input.Break ask for it
	Questions []Question   // all that are open, in order of asking
	Unused    []Answer     // given with Input.Ahead, and not used so far; Value is decoded from JSON
	Steps     int          // steps that this drive committed at the root
	Failures  []*NodeError // failures that ended a path by OnError: End in these steps, including those of children
	Hung      []string     // nodes that have not returned, and whose goroutines are left behind: see Runner.HungAfter
	Head      int64        // the newest record
	Err       error        // what RunEnded reports: nil for Done, Waiting and Paused
}
