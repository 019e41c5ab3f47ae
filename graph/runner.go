package graph

import (
	"context"
	"iter"
	"time"

	"raddle.dev/graph/journal"
)

// Durability says when a run waits for its store. A crash loses at most what the run
// has not waited for; the run does that again.
type Durability int

// The levels of durability, strictest first.
const (
	EveryEffect   Durability = iota // each effect and each task before its result is used
	EveryStep                       // each step; effects and tasks are written with it
	QuestionsOnly                   // questions and the end of a drive; everything else is written with them
)

// Runner drives runs of one graph. The zero value of each field but Graph works. A
// Runner may drive any number of runs at once.
type Runner struct {
	// Graph is what runs. It must be made by Compile.
	Graph *Graph

	// Store keeps the journals. If nil, nothing is stored, and nodes cannot ask.
	Store journal.Store

	// Durability says when a run waits for the Store. The zero value is EveryEffect.
	Durability Durability

	// Cache keeps the updates of nodes that have a CachePolicy. If nil, they always run.
	Cache Cache

	// Executor runs the tasks of a step. If nil, goroutines of this process do.
	Executor Executor

	// Clock gives the time. If nil, it is the wall clock.
	Clock Clock

	// IDs makes the ids of runs and branches. If nil, NewID does. They must not be empty
	// and not repeat.
	IDs func() string

	// Retry is the policy of nodes without their own, which means that their
	// Node.Retry.Attempts is 0. Set that to 1 for a node that must not be retried. It
	// also applies to nodes of child graphs, but not to nodes that have a child: the
	// failure has been retried inside the child. With the zero value nothing is retried.
	Retry Retry

	// StoreAway is called when a drive begins to wait for the Store, because that is not
	// available, with the thread and the error; and when the Store is back, with nil. A
	// drive that works waits for five minutes and the time of its lease; one that has not
	// started for ten seconds. It starts no effect while it waits, and the end of its context ends the
	// waiting. The function must return soon, and may be called on several goroutines. It may be nil.
	StoreAway func(thread string, err error)

	// Debug detects faults that otherwise show only after a crash or with parallel
	// tasks; it is for tests, and makes runs slower. Every value that is written and
	// every result of Do is encoded and decoded, and the run continues with the decoded
	// one, as it would after a resume. Every attempt of a node reads a copy of the
	// state; a node, branch function or reducer that changes what it read fails with a
	// *ModifiedError, which is neither retried nor passed to OnError.
	Debug bool

	// HungAfter is how long a node may take to return after its context has ended
	// because of a timeout, a cancellation, a pause with Grace, or a reader that has
	// left. Then the run continues without it, as with any node that has failed in this
	// way: the error is or contains a *HungError, Result.Hung lists the nodes that
	// still run, and everything that they do with their context is refused. If 0, it is
	// 10 s; if negative, the run waits for such nodes without limit.
	HungAfter time.Duration

	// MaxState is the largest state, in bytes as stored in the journal: all keys, with
	// those of child graphs that have not ended. A step that would exceed it fails with
	// a *StateSizeError of the task with the largest write; a step that makes the state
	// smaller is always accepted. If 0, there is no limit. Without a Store nothing is
	// measured.
	MaxState int
}

// Input starts a run.
type Input struct {
	// Thread is what the run appends to. If empty, the run gets a new thread with its
	// own id as the name.
	Thread string

	// Run is the id of the run. If empty, Runner.IDs makes one. An id that the thread has
	// seen runs nothing: the result of that run is returned, or journal.ErrNoPoint if it was
	// pruned.
	Run string

	// Label is a short text for listings.
	Label string

	// Set is folded into the thread's state before the first step.
	Set []Write

	// Meta is stored with the run unchanged, for the program that resumes it.
	Meta []byte

	// User is for whom the run works, by whatever name the program has for them; "": the
	// program does not say. It is stored with the run, and UserOf returns it inside nodes.
	User string

	// Ahead are answers to questions that will be asked.
	Ahead []Answer

	// Reply answers questions at the moment they are asked. If nil, they stay open.
	Reply Reply

	// Handle answers questions while other tasks of the same step work. If nil, they are
	// answered when the run waits.
	Handle *Handle

	// Topics are the events to deliver. Invoke ignores them.
	Topics Topic

	// Break lists where this drive stops, in addition to the breaks of nodes.
	Break []Break

	// Pause stops the run, as Paused, when it is closed and the current step is done. If
	// nil, nothing does.
	Pause <-chan struct{}

	// Grace is how long that step gets: then its tasks are cancelled, and run again on
	// resume. If 0, there is no limit.
	Grace time.Duration

	// Until is when the caller wants to see a run that waits, at the latest: Result.Due is then no later. The time of a
	// run that is limited with its waiting is up then; the caller ends it with Resume.Cancel. If zero, nothing is due.
	Until time.Time
}

// Reply answers a question at once, within the drive, for example with a default. The
// answer is recorded with the question, and the node continues. If ok is false, or the
// question does not accept the value, the question stays open. Reply is called after
// the answers given ahead were tried, on the goroutine of the node: several calls may
// run at once.
type Reply func(q Question) (value any, ok bool)

