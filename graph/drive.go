package graph

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/lease"
	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/structure"
	"raddle.dev/graph/internal/timing"
	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/writer"
	"raddle.dev/graph/journal"
)

// attachThread takes the thread's lease, reads the thread and makes the drive its writer. If
// another drive holds the lease, by is that lease, and the drive may only
// read. The caller must call detachThread in any case.
func (d *drive) attachThread(ctx context.Context, takeover bool) (s *fold.Thread, by journal.Lease, err error) {
	d.ctx, d.cancel = context.WithCancel(ctx)
	d.out.cancel, d.out.thread, d.out.run = d.cancel, d.thread, d.run
	began := time.Now()
	d.watch.StartWatch(d.now, func() time.Duration { return time.Since(began) + time.Duration(d.skipped.Load()) })
	if err := d.fatalError(); err != nil {
		return nil, by, err
	}
	if endable := d.hasEndableContext(ctx); endable || d.out.yield != nil {
		d.hungAfter = cmp.Or(d.settings.HungAfter, defaultHungAfter)
		d.live = d.live || endable && d.hungAfter > 0
	}
	if d.settings.Store == nil {
		return nil, by, nil
	}
	if by, err = d.acquireLease(ctx, takeover); err != nil {
		return nil, by, err
	}
	err = d.callStore(ctx, func(ctx context.Context) (err error) {
		s, err = fold.LoadToDrive(ctx, d.settings.Store, d.thread)
		return err
	})
	if err != nil {
		return nil, by, err
	}
	if d.lease != nil && s.Head > 0 && s.Run.Status == record.Running {
		err = d.callStore(ctx, func(ctx context.Context) (err error) { by, err = d.lease.ReadDisplacing(ctx); return err })
		if err != nil || by.Owner != "" {
			return s, by, err
		}
	}
	if !s.Run.Status.Final() {
		d.before = s.Active
	}
	d.journal = writer.New(d.ctx, writer.Config{Store: d.settings.Store, Thread: d.thread, Patience: &d.outages.patience, Watch: &d.watch, Stop: d.cancel}, s)
	d.out.saved = d.journal.SavedHead
	d.lease.StartRenewal()
	return s, by, nil
}

// detachThread releases what attachThread has acquired.
func (d *drive) detachThread() {
	d.lease.Release(d.ctx, d.journal.StoreError())
	if d.cancel != nil {
		d.cancel()
	}
}

func (r *Runner) newDrive(topics Topic) *drive {
	d := &drive{settings: r, topics: topics, exec: r.Executor, clock: r.Clock}
	if d.exec == nil {
		d.exec = goroutines{}
	}
	if d.clock == nil {
		d.clock = timing.WallClock{}
	} else {
		d.clock = &timing.GuardedClock{Clock: r.Clock, Fault: d.failClock, Skipped: &d.skipped}
	}
	d.out.clock = d.clock
	d.outages.patience = journal.Patience{Limit: journal.ShortPatience, Away: d.beginOutage, Back: d.endOutage}
	if topics != 0 {
		d.out.openQueue()
		d.live = topics&TopicEmit != 0
	}
	return d
}

// startRun starts a run, or returns the result of one that has already ended.
func (d *drive) startRun(ctx context.Context, in Input) (Result, error) {
	d.run, d.thread, d.pause, d.grace, d.questions.reply, d.questions.handle = in.Run, in.Thread, in.Pause, in.Grace, in.Reply, in.Handle
	d.user, d.until = in.User, in.Until
	if err := d.stops.addBreaks(d.settings.Graph, in.Break); err != nil {
		return Result{Thread: d.thread, Run: d.run}, err
	}
	if d.run == "" {
		id, err := d.newID()
		if err != nil {
			return Result{Thread: d.thread}, err
		}
		d.run = id
	}
	if d.thread == "" {
		d.thread = d.run
	}
	defer d.detachThread()
	s, by, err := d.attachThread(ctx, false)
	if err != nil {
		return Result{Thread: d.thread, Run: d.run}, err
	}
	d.out.run = d.run
	if s.HasPastRun(d.run) {
		return d.loadRunEnd(ctx, d.run)
	}
	if by.Owner != "" && !s.IsRunOver(d.run) {
		return Result{Thread: d.thread, Run: d.run}, newBusyError(s, d.thread, by)
	}
	f, err := d.openIdleFrame(s, in.Set...)
	if err != nil {
		return Result{Thread: d.thread, Run: d.run}, err
	}
	if s != nil && s.Run.ID == d.run {
		return d.finalResult(s, f)
	}
	b := &record.Parts{}
	if d.journal != nil || len(in.Ahead) > 0 {
		if b.Answers, err = d.questions.addPresetAnswers(in.Ahead); err != nil {
			return Result{Thread: d.thread, Run: d.run}, err
		}
	}
	if d.journal != nil {
		d.journal.Run = record.Run{ID: d.run, Label: in.Label, Graph: d.settings.Graph.def.Name}
		b.Run = d.run
		b.Label = in.Label
		b.Graph = d.settings.Graph.def.Name
		b.Meta = in.Meta
		b.User = in.User
		b.Shape = structure.Shorten(d.settings.Graph.outline(), s.Shape)
	}
	if err := f.begin(in.Set, journal.KindStart, b); err != nil {
		return Result{Thread: d.thread, Run: d.run}, err
	}
	if d.journal != nil {
		d.journal.AddStateSize(b.StartSize())
	}
	if d.topics&TopicRun != 0 {
		d.out.deliverEvent(Event{Step: f.step, Body: RunStarted{Graph: d.settings.Graph.def.Name, Label: in.Label}})
	}
	return d.driveRoot(f)
}

