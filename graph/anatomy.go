package graph

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"raddle.dev/graph/internal/lease"
	"raddle.dev/graph/internal/ordinal"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/writer"
)

// drive is one process that works on a run.
type drive struct {
	settings *Runner
	topics   Topic
	exec     Executor
	clock    Clock
	out      eventSink
	live     bool // only quiet nodes run on the reader's goroutine

	runNames
	ctx     context.Context
	cancel  context.CancelFunc
	journal *writer.ThreadWriter // nil: nothing is stored
	lease   *lease.Lease         // nil: the store has no leases
	pause   <-chan struct{}
	grace   time.Duration

	fault      atomic.Pointer[error] // an error of the clock
	exitedTask atomic.Pointer[task]  // a task that ended its goroutine
	singleTask *singleTaskRunner     // runs the steps with one task; nil: not started

	worked

	failures atomic.Int32 // drives that failed in the current step of the root
	stops    breakpoints

	questions questionState
	changedGraph
	sharedValues
	watchdog
	outages outages
}

// worked is how long drives have worked on the run.
type worked struct {
	watch   writer.Stopwatch
	skipped atomic.Int64  // time that a Clock of the caller let pass without waiting
	before  time.Duration // active time of earlier drives
}

// changedGraph is how the thread was written with a graph that has changed since.
type changedGraph struct {
	reshaped map[string]bool // keys whose types have other fields
	migrated []string        // what its migrations have changed, in words
}

// runNames are the names of a run.
type runNames struct {
	thread, run string
	user        string    // Input.User
	until       time.Time // Input.Until or Resume.Until
	branch      string    // branch of effects, after a fork or an edit
}

func (d *drive) now() time.Time { return d.clock.Now() }

// savesEach reports whether each effect and each task is stored before its result is used.
func (d *drive) savesEach() bool { return d.settings.Durability == EveryEffect }

// activeTime returns the time that drives have worked on the run, also if the clock was set meanwhile. Without timeouts
// it is never called, and the clock is not read.
func (d *drive) activeTime() time.Duration {
	_, active := d.watch.ReadWatch()
	return d.before + active
}

// setFault fails the drive for an error that no task has caused.
func (d *drive) setFault(err error) {
	if d.fault.CompareAndSwap(nil, &err) && d.cancel != nil {
		d.cancel()
	}
}

// fatalError returns the error of the clock or the store that ends the drive, or nil.
func (d *drive) fatalError() error {
	if err := d.fault.Load(); err != nil {
		return *err
	}
	return d.journal.StoreError()
}

// questionState is what a drive knows of questions and answers.
type questionState struct {
	answered []QuestionAnswered // recorded by the drive itself, not yet delivered
	reply    Reply              // nil: no one answers within the drive
	handle   *Handle            // nil: answers come only with a resume
	late     []lateAnswer       // recorded while tasks worked, not yet used; the handle guards it

	mu    sync.Mutex // guards the fields below
	ahead []record.PresetAnswer
	asked map[string]int  // questions by node path
	shown map[string]bool // questions delivered, if answers were given ahead
}

// breakpoints is what a drive knows of the places where runs stop.
type breakpoints struct {
	set    map[Break]bool // for this drive, in addition to those of nodes
	passed map[string]int // by frame: the step before which it has stopped already
	cancel string         // Resume.Cancel
	mu     sync.Mutex     // guards the fields below
	at     map[string]int // by frame: the step before which this drive has stopped
}

