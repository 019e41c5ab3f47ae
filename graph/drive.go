package graph

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
)

// drive is one process that works on a run.
type drive struct {
	r      *Runner
	topics Topic
	exec   Executor
	clock  Clock
	out    eventSink
	live   bool // only quiet nodes run on the reader's goroutine

	thread, run string
	branch      string // branch of effects, after a fork or an edit
	ctx         context.Context
	cancel      context.CancelFunc
	j           *journal // nil: nothing is stored
	lease       *lease   // nil: the store has no leases
	pause       <-chan struct{}
	grace       time.Duration

	fault      atomic.Pointer[error] // an error of the clock
	exitedTask atomic.Pointer[task]  // a task that ended its goroutine
	singleTask *singleTaskRunner     // runs the steps with one task; nil: not started

	startedAt time.Time
	before    time.Duration // active time of earlier drives

	failures atomic.Int32 // drives that failed in the current step of the root
	stops    breakpoints

	questions questionState
	sharedValues
	watchdog
}

// errRunTimeout is the cause of a context that ended because of Def.Timeout.
var errRunTimeout = errors.New("graph: the run's timeout has passed")

func (x *drive) now() time.Time { return x.clock.Now() }

// activeTime returns the time that drives have worked on the run. Without timeouts it is
// never called, and the clock is not read.
func (x *drive) activeTime() time.Duration { return x.before + x.now().Sub(x.startedAt) }

// attachThread takes the thread's lease, reads the thread and makes the drive its writer. If
// another drive holds the lease, attach returns that lease, and the drive may only
// read. The caller must call leave in any case.
func (x *drive) attachThread(ctx context.Context, takeover bool) (s *replay, by Lease, err error) {
	x.ctx, x.cancel = context.WithCancel(ctx)
	x.out.cancel, x.out.thread, x.out.run = x.cancel, x.thread, x.run
	x.startedAt = x.now()
	if err := x.fatalError(); err != nil {
		return nil, by, err
	}
	if endable := x.hasEndableContext(ctx); endable || x.out.yield != nil {
		x.hungAfter = cmp.Or(x.r.HungAfter, defaultHungAfter)
		x.live = x.live || endable && x.hungAfter > 0
	}
	if x.r.Store == nil {
		return nil, by, nil
	}
	if by, err = x.acquireLease(ctx, takeover); err != nil {
		return nil, by, err
	}
	if s, err = loadToDrive(ctx, x.r.Store, x.thread); err != nil {
		return nil, by, err
	}
	if x.lease != nil && s.head > 0 && s.run.status == Running {
		if by, err = x.lease.readDisplacingLease(ctx); err != nil || by.Owner != "" {
			return s, by, err
		}
	}
	if !s.run.status.Final() {
		x.before = s.active
	}
	j := &journal{store: x.r.Store, thread: x.thread, sums: s.sums, level: x.r.Durability, clock: x.clock, stop: x.cancel,
		head: s.head, bytes: s.bytes, weight: s.weight, size: s.size}
	j.pending = j.few[:0]
	x.j = j
	x.lease.startRenewal(j.stopWithError)
	return s, by, nil
}

// detachThread releases what attach has acquired.
func (x *drive) detachThread() {
	x.lease.release()
	if x.cancel != nil {
		x.cancel()
	}
}

// begin folds the first writes of a frame, sets its frontier to the start nodes and
// journals both. head and tail are the additional fields of the kind of record.
func (f *frame) begin(set []Write, k Kind, head, tail []byte) error {
	x := f.drive
	f.next, f.from = frontier{tasks: f.next.tasks[:0]}, f.step
	for _, n := range f.g.start {
		f.next.tasks = append(f.next.tasks, taskRef{node: n})
	}
	f.countVisits()
	rec := f.patchBuffer()
	for _, ws := range [...][]Write{f.first, set} {
		ws, err := x.readBack(ws)
		if err != nil {
			return err
		}
		st, _, err := applyWrites(f.st, [][]Write{ws}, &f.bufs, rec)
		if err != nil {
			return err
		}
		f.st = st
	}
	if x.j == nil {
		return nil
	}
	if k == KindCall {
		head = wire.PutString(nil, f.path)
	}
	head = putTags(wire.PutString(head, f.g.digest), f.g.table.keys)
	_, err := f.commitPatches(k, head, tail, k == KindStart && x.j.level < QuestionsOnly)
	return err
}

