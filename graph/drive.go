package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// drive is one process working on a run.
type drive struct {
	r      *Runner
	topics Topic
	exec   Executor
	clock  Clock
	out    outlet
	live   bool // tasks never run on the reader's goroutine

	thread, run string
	branch      string // of effects, after a fork or an edit
	ctx         context.Context
	cancel      context.CancelFunc
	j           *journal // nil: nothing is kept
	pause       <-chan struct{}
	grace       time.Duration

	fault atomic.Pointer[error] // of the clock
	gone  atomic.Pointer[task]  // one that ended its goroutine
	lone  chan *task            // to the goroutine of steps with one task; nil: not started

	begun  time.Time
	before time.Duration // active time of earlier drives

	failures atomic.Int32 // drives that failed in the root step under way
	stops    breakpoints

	inquiry
}

// errRunTimeout is the cause of a context that ended because of Def.Timeout.
var errRunTimeout = errors.New("graph: the run's timeout has passed")

func (x *drive) now() time.Time { return x.clock.Now() }

// active is the time that drives have worked on the run. Without timeouts nobody
// asks, and no clock is read.
func (x *drive) active() time.Duration { return x.before + x.now().Sub(x.begun) }

// attach reads the thread and makes the drive its writer.
func (x *drive) attach(ctx context.Context) (*replay, error) {
	x.ctx, x.cancel = context.WithCancel(ctx)
	x.out.cancel, x.out.thread, x.out.run = x.cancel, x.thread, x.run
	x.begun = x.now()
	if err := x.failed(); err != nil {
		x.cancel()
		return nil, err
	}
	if x.r.Store == nil {
		return nil, nil
	}
	s, err := load(ctx, x.r.Store, x.thread, 0)
	if err != nil {
		x.cancel()
		return nil, err
	}
	if !s.run.status.Final() {
		x.before = s.active
	}
	j := &journal{store: x.r.Store, thread: x.thread, level: x.r.Durability, clock: x.clock, stop: x.cancel,
		head: s.head, bytes: s.bytes, weight: s.weight, size: s.size}
	j.pending = j.few[:0]
	x.j = j
	return s, nil
}

// begin folds the first writes of a frame, sets its frontier to the start nodes
// and journals both. head and tail are what the kind of record has besides.
func (x *drive) begin(f *frame, set []Write, k Kind, head, tail []byte) error {
	f.next, f.from = frontier{tasks: f.next.tasks[:0]}, f.step
	for _, n := range f.g.start {
		f.next.tasks = append(f.next.tasks, taskRef{node: n})
	}
	f.count()
	rec := x.recording(f)
	for _, ws := range [...][]Write{f.first, set} {
		st, _, err := apply(f.st, [][]Write{ws}, &f.bufs, rec)
		if err != nil {
			return err
		}
		f.st = st
	}
	if x.j == nil {
		return nil
	}
	if k == KindCall {
		head = putString(nil, f.path)
	}
	head = putTags(putString(head, f.g.digest), f.g.table.keys)
	_, err := x.commit(f, k, head, tail, k == KindStart && x.j.level < QuestionsOnly)
	return err
}

// recording is where apply leaves its patches: nowhere, without a journal.
func (x *drive) recording(f *frame) *[]patch {
	if x.j == nil {
		return nil
	}
	f.rec = f.rec[:0]
	return &f.rec
}

// commit journals what apply recorded and the frontier after it.
func (x *drive) commit(f *frame, k Kind, head, tail []byte, flush bool) (seq int64, err error) {
	data, err := x.patches(f)
	if err != nil {
		return 0, err
	}
	head, data, err = putFrontier(head, data, f.g, &f.next)
	if err != nil {
		return 0, err
	}
	if k == KindStep {
		if head = putBool(head, f.halted); f.halted {
			b, err := encodeDynamic(nil, f.value)
			if err != nil {
				return 0, fmt.Errorf("halt: %w", err)
			}
			data = putString(data, b)
		}
	}
	steps := f.step
	if k == KindStep {
		steps++
	}
	head, data = putInt(head, steps), append(data, tail...)
	f.head, f.data = reusable(head), reusable(data)
	if !flush { // they are not written when add returns
		head, data = slices.Clone(head), slices.Clone(data)
	}
	if k == KindStep && x.topics&TopicStep != 0 {
		return x.j.number(flush, Record{Kind: k, Head: head, Data: data})
	}
	return 0, x.j.add(k, head, data, flush)
}

