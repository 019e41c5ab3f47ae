package graph

import "context"

// supervision is what a frame needs while nodes that hang are watched for.
type supervision struct {
	lane      *lane              // lane of the goroutine that drives the frame, if nodes run on it
	watch     *watch             // watch of the step's context
	outer     *watch             // watch of the frame's context, while the step has its own
	cancel    context.CancelFunc // cancels the step's context; nil: it has none
	executing bool               // the tasks of a step are running
}

// endStep ends the step's own context, if it has one.
func (f *frame) endStep() {
	if f.cancel != nil {
		f.cancel()
		f.watch.endWatch()
		f.watch, f.outer, f.cancel = f.outer, nil, nil
	}
}

// A frameDriver drives a frame on a separate goroutine, so that another can continue after a
// node that hangs.
type frameDriver struct {
	x     *drive
	ctx   context.Context
	f     *frame
	root  bool
	watch *watch

	done   chan struct{} // closed when the fields below are set
	status Status
	err    error
}

// driveFrame drives a frame until it stops.
func (x *drive) driveFrame(ctx context.Context, f *frame, root bool) (Status, error) {
	w := x.newWatch(ctx)
	if w == nil {
		return x.runSteps(ctx, f, root)
	}
	f.watch = w
	if root && x.topics != 0 { // the reader's goroutine runs no node that can hang
		defer w.endWatch()
		return x.runSteps(ctx, f, root)
	}
	s := &frameDriver{x: x, ctx: ctx, f: f, root: root, watch: w, done: make(chan struct{})}
	go s.run(s.newLane(), nil)
	<-s.done
	f.supervision = supervision{}
	return s.status, s.err
}

// newLane returns a new lane that is watched.
func (s *frameDriver) newLane() *lane {
	l := &lane{by: s}
	s.watch.addLane(l)
	return l
}

// run drives the frame. If first is not nil, it runs first to end a step, and starts
// there. first returns false if the lane was left.
func (s *frameDriver) run(l *lane, first func() bool) {
	x, f := s.x, s.f
	f.lane = l
	over := false
	defer func() {
		switch {
		case l.isReplaced():
			return
		case over:
		case f.executing: // a node has ended this goroutine, and has failed
			go s.run(s.newLane(), func() bool { return true })
			return
		default:
			s.status, s.err = Failed, errGoexit
		}
		s.watch.endWatch()
		close(s.done)
	}()
	status, err := Running, error(nil)
	if first != nil {
		if !first() {
			return
		}
		f.executing = false
		f.endStep()
		status, err = x.concludeStep(s.ctx, f, s.root)
	}
	if status == Running {
		status, err = x.runSteps(s.ctx, f, s.root)
	}
	if err != errLeft {
		s.status, s.err, over = status, err, true
	}
}

// takeOverTask implements successor.
func (s *frameDriver) takeOverTask(t *task, hung error) {
	l := t.replaceLane(s, s.watch)
	if w := s.f.watch; w != s.watch {
		w.addLane(l)
	}
	s.run(l, func() bool { return t.carryOn(false, hung) })
}
