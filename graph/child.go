package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/migration"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/writer"
	"raddle.dev/graph/journal"
)

// Child is the outcome of a child graph. The zero Child has an empty State.
type Child struct {
	// State is the state that the child has reached.
	State State

	// Value is that of the Halt that ended the child; nil: it ended without one.
	Value any

	// Failures are those that ended a path in the child or below it (OnError: End), in task order; nil: there are none.
	// After a resume each Err has only the text of the failure.
	Failures []*NodeError
}

// Call runs the child graph of the node that ctx belongs to, once per task, as part of
// the same run: its steps, effects and questions are in the same journal, under the
// task's path. If the child waits or is paused, so is the task: the error is ErrWaiting
// or ErrPaused, and the node must return it. If the child ends in any other way than
// done, the error is the child's, and Child holds the state that the child has reached.
func Call(ctx context.Context, set ...Write) (Child, error) {
	a, ok := attemptOf(ctx)
	if !ok {
		return Child{}, errors.New("graph: Call needs the context of a node")
	}
	n := a.node()
	if n.Graph == nil {
		return Child{}, fmt.Errorf("graph: node %s calls a child, but its Node.Graph is nil", n.Name)
	}
	if err := a.beginCall(); err != nil {
		return Child{}, err
	}
	defer a.endCall()
	f, returned, err := a.openChild(ChildGraph{Graph: n.Graph, Inherit: n.Inherit}, frameLocation{path: a.frame.path + a.localID() + "/", public: a.publicPath() + "/"}, set)
	if err != nil {
		return Child{}, err
	}
	status := Done
	if !returned {
		status, err = f.driveChild(ctx)
	}
	if a.saveChildOutcome(f, status, err); err != nil {
		return Child{State: f.st.forReader(), Failures: f.failures}, err
	}
	return Child{State: f.st.forReader(), Value: f.value, Failures: f.failures}, nil
}

// beginCall starts the one call that an attempt may make.
func (a attempt) beginCall() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkNotEndedLocked(); err != nil {
		return err
	}
	in := a.ensureInner()
	if in.ordinals.NextOrdinal("\x00call") != "0" {
		return fmt.Errorf("graph: node %s calls its child twice in one task; use Send to run it several times", a.node().Name)
	}
	if in.calling {
		return fmt.Errorf("graph: the child of node %s still runs for an attempt that has failed; wait for Call before the node returns", a.node().Name)
	}
	in.calling = true
	return nil
}

// endCall records that the child of Call has stopped.
func (a attempt) endCall() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inner.calling = false
	a.inner.stopped++
}

// runChildNode is the body of a node that only runs a child.
func runChildNode(ctx context.Context, n *compiledNode, st State) (up Update, err error) {
	var set []Write
	if n.In != nil {
		if set, err = n.In(st); err != nil {
			return up, err
		}
	}
	child, err := Call(ctx, set...)
	if err != nil || n.Out == nil {
		return up, err
	}
	return n.Out(st, child)
}

// saveChildOutcome keeps what the rest of the step needs of a child that has stopped.
func (a attempt) saveChildOutcome(f *frame, status Status, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	in := a.ensureInner()
	in.failures = append(in.failures, f.failures...)
	if in.below = f; a.drive.journal == nil && a.canRetry() && !f.isEnding() {
		in.kept, in.returned = f, err == nil && status == Done
	}
	a.waiting, a.paused = a.waiting || status == Waiting, a.paused || status == Paused
}

// frameLocation says where a frame is, in the journal and for people.
type frameLocation struct {
	path, public string
	named        bool // others run concurrently with it
}