// patchBuffer returns where apply appends its patches: nil without a journal.
func (f *frame) patchBuffer() *[]patch {
	x := f.drive
	if x.j == nil {
		return nil
	}
	f.rec = f.rec[:0]
	return &f.rec
}

// commitPatches journals what apply recorded and the frontier after it.
func (f *frame) commitPatches(k Kind, head, tail []byte, flush bool) (seq int64, err error) {
	x := f.drive
	data, err := f.encodePatches()
	if err != nil {
		return 0, err
	}
	head, data, err = putFrontier(head, data, f.g, &f.next)
	if err != nil {
		return 0, err
	}
	if k == KindStep {
		if head = wire.PutBool(head, f.halted); f.halted {
			b, err := value.EncodeAny(nil, f.value)
			if err != nil {
				return 0, fmt.Errorf("halt: %w", err)
			}
			data = wire.PutString(data, b)
		}
	}
	steps := f.step
	if k == KindStep {
		steps++
	}
	head, data = wire.PutInt(head, steps), append(data, tail...)
	f.head, f.data = reusableBuffer(head), reusableBuffer(data)
	if !flush { // the buffers are still in use when add returns
		head, data = slices.Clone(head), slices.Clone(data)
	}
	if k == KindStep && x.topics&TopicStep != 0 {
		return x.j.addNumbered(flush, Record{Kind: k, Head: head, Data: data})
	}
	return 0, x.j.addRecord(k, head, data, flush)
}

// reusableBuffer returns b for reuse, or nil if it is too large to be kept.
func reusableBuffer(b []byte) []byte {
	if cap(b) > 64<<10 {
		return nil
	}
	return b
}

// encodePatches encodes what apply recorded, in a buffer of the frame.
func (f *frame) encodePatches() ([]byte, error) {
	x := f.drive
	data := wire.PutInt(f.data[:0], len(f.rec))
	grew, largest, at := 0, -1, 0
	var few [4]int
	deltas := few[:0]
	for i, p := range f.rec {
		v, err := p.key.encodeStored(f.val, p.val)
		if err != nil {
			f.subtractSlotSizes(deltas)
			return nil, &writeError{p.by, err}
		}
		if !p.key.custom {
			f.val = reusableBuffer(v)
		}
		delta := f.addSlotSize(p.slot, len(v), p.fold == foldSet)
		grew, deltas = grew+delta, append(deltas, delta)
		if len(v) > largest {
			largest, at = len(v), i
		}
		data = putPatch(slices.Grow(data, len(v)+len(p.key.name)+16), p.key.name, p.fold, p.by, v)
	}
	if size := x.j.addStateSize(grew); x.r.MaxState > 0 && grew > 0 && size > x.r.MaxState {
		x.j.addStateSize(-grew)
		f.subtractSlotSizes(deltas)
		return nil, &writeError{f.rec[at].by, &StateSizeError{Key: f.rec[at].key.name, Write: largest, Size: size, Limit: x.r.MaxState}}
	}
	return data, nil
}

// subtractSlotSizes undoes what the first of the recorded patches have added to the sizes of their
// slots.
func (f *frame) subtractSlotSizes(deltas []int) {
	for i, delta := range deltas {
		f.sizes[f.rec[i].slot] -= delta
	}
}

// writeError names the task whose write the journal cannot store.
type writeError struct {
	by  int // the task, by its place in the step
	err error
}

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// driveRoot drives the root frame to its end and journals how it ended.
func (x *drive) driveRoot(f *frame) (Result, error) {
	first := f.step
	ctx := x.ctx
	if x.pause != nil && x.grace > 0 {
		graceful, stop := x.withGrace(ctx)
		defer stop()
		ctx = graceful
	}
	if limit := f.g.def.Timeout; limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, limit-x.activeTime(), errRunTimeout)
		defer cancel()
		ctx = limited
	}
	ended := false
	defer func() {
		if t := x.exitedTask.Load(); !ended && t != nil && x.j != nil { // and this goroutine ends too
			_ = x.recordEnd(f, Failed, t.wrapNodeError(errGoexit))
		}
	}()
	status, err := f.driveSteps(ctx)
	ended = true
	hung, err := x.leftBehind(err)
	defer f.recycleTasks()
	res := Result{Hung: hung, Thread: x.thread, Run: x.run, Status: status, State: f.st, Value: f.value, Steps: f.step - first, Failures: f.failures, Breaks: f.breaks, Questions: f.asked, Unused: x.questions.unusedAnswers()}
	if x.j == nil {
		return res, err
	}
	if e := x.recordEnd(f, status, err); e != nil && x.j.storeError() != nil {
		res.Status, err = Failed, firstError(err, e)
	}
	res.Head = x.j.head
	return res, err
}