// resumeRun continues a run, or returns the result of one that has ended.
func (d *drive) resumeRun(ctx context.Context, in Resume) (Result, error) {
	d.thread, d.pause, d.grace, d.questions.reply, d.questions.handle = in.Thread, in.Pause, in.Grace, in.Reply, in.Handle
	d.until = in.Until
	if err := d.stops.addBreaks(d.settings.Graph, in.Break); err != nil {
		return Result{Thread: d.thread}, err
	}
	if d.settings.Store == nil {
		return Result{Thread: d.thread}, errors.New("graph: resuming needs a store; give the Runner one")
	}
	defer d.detachThread()
	s, by, err := d.attachThread(ctx, in.Takeover)
	if err != nil {
		return Result{Thread: d.thread}, err
	}
	res := Result{Thread: d.thread, Run: s.Run.ID}
	if by.Owner != "" && !s.Run.Status.Final() {
		return res, newBusyError(s, d.thread, by)
	}
	if s.Head == 0 {
		return res, fmt.Errorf("%w: %s", journal.ErrNoThread, d.thread)
	}
	d.run, d.out.run, d.journal.Run, d.user = s.Run.ID, s.Run.ID, s.Run, s.User
	if s.Run.Status.Final() {
		if len(in.Answers) > 0 {
			return res, &AnswerError{ID: in.Answers[0].ID, Reason: fmt.Sprintf("run %s is over (%s)", s.Run.ID, Status(s.Run.Status))}
		}
		if len(in.Set) > 0 {
			return res, fmt.Errorf("thread %s: run %s is over (%s): Resume.Set needs one that is not", d.thread, s.Run.ID, Status(s.Run.Status))
		}
		f, err := d.openIdleFrame(s)
		if err != nil {
			return res, err
		}
		return d.finalResult(s, f)
	}
	migrated, consents, err := d.compareGraphs(s, in.AcceptChanges)
	if err != nil {
		return res, err
	}
	raw := s.EnsureFrame("")
	d.reshaped = structure.ListReshaped(s.Shape, d.settings.Graph.outline())
	d.questions.ahead, d.questions.asked, d.stops.passed = s.Ahead, s.Asked, s.Run.Broken
	d.stops.cancel = in.Cancel
	if in.IgnoreAhead {
		for i := range s.Ahead {
			s.Ahead[i].Used = true
		}
	}
	d.failures.Store(int32(s.Run.Failures))
	if s.Branch != "" {
		d.branch = "~" + s.Branch
	}
	f, err := newFrame(d, d.settings.Graph, "", "").restoreFrame(raw, in.Set...)
	if err != nil {
		return res, fmt.Errorf("thread %s: %w", d.thread, err)
	}
	claim, err := d.newClaimRecord(f, in, s)
	if err != nil {
		return res, fmt.Errorf("thread %s: %w", d.thread, err)
	}
	if err := d.recordAnswers(s, in.Answers, append(migrated, claim)...); err != nil {
		return res, err
	}
	if err := d.journal.AddRecords(false, consents...); err != nil {
		return res, err
	}
	f.frames = s.Frames
	if f := s.Frames[sharedPath]; f != nil {
		d.kept = f.Effects
	}
	if err := d.journal.Flush(); err != nil {
		return res, err
	}
	if d.topics&TopicRun != 0 {
		d.out.deliverEvent(Event{Step: f.step, Body: RunStarted{Graph: d.settings.Graph.def.Name, Label: s.Run.Label, Resumed: true}})
	}
	d.deliverAnswers(f)
	return d.driveRoot(f)
}