// openChild opens the frame that the journal holds, or starts a new one. returned reports
// whether the child has ended.
func (a attempt) openChild(sub ChildGraph, at frameLocation, set []Write) (f *frame, returned bool, err error) {
	d := a.drive
	if f := a.keptChild(); f != nil && !at.named {
		return f, a.inner.returned, nil
	}
	frames, err := a.loadJournaledFrames()
	if err != nil {
		return nil, false, err
	}
	st, err := applyOverlay(a.frame.st, a.ref.over, d.settings.Debug)
	if err != nil {
		return nil, false, err
	}
	f = newFrame(d, sub.Graph, at.path, at.public)
	f.concurrent, f.keeps, f.listener = at.named || a.hasConcurrentTasks(), a.canRetry(), a.listeners()
	if sub.Inherit { // the child's writes are folded onto it, now and when the frame is opened again
		f.st = f.st.inheritKeys(st)
	}
	if raw := frames[at.path]; raw != nil && !a.isChildDropped(at.path) {
		f.frames = frames
		if f, err = f.restoreFrame(raw); err == nil && a.n > 1 && !raw.Returned {
			d.journal.AddStateSize(f.storedSize())
		}
		if a.n > 1 || d.failures.Load() > 0 {
			f.since = d.activeTime()
		}
		return f, raw.Returned, err
	}
	f.since, f.first = d.activeTime(), sub.Graph.def.First
	return f, false, f.begin(set, journal.KindCall, &record.Parts{})
}

// keptChild returns the child of a failed attempt if no journal holds it: it continues
// where it failed.
func (a attempt) keptChild() *frame {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.ensureInner().kept
	if f != nil {
		f.again, f.ts, f.since = f.ts, nil, a.drive.activeTime()
	}
	return f
}

// canRetry reports whether a result of the task may be needed again without a store,
// because the task, or a node above it, is retried.
func (t *task) canRetry() bool { return t.frame.keeps || t.retry().Attempts > 1 }

// restoreAttempt takes over what the task has done in an earlier attempt of a node above it.
func (t *task) restoreAttempt(was *task) {
	if was.err == nil && !was.waiting && !was.paused {
		t.recorded, t.up, t.recovered = true, was.up, was.recovered
		return
	}
	was.mu.Lock()
	defer was.mu.Unlock()
	if in := was.inner; in != nil {
		t.inner = &nodeActivity{results: in.results, kept: in.kept, returned: in.returned}
	}
}

// loadJournaledFrames returns the frames that an earlier drive or attempt left, if any: a retried
// child continues where it failed, and so do the children below it.
func (a attempt) loadJournaledFrames() (map[string]*record.Frame, error) {
	d := a.drive
	switch {
	case a.raw != nil && a.n == 1:
		return a.frames, nil
	case d.journal != nil && a.n > 1:
		a.mu.Lock()
		frames := a.ensureInner().frames
		a.mu.Unlock()
		if frames != nil {
			return frames, nil
		}
		if err := d.journal.Flush(); err != nil { // without the lock: the store may be away for minutes
			return nil, err
		}
		s, err := fold.LoadToDrive(a.base, d.settings.Store, d.thread)
		if err != nil {
			return nil, err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.inner.frames == nil { // no other child has read them meanwhile
			a.inner.frames = s.Frames
		}
		return a.inner.frames, nil
	}
	return nil, nil
}

// isChildDropped reports whether a child was dropped in this attempt.
func (a attempt) isChildDropped(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inner != nil && a.inner.dropped[path]
}

// driveChild drives a child frame to its end.
func (f *frame) driveChild(ctx context.Context) (Status, error) {
	d := f.drive
	limited := ctx
	if limit := f.g.def.Timeout; limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, limit-(d.activeTime()-f.since), errRunTimeout)
		defer cancel()
	}
	status, err := f.driveToEnd(ctx, limited, "")
	switch {
	case status == Waiting:
		return status, ErrWaiting
	case status == Paused:
		return status, ErrPaused
	}
	d.journal.AddStateSize(-f.storedSize())
	if ended := status.Final() && err != nil; (err == nil || ended) && d.journal != nil {
		if e := d.journal.AddRecord(journal.KindReturn, &record.Parts{Path: f.path, Dropped: ended}, false); e != nil {
			err = writer.FirstError(err, e)
		}
	}
	return status, err
}

// A ChildGraph is a graph that a node may run as a child under several names: see CallChild.
type ChildGraph struct {
	// Graph is the graph. It must be made by Compile.
	Graph *Graph

	// Inherit lets the child read those keys of the parent that it has not written
	// itself.
	Inherit bool

	// OutsideDigest keeps the graph out of the digest of the parent's, for many graphs of
	// which a run uses few: it is compared when a run is resumed while such a child has
	// not ended.
	OutsideDigest bool
}

