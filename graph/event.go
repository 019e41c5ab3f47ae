// Size: the package's exported names are one vocabulary. Half of them are members
// of closed sets (bodies of events here, kinds of records, statuses, errors) that
// readers switch over, and that would be harder to find in packages of their own.

package graph

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"raddle.dev/graph/internal/eventqueue"
)

// Topic is a set of events that a consumer asks for. Other events are not built.
type Topic uint8

// The topics. RunEnded is always delivered.
const (
	TopicRun      Topic = 1 << iota // RunStarted
	TopicStep                       // StepCommitted
	TopicTask                       // TaskStarted, TaskRetry, TaskDone
	TopicEmit                       // ValueEmitted
	TopicQuestion                   // QuestionAsked, QuestionAnswered
	TopicPhase                      // PhaseStarted

	// AllTopics is what happens in a run: all topics but TopicPhase, which says how the
	// engine works. AllTopics|TopicPhase is everything.
	AllTopics = TopicRun | TopicStep | TopicTask | TopicEmit | TopicQuestion
)

// Event is one thing that happened. All events of one drive are in one order; Seq
// counts them from 1.
type Event struct {
	// Seq counts the events of a drive from 1.
	Seq int64

	// Time is when it happened, by the Runner's clock.
	Time time.Time

	// Thread and Run name the thread and the run.
	Thread string
	Run    string

	// Path is that of the child frame: "" at the root, else the nodes above it, each with
	// a '/'.
	Path string

	// Step is the number of the frame's step, from 0.
	Step int

	// Task identifies the task in its frame, step.node.index, and Node is its node. Both
	// are "" outside tasks.
	Task string
	Node string

	// Record is the number of the newest record of the thread that was saved when it
	// happened: everything up to that record came first. It is not part of the JSON.
	Record int64

	// Body says what happened.
	Body Body
}

// ChildPath returns the Path of the events of what the task of the event calls: the node, with the index of the task if
// that is not 0, after the event's own path. It ends with a '/'. An event without a task has that of index 0.
func (e Event) ChildPath() string {
	path := e.Path + e.Node
	if at := strings.LastIndexByte(e.Task, '.'); at >= 0 && e.Task[at+1:] != "0" {
		path += "[" + e.Task[at+1:] + "]"
	}
	return path + "/"
}

// Body is one of RunStarted, StepCommitted, TaskStarted, TaskRetry, TaskDone,
// ValueEmitted, QuestionAsked, QuestionAnswered, PhaseStarted and RunEnded.
type Body interface{ kind() string }

// RunStarted is the first event of a drive.
type RunStarted struct {
	// Graph is the name of the graph.
	Graph string `json:"graph"`

	// Label is Input.Label.
	Label string `json:"label,omitempty"`

	// Resumed reports whether the drive continues a run.
	Resumed bool `json:"resumed,omitempty"`
}

// TaskStarted says that a node starts.
type TaskStarted struct {
	// Kind is Node.Kind.
	Kind string `json:"kind,omitempty"`
}

// TaskRetry says that an attempt failed and another will follow.
type TaskRetry struct {
	// Attempt is the one that failed, from 1.
	Attempt int

	// MaxAttempts is the number of attempts that there may be in all.
	MaxAttempts int

	// After is the pause until the next attempt.
	After time.Duration

	// Err is the failure.
	Err error
}

// TaskDone says that a node has returned, or that its result was found in the journal.
type TaskDone struct {
	// Err is the failure of the last attempt; nil: success.
	Err error

	// Took is the time from the TaskStarted, with all attempts and pauses.
	Took time.Duration

	// Attempts is the number of attempts in this drive.
	Attempts int

	// Recorded says that the result was found in the journal; the node did not run.
	Recorded bool

	// Waiting says that the node asked, and has no answer yet.
	Waiting bool

	// Cached says that the update comes from the cache; the node did not run.
	Cached bool

	// Failed says that OnError handles Err.
	Failed bool

	// Update is what the node returned, also if it was recorded. It is not part of the JSON, because it may be large,
	// and must not be changed.
	Update Update
}