// openIdleFrame opens the thread's state for a new run that starts with the writes of set.
func (d *drive) openIdleFrame(s *fold.Thread, set ...Write) (*frame, error) {
	if s == nil || s.Head == 0 {
		f := newFrame(d, d.settings.Graph, "", "")
		f.first = d.settings.Graph.def.First
		return f, nil
	}
	if !s.Run.Status.Final() {
		return nil, newBusyError(s, d.thread, journal.Lease{})
	}
	d.reshaped = structure.ListReshaped(s.Shape, d.settings.Graph.outline())
	raw := s.EnsureFrame("")
	raw.Tasks, raw.Arrived = nil, nil // they belong to an abandoned run
	if s.Run.ID == d.run {
		set = nil // nothing is written: the run has ended
	}
	f, err := newFrame(d, d.settings.Graph, "", "").restoreFrame(raw, set...)
	if err == nil && s.Run.ID != d.run {
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
func (d *drive) newClaimRecord(f *frame, in Resume, s *fold.Thread) (journal.Record, error) {
	g := d.settings.Graph
	b := &record.Parts{Run: d.run, NewGraph: f.raw.Digest != g.digest}
	if b.NewGraph {
		b.Digest = g.digest
		b.Tags = listTags(g.table.keys)
	}
	b.NewStart = b.NewGraph || !bytes.Equal(g.outline(), s.Shape) || in.Meta != nil && !bytes.Equal(in.Meta, s.Meta)
	if len(in.Set) == 0 && !b.NewStart {
		return fold.NewRecord(journal.KindClaim, b), nil
	}
	set, err := d.readBack(in.Set)
	if err != nil {
		return journal.Record{}, err
	}
	st, _, err := applyWrites(f.st, [][]Write{set}, &f.bufs, f.patchBuffer(), d.settings.Debug)
	if err != nil {
		return journal.Record{}, err
	}
	f.st = st
	data, err := f.encodePatches()
	if err != nil {
		return journal.Record{}, err
	}
	b.Streamed = true
	b.Meta = in.Meta
	b.Shape = structure.Shorten(g.outline(), s.Shape)
	head, data := b.Append(uint8(journal.KindClaim), nil, slices.Clone(data))
	return journal.Record{Kind: journal.KindClaim, Head: head, Data: data}, nil
}

// finalResult returns the result of a run that has ended, from its journal.
func (d *drive) finalResult(s *fold.Thread, f *frame) (Result, error) {
	res := Result{Thread: d.thread, Run: s.Run.ID, Status: Status(s.Run.Status), State: f.st.forReader(), Head: s.Head}
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
func (d *drive) loadRunEnd(ctx context.Context, run string) (Result, error) {
	fail := func(err error) (Result, error) {
		return Result{Thread: d.thread, Run: run}, fmt.Errorf("run %s is over, and its end cannot be read: %w", run, err)
	}
	var at int64
	err := d.callStore(ctx, func(ctx context.Context) (err error) {
		at, err = fold.FindRunEnd(ctx, d.settings.Store, d.thread, run)
		return err
	})
	if err != nil {
		return fail(err)
	}
	var s *fold.Thread
	err = d.callStore(ctx, func(ctx context.Context) (err error) {
		s, err = fold.LoadPoint(ctx, d.settings.Store, journal.Point{Thread: d.thread, Seq: at})
		return err
	})
	if err != nil {
		return fail(err)
	}
	f, err := d.openIdleFrame(s)
	if err != nil {
		return fail(err)
	}
	return d.finalResult(s, f)
}

// driveRoot drives the root frame to its end and journals how it ended.
func (d *drive) driveRoot(f *frame) (Result, error) {
	first := f.step
	ctx := d.ctx
	if d.pause != nil && d.grace > 0 {
		graceful, stop := d.withGrace(ctx)
		defer stop()
		ctx = graceful
	}
	if d.journal != nil {
		d.outages.patience.Limit, d.journal.Waits = lease.TTL+lease.StorePatience, ctx
	}
	limited := ctx
	if limit := f.g.def.Timeout; limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, limit-d.activeTime(), errRunTimeout)
		defer cancel()
	}
	ended := false
	defer func() {
		if t := d.exitedTask.Load(); !ended && t != nil && d.journal != nil { // and this goroutine ends too
			_ = d.recordEnd(f, Failed, t.wrapNodeError(errGoexit))
		}
	}()
	d.openHandle()
	defer d.closeHandle() // also if a task ends this goroutine
	status, err := f.driveToEnd(ctx, limited, d.stops.cancel)
	ended = true
	d.closeHandle() // the end of the drive is the last record
	hung, err := d.leftBehind(err)
	defer f.recycleTasks()
	res := Result{Hung: hung, Thread: d.thread, Run: d.run, Status: status, State: f.st.forReader(), Value: f.value, Steps: f.step - first, Failures: f.failures, Breaks: f.breaks, Unused: d.questions.unusedAnswers(), Migrated: d.migrated}
	res.Questions, res.Timers = splitTimers(f.asked)
	if status == Waiting {
		res.Due = d.dueTime(f)
	}
	if d.journal == nil {
		return res, err
	}
	if e := d.recordEnd(f, status, err); e != nil && d.journal.StoreError() != nil {
		res.Status, err = d.judgeStoreError(err, d.journal.StoreError())
	}
	res.Head = d.journal.SavedHead()
	return res, err
}

// withGrace returns a context that ends when the grace period of a pause has passed.
func (d *drive) withGrace(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-d.pause:
			if d.clock.Wait(ctx, d.grace) == nil {
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

// recordEnd journals that the drive stops.
func (d *drive) recordEnd(f *frame, status Status, err error) error {
	run := &d.journal.Run
	b := &record.Parts{Status: record.Status(status), Reason: errorText(err), Halted: f.halted, Run: d.run, Broken: d.stops.listSteps(f), Label: run.Label, Graph: run.Graph, Started: run.Started}
	if status == Abandoned && d.stops.cancel != "" {
		b.By = journal.AuthorOf(d.ctx)
	}
	if f.halted {
		if b.Value, err = value.EncodeAny(nil, f.value); err != nil {
			return err
		}
	}
	if due := d.dueTime(f); status == Waiting && !due.IsZero() {
		b.Due = due.UnixMicro()
	}
	open, _ := splitTimers(f.asked)
	for _, q := range open {
		b.Open = append(b.Open, record.Question{ID: q.ID, Prompt: q.Prompt})
	}
	return d.journal.AddRecord(journal.KindEnd, b, true)
}

// closeEvents ends what a drive with events has started.
func (d *drive) closeEvents() {
	if d.topics != 0 {
		d.out.close()
	}
	if d.singleTask != nil {
		close(d.singleTask.tasks)
	}
}

// failClock fails the drive because of a panic in the Clock of the caller.
func (d *drive) failClock(p any) error {
	err := panics.NewError("Runner.Clock", p)
	d.setFault(err)
	return err
}

// newID makes the id of a run or a branch; a panic in Runner.IDs becomes an error.
func (d *drive) newID() (id string, err error) {
	defer func() {
		if p := recover(); p != nil {
			id, err = "", panics.NewError("Runner.IDs", p)
		}
	}()
	now := d.now()
	if err := d.fatalError(); err != nil {
		return "", err
	}
	if d.settings.IDs == nil {
		return NewID(now), nil
	}
	if id = d.settings.IDs(); id == "" {
		return "", errors.New("graph: Runner.IDs has returned an empty id")
	}
	return id, nil
}

// judgeStoreError returns the status and the error of a drive whose store has refused a record, or that was ended. err
// is what its steps have ended with.
func (d *drive) judgeStoreError(err, store error) (Status, error) {
	e, known := errors.AsType[*DisplacedError](store)
	if !known && !errors.Is(store, journal.ErrConflict) {
		return Failed, writer.FirstError(err, store)
	}
	if !known {
		by := journal.Lease{}
		if l, ok := d.settings.Store.(journal.Leaser); ok {
			by, _ = l.ReadLease(context.Background(), d.thread) // who it was is only told
		}
		e = d.explainDisplacement(by)
	}
	if hung, ok := errors.AsType[*HungError](err); ok {
		return e.resultStatus(), fmt.Errorf("%w; %w", e, hung)
	}
	return e.resultStatus(), e
}
