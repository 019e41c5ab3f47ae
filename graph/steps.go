package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/namelist"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/writer"
	"raddle.dev/graph/journal"
)

// runSteps is the whole engine: plan, execute, apply, route, commit. It returns at the end of the
// frame, at a stop, or when a task waits for a person. The error is errLeft if another goroutine
// has replaced this one, because a task of the step does not return.
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
	d := f.drive
	if limit := f.g.def.StepTimeout; limit > 0 {
		r := f.runner
		f.late = &stepTimeout{limit}
		ctx, f.cancel = context.WithTimeoutCause(ctx, limit, f.late)
		f.outer, f.watch = f.watch, d.newWatch(ctx, r)
		defer func() {
			if !r.isReplaced() {
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
	d := f.drive
	status, err := f.collectTaskResults(ctx)
	if status == Waiting && f.isRoot() {
		again, err := d.continueWithAnswers(f)
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

// decideNextStep decides whether there is another step: the status is Running then, otherwise the one
// with which the frame stops.
func (f *frame) decideNextStep(ctx context.Context) (Status, error) {
	d := f.drive
	g, done := f.g, f.step-f.from
	if ctx.Err() != nil && !f.halted {
		return f.interruptionStatus(ctx, false)
	}
	if f.isEnding() {
		if f.halted || len(f.next.tasks) == 0 {
			return Done, nil
		}
		return f.checkPause()
	}
	if limit := g.def.Timeout; limit > 0 && !f.halted && d.activeTime()-f.since > limit {
		return f.timeoutStatus(false) // the Runner's clock may differ from the context's
	}
	if (g.breaks || d.stops.set != nil) && d.stops.stopBefore(f) {
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
	if status, err := f.checkPause(); status != Running {
		return status, err
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

// checkPause returns Paused if the drive is to stop before the next step, else Running.
func (f *frame) checkPause() (Status, error) {
	select {
	case <-f.drive.pause:
		return Paused, nil
	default:
		return Running, nil
	}
}

// interruptionStatus returns how a frame ends after its context has ended. during says that tasks of a
// step were running.
func (f *frame) interruptionStatus(ctx context.Context, during bool) (Status, error) {
	d := f.drive
	if err := d.fatalError(); err != nil {
		return Failed, err
	}
	if context.Cause(ctx) == errGrace {
		return Paused, nil
	}
	if context.Cause(ctx) == errRunTimeout {
		return f.timeoutStatus(during)
	}
	names := f.next.nodeNames(f.g)
	slices.Sort(names)
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

// driveSteps drives a frame until it stops.
func (f *frame) driveSteps(ctx context.Context) (Status, error) {
	d := f.drive
	w := d.newWatch(ctx)
	if w == nil {
		return f.runSteps(ctx)
	}
	f.watch = w
	if f.isRoot() && d.topics != 0 { // the reader's goroutine runs no node that can hang
		defer w.endWatch()
		return f.runSteps(ctx)
	}
	fd := &frameDriver{ctx: ctx, f: f, watch: w, done: make(chan struct{})}
	go fd.run(fd.newRunner(), nil)
	<-fd.done
	f.supervision = supervision{}
	return fd.status, fd.err
}

// collectTaskResults looks at how the tasks of a step have ended. The status Running means that the step
// can be applied.
func (f *frame) collectTaskResults(ctx context.Context) (Status, error) {
	d, ts := f.drive, f.ts
	var failed []*NodeError
	waiting, paused := false, false
	f.writes, f.asked = slices.Grow(f.writes[:0], len(ts)), nil
	f.breaks = nil
	for i := range ts {
		t := &ts[i]
		waiting, paused = waiting || t.waiting, paused || t.paused
		if t.err != nil {
			failed = append(failed, asNodeError(t))
		}
		f.writes = append(f.writes, t.up.Writes)
		if in := t.inner; in != nil {
			if len(in.notes) > 0 || len(in.open) > 0 {
				f.deliverQuestions(t)
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
	if err := d.fatalError(); err != nil {
		return Failed, err
	}
	if ctx.Err() != nil && (failed != nil || waiting || paused) {
		return f.interruptionStatus(ctx, true)
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
	return Running, nil
}

// asNodeError returns a task's error; an error from outside the node is wrapped.
func asNodeError(t *task) *NodeError {
	if e, ok := t.err.(*NodeError); ok {
		return e
	}
	return t.wrapNodeError(t.err).(*NodeError)
}

// deliverQuestions delivers the questions of a task after they are durable.
func (f *frame) deliverQuestions(t *task) {
	d := f.drive
	if d.journal.Flush() != nil {
		return
	}
	if d.topics&TopicQuestion == 0 {
		return
	}
	in := t.inner
	for _, q := range in.open {
		if q.Kind != KindTimer && !d.questions.markQuestionDelivered(&q) {
			in.notes = append(in.notes, QuestionAsked{q})
		}
	}
	for _, b := range in.notes {
		f.deliverEvent(t.newEvent(b))
	}
}

// applyStep applies a step: it folds the writes of the tasks into the state, routes to the next
// frontier, and commits both in one record. If one of these fails, the frame stays as it was, and the
// error names the tasks that caused it.
func (f *frame) applyStep() error {
	d, ts := f.drive, f.ts
	st, by, err := f.foldStepWrites()
	if err != nil {
		return f.attributeError(by, err)
	}
	was := f.next
	next, by, err := f.routeStep(st, &was)
	if err != nil {
		return f.attributeError(by, err)
	}
	var dropped []string
	if halts := findHalting(ts); len(halts) > 0 {
		if len(halts) > 1 {
			return f.attributeError(0, &HaltError{tasks: halts})
		}
		f.halted, f.value = true, value.Clip(ts[halts[0]].up.Halt.Value)
		dropped = next.nodeNames(f.g)
		next = frontier{}
	}
	var seq int64
	before := f.st
	f.st, f.next, f.tasks = st, next, was.tasks[:0]
	f.arrivals.list = was.arrived // reuse its memory
	if d.journal != nil {
		if seq, err = f.commitPatches(journal.KindStep, &record.Parts{Failures: f.listFailures()}, d.settings.Durability < QuestionsOnly && !f.isEnding()); err != nil {
			f.st, f.next, f.halted, f.value, f.arrivals.list = before, was, false, nil, nil // undo the step in memory
			if w := (*writeError)(nil); errors.As(err, &w) {
				return f.attributeError(w.by, w.err)
			}
			// The overlays or the halt of the only task could not be stored; those of siblings were stored before.
			if len(ts) == 1 && d.journal.StoreError() == nil {
				return f.attributeError(0, err)
			}
			return err
		}
		if err := d.journal.SnapshotIfDue(); err != nil {
			return err
		}
	}
	if d.topics&TopicStep != 0 {
		f.deliverStepCommitted(&was, dropped, seq)
	}
	f.keepFailures(ts)
	f.step++
	f.countVisits()
	f.raw = nil
	if f.isRoot() {
		d.failures.Store(0)
	}
	if f.g.breaks || d.stops.set != nil {
		d.stops.noteAfter(f)
	}
	return nil
}

// findHalting lists the tasks, by place, that end the run.
func findHalting(ts []task) (at []int) {
	for i := range ts {
		if ts[i].up.Halt != nil {
			at = append(at, i)
		}
	}
	return at
}

// attributeError names the tasks that caused a failure to apply a step, and makes their recorded
// updates void: they run again, and the others keep theirs.
func (f *frame) attributeError(by int, err error) error {
	d, ts := f.drive, f.ts
	at := []int{by}
	switch e := err.(type) {
	case *ConflictError:
		at, e.Nodes = e.tasks, taskNodeNames(ts, e.tasks)
	case *HaltError:
		at, e.Nodes = e.tasks, taskNodeNames(ts, e.tasks)
	default:
		err = &StepError{Path: f.public, Step: f.step, Tasks: []*NodeError{ts[by].wrapNodeError(err).(*NodeError)}}
	}
	for _, t := range at {
		ts[t].err = err
	}
	if d.journal == nil || len(ts) == 1 { // a lone task has no record
		return err
	}
	ids := make([]string, len(at))
	for i, t := range at {
		ids[i] = ts[t].localID()
	}
	if e := d.journal.AddRecord(journal.KindVoid, &record.Parts{Path: f.path, Void: ids}, false); e != nil {
		return writer.FirstError(err, e)
	}
	return err
}

// taskNodeNames lists the nodes of tasks, by place.
func taskNodeNames(ts []task, at []int) (names []string) {
	for _, i := range at {
		names = append(names, ts[i].node().Name)
	}
	return names
}

// deliverStepCommitted delivers the event of a committed step.
func (f *frame) deliverStepCommitted(was *frontier, dropped []string, seq int64) {
	ts := f.ts
	now, next := len(was.tasks), len(f.next.tasks)
	l := namelist.New(now + next + max(now, next) + 1)
	b := StepCommitted{Nodes: listNodes(l, f.g, was), Next: listNodes(l, f.g, &f.next), Dropped: dropped, Halted: f.halted, Seq: seq, State: f.st.forReader()}
	for _, ws := range f.writes {
		for _, w := range ws {
			l.Add(w.key.name)
		}
	}
	b.Keys = l.End()
	b.Moves = make([]Move, 0, len(b.Nodes))
	for i := range ts {
		if n := ts[i].node(); i == 0 || n != ts[i-1].node() {
			if i > 0 {
				b.Moves[len(b.Moves)-1].To = l.End()
			}
			b.Moves = append(b.Moves, Move{From: n.Name})
		}
		f.addMoveTargets(l, &ts[i])
	}
	b.Moves[len(b.Moves)-1].To = l.End()
	f.deliverEvent(Event{Path: f.public, Step: f.step, Body: b})
}

// addMoveTargets adds where a task led.
func (f *frame) addMoveTargets(l *namelist.Lists, t *task) {
	n, add := t.node(), l.Add
	switch {
	case t.up.Halt != nil:
		add(End)
		return
	case t.up.failed != nil:
		add(n.OnError)
		return
	}
	for _, s := range t.up.Send {
		to, _ := n.resolveTarget(f.g, s.To)
		add(f.g.nameOf(to))
	}
	if t.up.Goto != nil {
		for _, name := range t.up.Goto {
			to, _ := n.resolveTarget(f.g, name)
			add(f.g.nameOf(to))
		}
		return
	}
	for _, to := range n.to {
		add(f.g.nameOf(to))
	}
	for i := range n.picks {
		labels, err := evaluateBranch(n, &n.picks[i], f.st.forReader())
		if err != nil {
			continue
		}
		for _, l := range labels {
			if to, ok := n.picks[i].cases[l]; ok {
				add(f.g.nameOf(to))
			}
		}
	}
	for _, j := range n.joins {
		add(f.g.nameOf(f.g.joins[j.join].to))
	}
}

// keepFailures keeps the failures that ended a path, for the Result.
func (f *frame) keepFailures(ts []task) {
	for i := range ts {
		t := &ts[i]
		if t.recovered != nil && t.node().OnError == End {
			e, ok := t.recovered.(*NodeError)
			if !ok { // from the journal, as text
				e = t.wrapNodeError(errors.New(t.up.failed.reason)).(*NodeError)
			}
			f.failures = append(f.failures, e)
		}
	}
}

// startPhase delivers the event of a phase if the consumer asks for it.
func (f *frame) startPhase(p Phase) {
	if f.drive.topics&TopicPhase != 0 {
		f.deliverEvent(Event{Path: f.public, Step: f.step, Body: PhaseStarted{Phase: p, Nodes: f.next.nodeNames(f.g)}})
	}
}

// stopBefore reports whether a frame must stop before its next step, and remembers the
// place.
func (b *breakpoints) stopBefore(f *frame) bool {
	f.breaks, f.broke = f.broke, nil
	if step, passed := b.passed[f.path]; !passed || step != f.step {
		for _, name := range f.next.nodeNames(f.g) {
			if f.g.nodes[f.g.byName[name]].BreakBefore || b.set[Break{Node: fold.StripTaskIndexes(f.public + name)}] {
				f.breaks = append(f.breaks, Break{Node: f.public + name})
			}
		}
	}
	if f.breaks == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	fold.SetEntry(&b.at, f.path, f.step)
	return true
}

// addBreaks sets the breaks of one drive. It refuses unknown nodes.
func (b *breakpoints) addBreaks(g *Graph, breaks []Break) error {
	for _, at := range breaks {
		at.Node = fold.StripTaskIndexes(at.Node)
		if !g.hasNode(at.Node) {
			return fmt.Errorf("graph %s: a break names node %q, which it does not have", g.def.Name, at.Node)
		}
		fold.SetEntry(&b.set, at, true)
	}
	return nil
}

// hasNode reports whether there is a node at a path.
func (g *Graph) hasNode(path string) bool {
	name, rest, below := strings.Cut(path, "/")
	i, ok := g.byName[name]
	if !ok || i == end {
		return false
	}
	n := &g.nodes[i]
	if !below || n.Graph != nil {
		return !below || n.Graph.hasNode(rest)
	}
	_, rest, below = strings.Cut(rest, "/") // after the name of a child, which only the run knows
	for _, sub := range n.Children {
		if !below || sub.Graph.hasNode(rest) {
			return below
		}
	}
	return false
}

// listSteps lists the steps that the next drive runs without stopping first: those before
// which this drive has stopped, and those that it ran so itself and has not finished.
func (b *breakpoints) listSteps(f *frame) map[string]int {
	all := b.at
	under := strconv.Itoa(f.step) + "."
	for path, step := range b.passed {
		live := path == "" && step == f.step || strings.HasPrefix(path, under)
		if _, known := b.at[path]; live && !known {
			fold.SetEntry(&all, path, step)
		}
	}
	return all
}

// noteAfter remembers which nodes of the step that was just committed ask for a stop.
func (b *breakpoints) noteAfter(f *frame) {
	ts := f.ts
	for i := range ts {
		n := ts[i].node()
		if (n.BreakAfter || b.set[Break{fold.StripTaskIndexes(f.public + n.Name), true}]) && (i == 0 || ts[i-1].ref.node != ts[i].ref.node) {
			f.broke = append(f.broke, Break{Node: f.public + n.Name, After: true})
		}
	}
}