// reusable is b, unless it is too large to be kept for small things.
func reusable(b []byte) []byte {
	if cap(b) > 64<<10 {
		return nil
	}
	return b
}

// patches encodes what apply recorded, in a buffer of the frame.
func (x *drive) patches(f *frame) ([]byte, error) {
	data := putInt(f.data[:0], len(f.rec))
	grew := 0
	for _, p := range f.rec {
		v, err := p.key.store(f.val, p.val)
		if err != nil {
			return nil, &writeError{p.by, err}
		}
		if !p.key.custom {
			f.val = reusable(v)
		}
		grew += f.grow(p.slot, len(v), p.fold == foldSet)
		data = putPatch(slices.Grow(data, len(v)+len(p.key.name)+16), p.key.name, p.fold, p.by, v)
	}
	x.j.grew(grew)
	return data, nil
}

// writeError says whose write the journal cannot hold.
type writeError struct {
	by  int // the task, by its place in the step
	err error
}

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// finish drives the root frame to its end and journals how it ended.
func (x *drive) finish(f *frame) (Result, error) {
	first := f.step
	ctx := x.ctx
	if x.pause != nil && x.grace > 0 {
		graceful, stop := x.graceful(ctx)
		defer stop()
		ctx = graceful
	}
	if limit := f.g.def.Timeout; limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, limit-x.active(), errRunTimeout)
		defer cancel()
		ctx = limited
	}
	ended := false
	defer func() {
		if t := x.gone.Load(); !ended && t != nil && x.j != nil { // and this goroutine with it
			_ = x.end(f, Failed, t.fail(errGoexit))
		}
	}()
	status, err := x.loop(ctx, f, true)
	ended = true
	res := Result{Thread: x.thread, Run: x.run, Status: status, State: f.st, Value: f.value, Steps: f.step - first, Failures: f.failures, Breaks: f.breaks, Questions: f.asked}
	if x.j == nil {
		return res, err
	}
	if e := x.end(f, status, err); e != nil && x.j.failed() != nil {
		res.Status, err = Failed, firstError(err, e)
	}
	res.Head = x.j.head
	return res, err
}

// graceful is a context that ends when the grace of a pause has passed.
func (x *drive) graceful(ctx context.Context) (context.Context, func()) {
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

// firstError prefers the failure of the store where the other only follows from it.
func firstError(err, store error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return store
	}
	if errors.Is(err, store) {
		return err
	}
	return errors.Join(err, store)
}

// end journals that the drive stops.
func (x *drive) end(f *frame, status Status, err error) error {
	head := putString(append(make([]byte, 0, 64), byte(status)), text(err))
	var data []byte
	if head = putBool(head, f.halted); f.halted {
		b, err := encodeDynamic(nil, f.value)
		if err != nil {
			return err
		}
		data = putString(nil, b)
	}
	head = putString(head, x.run)
	head = putInt(head, len(f.asked))
	for _, q := range f.asked {
		head = putString(putString(head, q.ID), q.Prompt)
	}
	return x.j.add(KindEnd, x.j.run.sign(putBroken(head, x.broken(f))), data, true)
}

// loop is the whole engine: plan, execute, apply, route, commit. root says that
// it runs on the reader's goroutine.
func (x *drive) loop(ctx context.Context, f *frame, root bool) (Status, error) {
	for {
		if status, err := x.next(ctx, f); status != running {
			return status, err
		}
		ts, err := x.step(ctx, f, root)
		if err != nil {
			return Failed, err
		}
		status, err := x.settle(ctx, f, ts, root)
		if status == Waiting && root {
			again, err := x.handOut(f)
			if err != nil {
				return Failed, err
			}
			if again {
				continue
			}
		}
		if status != running {
			return status, err
		}
		if err := x.advance(f, ts, root); err != nil {
			return Failed, err
		}
	}
}