// withGrace returns a context that ends when the grace period of a pause has passed.
func (x *drive) withGrace(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-x.pause:
			if x.clock.Wait(ctx, x.grace) == nil {
				cancel(errGrace)
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// errGrace is the cause of a context that ended because of a pause.
var errGrace = errors.New("graph: paused, and the time of grace has passed")

// firstError returns the store's failure if the other error only follows from it.
func firstError(err, store error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return store
	}
	if errors.Is(err, store) {
		return err
	}
	return errors.Join(err, store)
}

// recordEnd journals that the drive stops.
func (x *drive) recordEnd(f *frame, status Status, err error) error {
	head := wire.PutString(append(make([]byte, 0, 64), byte(status)), errorText(err))
	var data []byte
	if head = wire.PutBool(head, f.halted); f.halted {
		b, err := value.EncodeAny(nil, f.value)
		if err != nil {
			return err
		}
		data = wire.PutString(nil, b)
	}
	head = wire.PutString(head, x.run)
	head = wire.PutInt(head, len(f.asked))
	for _, q := range f.asked {
		head = wire.PutTexts(head, q.ID, q.Prompt)
	}
	return x.j.addRecord(KindEnd, x.j.run.appendSummary(putBroken(head, x.stops.listSteps(f))), data, true)
}

// runSteps is the whole engine: plan, execute, apply, route, commit. root says that it
// runs on the reader's goroutine. The error is errLeft if another goroutine has
// replaced this one.
func (f *frame) runSteps(ctx context.Context) (Status, error) {
	for {
		if status, err := f.decideNextStep(ctx); status != Running {
			return status, err
		}
		if err := f.runStep(ctx); err != nil {
			return Failed, err
		}
		if status, err := f.concludeStep(ctx); status != Running {
			return status, err
		}
	}
}

// runStep makes the tasks of the frontier and runs them, within the step's timeout.
func (f *frame) runStep(ctx context.Context) error {
	x := f.drive
	if limit := f.g.def.StepTimeout; limit > 0 {
		l := f.lane
		f.late = &stepTimeout{limit}
		ctx, f.cancel = context.WithTimeoutCause(ctx, limit, f.late)
		f.outer, f.watch = f.watch, x.newWatch(ctx, l)
		defer func() {
			if !l.isReplaced() {
				f.endStep()
			}
		}()
	}
	f.startPhase(PhasePlanning)
	if err := f.prepareTasks(ctx); err != nil {
		return err
	}
	f.startPhase(PhaseExecution)
	f.executing = true
	if !f.executeTasks(ctx) {
		return errLeft
	}
	f.executing = false
	return nil
}

// concludeStep looks at how the tasks of a step have ended, and applies the step.
func (f *frame) concludeStep(ctx context.Context) (Status, error) {
	x := f.drive
	status, err := f.collectTaskResults(ctx)
	if status == Waiting && f.isRoot() {
		again, err := x.assignPresetAnswers(f)
		if err != nil {
			return Failed, err
		}
		if again {
			return Running, nil
		}
	}
	if status != Running {
		return status, err
	}
	f.startPhase(PhaseUpdate)
	if err := f.applyStep(); err != nil {
		return Failed, err
	}
	return Running, nil
}

// decideNextStep decides whether there is another step; then the status is running.
func (f *frame) decideNextStep(ctx context.Context) (Status, error) {
	x := f.drive
	g, done := f.g, f.step-f.from
	if ctx.Err() != nil && !f.halted {
		return f.interruptionStatus(ctx, false)
	}
	if limit := g.def.Timeout; limit > 0 && !f.halted && x.activeTime()-f.since > limit {
		return f.timeoutStatus(false) // the Runner's clock may differ from the context's
	}
	if (g.breaks || x.stops.set != nil) && x.stops.stopBefore(f) {
		return Paused, nil
	}
	if f.halted {
		return Done, nil
	}
	if len(f.next.tasks) == 0 {
		if len(f.next.arrived) > 0 || g.def.MustHalt {
			return Stuck, f.next.newStuckError(g)
		}
		return Done, nil
	}
	select {
	case <-x.pause:
		return Paused, nil
	default:
	}
	if done >= g.def.MaxSteps {
		return StepLimit, &LimitError{Status: StepLimit, Graph: g.def.Name, Path: f.public, Limit: done, Frontier: f.next.nodeNames(g)}
	}
	for i := range f.next.tasks {
		n := &g.nodes[f.next.tasks[i].node]
		limit := n.MaxVisits
		if limit == 0 {
			limit = g.def.MaxVisits
		}
		if v := f.visits[f.next.tasks[i].node]; limit > 0 && v > limit {
			return VisitLimit, &LimitError{Status: VisitLimit, Graph: g.def.Name, Path: f.public, Node: n.Name, Limit: limit, Count: v, Frontier: f.next.nodeNames(g)}
		}
	}
	return Running, nil
}

// interruptionStatus returns how a frame ends after its context has ended.
func (f *frame) interruptionStatus(ctx context.Context, during bool) (Status, error) {
	x := f.drive
	if err := x.fatalError(); err != nil {
		return Failed, err
	}
	if context.Cause(ctx) == errGrace {
		return Paused, nil
	}
	names := f.next.nodeNames(f.g)
	slices.Sort(names)
	if context.Cause(ctx) == errRunTimeout {
		return f.timeoutStatus(during)
	}
	return Canceled, &CanceledError{Graph: f.g.def.Name, Frontier: names, During: during, Err: context.Cause(ctx)}
}

// timeoutStatus returns how a frame ends that has used up Def.Timeout.
func (f *frame) timeoutStatus(during bool) (Status, error) {
	names := f.next.nodeNames(f.g)
	slices.Sort(names)
	return TimedOut, &LimitError{Status: TimedOut, Graph: f.g.def.Name, Path: f.public, After: f.g.def.Timeout, Frontier: names, During: during}
}

// prepareTasks makes the tasks of a step and restores what the journal holds of them.
func (f *frame) prepareTasks(ctx context.Context) error {
	ts := f.allocateTasks(len(f.next.tasks))
	firsts := f.allocateContexts(len(ts))
	for i, ref := range f.next.tasks {
		t := &ts[i]
		t.drive, t.frame, t.ref, t.step, t.base, t.first = f.drive, f, ref, f.step, ctx, &firsts[i]
		t.raw, t.frames = f.raw, f.frames
		if f.raw != nil {
			if err := t.restoreFromJournal(); err != nil {
				return err
			}
		}
		if i < len(f.again) && f.again[i].step == f.step {
			t.restoreAttempt(&f.again[i])
		}
	}
	f.again = nil
	return nil
}

// allocateContexts returns n contexts that were never used: a node that keeps one must not find
// another task in it. Steps of one task take them from blocks.
func (f *frame) allocateContexts(n int) []taskCtx {
	if n > 1 {
		return make([]taskCtx, n)
	}
	if len(f.fresh) == 0 {
		f.fresh = make([]taskCtx, contextBlock)
	}
	c := f.fresh[:1:1]
	f.fresh = f.fresh[1:]
	return c
}

// contextBlock is the number of contexts that are allocated at once.
const contextBlock = 16

// taskRoom keeps slices for the tasks of steps with many tasks from run to run.
var taskRoom sync.Pool

// recycleTasks lets other runs use the slices of a frame whose run has ended. The caller
// must be sure that none of its tasks is held.
func (f *frame) recycleTasks() {
	if cap(f.ts) <= 1 || f.hasHeldTask() {
		return
	}
	room := f.ts[:cap(f.ts)]
	clear(room)
	f.ts = nil
	taskRoom.Put(&room)
}

// allocateTasks returns room for n tasks. It is reused if no node holds a task of the last
// step.
func (f *frame) allocateTasks(n int) []task {
	if !f.hasHeldTask() && cap(f.ts) >= n {
		clear(f.ts)
		f.ts = f.ts[:n]
		return f.ts
	}
	f.ts = nil
	if n > 1 {
		if p, ok := taskRoom.Get().(*[]task); ok && cap(*p) >= n {
			f.ts = (*p)[:n] // it was cleared when it was returned
		}
	}
	if f.ts == nil {
		f.ts = make([]task, n)
	}
	return f.ts
}

// hasHeldTask reports whether a node may still hold one of the tasks.
func (f *frame) hasHeldTask() bool {
	for i := range f.ts {
		if f.ts[i].held {
			return true
		}
	}
	return false
}

// checkedClock wraps a Clock of the caller: a panic in it fails the drive, on any
// goroutine.
type checkedClock struct {
	Clock
	drive *drive
}

func (c *checkedClock) Now() (now time.Time) {
	defer func() {
		if p := recover(); p != nil {
			c.drive.setFault(panics.NewError("Runner.Clock", p))
			now = time.Now()
		}
	}()
	return c.Clock.Now()
}

func (c *checkedClock) Wait(ctx context.Context, d time.Duration) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError("Runner.Clock", p)
			c.drive.setFault(err)
		}
	}()
	return c.Clock.Wait(ctx, d)
}