// Resume continues a run that waits, was paused, failed, was cancelled or crashed.
type Resume struct {
	// Thread is the thread whose last run continues.
	Thread string

	// Answers answer open questions. All are checked before any is recorded.
	Answers []Answer

	// Set is folded into the state before the run continues. Recorded results stay as
	// they are. Values that it replaces need not be decodable.
	Set []Write

	// AcceptChanges continues although the graph's digest has changed, and records the
	// new one as the run's.
	AcceptChanges bool

	// Cancel ends the run for the reason that it is: what would have run next is dropped, Def.Finally runs, and the run
	// is Abandoned. The error is then an *EndingError or, of a graph without Finally, a *CancelError. If empty, the run
	// continues.
	Cancel string

	// Meta replaces Input.Meta from here on, if it is not nil: the caller continues with
	// something else than it started with.
	Meta []byte

	// Takeover continues although another drive holds the lease. That drive appends
	// nothing more, and stops; the effect that it is making is made again, or is in
	// doubt. This drive begins when the other has stopped, but after two seconds at the latest.
	Takeover bool

	// IgnoreAhead leaves out the answers of Input.Ahead that no question has used: this
	// drive asks instead.
	IgnoreAhead bool

	// Reply and the fields below are like those of Input, and apply to this drive only.
	Reply  Reply
	Handle *Handle
	Topics Topic
	Break  []Break
	Pause  <-chan struct{}
	Grace  time.Duration
	Until  time.Time
}

// Run starts a run and yields its events. The sequence can be used once; its error, if
// any, comes last, after RunEnded. Leaving the loop cancels the run, waits for its
// tasks and saves what they recorded. A slow reader slows the run. Starting a run on a
// thread whose last run has not ended is a *BusyError, which says whether another drive
// works on it.
func (r *Runner) Run(ctx context.Context, in Input) iter.Seq2[Event, error] {
	return r.streamEvents(in.Topics, func(d *drive) (Result, error) { return d.startRun(ctx, in) })
}

// Resume continues the thread's last run and yields its events, like Run. Tasks and
// effects with a recorded result are not run again. For a run that has ended, its
// result is returned, unless there are answers: then the error is an *AnswerError. For
// a run that another drive works on, the error is a *BusyError if the store implements
// journal.Leaser: see Resume.Takeover.
func (r *Runner) Resume(ctx context.Context, in Resume) iter.Seq2[Event, error] {
	return r.streamEvents(in.Topics, func(d *drive) (Result, error) { return d.resumeRun(ctx, in) })
}

// Invoke is Run without events: it returns at the end of the drive. The error is nil for a
// run that is Done, Waiting or Paused. The Result is set in any case; its Status is
// NotStarted if the drive could not begin.
func (r *Runner) Invoke(ctx context.Context, in Input) (Result, error) {
	return r.runWithoutEvents(func(d *drive) (Result, error) { return d.startRun(ctx, in) })
}

// InvokeResume is Resume without events. It returns what Invoke does.
func (r *Runner) InvokeResume(ctx context.Context, in Resume) (Result, error) {
	return r.runWithoutEvents(func(d *drive) (Result, error) { return d.resumeRun(ctx, in) })
}

// runWithoutEvents drives without events.
func (r *Runner) runWithoutEvents(run func(*drive) (Result, error)) (Result, error) {
	if !r.Graph.isCompiled() {
		return Result{Status: NotStarted}, errNoGraph
	}
	res, err := run(r.newDrive(0))
	if res.Status == Running {
		res.Status = NotStarted
	}
	return res, err
}

// isCompiled reports whether the graph was made by Compile.
func (g *Graph) isCompiled() bool { return g != nil && g.table != nil }

func (r *Runner) streamEvents(topics Topic, run func(*drive) (Result, error)) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if !r.Graph.isCompiled() {
			yield(Event{}, errNoGraph)
			return
		}
		d := r.newDrive(topics)
		d.out.yield = yield
		defer d.closeEvents()
		res, err := run(d)
		if d.out.readerLeft {
			return
		}
		if res.Status != Running {
			res.Err = err
			d.out.deliverEvent(Event{Step: res.Steps, Body: RunEnded{res}})
		}
		if err != nil && !d.out.readerLeft {
			yield(Event{}, err)
		}
	}
}

// Result is the outcome of a drive.
type Result struct {
	// Thread and Run name the thread and the run.
	Thread string
	Run    string

	// Status says how the drive stopped.
	Status Status

	// State is the state of the root when it stopped.
	State State

	// Value is that of the Halt that ended the run; nil without one.
	Value any

	// Breaks lists where the run stopped because nodes or Input.Break ask for it.
	Breaks []Break

	// Questions are all that are open, in order of asking.
	Questions []Question

	// Timers are those of Sleep that the run waits for, in the order in which they began: Due of each says until when.
	Timers []Question

	// Due is, for a run that waits, when the first of its timers and deadlines has come: a resume from then on
	// continues it. Zero: it waits for answers alone.
	Due time.Time

	// Unused are the answers given with Input.Ahead that no question has used so far.
	// Their Value is decoded from JSON.
	Unused []Answer

	// Steps is the number of steps that this drive committed at the root.
	Steps int

	// Migrated says in words what Def.Migrations have changed before this drive; nil: nothing.
	Migrated []string

	// Failures are those that ended a path by OnError: End in the steps of this run, including
	// those of children, also in earlier drives: of these, each Err has the text only.
	Failures []*NodeError

	// Hung lists the nodes that have not returned, and whose goroutines are left behind:
	// see Runner.HungAfter.
	Hung []string

	// Head is the number of the newest record; 0 without a Store.
	Head int64

	// Err is what RunEnded reports. It is nil for Done, Waiting and Paused, and in what
	// Invoke and InvokeResume return, whose error is separate.
	Err error
}

// Clock gives a Runner the time. Implementations must be safe for concurrent use. A panic
// in a Clock fails the drive. A clock may be set while a run works: if it jumps by more than ten seconds, the
// time that has really passed counts for timeouts and as active.
type Clock interface {
	// Now returns the current time.
	Now() time.Time

	// Wait returns after d, or with the context's error if the context ends first.
	Wait(ctx context.Context, d time.Duration) error
}