// step makes the tasks of the frontier and runs them, within the step's timeout.
func (x *drive) step(ctx context.Context, f *frame, root bool) ([]task, error) {
	if limit := f.g.def.StepTimeout; limit > 0 {
		f.late = &stepTimeout{limit}
		limited, cancel := context.WithTimeoutCause(ctx, limit, f.late)
		defer cancel()
		ctx = limited
	}
	ts, err := x.tasks(ctx, f)
	if err == nil {
		x.execute(ctx, ts, root)
	}
	return ts, err
}

// next decides whether there is another step; running means yes.
func (x *drive) next(ctx context.Context, f *frame) (Status, error) {
	g, done := f.g, f.step-f.from
	if ctx.Err() != nil && !f.halted {
		return x.interrupted(ctx, f, false)
	}
	if limit := g.def.Timeout; limit > 0 && !f.halted && x.active()-f.since > limit {
		return x.timedOut(f, false) // by the Runner's clock, which may not be the context's
	}
	if (g.breaks || x.stops.set != nil) && x.breakHere(f) {
		return Paused, nil
	}
	if f.halted {
		return Done, nil
	}
	if len(f.next.tasks) == 0 {
		if len(f.next.arrived) > 0 || g.def.MustHalt {
			return Stuck, f.next.stuck(g)
		}
		return Done, nil
	}
	select {
	case <-x.pause:
		return Paused, nil
	default:
	}
	if done >= g.def.MaxSteps {
		return StepLimit, &LimitError{Status: StepLimit, Graph: g.def.Name, Path: f.public, Limit: done, Frontier: f.next.names(g)}
	}
	for i := range f.next.tasks {
		n := &g.nodes[f.next.tasks[i].node]
		limit := n.MaxVisits
		if limit == 0 {
			limit = g.def.MaxVisits
		}
		if v := f.visits[f.next.tasks[i].node]; limit > 0 && v > limit {
			return VisitLimit, &LimitError{Status: VisitLimit, Graph: g.def.Name, Path: f.public, Node: n.Name, Limit: limit, Count: v, Frontier: f.next.names(g)}
		}
	}
	return running, nil
}

// interrupted is how a frame ends whose context has ended.
func (x *drive) interrupted(ctx context.Context, f *frame, during bool) (Status, error) {
	if err := x.failed(); err != nil {
		return Failed, err
	}
	if context.Cause(ctx) == errGrace {
		return Paused, nil
	}
	names := f.next.names(f.g)
	slices.Sort(names)
	if context.Cause(ctx) == errRunTimeout {
		return x.timedOut(f, during)
	}
	return Canceled, &CanceledError{Graph: f.g.def.Name, Frontier: names, During: during, Err: context.Cause(ctx)}
}

// timedOut is how a frame ends that has used up Def.Timeout.
func (x *drive) timedOut(f *frame, during bool) (Status, error) {
	names := f.next.names(f.g)
	slices.Sort(names)
	return TimedOut, &LimitError{Status: TimedOut, Graph: f.g.def.Name, Path: f.public, After: f.g.def.Timeout, Frontier: names, During: during}
}

// tasks makes the tasks of a step and recalls what the journal holds of them.
func (x *drive) tasks(ctx context.Context, f *frame) ([]task, error) {
	ts := f.slots(len(f.next.tasks))
	firsts := make([]taskCtx, len(ts))
	if f.drive == nil {
		f.drive = x
	}
	for i, ref := range f.next.tasks {
		t := &ts[i]
		t.drive, t.frame, t.ref, t.step, t.base, t.first = x, f, ref, f.step, ctx, &firsts[i]
		if f.raw != nil {
			if err := t.recall(); err != nil {
				return nil, err
			}
		}
		if i < len(f.again) && f.again[i].step == f.step {
			t.goOn(&f.again[i])
		}
	}
	f.again = nil
	return ts, nil
}

// slots is room for n tasks, used again where no node holds one of the last step's.
func (f *frame) slots(n int) []task {
	held := false
	for i := range f.ts {
		held = held || f.ts[i].held
	}
	if held || cap(f.ts) < n {
		f.ts = make([]task, n)
	} else {
		clear(f.ts)
		f.ts = f.ts[:n]
	}
	return f.ts
}