// setFault fails the drive for an error that no task has caused.
func (x *drive) setFault(err error) {
	if x.fault.CompareAndSwap(nil, &err) && x.cancel != nil {
		x.cancel()
	}
}

// fatalError returns the error of the clock or the store that ends the drive, or nil.
func (x *drive) fatalError() error {
	if err := x.fault.Load(); err != nil {
		return *err
	}
	return x.j.storeError()
}

// newID makes the id of a run or a branch; a panic in Runner.IDs becomes an error.
func (x *drive) newID() (id string, err error) {
	defer func() {
		if p := recover(); p != nil {
			id, err = "", panics.NewError("Runner.IDs", p)
		}
	}()
	now := x.now()
	if err := x.fatalError(); err != nil {
		return "", err
	}
	if x.r.IDs == nil {
		return NewID(now), nil
	}
	if id = x.r.IDs(); id == "" {
		return "", errors.New("graph: Runner.IDs has returned an empty id")
	}
	return id, nil
}

// A thread remembers the runs that it has seen by the hashes of their ids, so that a
// run that is started again is not treated as a new one.

func hashOf(run string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(run)) // a hash never fails
	return h.Sum64()
}

func putHashes(b []byte, hs []uint64) []byte {
	b = wire.PutInt(b, len(hs))
	for _, h := range hs {
		b = binary.BigEndian.AppendUint64(b, h)
	}
	return b
}