// CallChild runs a child graph under a name, like Call. kind selects the graph from
// Node.Children. A task may have any number of children, each under a different name,
// and may call them from several goroutines at once. Each child has its own frame in
// the journal, so that a node that runs again and calls the same names continues each
// child where it stopped; a child that has returned is not run again.
//
// If a child waits or is paused, CallChild returns ErrWaiting or ErrPaused, and the
// other children continue: the node must return when none of them runs any more, and
// the questions of all are open together. Whatever the node returns then, its task
// waits as long as a child waits that was not dropped. A child that still runs when the
// node returns is cancelled and waited for. ctx, which may end sooner than the node's,
// cancels only this child.
//
// A name must not be empty and must not contain '/', '#' or '['. It can be called once
// in an attempt of the node, and again after DropChild. If a child that was started fails,
// Child holds the state that it has reached.
func CallChild(ctx context.Context, name, kind string, set ...Write) (Child, error) {
	a, ok := attemptOf(ctx)
	if !ok {
		return Child{}, errors.New("graph: CallChild needs the context of a node")
	}
	sub, err := a.findChildGraph(name, kind)
	if err != nil {
		return Child{}, err
	}
	ctx, c, err := a.addChildCall(ctx, name)
	if err != nil {
		return Child{}, err
	}
	status := Failed
	defer func() { c.markStopped(a.task, status) }()
	f, returned, err := a.openChild(sub, frameLocation{a.childPath(name), a.publicPath() + "/" + name + "/", true}, set)
	if err != nil {
		return Child{}, err
	}
	c.frame = f
	if status = Done; !returned {
		if status, err = f.driveChild(ctx); err != nil {
			return Child{State: f.st.forReader(), Failures: f.failures}, err
		}
	}
	return Child{State: f.st.forReader(), Value: f.value, Failures: f.failures}, nil
}

// DropChild ends a named child permanently: a child that runs is cancelled and waited for,
// its questions are closed, and nothing of it is kept. Call it for every child whose
// outcome is recorded elsewhere, so that a task with many children stays small. An
// unknown name does nothing. ctx must not be that of the child.
func DropChild(ctx context.Context, name string) error {
	a, ok := attemptOf(ctx)
	if !ok {
		return errors.New("graph: DropChild needs the context of a node")
	}
	if err := a.checkNotEnded(); err != nil {
		return err
	}
	a.mu.Lock()
	c := a.ensureInner().calls[name]
	a.mu.Unlock()
	path := a.childPath(name)
	if c != nil {
		c.cancel(errDropped)
		<-c.done
	}
	frames, err := a.loadJournaledFrames()
	if err != nil {
		return err
	}
	a.mu.Lock()
	in := a.ensureInner()
	known := c != nil || frames[path] != nil && !in.dropped[path]
	delete(in.calls, name)
	fold.SetEntry(&in.dropped, path, true)
	a.mu.Unlock()
	d := a.drive
	if d.journal == nil || !known {
		return nil
	}
	if c != nil && (c.status == Waiting || c.status == Paused) {
		d.journal.AddStateSize(-c.frame.storedSize())
	}
	return d.journal.AddRecord(journal.KindReturn, &record.Parts{Path: path, Dropped: true}, false)
}