// execute runs the tasks of a step and, at the root, delivers their events.
func (x *drive) execute(ctx context.Context, ts []task, root bool) {
	switch {
	case len(ts) == 1 && !root:
		ts[0].run(false)
	case len(ts) == 1 && !x.live:
		ts[0].inline = true
		ts[0].run(false)
	case len(ts) == 1:
		x.alone(&ts[0])
	case x.topics == 0 || !root:
		x.all(ctx, ts)
	default:
		go func() {
			defer x.out.finish()
			x.all(ctx, ts)
		}()
		x.out.pump()
	}
}

// alone runs the one task of a step on a goroutine that serves all such steps, so
// that what the node emits can be delivered while it runs.
func (x *drive) alone(t *task) {
	t.inline = true
	if !t.begin() {
		return
	}
	t.inline = false
	if x.lone == nil {
		x.lone = make(chan *task)
		go func(tasks <-chan *task) {
			for t := range tasks {
				x.serve(t)
			}
		}(x.lone)
	}
	x.lone <- t
	x.out.pump()
	t.inline = true
	t.end()
}

// serve is what that goroutine does for one task.
func (x *drive) serve(t *task) {
	returned := false
	defer func() {
		if !returned {
			x.lone = nil // it ends with the node
		}
		x.out.finish()
	}()
	t.work(false)
	returned = true
}

func (x *drive) all(ctx context.Context, ts []task) {
	g := ts[0].frame.g
	defer func() {
		if p := recover(); p != nil {
			notRun(ts, panicError("the Executor", p))
		} else {
			notRun(ts, errNotRun)
		}
	}()
	if !g.def.FailFast {
		x.exec.Execute(len(ts), g.def.Concurrency, func(i int) { ts[i].run(true) })
		return
	}
	step, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for i := range ts {
		ts[i].base = step
	}
	x.exec.Execute(len(ts), g.def.Concurrency, func(i int) {
		defer func() {
			switch {
			case ts[i].err == nil:
			case context.Cause(step) == errSibling && errors.Is(ts[i].err, context.Canceled):
				ts[i].err = errSibling // not a failure of its own
			default:
				cancel(errSibling)
			}
		}()
		ts[i].run(true)
	})
}

var errNotRun = errors.New("graph: the Executor has returned without running the task")

// notRun fails the tasks that the Executor has left out.
func notRun(ts []task, err error) {
	for i := range ts {
		if t := &ts[i]; t.attempt == 0 && !t.recorded && t.recovered == nil && t.err == nil {
			t.err = err
		}
	}
}

// errSibling is the cause of a context that ended because a sibling failed.
var errSibling = errors.New("graph: canceled because a sibling failed")

// settle looks at how the tasks ended; running means that the step can be applied.
func (x *drive) settle(ctx context.Context, f *frame, ts []task, root bool) (Status, error) {
	var failed []*NodeError
	waiting, paused := false, false
	f.ups, f.writes, f.asked = slices.Grow(f.ups[:0], len(ts)), slices.Grow(f.writes[:0], len(ts)), nil
	f.breaks = nil
	for i := range ts {
		t := &ts[i]
		waiting, paused = waiting || t.waiting, paused || t.paused
		if t.err != nil {
			failed = append(failed, asNodeError(t))
		}
		f.ups, f.writes = append(f.ups, t.up), append(f.writes, t.up.Writes)
		if in := t.inner; in != nil {
			if len(in.notes) > 0 || len(in.open) > 0 {
				x.report(t, root)
			}
			f.asked, f.failures = append(f.asked, in.open...), append(f.failures, in.failures...)
			if below := in.below; below != nil {
				f.asked, f.breaks = append(f.asked, below.asked...), append(f.breaks, below.breaks...)
			}
			for _, below := range in.others {
				f.asked, f.breaks = append(f.asked, below.asked...), append(f.breaks, below.breaks...)
			}
		}
	}
	if err := x.failed(); err != nil {
		return Failed, err
	}
	if ctx.Err() != nil && (failed != nil || waiting || paused) {
		return x.interrupted(ctx, f, true)
	}
	switch {
	case failed != nil:
		failed = slices.DeleteFunc(failed, func(e *NodeError) bool { return len(failed) > 1 && errors.Is(e.Err, errSibling) })
		return Failed, &StepError{Path: f.public, Step: f.step, Tasks: failed}
	case waiting:
		return Waiting, nil
	case paused:
		return Paused, nil
	}
	return running, nil
}