func readHashes(r *wire.Reader) []uint64 {
	n := r.Count()
	if n*8 > len(r.Rest) {
		r.MarkDamaged("a list is longer than its record")
		return nil
	}
	hs := make([]uint64, n)
	for i := range hs {
		hs[i] = binary.BigEndian.Uint64(r.Rest)
		r.Rest = r.Rest[8:]
	}
	return hs
}

// hasPastRun reports whether the run came before the thread's last run.
func (s *replay) hasPastRun(run string) bool {
	return s != nil && s.run.id != run && slices.Contains(s.runs, hashOf(run))
}

// loadRunEnd returns the result of a run that is not the thread's last.
func (x *drive) loadRunEnd(ctx context.Context, run string) (Result, error) {
	fail := func(err error) (Result, error) {
		return Result{Thread: x.thread, Run: run}, fmt.Errorf("run %s is over, and its end cannot be read: %w", run, err)
	}
	at, err := x.findRunEnd(ctx, run)
	if err != nil {
		return fail(err)
	}
	s, err := loadPoint(ctx, x.r.Store, Point{x.thread, at})
	if err != nil {
		return fail(err)
	}
	f, err := x.openIdleFrame(s)
	if err != nil {
		return fail(err)
	}
	return x.finalResult(s, f)
}

// findRunEnd finds the record of a run's end.
func (x *drive) findRunEnd(ctx context.Context, run string) (int64, error) {
	end := int64(0)
	for r, err := range Records(ctx, x.r.Store, x.thread, Range{Heads: true, Newest: true}) {
		switch {
		case err != nil:
			return 0, fmt.Errorf("read thread %s: %w", x.thread, err)
		case r.Kind == KindEnd && end == 0:
			end = r.Seq
		case r.Kind == KindStart:
			if h := (&wire.Reader{Rest: r.Head}); h.Text() == run && end > 0 {
				return end, nil
			}
			end = 0
		}
	}
	return 0, fmt.Errorf("%w %s", ErrNoPoint, x.thread)
}
