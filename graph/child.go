package graph

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/graph/internal/wire"
)

// Child is the outcome of a child graph.
type Child struct {
	State State
	Value any // of the Halt that ended it; nil: it ended without one
}

// Call runs the child graph of the node that ctx belongs to, once per task, as part of
// the same run: its steps, effects and questions are in the same journal, under the
// task's path. If the child waits or is paused, so is the task: the error is ErrWaiting
// or ErrPaused, and the node must return it. If the child ends in any other way than
// done, the error is the child's, and Child holds the state that the child has reached.
func Call(ctx context.Context, set ...Write) (Child, error) {
	c := callerOf(ctx)
	if c == nil {
		return Child{}, errors.New("graph: Call needs the context of a node")
	}
	t := c.holdTask()
	n := t.node()
	if n.Graph == nil {
		return Child{}, fmt.Errorf("graph: node %s calls a child, but its Node.Graph is nil", n.Name)
	}
	if err := t.beginCall(int(c.attempt)); err != nil {
		return Child{}, err
	}
	defer t.endCall()
	st, err := applyOverlay(t.frame.st, t.ref.over)
	if err != nil {
		return Child{}, err
	}
	f, returned, err := t.childFrame(ChildGraph{Graph: n.Graph, Inherit: n.Inherit}, place{path: t.frame.path + t.localID() + "/", public: t.publicPath() + "/"}, st, set)
	if err != nil {
		return Child{}, err
	}
	if !returned {
		status, err := t.drive.driveChild(ctx, f)
		if t.saveChildOutcome(f, status, err); err != nil {
			return Child{State: f.st}, err
		}
	}
	return Child{State: f.st, Value: f.value}, nil
}

// beginCall starts the one call that an attempt may make.
func (t *task) beginCall(attempt int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkNotEndedLocked(attempt); err != nil {
		return err
	}
	in := t.ensureInner()
	if in.nextOrdinal("\x00call") != "0" {
		return fmt.Errorf("graph: node %s calls its child twice in one task; use Send to run it several times", t.node().Name)
	}
	if in.calling {
		return fmt.Errorf("graph: the child of node %s still runs for an attempt that has failed; wait for Call before the node returns", t.node().Name)
	}
	t.inner.calling = true
	return nil
}

func (t *task) endCall() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inner.calling = false
	t.inner.stopped++
}

