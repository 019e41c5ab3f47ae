package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"raddle.dev/graph/internal/wire"
)

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
