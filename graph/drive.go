package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
	"raddle.dev/graph/journal"
)

// drive is one process that works on a run.
type drive struct {
	r      *Runner
	topics Topic
	exec   Executor
	clock  Clock
	out    eventSink
	live   bool // only quiet nodes run on the reader's goroutine

	runNames
	ctx    context.Context
	cancel context.CancelFunc
	j      *journalWriter // nil: nothing is stored
	lease  *lease         // nil: the store has no leases
	pause  <-chan struct{}
	grace  time.Duration

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

// runNames are the names of a run.
type runNames struct {
	thread, run string
	user        string // Input.User
	branch      string // branch of effects, after a fork or an edit
}

func (x *drive) now() time.Time { return x.clock.Now() }

// activeTime returns the time that drives have worked on the run. Without timeouts it is
// never called, and the clock is not read.
func (x *drive) activeTime() time.Duration { return x.before + x.now().Sub(x.startedAt) }

// attachThread takes the thread's lease, reads the thread and makes the drive its writer. If
// another drive holds the lease, by is that lease, and the drive may only
// read. The caller must call detachThread in any case.
func (x *drive) attachThread(ctx context.Context, takeover bool) (s *fold.Thread, by journal.Lease, err error) {
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
	if s, err = fold.LoadToDrive(ctx, x.r.Store, x.thread); err != nil {
		return nil, by, err
	}
	if x.lease != nil && s.Head > 0 && s.Run.Status == fold.Running {
		if by, err = x.lease.readDisplacingLease(ctx); err != nil || by.Owner != "" {
			return s, by, err
		}
	}
	if !s.Run.Status.Final() {
		x.before = s.Active
	}
	j := &journalWriter{store: x.r.Store, thread: x.thread, sums: s.Sums, level: x.r.Durability, clock: x.clock, stop: x.cancel,
		head: s.Head, bytes: s.Bytes, weight: s.Weight, size: s.Size}
	j.pending = j.few[:0]
	j.saved.Store(s.Head)
	x.j, x.out.saved = j, j.saved.Load
	x.lease.startRenewal(j.stopWithError)
	return s, by, nil
}

// detachThread releases what attachThread has acquired.
func (x *drive) detachThread() {
	x.lease.release()
	if x.cancel != nil {
		x.cancel()
	}
}

func (r *Runner) newDrive(topics Topic) *drive {
	x := &drive{r: r, topics: topics, exec: r.Executor, clock: r.Clock}
	if x.exec == nil {
		x.exec = goroutines{}
	}
	if x.clock == nil {
		x.clock = wallClock{}
	} else {
		x.clock = &checkedClock{r.Clock, x}
	}
	x.out.clock = x.clock
	if topics != 0 {
		x.out.openQueue()
		x.live = topics&TopicEmit != 0
	}
	return x
}

// startRun starts a run, or returns the result of one that has already ended.
func (x *drive) startRun(ctx context.Context, in Input) (Result, error) {
	x.run, x.thread, x.pause, x.grace, x.questions.reply, x.questions.handle = in.Run, in.Thread, in.Pause, in.Grace, in.Reply, in.Handle
	x.user = in.User
	if err := x.stops.addBreaks(x.r.Graph, in.Break); err != nil {
		return Result{Thread: x.thread, Run: x.run}, err
	}
	if x.run == "" {
		id, err := x.newID()
		if err != nil {
			return Result{Thread: x.thread}, err
		}
		x.run = id
	}
	if x.thread == "" {
		x.thread = x.run
	}
	defer x.detachThread()
	s, by, err := x.attachThread(ctx, false)
	if err != nil {
		return Result{Thread: x.thread, Run: x.run}, err
	}
	x.out.run = x.run
	if s.HasPastRun(x.run) {
		return x.loadRunEnd(ctx, x.run)
	}
	if by.Owner != "" && !s.IsRunOver(x.run) {
		return Result{Thread: x.thread, Run: x.run}, newBusyError(s, x.thread, by)
	}
	f, err := x.openIdleFrame(s, in.Set...)
	if err != nil {
		return Result{Thread: x.thread, Run: x.run}, err
	}
	if s != nil && s.Run.ID == x.run {
		return x.finalResult(s, f)
	}
	var head, tail []byte
	if x.j != nil || len(in.Ahead) > 0 {
		if tail, err = x.questions.addPresetAnswers(in.Ahead); err != nil {
			return Result{Thread: x.thread, Run: x.run}, err
		}
	}
	if x.j != nil {
		x.j.run = fold.Run{Label: in.Label, Graph: x.r.Graph.def.Name}
		head = wire.PutTexts(make([]byte, 0, 256), x.run, in.Label, x.r.Graph.def.Name)
		tail = wire.PutName(wire.PutString(tail, in.Meta), in.User)
	}
	if err := f.begin(in.Set, journal.KindStart, head, tail); err != nil {
		return Result{Thread: x.thread, Run: x.run}, err
	}
	if x.j != nil {
		x.j.addStateSize(len(tail))
	}
	if x.topics&TopicRun != 0 {
		x.out.deliverEvent(Event{Step: f.step, Body: RunStarted{Graph: x.r.Graph.def.Name, Label: in.Label}})
	}
	return x.driveRoot(f)
}

// resumeRun continues a run, or returns the result of one that has ended.
func (x *drive) resumeRun(ctx context.Context, in Resume) (Result, error) {
	x.thread, x.pause, x.grace, x.questions.reply, x.questions.handle = in.Thread, in.Pause, in.Grace, in.Reply, in.Handle
	if err := x.stops.addBreaks(x.r.Graph, in.Break); err != nil {
		return Result{Thread: x.thread}, err
	}
	if x.r.Store == nil {
		return Result{Thread: x.thread}, errors.New("graph: resuming needs a store; give the Runner one")
	}
	defer x.detachThread()
	s, by, err := x.attachThread(ctx, in.Takeover)
	if err != nil {
		return Result{Thread: x.thread}, err
	}
	res := Result{Thread: x.thread, Run: s.Run.ID}
	if by.Owner != "" && !s.Run.Status.Final() {
		return res, newBusyError(s, x.thread, by)
	}
	if s.Head == 0 {
		return res, fmt.Errorf("%w: %s", journal.ErrNoThread, x.thread)
	}
	x.run, x.out.run, x.j.run, x.user = s.Run.ID, s.Run.ID, s.Run, s.User
	if s.Run.Status.Final() {
		if len(in.Answers) > 0 {
			return res, &AnswerError{ID: in.Answers[0].ID, Reason: fmt.Sprintf("run %s is over (%s)", s.Run.ID, Status(s.Run.Status))}
		}
		if len(in.Set) > 0 {
			return res, fmt.Errorf("thread %s: run %s is over (%s): Resume.Set needs one that is not", x.thread, s.Run.ID, Status(s.Run.Status))
		}
		f, err := x.openIdleFrame(s)
		if err != nil {
			return res, err
		}
		return x.finalResult(s, f)
	}
	raw := s.EnsureFrame("")
	consents, err := x.compareGraphs(s, in.AcceptChanges)
	if err != nil {
		return res, err
	}
	x.questions.ahead, x.questions.asked, x.stops.passed = s.Ahead, s.Asked, s.Run.Broken
	x.failures.Store(int32(s.Run.Failures))
	if s.Branch != "" {
		x.branch = "~" + s.Branch
	}
	f, err := newFrame(x, x.r.Graph, "", "").restoreFrame(raw, in.Set...)
	if err != nil {
		return res, fmt.Errorf("thread %s: %w", x.thread, err)
	}
	claim, err := x.newClaimRecord(f, in.Set)
	if err != nil {
		return res, fmt.Errorf("thread %s: %w", x.thread, err)
	}
	if err := x.recordAnswers(s, in.Answers, claim); err != nil {
		return res, err
	}
	if err := x.j.addRecords(false, consents...); err != nil {
		return res, err
	}
	f.frames = s.Frames
	if f := s.Frames[sharedPath]; f != nil {
		x.kept = f.Effects
	}
	if err := x.j.flush(); err != nil {
		return res, err
	}
	if x.topics&TopicRun != 0 {
		x.out.deliverEvent(Event{Step: f.step, Body: RunStarted{Graph: x.r.Graph.def.Name, Label: s.Run.Label, Resumed: true}})
	}
	x.deliverAnswers(f)
	return x.driveRoot(f)
}

// openIdleFrame opens the thread's state for a new run that starts with the writes of set.
func (x *drive) openIdleFrame(s *fold.Thread, set ...Write) (*frame, error) {
	if s == nil || s.Head == 0 {
		f := newFrame(x, x.r.Graph, "", "")
		f.first = x.r.Graph.def.First
		return f, nil
	}
	if !s.Run.Status.Final() {
		return nil, newBusyError(s, x.thread, journal.Lease{})
	}
	raw := s.EnsureFrame("")
	raw.Tasks, raw.Arrived = nil, nil // they belong to an abandoned run
	if s.Run.ID == x.run {
		set = nil // nothing is written: the run has ended
	}
	f, err := newFrame(x, x.r.Graph, "", "").restoreFrame(raw, set...)
	if err == nil && s.Run.ID != x.run {
		f.raw, f.halted, f.value, f.since = nil, false, nil, 0
		clear(f.visits)
	}
	return f, err
}

// newBusyError returns the error for a caller that wants to drive a thread that is not free. by
// is the lease of the running drive, if there is one.
func newBusyError(s *fold.Thread, thread string, by journal.Lease) error {
	e := &BusyError{Thread: thread, Run: s.Run.ID, Status: Status(s.RunStatus()), Lease: by}
	if by.Owner != "" {
		e.Status = Running
	}
	return e
}

// newClaimRecord makes the record of a drive that takes over: with what set writes, and with the
// graph if it is not the one that the run was driven with.
func (x *drive) newClaimRecord(f *frame, set []Write) (journal.Record, error) {
	rec := journal.Record{Kind: journal.KindClaim, Head: wire.PutString(nil, x.run)}
	if g := x.r.Graph; f.raw.Digest != g.digest {
		rec.Head = putTags(wire.PutString(rec.Head, g.digest), g.table.keys)
	}
	if len(set) == 0 {
		return rec, nil
	}
	set, err := x.readBack(set)
	if err != nil {
		return rec, err
	}
	st, _, err := applyWrites(f.st, [][]Write{set}, &f.bufs, f.patchBuffer())
	if err != nil {
		return rec, err
	}
	f.st = st
	data, err := f.encodePatches()
	rec.Data = slices.Clone(data)
	return rec, err
}

// finalResult returns the result of a run that has ended, from its journal.
func (x *drive) finalResult(s *fold.Thread, f *frame) (Result, error) {
	res := Result{Thread: x.thread, Run: s.Run.ID, Status: Status(s.Run.Status), State: f.st, Head: s.Head}
	if s.Run.Value != nil {
		v, err := value.DecodeAny(s.Run.Value)
		if err != nil {
			return res, err
		}
		res.Value = v
	}
	return res, nil
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
	s, err := fold.LoadPoint(ctx, x.r.Store, journal.Point{Thread: x.thread, Seq: at})
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
	for r, err := range journal.Records(ctx, x.r.Store, x.thread, journal.Range{Heads: true, Newest: true}) {
		switch {
		case err != nil:
			return 0, fmt.Errorf("read thread %s: %w", x.thread, err)
		case r.Kind == journal.KindEnd && end == 0:
			end = r.Seq
		case r.Kind == journal.KindStart:
			if h := (&wire.Reader{Rest: r.Head}); h.Text() == run && end > 0 {
				return end, nil
			}
			end = 0
		}
	}
	return 0, fmt.Errorf("%w %s", journal.ErrNoPoint, x.thread)
}

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
	x.openHandle()
	defer x.closeHandle() // also if a task ends this goroutine
	status, err := f.driveSteps(ctx)
	ended = true
	x.closeHandle() // the end of the drive is the last record
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
	return x.j.addRecord(journal.KindEnd, x.j.run.AppendSummary(fold.PutMap(head, x.stops.listSteps(f), wire.PutInt)), data, true)
}

// errRunTimeout is the cause of a context that ended because of Def.Timeout.
var errRunTimeout = errors.New("graph: the run's timeout has passed")

// closeEvents ends what a drive with events has started.
func (x *drive) closeEvents() {
	if x.topics != 0 {
		x.out.close()
	}
	if x.singleTask != nil {
		close(x.singleTask.tasks)
	}
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