// StepCommitted says that a step's writes are durable as far as the run's
// durability promises.
type StepCommitted struct {
	// Nodes are those that ran, in task order.
	Nodes []string `json:"nodes"`

	// Keys are the keys that were written.
	Keys []string `json:"keys,omitempty"`

	// Next are the nodes that run next.
	Next []string `json:"next,omitempty"`

	// Moves says which node led where.
	Moves []Move `json:"moves,omitempty"`

	// Dropped are the targets that a Halt cancelled.
	Dropped []string `json:"dropped,omitempty"`

	// Halted reports whether a node halted the run in this step.
	Halted bool `json:"halted,omitempty"`

	// Seq is the number of the step's record: a point to fork at once it is durable. It
	// is 0 without a Store.
	Seq int64 `json:"record,omitempty"`

	// State is that of the frame after the step. It is not part of the JSON, because it
	// may be large.
	State State `json:"-"`
}

// Move is one node of a committed step and where it led: node names, or End. A source
// of a join leads to the node behind the join, which runs when all sources are done.
type Move struct {
	// From is the node.
	From string `json:"from"`

	// To are the targets.
	To []string `json:"to"`
}

// ValueEmitted is a value that a node sent with Emit.
type ValueEmitted struct {
	// Value is what Emit got.
	Value any
}

// TypedValue is a value for Emit whose JSON is an object. In the JSON of the event,
// the object has EventType as its first member, "type".
type TypedValue interface{ EventType() string }

// QuestionAsked says that a question is open. It comes when all tasks of the step have
// stopped: until then only the journal has the question.
type QuestionAsked struct {
	// Question is the question.
	Question Question `json:"question"`
}

// QuestionAnswered says that a question was answered.
type QuestionAnswered struct {
	// ID is Question.ID.
	ID string `json:"id"`

	// Ahead reports whether the answer was given when the run was started.
	Ahead bool `json:"ahead,omitempty"`

	// Refused is Answer.Refused.
	Refused string `json:"refused,omitempty"`

	// By is Answer.By.
	By string `json:"by,omitempty"`
}

// RunEnded is the last event of a drive.
type RunEnded struct {
	// Result is the outcome of the drive. Its Err is the error that Run yields last.
	Result Result
}

func (RunStarted) kind() string       { return "run.started" }
func (TaskStarted) kind() string      { return "task.started" }
func (TaskRetry) kind() string        { return "task.retry" }
func (TaskDone) kind() string         { return "task.done" }
func (StepCommitted) kind() string    { return "step.committed" }
func (ValueEmitted) kind() string     { return "emitted" }
func (QuestionAsked) kind() string    { return "question.asked" }
func (QuestionAnswered) kind() string { return "question.answered" }
func (PhaseStarted) kind() string     { return "phase.started" }
func (RunEnded) kind() string         { return "run.ended" }

// MarshalJSON returns the form of events on the wire, in logs and in tests: the
// envelope, the kind, and the body under "data".
func (e Event) MarshalJSON() ([]byte, error) {
	wire := struct {
		Seq    int64     `json:"seq"`
		Time   time.Time `json:"time"`
		Thread string    `json:"thread,omitempty"`
		Run    string    `json:"run,omitempty"`
		Path   string    `json:"path,omitempty"`
		Step   int       `json:"step"`
		Task   string    `json:"task,omitempty"`
		Node   string    `json:"node,omitempty"`
		Kind   string    `json:"kind"`
		Data   Body      `json:"data"`
	}{e.Seq, e.Time, e.Thread, e.Run, e.Path, e.Step, e.Task, e.Node, "", e.Body}
	if e.Body != nil {
		wire.Kind = e.Body.kind()
	}
	return json.Marshal(wire)
}

// MarshalJSON returns durations in milliseconds and errors as text.
func (r TaskRetry) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Attempt int     `json:"attempt"`
		Max     int     `json:"max_attempts"`
		After   float64 `json:"after_ms"`
		Error   string  `json:"error"`
	}{r.Attempt, r.MaxAttempts, toMilliseconds(r.After), errorText(r.Err)})
}

// MarshalJSON returns durations in milliseconds and errors as text.
func (d TaskDone) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Error    string  `json:"error,omitempty"`
		Took     float64 `json:"took_ms"`
		Attempts int     `json:"attempts,omitempty"`
		Recorded bool    `json:"recorded,omitempty"`
		Waiting  bool    `json:"waiting,omitempty"`
		Cached   bool    `json:"cached,omitempty"`
		Failed   bool    `json:"failed,omitempty"`
	}{errorText(d.Err), toMilliseconds(d.Took), d.Attempts, d.Recorded, d.Waiting, d.Cached, d.Failed})
}