// A frame is one running graph: the root of a run, or a child under a task.
type frame struct {
	path   string // in the journal: the tasks above, each with a '/'
	public string // for people: the nodes above, each with a '/'
	g      *Graph
	drive  *drive
	step   int
	from   int // the step at which its run started
	st     State
	next   frontier
	visits []int // by node
	halted bool
	value  any
	broke  []Break       // nodes of the last step that ask for a stop after them
	breaks []Break       // where it has stopped, including its children, in task order
	since  time.Duration // active time of the run when the frame started
	late   *stepTimeout  // the cause of the current step's context if its time passes
	ending error         // what has decided its end; nil: nothing, or isEnding says that its Finally has run

	failures []*NodeError // handled by OnError: End, including those of children

	raw    *record.Frame            // what the journal holds of the current step; nil: nothing
	frames map[string]*record.Frame // what it held of all frames when raw was read
	asked  []Question               // open after the step, including those of children, in task order

	bufs  buffers
	sizes []int // stored bytes, by slot
	frameOptions
	supervision
	frameBuffers
}

// frameOptions holds what a frame gets when it is opened.
type frameOptions struct {
	first      []Write         // of the graph, if no value was written yet
	concurrent bool            // tasks of the frames above run concurrently with it
	keeps      bool            // without a store: a node above may be retried
	listener   *listener       // the hooks of the nodes above that get emitted values; nil: none
	again      []task          // without a store: the tasks of the step in which it failed
	reshaped   map[string]bool // keys whose types have other fields than when the thread was written
}

// frameBuffers holds the memory that the steps of a frame reuse.
type frameBuffers struct {
	ts       []task        // of the current step
	fresh    []taskCtx     // for the tasks of the next steps
	tasks    []taskRef     // for the next frontier
	recorded []record.Task // for the record of it
	arrivals
	writes [][]Write
	rec    []patch

	head, data, val []byte // of a record
}

// smallFrame is the room for steps of one task: most graphs have no other steps.
type smallFrame struct {
	frame

	ts     [1]task
	tasks  [2]taskRef
	writes [1][]Write
	rec    [2]patch
	marks  [2]mark
	fresh  [6]taskCtx
	vals   [4]any
	visits [8]int
}

// task is one node in one step. A task whose context was never looked up is used again
// for a later step of its frame.
type task struct {
	drive  *drive
	frame  *frame
	ref    taskRef
	raw    *record.Frame            // what the journal holds of the step; nil: nothing
	frames map[string]*record.Frame // what it holds of all frames
	step   int
	base   context.Context // of the step
	first  *taskCtx        // for the first attempt
	id     string          // local(), once computed
	inline bool            // the task runs on the reader's goroutine
	runner *runner         // runner that runs the task; nil: it is not watched
	held   bool            // the node may still hold the task when the step has ended

	begun     time.Duration // on the watch of the drive; set if its events are read, or Retry.Within applies
	hit       bool          // the update comes from the cache
	recorded  bool          // the update, or the open question, comes from the journal
	attempts  int           // that have started
	up        Update
	err       error
	recovered error // the failure that OnError handles

	mu      sync.Mutex // guards the fields below: a node may use goroutines
	waiting bool
	paused  bool
	ended   int           // attempts that have ended: what their goroutines still do is refused
	hung    int           // attempts that were left behind
	inner   *nodeActivity // nil: it has done nothing that needs one
}

func (t *task) node() *compiledNode { return &t.frame.g.nodes[t.ref.node] }

// localID returns the task's identity in its frame: step.node.index.
func (t *task) localID() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.localIDLocked()
}

// localIDLocked is local for a caller that holds t.mu.
func (t *task) localIDLocked() string {
	if t.id == "" {
		var few [48]byte
		b := append(strconv.AppendInt(few[:0], int64(t.step), 10), '.')
		b = append(append(b, t.node().Name...), '.')
		t.id = string(strconv.AppendInt(b, int64(t.ref.index), 10))
	}
	return t.id
}

// publicPath returns the task's path for people: the nodes above it and its own.
func (t *task) publicPath() string {
	p := t.frame.public + t.node().Name
	if t.ref.index > 0 {
		p += "[" + strconv.Itoa(t.ref.index) + "]"
	}
	return p
}