// asNodeError is a task's error; what came from outside the node is wrapped.
func asNodeError(t *task) *NodeError {
	if e, ok := t.err.(*NodeError); ok {
		return e
	}
	return t.fail(t.err).(*NodeError)
}

// report delivers what a task asked, once it is durable.
func (x *drive) report(t *task, root bool) {
	if x.j.flush() != nil {
		return
	}
	if x.topics&TopicQuestion == 0 {
		return
	}
	in := t.inner
	for _, q := range in.open {
		if !x.told(&q) {
			in.notes = append(in.notes, Asked{q})
		}
	}
	for _, b := range in.notes {
		if e := t.event(b); root {
			x.out.deliver(e)
		} else {
			x.out.send(e)
		}
	}
}

// advance applies a step: fold, route, commit.
func (x *drive) advance(f *frame, ts []task, root bool) error {
	st, by, err := apply(f.st, f.writes, &f.bufs, x.recording(f))
	if err != nil {
		return x.blame(f, ts, by, err)
	}
	was := f.next
	next, by, err := route(f.g, st, &was, f.ups, f.tasks)
	if err != nil {
		return x.blame(f, ts, by, err)
	}
	var dropped []string
	if halts := halting(f.ups); len(halts) > 0 {
		if len(halts) > 1 {
			return x.blame(f, ts, 0, &HaltError{tasks: halts})
		}
		f.halted, f.value = true, f.ups[halts[0]].Halt.Value
		dropped = next.names(f.g)
		next = frontier{}
	}
	var seq int64
	before := f.st
	f.st, f.next, f.tasks = st, next, was.tasks[:0]
	if x.j != nil {
		if seq, err = x.commit(f, KindStep, putString(f.head[:0], f.path), nil, x.j.level < QuestionsOnly); err != nil {
			f.st, f.next, f.halted, f.value = before, was, false, nil // nothing of it is kept
			if w := (*writeError)(nil); errors.As(err, &w) {
				return x.blame(f, ts, w.by, w.err)
			}
			if len(ts) == 1 && x.j.failed() == nil { // its overlays or its halt; those of siblings were stored before
				return x.blame(f, ts, 0, err)
			}
			return err
		}
		if err := x.j.snapshot(); err != nil {
			return err
		}
	}
	if x.topics&TopicStep != 0 {
		x.committed(f, ts, &was, dropped, seq, root)
	}
	f.keepFailures(ts)
	f.step++
	f.count()
	f.raw = nil
	if root {
		x.failures.Store(0)
	}
	if f.g.breaks || x.stops.set != nil {
		x.breakAfter(f, ts)
	}
	return nil
}

// halting lists the tasks, by place, that end the run.
func halting(ups []Update) (at []int) {
	for i := range ups {
		if ups[i].Halt != nil {
			at = append(at, i)
		}
	}
	return at
}

// blame names the tasks at fault for a step that cannot be applied, and makes
// their recorded updates void: they run again, and the others keep theirs.
func (x *drive) blame(f *frame, ts []task, by int, err error) error {
	at := []int{by}
	switch e := err.(type) {
	case *ConflictError:
		at, e.Nodes = e.tasks, named(ts, e.tasks)
	case *HaltError:
		at, e.Nodes = e.tasks, named(ts, e.tasks)
	default:
		err = &StepError{Path: f.public, Step: f.step, Tasks: []*NodeError{ts[by].fail(err).(*NodeError)}}
	}
	for _, t := range at {
		ts[t].err = err
	}
	if x.j == nil || len(ts) == 1 { // a lone task has no record
		return err
	}
	ids := make([]string, len(at))
	for i, t := range at {
		ids[i] = ts[t].local()
	}
	if e := x.j.add(KindVoid, putStrings(putString(nil, f.path), ids), nil, false); e != nil {
		return firstError(err, e)
	}
	return err
}

// named lists the nodes of tasks, by place.
func named(ts []task, at []int) (names []string) {
	for _, i := range at {
		names = append(names, ts[i].node().Name)
	}
	return names
}