// runChildNode is the body of a node that only runs a child.
func runChildNode(ctx context.Context, n *cnode, st State) (up Update, err error) {
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
func (t *task) saveChildOutcome(f *frame, status Status, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ensureInner().failures, f.failures = append(t.ensureInner().failures, f.failures...), nil
	if t.ensureInner().below = f; t.drive.j == nil && t.canRetry() {
		t.inner.kept, t.inner.returned = f, err == nil && status == Done
	}
	t.waiting, t.paused = t.waiting || status == Waiting, t.paused || status == Paused
}

// place says where a frame is, in the journal and for people.
type place struct {
	path, public string
	named        bool // others run concurrently with it
}

// childFrame opens the frame that the journal holds, or starts a new one.
func (t *task) childFrame(sub ChildGraph, at place, st State, set []Write) (f *frame, returned bool, err error) {
	x := t.drive
	if f := t.keptChild(); f != nil && !at.named {
		return f, t.inner.returned, nil
	}
	frames, err := t.loadJournaledFrames()
	if err != nil {
		return nil, false, err
	}
	f = newFrame(sub.Graph, at.path, at.public)
	f.beside, f.keeps, f.listener = at.named || t.hasConcurrentTasks(), t.canRetry(), t.listeners()
	if sub.Inherit { // the child's writes are folded onto it, now and when the frame is opened again
		f.st = f.st.inheritKeys(st)
	}
	if raw := frames[at.path]; raw != nil && !t.isChildDropped(at.path) {
		f.frames = frames
		if f, err = raw.decodeFrame(f); err == nil && t.attempt > 1 && !raw.returned {
			x.j.addStateSize(f.storedSize())
		}
		if t.attempt > 1 || x.failures.Load() > 0 {
			f.since = x.activeTime()
		}
		return f, raw.returned, err
	}
	f.since, f.first = x.activeTime(), sub.Graph.def.First
	return f, false, x.beginFrame(f, set, KindCall, nil, nil)
}

// keptChild returns the child of a failed attempt if no journal holds it: it continues
// where it failed.
func (t *task) keptChild() *frame {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.ensureInner().kept
	if f != nil {
		f.again, f.ts, f.since = f.ts, nil, t.drive.activeTime()
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
func (t *task) loadJournaledFrames() (map[string]*rawFrame, error) {
	x := t.drive
	switch {
	case t.raw != nil && t.attempt == 1:
		return t.frames, nil
	case x.j != nil && t.attempt > 1:
		t.mu.Lock()
		defer t.mu.Unlock()
		in := t.ensureInner()
		if in.frames == nil {
			if err := x.j.flush(); err != nil {
				return nil, err
			}
			s, err := loadToDrive(t.base, x.j.store, x.j.thread)
			if err != nil {
				return nil, err
			}
			in.frames = s.frames
		}
		return in.frames, nil
	}
	return nil, nil
}

// isChildDropped reports whether a child was dropped in this attempt.
func (t *task) isChildDropped(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inner != nil && t.inner.dropped[path]
}

// driveChild drives a child frame to its end.
func (x *drive) driveChild(ctx context.Context, f *frame) (Status, error) {
	if limit := f.g.def.Timeout; limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, limit-(x.activeTime()-f.since), errRunTimeout)
		defer cancel()
		ctx = limited
	}
	status, err := x.driveFrame(ctx, f, false)
	switch {
	case status == Waiting:
		return status, ErrWaiting
	case status == Paused:
		return status, ErrPaused
	}
	x.j.addStateSize(-f.storedSize())
	if err == nil && x.j != nil {
		err = x.j.addRecord(KindReturn, wire.PutString(nil, f.path), nil, false)
	}
	return status, err
}

// A ChildGraph is a graph that a node may run as a child under several names: see CallChild.
type ChildGraph struct {
	Graph   *Graph
	Inherit bool // the child reads the parent's keys if it has not written them itself
	// OutsideDigest keeps the graph out of the digest of the parent's, for many graphs of which
	// a run uses few: it is compared when a run is resumed while such a child has not
	// ended.
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
	c := callerOf(ctx)
	if c == nil {
		return Child{}, errors.New("graph: CallChild needs the context of a node")
	}
	t := c.holdTask()
	sub, err := t.findChildGraph(name, kind)
	if err != nil {
		return Child{}, err
	}
	ctx, k, err := t.addChildCall(ctx, int(c.attempt), name)
	if err != nil {
		return Child{}, err
	}
	status := Failed
	defer func() { k.markStopped(t, status) }()
	st, err := applyOverlay(t.frame.st, t.ref.over)
	if err != nil {
		return Child{}, err
	}
	f, returned, err := t.childFrame(sub, place{t.childPath(name), t.publicPath() + "/" + name + "/", true}, st, set)
	if err != nil {
		return Child{}, err
	}
	k.frame = f
	if status = Done; !returned {
		if status, err = t.drive.driveChild(ctx, f); err != nil {
			return Child{State: f.st}, err
		}
	}
	return Child{State: f.st, Value: f.value}, nil
}

// DropChild ends a named child permanently: a child that runs is cancelled and waited for,
// its questions are closed, and nothing of it is kept. Call it for every child whose
// outcome is recorded elsewhere, so that a task with many children stays small. An
// unknown name does nothing. ctx must not be that of the child.
func DropChild(ctx context.Context, name string) error {
	c := callerOf(ctx)
	if c == nil {
		return errors.New("graph: Drop needs the context of a node")
	}
	t := c.holdTask()
	if err := t.checkNotEnded(int(c.attempt)); err != nil {
		return err
	}
	t.mu.Lock()
	k := t.ensureInner().calls[name]
	t.mu.Unlock()
	path := t.childPath(name)
	if k != nil {
		k.cancel(errDropped)
		<-k.done
	}
	frames, err := t.loadJournaledFrames()
	if err != nil {
		return err
	}
	t.mu.Lock()
	in := t.ensureInner()
	known := k != nil || frames[path] != nil && !in.dropped[path]
	delete(in.calls, name)
	setEntry(&in.dropped, path, true)
	t.mu.Unlock()
	x := t.drive
	if x.j == nil || !known {
		return nil
	}
	if k != nil && (k.status == Waiting || k.status == Paused) {
		x.j.addStateSize(-k.frame.storedSize())
	}
	return x.j.addRecord(KindReturn, wire.PutBool(wire.PutString(nil, path), true), nil, false)
}

// ChildNames returns the names of the children that earlier drives or attempts of the task
// have started and not dropped: sorted, whether they have returned or not.
func ChildNames(ctx context.Context) ([]string, error) {
	t := taskOf(ctx)
	if t == nil {
		return nil, errors.New("graph: Named needs the context of a node")
	}
	frames, err := t.loadJournaledFrames()
	if err != nil {
		return nil, err
	}
	prefix := t.childPath("")
	prefix = prefix[:len(prefix)-1] // without the '/'
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for path := range frames {
		name, below := strings.CutPrefix(path, prefix)
		name = strings.TrimSuffix(name, "/")
		if below && !strings.Contains(name, "/") && (t.inner == nil || !t.inner.dropped[path]) {
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
	c := callerOf(ctx)
	if c == nil {
		return errors.New("graph: Suspend needs the context of a node")
	}
	t := c.holdTask()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkNotEndedLocked(int(c.attempt)); err != nil {
		return err
	}
	t.paused = true
	return ErrPaused
}

// Causes for cancelling a named child.
var (
	errDropped = errors.New("graph: the child was dropped")
	errOver    = errors.New("graph: the node that called the child has returned")
)

// childCall is a named child of a task, in one attempt.
type childCall struct {
	frame  *frame // nil: it was not started
	status Status
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has stopped
}

func (k *childCall) markStopped(t *task, s Status) {
	t.mu.Lock()
	k.status = s
	t.inner.stopped++
	t.mu.Unlock()
	k.cancel(nil)
	close(k.done)
}

// findChildGraph finds the graph of a named child.
func (t *task) findChildGraph(name, kind string) (ChildGraph, error) {
	n := t.node()
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

// isValidName reports whether a name can be part of a path.
func isValidName(name string) bool { return name != "" && !strings.ContainsAny(name, "/#[") }

// childPath returns the path of a named child in the journal: no node's name contains '#'.
func (t *task) childPath(name string) string { return t.frame.path + t.localID() + "#" + name + "/" }

// addChildCall registers a child that is about to run.
func (t *task) addChildCall(ctx context.Context, attempt int, name string) (context.Context, *childCall, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkNotEndedLocked(attempt); err != nil {
		return ctx, nil, err
	}
	in := t.ensureInner()
	switch {
	case in.closed:
		return ctx, nil, fmt.Errorf("graph: node %s has returned; wait for its goroutines before it does", t.node().Name)
	case in.calls[name] != nil:
		return ctx, nil, fmt.Errorf("graph: node %s calls its child %s twice; Drop it first", t.node().Name, name)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	k := &childCall{cancel: cancel, done: make(chan struct{})}
	setEntry(&in.calls, name, k)
	return ctx, k, nil
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
	for _, k := range kids {
		k.cancel(errOver)
	}
	for _, k := range kids {
		<-k.done
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	in.others = in.others[:0]
	for _, name := range sortedKeys(kids) {
		k := kids[name]
		t.waiting, t.paused = t.waiting || k.status == Waiting, t.paused || k.status == Paused
		if f := k.frame; f != nil {
			in.others = append(in.others, f)
			in.failures, f.failures = append(in.failures, f.failures...), nil
		}
	}
}

// dropChild removes a named child, and the children below it.
func (s *replay) dropChild(path string) {
	maps.DeleteFunc(s.frames, func(p string, _ *rawFrame) bool { return strings.HasPrefix(p, path) })
}

// childPathsByTask lists the paths of named children by the path of their task, each list by name.
func (s *replay) childPathsByTask() map[string][]string {
	var by map[string][]string
	for _, path := range sortedKeys(s.frames) {
		if hash := strings.LastIndexByte(path, '#'); hash > strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/') {
			setEntry(&by, path[:hash], append(by[path[:hash]], path))
		}
	}
	for _, paths := range by {
		slices.SortFunc(paths, func(a, b string) int { return strings.Compare(a[:len(a)-1], b[:len(b)-1]) })
	}
	return by
}

// compareGraphs compares the graphs with those that the run was started with, and returns
// the records of the caller's consent for the journal.
func (x *drive) compareGraphs(s *replay, accept bool) (consents []Record, err error) {
	g, raw := x.r.Graph, s.ensureFrame("")
	if raw.digest != g.digest {
		e := &ChangedError{Thread: x.thread, Was: raw.digest, Is: g.digest}
		for _, t := range raw.tasks {
			if _, ok := g.byName[t.node]; !ok {
				e.Missing = append(e.Missing, t.node)
			}
		}
		if !accept || e.Missing != nil {
			return nil, e
		}
	}
	w := comparison{replay: s, named: s.childPathsByTask()}
	if w.named == nil {
		return nil, nil
	}
	if f := s.frames[sharedPath]; f != nil {
		w.agreed = f.effects
	}
	w.walkFrame("", "", g)
	for _, c := range w.changes {
		if !accept {
			c.Thread = x.thread
			return nil, &c.ChangedError
		}
		consents = append(consents, Record{Kind: KindEffect, Head: wire.PutTexts(nil, sharedPath, c.consent), Data: []byte(strconv.Quote(c.Is))})
	}
	return consents, nil
}

// comparison walks through the frames that have not ended and compares the graphs of
// named children with those that the nodes have now. Those of a ChildGraph with OutsideDigest are
// not part of the digest of the run's graph.
type comparison struct {
	*replay
	named   map[string][]string // children, by task
	agreed  map[string][]byte   // what the caller has consented to before
	changes []change
}

type change struct {
	ChangedError
	consent string // the journal's key for the consent
}

func (w *comparison) walkFrame(path, public string, g *Graph) {
	f := w.frames[path]
	if f == nil {
		return
	}
	for _, t := range f.tasks {
		id := fmt.Sprintf("%d.%s.%d", f.step, t.node, t.index)
		at, known := g.byName[t.node]
		if _, done := f.done[id]; done || !known || at == end {
			continue
		}
		n := &g.nodes[at]
		if n.Graph != nil {
			w.walkFrame(path+id+"/", public+t.node+"/", n.Graph)
		}
		for _, below := range w.named[path+id] {
			w.compareChild(n, below, public+t.node+"/"+strings.TrimSuffix(below[len(path+id)+1:], "/"))
		}
	}
}

// compareChild compares one named child. The journal does not record its kind: one of the
// graphs must be the one that it was started with.
func (w *comparison) compareChild(n *cnode, path, public string) {
	f := w.frames[path]
	for _, kind := range sortedKeys(n.Children) {
		if g := n.Children[kind].Graph; g.digest == f.digest {
			w.walkFrame(path, public+"/", g)
			return
		}
	}
	c := change{ChangedError{Child: public, Was: f.digest, Is: n.childDigest()}, "\x00graph\x00=" + path}
	if !f.returned && string(w.agreed[c.consent]) != strconv.Quote(c.Is) {
		w.changes = append(w.changes, c)
	}
}

// childDigest identifies all graphs of named children.
func (n *cnode) childDigest() string {
	h := sha256.New()
	for _, kind := range sortedKeys(n.Children) {
		_, _ = io.WriteString(h, fmt.Sprintf("%q\n", []string{kind, n.Children[kind].Graph.digest}))
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// ChangedError says that the graph that is to continue a run is not the one that
// started it.
type ChangedError struct {
	Thread  string
	Was, Is string   // digests
	Missing []string // nodes that the run is about to execute and that the graph no longer has
	Child   string   // the path of the named child whose graph has changed; empty: the run's own graph
}

func (e *ChangedError) Error() string {
	s := fmt.Sprintf("thread %s was started with graph %s, which is now %s", e.Thread, e.Was, e.Is)
	switch {
	case e.Child != "":
		s = fmt.Sprintf("thread %s: its child %s was started with graph %s, which no longer exists", e.Thread, e.Child, e.Was)
	case len(e.Missing) > 0:
		return s + "; it no longer has " + strings.Join(e.Missing, ", ")
	}
	return s + "; set AcceptChanges to continue with what there is now"
}