// nodeActivity holds what a node does in addition to returning: most do nothing.
type nodeActivity struct {
	ordinals ordinal.Counter
	busy     map[string]bool
	running  []*effectCall
	results  map[string]outcome               // effects, for the next attempt
	asks     map[string]*record.AskedQuestion // answered ahead in this drive
	open     []Question
	below    *frame       // the child, with what is open in it
	calling  bool         // the child runs
	stopped  int          // number of children that have stopped
	failures []*NodeError // of the child's steps, see Result
	kept     *frame       // without a store: the child of earlier attempts
	returned bool         // the child has ended as done
	notes    []Body       // events for the end of the step
	fault    error        // the panic of a Hooks.Emit
	childSet
}

// ensureInner returns t.inner, and makes it when it is first needed. The caller must hold t.mu.
func (t *task) ensureInner() *nodeActivity {
	if t.inner == nil {
		t.inner = &nodeActivity{}
	}
	return t.inner
}

// childSet holds what a task knows of its named children.
type childSet struct {
	calls   map[string]*childCall    // of this attempt
	closed  bool                     // no more of them may start
	others  []*frame                 // their frames, by name, when the node has returned
	dropped map[string]bool          // paths
	frames  map[string]*record.Frame // that an earlier attempt left; nil: not read yet
}

// childCall is a named child of a task, in one attempt.
type childCall struct {
	frame  *frame // nil: it was not started
	status Status
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has stopped
}

// An attempt is one call of the function of a task's node. Everything that the function
// does through its context belongs to its attempt, and is refused when that has ended.
type attempt struct {
	*task
	n int // from 1
}

// attemptOf returns the attempt that a node's context belongs to; ok is false for another
// context.
func attemptOf(ctx context.Context) (a attempt, ok bool) {
	c := callerOf(ctx)
	if c == nil {
		return attempt{}, false
	}
	return attempt{c.holdTask(), int(c.attempt)}, true
}

// taskCtx is the context that a node gets: the step's context with the task inside. It
// records whether the task was looked up. If it was not, the context can be reused.
type taskCtx struct {
	context.Context
	t                 *task
	frame             *frame
	node, index, step int32
	attempt, visit    int32
	state             atomic.Uint32
}

// States of a taskCtx.
const (
	ctxFresh uint32 = iota // the task was not looked up
	ctxHeld                // the task was looked up, and a caller may keep it
	ctxOver                // the node has returned without a lookup: the context may hold another task now
)

type taskKey struct{}

func (c *taskCtx) Value(k any) any {
	if k == (taskKey{}) {
		return c
	}
	return c.Context.Value(k)
}

// callerOf returns the context that a node got, or nil. It does not mark it as held.
func callerOf(ctx context.Context) *taskCtx {
	c, _ := ctx.Value(taskKey{}).(*taskCtx)
	return c
}

// holdTask returns the task inside and marks the context as held. A goroutine that looks it
// up only after its node has returned gets a task that refuses everything.
func (c *taskCtx) holdTask() *task {
	if c.state.Load() == ctxHeld || c.state.CompareAndSwap(ctxFresh, ctxHeld) {
		return c.t
	}
	if c.state.Load() == ctxHeld { // another goroutine was faster
		return c.t
	}
	return &task{drive: c.frame.drive, frame: c.frame, step: int(c.step), base: c.Context,
		ref: taskRef{node: int(c.node), index: int(c.index)}, attempts: 1, held: true, ended: 1}
}

// markNodeReturned records that the node has returned, and reports whether no caller holds the task.
func (c *taskCtx) markNodeReturned() bool { return c.state.CompareAndSwap(ctxFresh, ctxOver) }

// bindTask makes c the context of t.
func (c *taskCtx) bindTask(t *task) {
	c.Context, c.t, c.frame = t.base, t, t.frame
	c.node, c.index, c.step = int32(t.ref.node), int32(t.ref.index), int32(t.step)
	c.attempt, c.visit = 1, int32(t.frame.visits[t.ref.node])
}