// MarshalJSON returns the JSON of the emitted value itself, with the type of a [TypedValue].
func (v ValueEmitted) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(v.Value)
	typed, ok := v.Value.(TypedValue)
	if err != nil || !ok || text[0] != '{' {
		return text, err
	}
	name, err := json.Marshal(typed.EventType())
	out := slices.Concat([]byte(`{"type":`), name)
	if len(text) > len("{}") {
		out = append(out, ',')
	}
	return append(out, text[1:]...), err
}

// MarshalJSON leaves out the state, because it may be large: StepCommitted has named
// the keys that changed.
func (e RunEnded) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Status    Status     `json:"status"`
		Value     any        `json:"value,omitempty"`
		Breaks    []Break    `json:"breaks,omitempty"`
		Questions []Question `json:"questions,omitempty"`
		Due       time.Time  `json:"due,omitzero"`
		Steps     int        `json:"steps"`
		Failures  []string   `json:"failures,omitempty"`
		Error     string     `json:"error,omitempty"`
	}{e.Result.Status, e.Result.Value, e.Result.Breaks, e.Result.Questions, e.Result.Due, e.Result.Steps, errorTexts(e.Result.Failures), errorText(e.Result.Err)})
}

func errorTexts(failures []*NodeError) (all []string) {
	for _, e := range failures {
		all = append(all, e.Error())
	}
	return all
}

func toMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// eventSink delivers the events of a drive: always on the reader's goroutine, never inside
// user code, numbered in the order of delivery.
type eventSink struct {
	yield      func(Event, error) bool // nil: events are not read
	clock      Clock
	thread     string
	run        string
	seq        int64
	saved      func() int64 // number of the newest saved record; nil without a journal
	readerLeft bool         // the reader has left
	cancel     func()       // ends the drive when the reader leaves
	queued     eventqueue.Queue[Event]
}

// openQueue makes the outlet ready for send and pump.
func (s *eventSink) openQueue() { s.queued.Open() }

// deliverEvent passes an event to the reader. Only the reader's goroutine may call it.
func (s *eventSink) deliverEvent(e Event) {
	if s.readerLeft || s.yield == nil {
		return
	}
	s.seq++
	e.Seq, e.Thread, e.Run = s.seq, s.thread, s.run
	s.stampEvent(&e)
	if !s.yield(e, nil) {
		s.readerLeft = true
		s.cancel()
	}
}

// Deliver implements eventqueue.Receiver.
func (s *eventSink) Deliver(e Event) { s.deliverEvent(e) }

// stampEvent sets when an event happened, unless that is set, and after which record.
func (s *eventSink) stampEvent(e *Event) {
	if e.Time.IsZero() {
		e.Time = s.clock.Now()
	}
	if e.Record == 0 && s.saved != nil {
		e.Record = s.saved()
	}
}

// sendEvent passes an event from a task's goroutine to the reader's, and waits if the reader
// is slow. The pump runs as long as tasks do; later events are dropped.
func (s *eventSink) sendEvent(e Event) { s.queueEvent(e, true) }

// queueEvent is send. It does not wait if wait is false: for a task that may run on the
// reader's goroutine.
func (s *eventSink) queueEvent(e Event, wait bool) {
	s.stampEvent(&e)
	s.queued.Put(e, wait)
}

// deliverQueued delivers, on the reader's goroutine, what a task has sent.
func (s *eventSink) deliverQueued() { s.queued.DeliverWaiting(s) }

// endPump informs the pump that its tasks have ended.
func (s *eventSink) endPump() { s.queued.End() }

// close wakes the tasks that still wait to send.
func (s *eventSink) close() { s.queued.Close() }

// pumpEvents delivers what tasks send until finish is called. If the reader panics, the tasks
// are cancelled and drained before the panic continues.
func (s *eventSink) pumpEvents() {
	finished := false
	defer func() {
		if !finished {
			s.readerLeft = true
			s.cancel()
			s.drainQueue()
		}
	}()
	s.drainQueue()
	finished = true
}

func (s *eventSink) drainQueue() { s.queued.DeliverAll(s) }

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
	// Phase is the phase that starts.
	Phase Phase `json:"phase"`

	// Nodes are those of the step, each once, in task order.
	Nodes []string `json:"nodes"`
}
