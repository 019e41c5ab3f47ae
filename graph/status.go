package graph

// Status says how a run stands when a drive has stopped.
type Status uint8

// The statuses. Only Done and Abandoned end a run for good; every other run can
// be resumed.
const (
	Running    Status = iota // a drive is at work, as its lease says; a Result never has it
	Done                     // nothing is left to run, or a node halted the run
	Waiting                  // questions are open
	Paused                   // Pause was closed; the step that ran was committed
	Failed                   // a node, a reducer or the store failed; resuming runs the failed tasks again
	Canceled                 // the context ended; recorded results are kept
	StepLimit                // Def.MaxSteps
	VisitLimit               // Node.MaxVisits or Def.MaxVisits
	TimedOut                 // Def.Timeout
	Stuck                    // a join waits for a source that will not run any more
	Abandoned                // somebody ended the run by hand
	Crashed                  // the last drive has not said that it stopped, and no lease says that it is at work; only listings report it
	NotStarted               // the drive never began and has recorded nothing: its input was refused, the thread was busy, or the store or the context failed; only a Result has it
)

var statusNames = [...]string{"running", "done", "waiting", "paused", "failed", "canceled", "step-limit", "visit-limit", "timed-out", "stuck", "abandoned", "crashed", "not-started"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "unknown"
}

// MarshalText makes statuses read the same on the wire as in messages.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Final tells whether the run is over: it cannot be resumed.
func (s Status) Final() bool { return s == Done || s == Abandoned }

// Result is the outcome of a drive.
type Result struct {
	Thread    string
	Run       string
	Status    Status
	State     State
	Value     any          // of the Halt that ended the run
	Breaks    []Break      // where it stopped because nodes ask for it
	Questions []Question   // all that are open, in order of asking
	Unused    []Answer     // given with Input.Ahead, and not asked for so far; Value is what JSON makes of it
	Steps     int          // steps this drive committed at the root
	Failures  []*NodeError // that ended a path by OnError: End in these steps; children's are among them
	Hung      []string     // nodes that have not returned, and whose goroutines are left behind: see Runner.HungAfter
	Head      int64        // the newest record
	Err       error        // what RunEnded reports: nil for Done, Waiting and Paused
}