// ChildNames returns the names of the children that earlier drives or attempts of the task
// have started and not dropped: sorted, whether they have returned or not.
func ChildNames(ctx context.Context) ([]string, error) {
	a, ok := attemptOf(ctx)
	if !ok {
		return nil, errors.New("graph: ChildNames needs the context of a node")
	}
	frames, err := a.loadJournaledFrames()
	if err != nil {
		return nil, err
	}
	prefix := strings.TrimSuffix(a.childPath(""), "/")
	a.mu.Lock()
	defer a.mu.Unlock()
	var names []string
	for path := range frames {
		name, below := strings.CutPrefix(path, prefix)
		name = strings.TrimSuffix(name, "/")
		if below && !strings.Contains(name, "/") && (a.inner == nil || !a.inner.dropped[path]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Suspend ends the drive at the task that ctx belongs to, as Paused, without a question
// of its own, and returns the error that the node must return. It is for a node that
// can continue only after something else that waits, such as another child of its
// parent. The node runs again from its top when the run is resumed.
func Suspend(ctx context.Context) error {
	a, ok := attemptOf(ctx)
	if !ok {
		return errors.New("graph: Suspend needs the context of a node")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkNotEndedLocked(); err != nil {
		return err
	}
	a.paused = true
	return ErrPaused
}

// Causes for cancelling a named child.
var (
	errDropped = errors.New("graph: the child was dropped")
	errOver    = errors.New("graph: the node that called the child has returned")
)

func (c *childCall) markStopped(t *task, s Status) {
	t.mu.Lock()
	c.status = s
	t.inner.stopped++
	t.mu.Unlock()
	c.cancel(nil)
	close(c.done)
}

// findChildGraph finds the graph of a named child.
func (a attempt) findChildGraph(name, kind string) (ChildGraph, error) {
	n := a.node()
	if !isValidName(name) {
		return ChildGraph{}, fmt.Errorf("graph: node %s calls a child %q: a name is not empty, and has no '/', '#' or '['", n.Name, name)
	}
	sub, ok := n.Children[kind]
	if !ok {
		return sub, fmt.Errorf("graph: node %s calls a child of kind %q, but its Node.Children has only %s", n.Name, kind,
			strings.Join(slices.Sorted(maps.Keys(n.Children)), ", "))
	}
	return sub, nil
}

// childPath returns the path of a named child in the journal: no node's name contains '#'.
func (a attempt) childPath(name string) string { return a.frame.path + a.localID() + "#" + name + "/" }

// addChildCall registers a child that is about to run.
func (a attempt) addChildCall(ctx context.Context, name string) (context.Context, *childCall, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkNotEndedLocked(); err != nil {
		return ctx, nil, err
	}
	in := a.ensureInner()
	switch {
	case in.closed:
		return ctx, nil, fmt.Errorf("graph: node %s has returned; wait for its goroutines before it does", a.node().Name)
	case in.calls[name] != nil:
		return ctx, nil, fmt.Errorf("graph: node %s calls its child %s twice; DropChild it first", a.node().Name, name)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c := &childCall{cancel: cancel, done: make(chan struct{})}
	fold.SetEntry(&in.calls, name, c)
	return ctx, c, nil
}

// endChildren ends the named children when their node has returned: it cancels those that
// run, and makes the task wait for those that wait.
func (t *task) endChildren() {
	t.mu.Lock()
	in := t.inner
	if in == nil || in.calls == nil {
		t.mu.Unlock()
		return
	}
	in.closed = true
	kids := maps.Clone(in.calls)
	t.mu.Unlock()
	for _, c := range kids {
		c.cancel(errOver)
	}
	for _, c := range kids {
		<-c.done
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	in.others = in.others[:0]
	for _, name := range slices.Sorted(maps.Keys(kids)) {
		c := kids[name]
		t.waiting, t.paused = t.waiting || c.status == Waiting, t.paused || c.status == Paused
		if f := c.frame; f != nil {
			in.others = append(in.others, f)
			in.failures, f.failures = append(in.failures, f.failures...), nil
		}
	}
}

// compareGraphs compares the graphs with those that the run was started with, after the migrations that cover what has changed. It
// returns the record of these, and those of the caller's consent for the journal.
func (d *drive) compareGraphs(s *fold.Thread, accept bool) (migrated, consents []journal.Record, err error) {
	g := d.settings.Graph
	if p := g.planMigration(s, d.thread); p != nil {
		switch {
		case p.Covered:
			migrated = []journal.Record{p.takeOver(s, journal.AuthorOf(d.ctx))}
			d.migrated = p.Done
		case !accept || p.Missing != nil:
			return nil, nil, &p.ChangedError
		}
	}
	named := s.ChildPathsByTask()
	if named == nil {
		return migrated, nil, nil
	}
	var agreed map[string][]byte
	if f := s.Frames[sharedPath]; f != nil {
		agreed = f.Effects
	}
	consent := func(path string) string { return EffectID{Name: "graph", Call: "=" + path}.String() }
	for _, c := range migration.CompareChildren(&s.ThreadState, named, g.migrationTarget(s.Shape), func(path string) string { return string(agreed[consent(path)]) }) {
		if !accept {
			return nil, nil, &ChangedError{Thread: d.thread, Child: c.Public, Was: c.Was, Is: c.Is}
		}
		consents = append(consents, fold.NewRecord(journal.KindEffect, &record.Parts{Path: sharedPath, ID: consent(c.Path), Value: []byte(strconv.Quote(c.Is))}))
	}
	return migrated, consents, nil
}
